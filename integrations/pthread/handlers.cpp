// Handlers of signals, run by the thread that the signal is for: where it waits, or at its next call. On its
// stack, or on the one that sigaltstack named. A handler may leave by siglongjmp, which the functions below
// follow, and by pthread_exit. See signals.hpp.
#include <csetjmp>
#include <cstdlib>
#include <ucontext.h>
#include <unistd.h>

#include "real.hpp"
#include "report.hpp"
#include "signals.hpp"
#include "wait.hpp"

extern "C" [[noreturn]] void __wrap_siglongjmp(struct __jmp_buf_tag*, int) noexcept;
extern "C" [[noreturn]] void __wrap___longjmp_chk(struct __jmp_buf_tag*, int) noexcept;

namespace godwit::pthread {

namespace {

struct call {
  const struct sigaction* action;
  siginfo_t* info;
  ucontext_t* context;
};

void call_handler(void* p) {
  const call& c = *static_cast<call*>(p);
  if ((c.action->sa_flags & SA_SIGINFO) != 0)
    c.action->sa_sigaction(c.info->si_signo, c.info, c.context);
  else
    c.action->sa_handler(c.info->si_signo);
}

/// False: the call that was interrupted goes on.
bool run_handler(thread& t, siginfo_t& info) {
  const int signal = info.si_signo;
  const struct sigaction action = action_of(signal);
  if (action.sa_handler == SIG_IGN) return false;
  if (action.sa_handler == SIG_DFL) {
    do_default(signal);
    return false;
  }
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    struct sigaction again = action;
    again.sa_handler = SIG_DFL;
    again.sa_flags &= ~SA_SIGINFO;
    change_signal_action(signal, &again, nullptr);
  }
  handler_frame frame{t.handlers, t.blocked.load(std::memory_order_seq_cst), false};
  frame.on_alternate =
      (action.sa_flags & SA_ONSTACK) != 0 && (t.alternate.ss_flags & SS_DISABLE) == 0 && !on_alternate(t);
  ucontext_t context;
  ::getcontext(&context);
  context.uc_sigmask = set_of(frame.mask_before);
  context.uc_stack = t.alternate;
  put_mask(t, frame.mask_before | word_of(action.sa_mask) |
                  ((action.sa_flags & SA_NODEFER) != 0 ? 0 : bit_of(signal)));
  t.handlers = &frame;
  call c{&action, &info, &context};
  if (frame.on_alternate)
    godwit_pthread_call_on(static_cast<char*>(t.alternate.ss_sp) + t.alternate.ss_size, call_handler, &c);
  else
    call_handler(&c);
  t.handlers = frame.outer;
  put_mask(t, word_of(context.uc_sigmask));  // as the kernel: handlers may change what it was
  __atomic_fetch_add(&t.handled, 1, __ATOMIC_SEQ_CST);
  return (action.sa_flags & SA_RESTART) == 0;
}

/// Of a jmp_buf: the stack pointer, which the C library hides by a secret word.
std::uintptr_t stack_of(const struct __jmp_buf_tag* env) noexcept {
  std::uintptr_t sp = static_cast<std::uintptr_t>(env->__jmpbuf[6]);
  asm("rorq $17, %0\n\txorq %%fs:0x30, %0" : "+r"(sp));
  return sp;
}

/// Handlers that a jump leaves have ended, and what they had blocked is not blocked any more.
void before_jump(const struct __jmp_buf_tag* env) noexcept {
  thread* t = self();
  const std::uintptr_t to = stack_of(env);
  if (t == nullptr) {
    if (const thread* other = beside_whom(); other != nullptr &&
                                             to > reinterpret_cast<std::uintptr_t>(other->stack_low) &&
                                             to <= reinterpret_cast<std::uintptr_t>(other->stack_high))
      fail(
          "a handler left by siglongjmp while its thread computed, without a call that could be interrupted: "
          "run the program without godwit-pthread");
    return;
  }
  if (t->heavy || t->handlers == nullptr) return;
  const handler_frame* left = nullptr;
  while (t->handlers != nullptr && reinterpret_cast<std::uintptr_t>(t->handlers) < to) {
    left = t->handlers;
    t->handlers = t->handlers->outer;
  }
  if (left == nullptr) return;
  __atomic_fetch_add(&t->handled, 1, __ATOMIC_SEQ_CST);
  if (env->__mask_was_saved) put_mask(*t, left->mask_before);
}

}  // namespace

bool handle_signals() {
  thread* t = self();
  if (t == nullptr || t->heavy || !t->has_signals()) return true;
  bool interrupts = false;
  siginfo_t info;
  while (take_signal(*t, ~t->blocked.load(std::memory_order_seq_cst), true, info))
    interrupts = run_handler(*t, info) || interrupts;
  return interrupts;
}

}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT_NORETURN void siglongjmp(struct __jmp_buf_tag* env, int value) noexcept {
  before_jump(env);
  REAL(siglongjmp)(env, value);
}
extern "C" {
#define GODWIT_ALIAS_OF_SIGLONGJMP __attribute__((noreturn, visibility("default"), alias("siglongjmp")))
void longjmp(struct __jmp_buf_tag*, int) noexcept GODWIT_ALIAS_OF_SIGLONGJMP;
void _longjmp(struct __jmp_buf_tag*, int) noexcept GODWIT_ALIAS_OF_SIGLONGJMP;
}
GODWIT_EXPORT_NORETURN void __longjmp_chk(struct __jmp_buf_tag* env, int value) noexcept {
  before_jump(env);
  // From an alternate stack to the thread's own, or between coroutines, is what it would refuse: of alternate
  // stacks it asks the kernel.
  if (self() != nullptr && !self()->heavy) REAL(siglongjmp)(env, value);
  REAL(__longjmp_chk)(env, value);
}
