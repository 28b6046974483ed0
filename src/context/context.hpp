// The context switch: one contract, one assembly file per architecture (switch_ARCH.S), or portable.cpp where
// GODWIT_CONTEXT says so.
//
// Two kinds of saved continuation:
//   fork       saved by fork_call (include/godwit/detail/fork_call.hpp): three words in a deque slot;
//   resuming it
//              makes fork_call return with a status. Lowest live byte: sp - fork_bytes_below.
//   suspended  saved by godwit_ctx_suspend: callee-saved registers pushed on the thread's own stack; one word
//   (sp).
// Either way all the rest is in the stack bytes [sp, top), which are valid at the same address in any worker.
// Code that jumps always runs on another stack than the one it resumes. docs/protocols/context.md.
#pragma once

#include <godwit/detail/hot.hpp>

#include <cstddef>
#include <cstdint>

extern "C" {
/// Continue after a fork_call with this (non-zero) status. Does not return. Not marked so: sanitizers would
/// otherwise clear the shadow of the wrong stack.
void godwit_ctx_resume_fork(std::uintptr_t sp, std::uintptr_t fp, std::uintptr_t extra,
                            std::uintptr_t status);

/// Save the calling thread on its stack, switch to @p stack_top and call fn(arg, sp); fn must not return.
/// Comes back, with @p value, when somebody resumes sp.
std::uintptr_t godwit_ctx_suspend(void* stack_top, void (*fn)(void* arg, std::uintptr_t sp), void* arg);

/// Continue a thread that godwit_ctx_suspend saved; its call returns @p value. Does not return.
void godwit_ctx_resume_suspended(std::uintptr_t sp, std::uintptr_t value);

/// Leave the current stack for good and call fn(arg) on another. Does not return.
void godwit_ctx_start(void* stack_top, void (*fn)(void* arg), void* arg);

/// Call fn(arg) on another stack, whose end is 16-byte aligned, and come back. (policy.hpp declares it for
/// users.)
void godwit_ctx_call_on(void* stack_top, void (*fn)(void* arg), void* arg);

/// Called by fork_call, in its own way: the child (rax, x9) with the arguments in place, on the top of
/// hot_words::free_stacks. That stack is given back when the child returns; who ends it otherwise gives it
/// back.
void godwit_ctx_fork_on_stack();

/// The bottom of every thread: as a return address it ends backtraces. Returning to it is a bug of ours.
void godwit_ctx_thread_end();

/// Exists where what is saved means something only in processes forked from the one that saved it (variant
/// setjmp).
[[gnu::weak]] extern const char godwit_ctx_one_image;
/// Exists if the switch is one of the portable variants: then only its functions know how a suspended thread
/// is saved.
[[gnu::weak]] extern const char godwit_ctx_portable;
}

extern "C" [[gnu::weak]] void __asan_unpoison_memory_region(void const volatile* address, std::size_t size);

namespace godwit::context {

/// The calling OS thread is a worker from now on, and these are its hot words; null: it is none any more.
void use_hot_words(detail::hot_words* words) noexcept;

/// Where the C library finds what belongs to the running thread (x86-64: the base of segment fs). Set by who
/// knows what lies there.
std::uintptr_t thread_pointer() noexcept;
void set_thread_pointer(std::uintptr_t value) noexcept;

// The same in all variants, so that nothing outside this layer depends on the variant.
#if defined(__x86_64__)
/// The return address of fork_call's call lies just below the saved stack pointer.
inline constexpr std::size_t fork_bytes_below = 8;
#else
inline constexpr std::size_t fork_bytes_below = 0;
#endif

/// The calling thread's frames are about to be read by others: what its callers keep in register windows is
/// in memory afterwards, and only there.
inline void flush_windows() noexcept {
#if defined(__sparc__) && defined(GODWIT_SPARC_FLUSH_TRAP)
  asm volatile("ta 3" ::: "memory");
#elif defined(__sparc__)
  asm volatile("flushw" ::: "memory");
#endif
}

/// godwit_ctx_resume_suspended(sp, 0), inlined: then its return, and those after it, go where the processor
/// expects if both threads suspended at the same place (as threads that yield to each other do).
[[gnu::always_inline]] inline void resume_suspended_here(std::uintptr_t sp) noexcept {
#if defined(__x86_64__)
  if (&godwit_ctx_portable != nullptr) [[unlikely]]
    godwit_ctx_resume_suspended(sp, 0);
  asm volatile(
      "movq %0, %%rsp\n\t"
      "popq %%r15\n\t"
      "popq %%r14\n\t"
      "popq %%r13\n\t"
      "popq %%r12\n\t"
      "popq %%rbx\n\t"
      "popq %%rbp\n\t"
      "ret"
      :
      : "r"(sp), "a"(std::uintptr_t{0})
      : "memory");
#else
  godwit_ctx_resume_suspended(sp, 0);
#endif
  __builtin_unreachable();
}

// Sanitizers and valgrind keep a shadow of every stack and need to hear of switches; no-ops without them.
extern const bool watched_;  // is one of them there?
void sanitizer_forget_now(std::uintptr_t low, std::uintptr_t high) noexcept;
enum class stack_of { thread, os_thread };  // the scheduler runs on the latter's
void sanitizer_on_stack_now(const void* low, std::size_t bytes, stack_of whose) noexcept;
/// Threads' stacks are gone: the run is over, and the caller is on none of them.
void sanitizer_forget_stacks() noexcept;
/// Is there any of this to do?
inline bool sanitized() noexcept { return watched_; }
/// The bytes of [low, high) in this worker are about to be replaced or copied as they are.
inline void sanitizer_forget(std::uintptr_t low, std::uintptr_t high) noexcept {
  if (sanitized()) [[unlikely]]
    sanitizer_forget_now(low, high);
}
/// From here on the current stack is [low, high).
inline void sanitizer_on_stack(const void* low, std::size_t bytes,
                               stack_of whose = stack_of::thread) noexcept {
  if (sanitized()) [[unlikely]]
    sanitizer_on_stack_now(low, bytes, whose);
}

}  // namespace godwit::context
