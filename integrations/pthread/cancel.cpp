// Cancellation: deferred, at the calls that this library replaces. See docs/pthread.md for which. OS threads
// are cancelled by the C library; only the waits of wait.cpp are ours there, too.
#include "real.hpp"
#include "report.hpp"
#include "thread.hpp"
#include "wait.hpp"

GODWIT_REAL(pthread_cancel);
GODWIT_REAL(pthread_setcancelstate);
GODWIT_REAL(pthread_setcanceltype);

using namespace godwit::pthread;

namespace godwit::pthread {
void end_by_cancel() {
  exit_thread(is_light() && self()->exit_asked ? self()->exit_result : PTHREAD_CANCELED);
}
void use_real_cancellation(const thread& t) noexcept {
  REAL(pthread_setcancelstate)(t.cancel_enabled ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE, nullptr);
  REAL(pthread_setcanceltype)(t.cancel_type, nullptr);
}
}  // namespace godwit::pthread

GODWIT_EXPORT int pthread_cancel(pthread_t th) {
  thread* t = thread_of(th);
  if (t == nullptr || t->heavy) {
    const int error = REAL(pthread_cancel)(th);
    disturb_os_thread(th);  // the C library knows nothing of our waits
    return error;
  }
  t->cancel_asked.store(true, std::memory_order_seq_cst);
  if (t->cancel_enabled) disturb(*t, waited::cancelled);  // else it looks when it has enabled that
  if (t == self() && t->cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS) test_cancel();
  return 0;
}

GODWIT_EXPORT int pthread_setcancelstate(int state, int* before) {
  thread* t = self();
  if (t == nullptr || t->heavy) return REAL(pthread_setcancelstate)(state, before);
  if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE) return EINVAL;
  if (before != nullptr) *before = t->cancel_enabled ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE;
  t->cancel_enabled = state == PTHREAD_CANCEL_ENABLE;
  return 0;
}

GODWIT_EXPORT int pthread_setcanceltype(int type, int* before) {
  thread* t = self();
  if (t == nullptr || t->heavy) return REAL(pthread_setcanceltype)(type, before);
  if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  if (before != nullptr) *before = t->cancel_type;
  t->cancel_type = type;
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS) test_cancel();  // at every wait, and here: not while it computes
  return 0;
}

GODWIT_EXPORT void pthread_testcancel() { test_cancel(); }
