// Join records and images of suspended threads: the objects of the join protocol (docs/protocols/join.md).
#pragma once

#include "base/cpu.hpp"
#include "context/exceptions.hpp"
#include "sched/heap.hpp"

#include <godwit/detail/slow_path.hpp>

namespace godwit::sched {

// Values of record::state that are not the location of a waiting image.
inline constexpr std::uint64_t state_none = 0;      ///< nobody came yet
inline constexpr std::uint64_t state_done = 1;      ///< the child is done, the result is there
inline constexpr std::uint64_t state_detached = 2;  ///< nobody will come for the result

/// A result, in one piece so that it travels in one.
struct result_words {
  std::uint64_t object;  ///< ref of a `bytes` object, 0: inline
  std::uint32_t bytes;
  detail::outcome kind;
  std::uint8_t boxed;              ///< the bytes are a detail::boxed
  alignas(8) std::byte small[40];  ///< the result, where it fits
};

/// The place where a child and the consumers of its result meet. Made when a parent's continuation becomes
/// public or leaves; home: the worker that ran the parent then. All zero: nobody came yet, and there is no
/// value.
struct record : object {
  word state;       ///< swapped by the child, compare-exchanged by waiters
  word references;  ///< consumers. W consumers
  /// W child before JN1, R consumers after JN2. A line ends with its head: that is all of a thread without a
  /// value
  result_words result;
  /// return address of the child's spawn, for messages; 0: not known. W owner before it is public
  std::uintptr_t spawned_at;
  std::uint64_t done_ns;  ///< when it was completed; 0 if that did not go through finish. W child before JN1
  union {
    /// with options::span: longest chain up to the end (before it begins: up to the begin) of the child. W
    /// child before JN1
    std::uint64_t span_ns;
    std::uint64_t made_by;  ///< run to completion: number of the thread that may join. W owner, R owner
  };
};
static_assert(sizeof(record) == 128);

/// What no record can do without: nobody came, one consumer, no value.
[[gnu::always_inline]] inline void begin_record(record* r) noexcept {
  r->state.store(state_none, std::memory_order_relaxed);
  r->references.store(1, std::memory_order_relaxed);
  r->result.object = 0;
  r->result.bytes = 0;
  r->result.kind = detail::outcome::value;
  r->result.boxed = 0;
  r->float_control = base::float_control();
}
/// All of it.
inline void clear_record(record* r) noexcept {
  begin_record(r);
  r->spawned_at = 0;
  r->done_ns = 0;
  r->span_ns = 0;
}

/// A tally: a record in which parts are counted off, until the last one goes on with what is above it. EW2
/// Gives that back, and then the record is to be freed; else 0.
inline ref count_off_from(record& tally) noexcept {
  return tally.references.fetch_sub(1, std::memory_order_acq_rel) == 1 ? tally.result.object : 0;
}

/// What a ready queue touches of an image: one line with its head.
struct queue_link {
  /// of the saved context; 0: the thread has not begun (fresh_thread), and there is nothing but this link;
  /// not_begun: the same, with a parcel
  std::uint64_t sp;
  ref next;         ///< in a waiters' list or a queue
  ref prev;         ///< in a ready queue: the one before it (meaningless for the first)
  ref waiting_for;  ///< record it waits for; 0: it is ready
};

/// A thread that does not run: its stack bytes and how to go on. Home: the worker where it stopped.
struct image : object, queue_link {
  using queue_link::next;  // object's are of the heap's list
  using queue_link::prev;
  std::uint64_t fp;     ///< fork only
  std::uint64_t extra;  ///< fork only
  std::uint64_t low;    ///< the saved bytes are [low, bytes_end)
  std::uint64_t top;    ///< end of the thread's stack
  /// top, or beyond it: then the bytes of its ancestors' frames are with it (frames.hpp)
  std::uint64_t bytes_end;
  ref own_record;         ///< what this thread completes when it ends
  ref waited_for;         ///< record of the join that it suspended at; 0: a yield
  const char* parked_at;  ///< kind of what it waits for, if that is no record (park); null: it is
  bool fork;              ///< saved by fork_call (else by godwit_ctx_suspend)
  /// sent to this host, or with exceptions, or it names the host's heap: other hosts leave it here. Whoever
  /// has it, or the lock of its queue
  mutable bool bound;
  mutable bool searched;       ///< for names of the heap. Likewise
  bool stale_words;            ///< and all that it names there had been freed when it was put aside. W once
  ref status;                  ///< fork: the record of the child it spawned last, handed to fork_call
  std::uint64_t suspended_ns;  ///< when it suspended
  std::uint64_t ready_ns;      ///< when it became ready, 0: not known. W who completes the record
  std::uint64_t span_ns;       ///< with options::span: longest chain up to here
  detail::place where;         ///< of the join, for reports; the pointers are valid in all siblings
  context::exception_state exceptions;  ///< that it is in the middle of
  /// where stacks do not stay: what it leaves behind, or takes along, if another host takes it
  data_part data;
  std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// Room for closures from elsewhere, aligned as they are.
struct alignas(64) closure_line {
  std::byte bytes[64];
};

/// Child stealing: a thread that has not begun. It is its own join record; the closure's bytes follow.
struct alignas(16) task : record {
  detail::task_entry* entry;
  std::uint64_t closure_bytes;
  /// of the worker that spawned it: then it must begin there (docs/protocols/frames.md)
  bool refers_to_stacks;
  std::byte* closure() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// Substrate threads: a thread that has not begun, in a ready queue by what would be the begin of its image,
/// of which only the link is there. The closure's bytes follow. Two lines, if closure and result are small.
struct fresh_thread : record {
  queue_link link;
  detail::task_entry* entry;
  std::uint64_t closure_bytes;
  std::byte* closure() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  /// From the record to the image that is none.
  static constexpr std::size_t image_at = sizeof(record) - sizeof(object);
};
static_assert(sizeof(image) - sizeof(object) > sizeof(queue_link) && sizeof(fresh_thread) % 16 == 0);

/// A thread that is sent to where it is to begin: in a letter, then behind an image that has no stack yet.
/// The closure's bytes follow. docs/protocols/parcels.md
struct alignas(64) parcel {
  detail::task_entry* entry;
  ref record;               ///< completed by its end
  std::uint64_t bytes;      ///< of the closure
  std::uint64_t address;    ///< in global memory: it begins where that is; 0: at the worker it was sent to
  std::uint64_t owner;      ///< of the memory, as places say it; 0: not known
  std::uint32_t redirects;  ///< so many hosts sent it on
  std::uint32_t float_control;
  ref object;  ///< what holds it here until the closure is taken out; 0: nothing
  const std::byte* closure() const noexcept { return reinterpret_cast<const std::byte*>(this + 1); }
  /// With the closure, in lines.
  std::uint64_t all_bytes() const noexcept { return sizeof(parcel) + (bytes + 63) / 64 * 64; }
};
static_assert(sizeof(parcel) == 64);
inline constexpr std::uint64_t not_begun = 1;
struct parcel_image : image {
  parcel what;
};

/// Something to call on another worker.
struct alignas(64) message : object {
  ref next;
  ref done;  ///< record to complete; 0: none
  void (*call)(const void*);
  std::uint64_t bytes;  ///< of the closure
  ref elsewhere;        ///< from another host, and so large that it stayed there: the object; else 0
  const std::byte* closure() const noexcept { return reinterpret_cast<const std::byte*>(this + 1); }
};

}  // namespace godwit::sched
