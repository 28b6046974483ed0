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

#include <godwit/detail/fork_call.hpp>
#include <godwit/detail/hot.hpp>

#include <atomic>
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

/// See context::switch_to. Exists on x86-64 only, and not in the portable variants.
[[gnu::weak]] void godwit_ctx_switch();

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

/// Save the calling thread as godwit_ctx_suspend does, its stack pointer to @p own, and continue the one that
/// is saved at @p next, with 0. Once the caller's stack is left, @p lock becomes 0. Comes back when somebody
/// resumes what is at @p own. @p spare: a stack, used where there is no godwit_ctx_switch. The caller has to
/// contain a real call as well (fork_call.hpp).
[[gnu::always_inline]] inline void switch_to(std::uint64_t* own, std::uintptr_t next,
                                             std::atomic<std::uint64_t>* lock, void* spare) noexcept {
#if defined(__x86_64__) && !defined(GODWIT_CONTEXT_PORTABLE)
  if (&godwit_ctx_switch != nullptr) [[likely]] {
    asm volatile("call *godwit_ctx_switch@GOTPCREL(%%rip)"
                 : "+D"(own), "+S"(next), "+d"(lock)
                 :
                 : "rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory", "xmm0",
                   "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                   "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)",
                   "st(6)", "st(7)" GODWIT_CLOBBER_VECTOR_EXT GODWIT_CLOBBER_APX);
    return;
  }
#endif
  struct step {
    std::uint64_t* own;
    std::uintptr_t next;
    std::atomic<std::uint64_t>* lock;
  } what{own, next, lock};
  godwit_ctx_suspend(
      spare,
      [](void* arg, std::uintptr_t sp) {
        const step s = *static_cast<const step*>(arg);
        *s.own = sp;
        s.lock->store(0, std::memory_order_release);
        godwit_ctx_resume_suspended(s.next, 0);
      },
      &what);
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
