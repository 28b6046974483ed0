// Message queues (mq_send and its like). On Linux a queue is a descriptor that can be polled: an attempt
// whose time is over already tells whether there is room, or a message; if not, the thread waits as for any
// descriptor. Test: tests/pthread/programs/queues.c
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <mqueue.h>
#include <poll.h>

#include <godwit/io.hpp>

#include "real.hpp"
#include "signals.hpp"
#include "thread.hpp"

GODWIT_REAL(mq_notify);
GODWIT_REAL(mq_send);
GODWIT_REAL(mq_receive);
GODWIT_REAL(mq_timedsend);
GODWIT_REAL(mq_timedreceive);

using namespace godwit::pthread;

namespace {

std::atomic<bool> notifies_{false};  // a message may make a signal

int fail_with(int error) noexcept {
  errno = error;
  return -1;
}

/// @p attempt gets a time that is over. Until it is done, or cannot be, or @p at (of CLOCK_REALTIME; null: no
/// limit).
template <class F>
auto repeat(mqd_t queue, short what, const timespec* at, F attempt) {
  if (at != nullptr && (at->tv_nsec < 0 || at->tv_nsec >= 1'000'000'000 || at->tv_sec < 0))
    return decltype(attempt(at))(fail_with(EINVAL));
  for (;;) {
    test_cancel();
    constexpr timespec over{};
    const auto r = attempt(&over);
    if (r >= 0 || errno != ETIMEDOUT) return r;
    timespec left{};
    if (at != nullptr) {
      timespec now{};
      clock_gettime(CLOCK_REALTIME, &now);
      left = {at->tv_sec - now.tv_sec, at->tv_nsec - now.tv_nsec};
      if (left.tv_nsec < 0) left = {left.tv_sec - 1, left.tv_nsec + 1'000'000'000};
      if (left.tv_sec < 0 || (left.tv_sec == 0 && left.tv_nsec == 0))
        return decltype(r)(fail_with(ETIMEDOUT));
    }
    pollfd p{queue, what, 0};
    int n = 0, error = 0;
    on_own_stack([&] {
      n = godwit::io::ppoll(&p, 1, at != nullptr ? &left : nullptr, nullptr);
      error = errno;
    });
    if (n >= 0) continue;
    test_cancel();
    if (error != EINTR || handle_signals()) return decltype(r)(fail_with(error));
  }
}

// (Apart: the header says that the functions' own times are never null.)
int send_until(mqd_t queue, const char* from, std::size_t bytes, unsigned priority, const timespec* at) {
  const int r = repeat(queue, POLLOUT, at, [&](const timespec* t) {
    return REAL(mq_timedsend)(queue, from, bytes, priority, t);
  });
  if (r == 0 && notifies_.load(std::memory_order_seq_cst)) settle_signals();
  return r;
}
ssize_t receive_until(mqd_t queue, char* to, std::size_t bytes, unsigned* priority, const timespec* at) {
  return repeat(queue, POLLIN, at,
                [&](const timespec* t) { return REAL(mq_timedreceive)(queue, to, bytes, priority, t); });
}

}  // namespace

GODWIT_EXPORT int mq_notify(mqd_t queue, const sigevent* event) noexcept {
  if (event != nullptr && event->sigev_notify == SIGEV_SIGNAL)
    notifies_.store(true, std::memory_order_seq_cst);
  return REAL(mq_notify)(queue, event);
}
GODWIT_EXPORT int mq_timedsend(mqd_t queue, const char* from, std::size_t bytes, unsigned priority,
                               const timespec* at) {
  if (!is_light()) return REAL(mq_timedsend)(queue, from, bytes, priority, at);
  return send_until(queue, from, bytes, priority, at);
}
GODWIT_EXPORT int mq_send(mqd_t queue, const char* from, std::size_t bytes, unsigned priority) {
  if (!is_light()) return REAL(mq_send)(queue, from, bytes, priority);
  return send_until(queue, from, bytes, priority, nullptr);
}
GODWIT_EXPORT ssize_t mq_timedreceive(mqd_t queue, char* __restrict to, std::size_t bytes,
                                      unsigned* __restrict priority, const timespec* __restrict at) {
  if (!is_light()) return REAL(mq_timedreceive)(queue, to, bytes, priority, at);
  return receive_until(queue, to, bytes, priority, at);
}
GODWIT_EXPORT ssize_t mq_receive(mqd_t queue, char* to, std::size_t bytes, unsigned* priority) {
  if (!is_light()) return REAL(mq_receive)(queue, to, bytes, priority);
  return receive_until(queue, to, bytes, priority, nullptr);
}
