// The slow paths that inlined user code may enter. Everything here lives in the library.
//
// Not an interface for users. Each function says whether it may migrate the calling thread: after one
// that may, no address of thread-local data or of worker state from before the call is valid.
// Implemented in src/runtime/slow_path.cpp on top of src/sched.
#pragma once

#include <godwit/detail/hot.hpp>

#include <cstddef>
#include <cstdint>

namespace godwit::detail {

/// Location of an object in some worker's shared memory: worker number << 40 | byte offset, and no address.
/// Objects are 64-byte aligned, so a ref is never 0 or 1 and its low bits are free.
using ref = std::uint64_t;

/// A place in user code, for messages. (place needs consteval, which clang 14 lacks.)
struct place {
  const char* file = nullptr;
  const char* function = nullptr;
  unsigned line = 0;
  static constexpr place here(const char* file = __builtin_FILE(),
                              const char* function = __builtin_FUNCTION(),
                              unsigned line = __builtin_LINE()) noexcept {
    return {file, function, line};
  }
};

/// What a completed record holds.
/// `cancelled`: it has not begun, or ended for that reason, or is of no use to who waited for it: cancel.hpp.
enum class outcome : std::uint8_t { value, error, cancelled };

/// The payload of a completed record as the calling worker sees it; valid until release().
struct payload {
  const std::byte* data;
  std::size_t size;
  outcome kind;
};

/// What who frees the bytes of a result has to destroy, unless somebody has taken it.
enum class owning : std::uint8_t {
  nothing,
  box,     ///< they begin with a `boxed`
  values,  ///< they end with a drop_function
};
/// Takes the value out of a complete record, frees the record, and destroys the value.
using drop_function = void(ref record, const payload& result) noexcept;

/// Where workers have one heap, a result that is not plain bytes is moved there once, where all of them reach
/// it; this is what its record holds, or begins with: an exception may have to leave the host, as bytes
/// behind.
struct boxed {
  void* object;  ///< null: taken
  void (*destroy)(void* object) noexcept;
  /// the record is on another host, and the object where it was made, at this worker: nobody takes it
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
  std::uint32_t left_at = nowhere;
};

/// poll was set: publish queued continuations, serve requests of other workers, wake sleepers.
/// Forced-steal mode suspends threads here, the child itself only if @p child_may_leave. May migrate.
/// True: the child is not to begin, since it is cancelled; not if it @p always_begins. Then nothing has
/// happened.
[[gnu::cold]] bool spawn_point(bool child_may_leave, bool always_begins) noexcept;

/// The slot that the child wants to pop is (or was) public. 0: popped, the parent is still here.
/// Otherwise the record to complete: the parent has left. Does not migrate. See docs/protocols/deque.md.
[[gnu::cold]] ref pop_public(spawn_slot* slot) noexcept;

/// Put a result into a record whose parent has left. Local where it fits inline.
[[gnu::cold]] void publish(ref record, outcome kind, const void* data, std::size_t bytes,
                           owning owns = owning::nothing) noexcept;

/// The same where results are boxed. The record owns the object until somebody takes it.
[[gnu::cold]] void publish_boxed(ref record, outcome kind, boxed what) noexcept;
[[gnu::cold]] ref make_completed_boxed(outcome kind, boxed what);

/// Ends the run with @p type, which has no codec, if such a value is on another host.
[[gnu::cold]] void need_this_host(const void* object, const char* type) noexcept;
[[gnu::cold]] void need_this_host(const boxed& result, const char* type) noexcept;
/// Is it a block of this host's heap, or in one?
[[gnu::cold]] bool in_host_heap(const void* at) noexcept;

/// The calling thread is done; give the record to the joiner and run something else.
[[noreturn, gnu::cold]] void complete(ref record) noexcept;

/// What a child that has not begun hands back as its status.
inline constexpr std::uintptr_t not_begun = 2;

/// First thing in a continuation that was resumed elsewhere, or whose child has not begun: then it throws
/// cancelled. Returns the record's location.
[[gnu::cold]] std::uintptr_t resumed(std::uintptr_t status);

/// A new record, already completed with these bytes. Local.
[[gnu::cold]] ref make_completed(outcome kind, const void* data, std::size_t bytes,
                                 owning owns = owning::nothing);

/// Wait until the record is complete. May migrate. The place is shown in deadlock reports; its parts ride in
/// registers, because arguments on the stack would cost the inlined callers a frame pointer.
/// @p record: with `unmoved`, if a future in these frames says so.
[[gnu::cold]] payload wait(ref record, const char* file, const char* function, unsigned line) noexcept;

/// Where the stacks of the thread that runs and of those below it end, if others' results may come along with
/// one that is joined (docs/protocols/join.md, Read along); else 0.
[[gnu::cold]] std::uintptr_t end_of_frames() noexcept;

/// True when the record is complete: one load, possibly of another worker's memory.
[[gnu::cold]] bool is_complete(ref record) noexcept;

/// Give up one reference; the last one frees the record (local, or one store to the owner).
[[gnu::cold]] void release(ref record) noexcept;
/// Free a complete record without other consumers, whose value the caller has taken. The same cost.
[[gnu::cold]] void free_taken(ref record) noexcept;
/// One more reference, held by the same thread.
[[gnu::cold]] void retain(ref record) noexcept;
/// One more reference for a copy of a shared future, which may reach any thread. Ends the run where threads
/// may wait for their own children only (policy child_rtc).
[[gnu::cold]] void share(ref record) noexcept;
/// The only consumer loses interest in a thread that may still run.
[[gnu::cold]] void detach(ref record) noexcept;

// Threads that are waited for all together, by a tally: docs/protocols/tally.md.
/// Of no threads. Local.
ref make_tally();
/// Nobody is out, and nobody will be. What failed and was not taken is reported, as of futures that are
/// dropped.
void free_tally(ref tally) noexcept;
/// The thread of @p record, which has no other consumer, is out until it ends. Two atomics.
[[gnu::cold]] void detach_into(ref record, ref tally) noexcept;
/// Wait until no thread of @p tally is out; by one thread at a time. @p what waits, for reports. May migrate.
void wait_for_parts(ref tally, const char* what, const place& where) noexcept;
/// The completed record of the thread of @p tally that was detached first of those that failed; the others
/// are dropped. 0: none failed.
ref take_failed(ref tally) noexcept;

/// Encode the exception being handled into a completed record (kind error). Call inside a handler.
[[gnu::cold]] ref capture_exception() noexcept;
/// Hand an exception record's contents to the record of a parent that has left; frees @p error.
[[gnu::cold]] void publish_error(ref record, ref error) noexcept;
/// Decode the payload, release the record and throw: the error, or cancelled. See error.hpp for what arrives.
[[noreturn, gnu::cold]] void rethrow(ref record, payload p);

// Policies other than the default (policy.hpp).

/// Child stealing: what runs a task. @p closure lies on the runner's stack; puts the result into the record,
/// but does not complete it.
using task_entry = void(void* closure, std::size_t bytes, ref record);
/// Bytes that become a thread, and what lies on the heap for it: both are looked through for references to
/// the caller's locals.
struct task_bytes {
  const void* data;
  std::size_t size;
  const void* boxed = nullptr;
  std::size_t boxed_size = 0;
  const char* stays = nullptr;  ///< type without a codec for which it must not leave this host; null: it may
};

/// Child stealing: put a task into the deque. Its bytes are taken. Gives back its record.
ref spawn_task(task_entry* entry, const task_bytes& closure);
/// Iso-address: top of an unused stack with a globally unique address, for the thread that is spawned at
/// @p slot. Its closure is looked through for addresses of stacks. Does not migrate.
void* new_stack(spawn_slot* slot, const void* closure, std::size_t bytes) noexcept;
/// Give it back. Local, or one store to its owner.
void free_stack(void* top) noexcept;

/// Sanitizers, workers as threads: the stack that @p sp lies in is the current one from here on.
[[gnu::cold]] void announce_own_stack(std::uintptr_t sp) noexcept;

/// A checkout of global memory is open where a thread spawns, joins or waits: report and end the run.
[[noreturn, gnu::cold]] void checkout_held(const char* doing, const char* file, unsigned line) noexcept;

/// Suspend the calling thread to the end of the ready queue. May migrate.
void yield_thread() noexcept;

/// annotate.hpp: what the calling thread does is called so from here on; @p scope tells it from others.
void begin_name(const char* name, const void* scope) noexcept;
void end_name(const void* scope) noexcept;

}  // namespace godwit::detail
