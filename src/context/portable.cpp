// Context switch without assembly: the variants ucontext and setjmp, baselines for switch_*.S. Contract:
// context.hpp.
//
// Compiled once for each variant (GODWIT_CONTEXT_UCONTEXT, GODWIT_CONTEXT_SETJMP); empty in a build with
// assembly. What is saved -- an `env`, with room for what its resumption brings -- is a local variable of the
// function that saves, on the thread's own stack; so it travels with the stack's bytes:
//   fork       slot->fp its address; slot->sp below all of that function's frame
//   suspended  sp names a word below all of that function's frame, which holds its address
// ucontext   getcontext and setcontext: a system call each, for the signal mask; makecontext for every thread
//            with a stack of its own.
// setjmp     _setjmp and _longjmp: no system call. A stack is entered by makecontext once; from then on a
//            loop at its top waits there, to be jumped into with the next thread (standby).
// Not for sanitizers' fake stacks, nor, with setjmp, for workers of several images of the program (glibc
// hides the addresses in a jmp_buf behind a number of the process). docs/protocols/context.md. Tests:
// tests/context (also built for each variant), tests/api.
#if defined(GODWIT_CONTEXT_UCONTEXT) || defined(GODWIT_CONTEXT_SETJMP)

#undef _FORTIFY_SOURCE  // its longjmp refuses to go to another stack

#include <godwit/detail/fork_call.hpp>

#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#ifdef GODWIT_CONTEXT_SETJMP
#include <csetjmp>
#endif

#include "context/context.hpp"

extern "C" void godwit_more_stacks() noexcept;

namespace {

using godwit::detail::child_fn;
using godwit::detail::hot;
using godwit::detail::hot_words;
using godwit::detail::spawn_slot;
using godwit::detail::word_pair;

// SAVED(env): true when it has been saved, false when somebody came back to it. A macro: the function that
// saves must not have returned.
#ifdef GODWIT_CONTEXT_SETJMP
struct env {
  jmp_buf saved;
};
#define SAVED(e) (_setjmp((e).saved) == 0)
void restore(env& e) { _longjmp(e.saved, 1); }
#else
struct env {
  ucontext_t saved;
  volatile bool back;
};
#define SAVED(e) ((e).back = false, getcontext(&(e).saved), !(e).back)
void restore(env& e) {
  e.back = true;
  setcontext(&e.saved);
}
#endif

/// In a function of its own below that of a thread: all of the thread's frames lie at this address and above.
[[gnu::always_inline]] inline std::uintptr_t end_of_frames_above() {
  godwit::context::flush_windows();
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}
[[gnu::noinline]] std::uintptr_t end_of_callers_frame() { return end_of_frames_above(); }

// makecontext hands over ints.
inline unsigned high_half(const void* p) noexcept {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(p) >> 32);
}
inline unsigned low_half(const void* p) noexcept {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(p));
}
inline std::uintptr_t joined(unsigned high, unsigned low) noexcept {
  return std::uintptr_t{high} << 32 | low;
}

using entry_fn = void(void*);

void entered(unsigned fn_high, unsigned fn_low, unsigned arg_high, unsigned arg_low) {
  reinterpret_cast<entry_fn*>(joined(fn_high, fn_low))(reinterpret_cast<void*>(joined(arg_high, arg_low)));
  std::abort();  // it must not return
}

/// A context that calls fn(arg) on the stack below @p top.
void prepare(ucontext_t& c, void* top, entry_fn* fn, void* arg) {
  constexpr std::size_t any_size = 8192;  // only the end counts
  getcontext(&c);
  c.uc_stack.ss_sp = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(top) / 16 * 16) - any_size;
  c.uc_stack.ss_size = any_size;
  c.uc_link = nullptr;
  const auto* code = reinterpret_cast<const void*>(fn);
  makecontext(&c, reinterpret_cast<void (*)()>(entered), 4, high_half(code), low_half(code), high_half(arg),
              low_half(arg));
}

void enter(void* top, entry_fn* fn, void* arg) {
#ifdef GODWIT_CONTEXT_SETJMP
  // if it is a stack of the pool, the loop at its top is no more (standby)
  std::memset(static_cast<std::byte*>(top) - 64, 0, 64);
#endif
  ucontext_t c;
  prepare(c, top, fn, arg);
  setcontext(&c);
}

/// A child to be called.
struct child_call {
  std::uintptr_t a0, a1;
  spawn_slot* slot;
  void* out;
  child_fn* child;
};

/// A parent whose child runs, in the parent's frame.
struct waiting_parent {
  env save;
  child_call what;
  word_pair result;  ///< W the child that comes back, or who resumes
  void run_child() { result = what.child(what.a0, what.a1, what.slot, what.out); }
};

/// What a stack has at its top, 64 bytes (stack/pool.hpp, which uses the first three words of free ones).
struct stack_head {
  stack_head* next;  ///< of the unused ones
  void* batch;
  std::uint64_t count;
  waiting_parent* parent;  ///< of the thread that runs there
};

stack_head* take_stack() {
  for (;;) {
    auto* s = static_cast<stack_head*>(hot().free_stacks);
    if (s->next != nullptr) {
      hot().free_stacks = s->next;
      return s;
    }
    godwit_more_stacks();  // the last one stays
  }
}

/// On the stack @p s. The child came back, so its parent is here, and this is the worker where it began.
void run_child(stack_head* s) {
  waiting_parent& p = *s->parent;
  p.run_child();
  s->next = static_cast<stack_head*>(hot().free_stacks);
  hot().free_stacks = s;
  restore(p.save);
}

#ifdef GODWIT_CONTEXT_SETJMP
/// Just below the head: the loop that waits there.
struct alignas(64) standby {
  env* again;            ///< jump there to start the next thread
  std::uintptr_t check;  ///< of it: whoever else entered this stack has overwritten both (enter)
};
standby* standby_of(stack_head* s) { return reinterpret_cast<standby*>(s) - 1; }
std::uintptr_t check_of(const env* e) { return reinterpret_cast<std::uintptr_t>(e) ^ 0x676f64776974'5b1d; }

void stack_main(void* head) {
  auto* const s = static_cast<stack_head*>(head);
  env here;
  // Free stacks may lose their memory but for the page of the head: only what fits there can be used again.
  const bool stays = (end_of_callers_frame() ^ reinterpret_cast<std::uintptr_t>(s)) < 4096;
  if (SAVED(here) && stays) *standby_of(s) = {&here, check_of(&here)};
  run_child(s);
}

void run_on(stack_head* s) {
  const standby loop = *standby_of(s);
  if (loop.check == check_of(loop.again)) restore(*loop.again);
  enter(standby_of(s), stack_main, s);
}
#else
void stack_main(void* head) { run_child(static_cast<stack_head*>(head)); }
#endif

/// The child runs below its parent: this frame is where they meet, and no part of either that is needed once
/// they part.
[[gnu::noinline]] void call_below(waiting_parent& p) {
  p.what.slot->sp = end_of_frames_above();
  p.run_child();
}

[[gnu::noinline]] word_pair fork_below(const child_call& what) {
  waiting_parent p;
  p.what = what;
  what.slot->fp = reinterpret_cast<std::uintptr_t>(&p);
  what.slot->extra = 0;
  if (SAVED(p.save)) call_below(p);
  return p.result;
}

[[gnu::noinline]] word_pair fork_on_stack(const child_call& what) {
  waiting_parent p;
  p.what = what;
  what.slot->sp = end_of_callers_frame();
  what.slot->fp = reinterpret_cast<std::uintptr_t>(&p);
  what.slot->extra = 0;
  stack_head* const s = take_stack();
  s->parent = &p;
#ifdef GODWIT_CONTEXT_SETJMP
  if (SAVED(p.save)) run_on(s);
#else
  ucontext_t begin;
  prepare(begin, s, stack_main, s);
  swapcontext(&p.save.saved, &begin);
#endif
  return p.result;
}

/// A suspended thread, in its own frame.
struct sleeper {
  env save;
  std::uintptr_t value;
};

struct leaving {
  sleeper* thread;  ///< first: where it lies is what the thread is called by
  void (*fn)(void*, std::uintptr_t);
  void* arg;
};

[[gnu::noinline]] void leave(sleeper& t, void* top, void (*fn)(void*, std::uintptr_t), void* arg) {
  alignas(16) leaving l{&t, fn, arg};
  enter(
      top,
      [](void* p) {
        const leaving& from = *static_cast<leaving*>(p);
        from.fn(from.arg, reinterpret_cast<std::uintptr_t>(p));
      },
      &l);
}

struct visit {
  env way_back;
  void (*fn)(void*);
  void* arg;
};

}  // namespace

extern "C" {

word_pair GODWIT_CONTEXT_FORK(std::uintptr_t a0, std::uintptr_t a1, spawn_slot* slot, void* out,
                              child_fn* child) noexcept {
  if (godwit::detail::hot_load<offsetof(hot_words, free_stacks), void*>() != nullptr)
    return fork_on_stack({a0, a1, slot, out, child});
  return fork_below({a0, a1, slot, out, child});
}

void godwit_ctx_resume_fork(std::uintptr_t, std::uintptr_t fp, std::uintptr_t, std::uintptr_t status) {
  auto& p = *reinterpret_cast<waiting_parent*>(fp);
  p.result = {status, 0};
  restore(p.save);
}

std::uintptr_t godwit_ctx_suspend(void* stack_top, void (*fn)(void* arg, std::uintptr_t sp), void* arg) {
  sleeper t;
  if (SAVED(t.save)) leave(t, stack_top, fn, arg);
  return t.value;
}

void godwit_ctx_resume_suspended(std::uintptr_t sp, std::uintptr_t value) {
  sleeper& t = *reinterpret_cast<leaving*>(sp)->thread;
  t.value = value;
  restore(t.save);
}

void godwit_ctx_start(void* stack_top, void (*fn)(void* arg), void* arg) { enter(stack_top, fn, arg); }

void godwit_ctx_call_on(void* stack_top, void (*fn)(void* arg), void* arg) {
  visit v;
  v.fn = fn;
  v.arg = arg;
  if (SAVED(v.way_back))
    enter(
        stack_top,
        [](void* p) {
          visit& from = *static_cast<visit*>(p);
          from.fn(from.arg);
          restore(from.way_back);
        },
        &v);
}

void godwit_ctx_thread_end() { std::abort(); }

extern const char godwit_ctx_portable = 1;

#ifdef GODWIT_CONTEXT_SETJMP
extern const char godwit_ctx_one_image = 1;
#endif
}

#endif
