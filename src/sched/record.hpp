// Join records and images of suspended threads: the objects of the join protocol (docs/protocols/join.md).
#pragma once

#include "base/cpu.hpp"
#include "context/exceptions.hpp"
#include "sched/carried.hpp"
#include "sched/heap.hpp"

#include <godwit/detail/slow_path.hpp>

#include <cstring>

namespace godwit::sched {

// Values of record::state that are not the location of a waiting image.
inline constexpr std::uint64_t state_none = 0;  ///< nobody came yet
inline constexpr std::uint64_t state_done = 1;  ///< the child is done, the result is there
/// nobody will come for the result; in the bits above it may be the ref of a tally, which then counts one off
inline constexpr std::uint64_t state_detached = 2;
inline constexpr std::uint64_t state_bits = heap::grain - 1;  ///< that no location has
constexpr bool is_detached(std::uint64_t state) noexcept { return (state & state_bits) == state_detached; }
constexpr bool is_image(std::uint64_t state) noexcept { return state != 0 && (state & state_bits) == 0; }
constexpr ref tally_in(std::uint64_t state) noexcept { return state & ~state_bits; }

/// A result, in one piece so that it travels in one.
struct result_words {
  std::uint64_t object;  ///< ref of a `bytes` object, 0: inline
  std::uint32_t bytes;
  detail::outcome kind;
  detail::owning owns;             ///< nothing, once it is taken
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
  /// return address of the child's spawn, for messages; 0: not known. W owner before it is public. A created
  /// thread may have old bytes here and in the next word, where nobody reads them (create_thread)
  std::uintptr_t spawned_at;
  union {
    std::uint64_t
        done_ns;  ///< when it was completed; 0 if that did not go through finish. W child before JN1
    /// in the list of a tally: the part that failed before it. W who adds it, before (TY5)
    ref next_failed;
  };
  union {
    /// with options::span: longest chain up to the end of the child; of a thread that begins later, up to its
    /// creation until it begins. W creator, child before JN1 if there is no `part` (TY4)
    std::uint64_t span_ns;
    /// run to completion: number of the thread that may join, or wait for parts of a tally. W, R owner
    std::uint64_t made_by;
    std::uint64_t part;  ///< of a tally: its number, with is_part. W who detaches it, before that
  };
};
static_assert(sizeof(record) == 128);
inline constexpr std::uint64_t is_part = std::uint64_t{1} << 63;  // no span is that long
/// Of record::span_ns, which may be a part's number.
constexpr std::uint64_t chain_of(std::uint64_t word) noexcept { return (word & is_part) != 0 ? 0 : word; }

/// Until the child has a result, the room for it holds what goes with somebody else: with a continuation that
/// is public, or with a thread that has not begun.
inline void put_carried(record& r, const carried& c) noexcept {
  static_assert(sizeof c <= sizeof r.result.small);
  std::memcpy(r.result.small, &c, sizeof c);
}
inline carried carried_by(const record& r) noexcept {
  carried c;
  std::memcpy(&c, r.result.small, sizeof c);
  return c;
}
/// In float_control of a slot that is public: its record has such words.
inline constexpr std::uint64_t slot_carries = std::uint64_t{1} << 32;

/// What no record can do without: nobody came, one consumer, no value.
[[gnu::always_inline]] inline void begin_record(record* r) noexcept {
  r->state.store(state_none, std::memory_order_relaxed);
  r->references.store(1, std::memory_order_relaxed);
  r->result.object = 0;
  r->result.bytes = 0;
  r->result.kind = detail::outcome::value;
  r->result.owns = detail::owning::nothing;
  base::keep_float_control(r->float_control);
}
/// All of it.
inline void clear_record(record* r) noexcept {
  begin_record(r);
  r->spawned_at = 0;
  r->done_ns = 0;
  r->span_ns = 0;
}

// A tally: a record that parts are counted off from, until the last one goes on with what is above it, which
// is its result.object. Its `references` are tally_part for each part that is out, tally_waits: the last one
// is waited for, and tally_number for each part that ever was. Its `state` is the list of records of parts
// that failed. docs/protocols/tally.md
inline constexpr std::uint64_t tally_waits = 1;
inline constexpr std::uint64_t tally_part = 2;
inline constexpr std::uint64_t tally_number = std::uint64_t{1} << 32;
constexpr std::uint64_t tally_out(std::uint64_t references) noexcept { return references % tally_number; }

/// One part less. Of the last one that is waited for: what is above; else 0. The last touch. EW2, TY2
inline ref count_off_from(record& tally) noexcept {
  std::uint64_t now = tally.references.load(std::memory_order_acquire);
  for (;;) {
    const bool is_awaited = tally_out(now) == (tally_part | tally_waits);
    const ref above = is_awaited ? tally.result.object : 0;
    const std::uint64_t then = now - tally_part - (is_awaited ? tally_waits : 0);
    if (tally.references.compare_exchange_weak(now, then, std::memory_order_acq_rel,
                                               std::memory_order_acquire))
      return above;
  }
}

/// What a ready queue touches of an image: one line with its head.
struct queue_link {
  /// of the saved context; 0: the thread has not begun (fresh_thread), and there is nothing but this link;
  /// not_begun: the same, with a parcel
  std::uint64_t sp;
  ref next;  ///< in a waiters' list or a queue
  /// in a ready queue: the one before it (meaningless for the first); in_no_queue: it has been taken out
  ref prev;
  ref waiting_for;  ///< record it waits for; 0: it is ready
};

inline constexpr ref in_no_queue = 1;

/// A thread that does not run: its stack bytes and how to go on. Home: the worker where it stopped.
struct image : object, queue_link {
  using queue_link::next;  // object's are of the heap's list
  using queue_link::prev;
  // The second line: with the first all that a yield from thread to thread touches.
  std::uint64_t low;      ///< the saved bytes are [low, bytes_end)
  std::uint64_t top;      ///< end of the thread's stack
  ref own_record;         ///< what this thread completes when it ends
  ref waited_for;         ///< record of the join that it suspended at; 0: a yield
  const char* parked_at;  ///< kind of what it waits for, if that is no record (park); null: it is
  bool fork;              ///< saved by fork_call (else by godwit_ctx_suspend)
  /// sent to this host, or with exceptions, or an owner: other hosts leave it here. W who puts it aside
  bool bound;
  bool owner;           ///< it names memory of this host's heap that is in use. W likewise
  mutable bool wanted;  ///< and another host would have taken it. Whoever has it, or the lock of its queue
  bool high;            ///< of high priority: it is put before those that are not. W once
  bool goes_home;       ///< its exceptions lie in a heap that only its worker has: it goes on there
  /// saved by hand_over: no exceptions, nothing taken along, and nothing of this is written but the two lines
  bool yielded;
  std::uint64_t fp;     ///< fork only
  std::uint64_t extra;  ///< fork only
  /// top, or beyond it: then the bytes of its ancestors' frames are with it (frames.hpp)
  std::uint64_t bytes_end;
  ref status;                  ///< fork: the record of the child it spawned last, handed to fork_call
  std::uint64_t suspended_ns;  ///< when it suspended
  std::uint64_t ready_ns;      ///< when it became ready, 0: not known. W who completes the record
  std::uint64_t span_ns;       ///< with options::span: longest chain up to here
  detail::place where;         ///< of the join, for reports; the pointers are valid in all siblings
  context::exception_state exceptions;  ///< that it is in the middle of
  /// where stacks do not stay: what it leaves behind, or takes along, if another host takes it
  data_part data;
  carried takes;
  std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// For an image on the stack of its thread. Nothing is written.
struct image_room {
  image_room() noexcept {}
  union {
    image im;
  };
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
  std::uint32_t closure_bytes;
  bool high;           ///< of high priority
  bool always_begins;  ///< also if it is cancelled: others count on it
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
  ref scope, segment;       ///< carried.hpp
  std::uint32_t redirects;  ///< so many hosts sent it on
  std::uint32_t float_control;
  ref object;                 ///< what holds it here until the closure is taken out; 0: nothing
  std::uintptr_t spawned_at;  ///< return address of its spawn
  const std::byte* closure() const noexcept { return reinterpret_cast<const std::byte*>(this + 1); }
  /// With the closure, in lines.
  std::uint64_t all_bytes() const noexcept { return sizeof(parcel) + (bytes + 63) / 64 * 64; }
};
static_assert(sizeof(parcel) == 128);
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
