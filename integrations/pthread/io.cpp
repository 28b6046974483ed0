// Blocking calls on descriptors: godwit::io's, which suspend the thread, with cancellation and signals around
// them.
#include <cstdarg>
#include <fcntl.h>
#include <linux/close_range.h>
#include <algorithm>
#include <climits>
#include <mutex>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <godwit/io.hpp>

#include "io/descriptors.hpp"
#include "io/suspension.hpp"

#include "foreign.hpp"
#include "report.hpp"
#include "real.hpp"
#include "thread.hpp"
#include "wait.hpp"

extern "C" [[noreturn]] void __chk_fail();
GODWIT_REAL(read);
GODWIT_REAL(write);
GODWIT_REAL(readv);
GODWIT_REAL(writev);
GODWIT_REAL(recv);
GODWIT_REAL(recvfrom);
GODWIT_REAL(recvmsg);
GODWIT_REAL(send);
GODWIT_REAL(sendto);
GODWIT_REAL(sendmsg);
GODWIT_REAL(accept);
GODWIT_REAL(accept4);
GODWIT_REAL(connect);
GODWIT_REAL(poll);
GODWIT_REAL(ppoll);
GODWIT_REAL(select);
GODWIT_REAL(pselect);
GODWIT_REAL(epoll_wait);
GODWIT_REAL(epoll_pwait);
GODWIT_REAL(ioctl);

namespace godwit::pthread {

namespace {

void lock(thread& t) noexcept {
  while (t.io_lock.exchange(1, std::memory_order_acquire) != 0) __builtin_ia32_pause();
}
void unlock(thread& t) noexcept { t.io_lock.store(0, std::memory_order_release); }

bool begins(events::suspension& s) noexcept {
  thread* t = self();
  if (t == nullptr) return true;
  if (t->io_refused) return false;
  lock(*t);
  t->io_wait = &s;
  t->io_disturbed = t->io_to_cancel = false;
  unlock(*t);
  // who disturbs sets its word first and looks at io_wait then
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!t->to_be_cancelled() && !t->has_signals()) return true;
  lock(*t);
  t->io_wait = nullptr;
  unlock(*t);
  return false;
}
bool ends() noexcept {
  thread* t = self();
  if (t == nullptr) return true;
  lock(*t);
  t->io_wait = nullptr;
  const bool disturbed = t->io_disturbed;
  unlock(*t);
  return !disturbed;
}
constexpr events::watcher watcher{begins, ends};

using events::side;

/// A socket with SO_RCVTIMEO or SO_SNDTIMEO: as in the kernel, no handler restarts a call on it.
bool has_time_limit(int fd, side at) noexcept {
  const events::descriptor* d = events::descriptor_of(fd);
  return d != nullptr && (d->state() & events::descriptor::watched) != 0 && d->timeout_ns(at) != 0;
}

/// A call on @p fd: a cancellation point that signals interrupt. OS threads make the C library's, @p plain,
/// which is the same for them.
template <class Plain, class Ours, class... Args>
auto call(side at, Plain plain, Ours ours, int fd, Args... args) {
  if (!is_light()) return plain(fd, args...);
  for (;;) {
    test_cancel();
    decltype(plain(fd, args...)) r{};
    on_own_stack([&] { r = ours(fd, args...); });
    if (r >= 0 || errno != EINTR) [[likely]] {
      if (self()->has_signals()) [[unlikely]] {
        const int error = errno;
        handle_signals();
        errno = error;
      }
      return r;
    }
    test_cancel();
    if (self()->io_to_cancel && !self()->has_signals()) {  // it has forbidden that meanwhile
      self()->io_to_cancel = false;
      continue;
    }
    if (handle_signals() || has_time_limit(fd, at)) {
      errno = EINTR;
      return r;
    }
  }
}

constexpr std::int64_t for_ever = -1;

std::uint32_t handlers_run(const thread& t) noexcept { return __atomic_load_n(&t.handled, __ATOMIC_SEQ_CST); }

/// @p f(left) looks at descriptors, and waits up to @p ns (or for_ever) until one is ready: a cancellation
/// point. As in the kernel, every handler ends it, with SA_RESTART too. @p mask, if there is one, is the
/// caller's meanwhile; the handler of a signal that it lets in ends the call as well.
template <class F>
int look(std::int64_t ns, const sigset_t* mask, F f) {
  test_cancel();
  thread& t = *self();
  const std::uint64_t end = ns > 0 ? now_ns() + static_cast<std::uint64_t>(ns) : 0;
  const std::uint32_t seen = handlers_run(t);
  sigset_t before;
  if (mask != nullptr) change_signal_mask(SIG_SETMASK, mask, &before);
  int r = 0;
  for (std::int64_t left = ns;;) {
    // What is ready comes first, so that one look is taken all the same.
    const bool refused = t.io_refused = handlers_run(t) != seen;
    on_own_stack([&] { r = f(left); });
    t.io_refused = false;
    if (refused && r == 0) {
      r = -1;
      errno = EINTR;
    }
    if (r >= 0 || errno != EINTR) break;
    test_cancel();
    handle_signals();
    if (handlers_run(t) != seen) {
      errno = EINTR;
      break;
    }
    // It was disturbed for nothing: a signal that is ignored, or that another thread has taken.
    if (ns > 0) left = std::max<std::int64_t>(0, static_cast<std::int64_t>(end - now_ns()));
  }
  const int error = errno;
  if (mask != nullptr) change_signal_mask(SIG_SETMASK, &before, nullptr);
  if (t.has_signals()) [[unlikely]]
    handle_signals();
  errno = error;
  return r;
}

// Three decades: longer times are as good as for ever, and overflow in nanoseconds.
constexpr std::int64_t most_seconds = 1'000'000'000;
constexpr std::int64_t ns_of(std::int64_t seconds, std::int64_t ns) noexcept {
  return std::min(seconds, most_seconds) * 1'000'000'000 + ns;
}
int fail_with(int error) noexcept {
  errno = error;
  return -1;
}
bool is_bad(const timespec* t) noexcept {
  return t != nullptr && (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= 1'000'000'000);
}

int poll_for(pollfd* fds, nfds_t count, std::int64_t ns, const sigset_t* mask) {
  return look(ns, mask, [=](std::int64_t left) {
    const timespec t{left / 1'000'000'000, left % 1'000'000'000};
    return io::ppoll(fds, count, left >= 0 ? &t : nullptr, nullptr);
  });
}
/// @p left_over: null, or where to say how much of the time is left.
int select_for(int count, fd_set* r, fd_set* w, fd_set* x, std::int64_t ns, const sigset_t* mask,
               timeval* left_over) {
  return look(ns, mask, [=](std::int64_t left) {
    const std::int64_t us = (left + 999) / 1000;
    timeval t{us / 1'000'000, us % 1'000'000};
    const int n = io::select(count, r, w, x, left >= 0 ? &t : nullptr);
    if (left_over != nullptr) *left_over = t;
    return n;
  });
}
int epoll_wait_for(int fd, epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
  return look(timeout_ms >= 0 ? std::int64_t{timeout_ms} * 1'000'000 : for_ever, mask,
              [=](std::int64_t left) {
                const std::int64_t ms = std::min<std::int64_t>((left + 999'999) / 1'000'000, INT_MAX);
                return io::epoll_wait(fd, events, most, left >= 0 ? static_cast<int>(ms) : -1);
              });
}

}  // namespace

void watch_io() noexcept { events::watcher_ = &watcher; }

bool disturb_io(thread& t, bool to_cancel, bool sent) noexcept {
  detail::waiter* w = nullptr;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  lock(t);
  const bool waits = t.io_wait != nullptr && !(sent && t.signals.load(std::memory_order_seq_cst) == 0);
  if (waits) {
    t.io_disturbed = true;
    t.io_to_cancel = to_cancel;
    w = static_cast<events::suspension*>(t.io_wait)->end();
  }
  unlock(t);
  if (w != nullptr) resume_waiter(w, detail::wakes::outside);
  return waits;
}

}  // namespace godwit::pthread

using namespace godwit::pthread;
namespace gio = godwit::io;

GODWIT_EXPORT ssize_t read(int fd, void* to, std::size_t bytes) {
  return call(side::read, REAL(read), gio::read, fd, to, bytes);
}
GODWIT_EXPORT ssize_t write(int fd, const void* from, std::size_t bytes) {
  return call(side::write, REAL(write), gio::write, fd, from, bytes);
}
GODWIT_EXPORT ssize_t readv(int fd, const iovec* to, int count) {
  return call(side::read, REAL(readv), gio::readv, fd, to, count);
}
GODWIT_EXPORT ssize_t writev(int fd, const iovec* from, int count) {
  return call(side::write, REAL(writev), gio::writev, fd, from, count);
}
GODWIT_EXPORT ssize_t recv(int fd, void* to, std::size_t bytes, int flags) {
  return call(side::read, REAL(recv), gio::recv, fd, to, bytes, flags);
}
GODWIT_EXPORT ssize_t recvfrom(int fd, void* __restrict to, std::size_t bytes, int flags,
                               sockaddr* __restrict peer, socklen_t* __restrict peer_bytes) {
  return call(side::read, REAL(recvfrom), gio::recvfrom, fd, to, bytes, flags, peer, peer_bytes);
}
GODWIT_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return call(side::read, REAL(recvmsg), gio::recvmsg, fd, message, flags);
}
GODWIT_EXPORT ssize_t send(int fd, const void* from, std::size_t bytes, int flags) {
  return call(side::write, REAL(send), gio::send, fd, from, bytes, flags);
}
GODWIT_EXPORT ssize_t sendto(int fd, const void* from, std::size_t bytes, int flags, const sockaddr* peer,
                             socklen_t peer_bytes) {
  return call(side::write, REAL(sendto), gio::sendto, fd, from, bytes, flags, peer, peer_bytes);
}
GODWIT_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return call(side::write, REAL(sendmsg), gio::sendmsg, fd, message, flags);
}
GODWIT_EXPORT int accept(int fd, sockaddr* __restrict peer, socklen_t* __restrict peer_bytes) {
  return call(side::read, REAL(accept), gio::accept, fd, peer, peer_bytes);
}
GODWIT_EXPORT int accept4(int fd, sockaddr* __restrict peer, socklen_t* __restrict peer_bytes, int flags) {
  return call(side::read, REAL(accept4), gio::accept4, fd, peer, peer_bytes, flags);
}
GODWIT_EXPORT int connect(int fd, const sockaddr* peer, socklen_t peer_bytes) {
  return call(side::write, REAL(connect), gio::connect, fd, peer, peer_bytes);
}
GODWIT_EXPORT int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  if (!is_light()) return REAL(poll)(fds, count, timeout_ms);
  return poll_for(fds, count, timeout_ms >= 0 ? std::int64_t{timeout_ms} * 1'000'000 : for_ever, nullptr);
}
GODWIT_EXPORT int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (!is_light()) return REAL(ppoll)(fds, count, timeout, mask);
  if (is_bad(timeout)) return fail_with(EINVAL);
  return poll_for(fds, count, timeout != nullptr ? ns_of(timeout->tv_sec, timeout->tv_nsec) : for_ever, mask);
}
GODWIT_EXPORT int select(int count, fd_set* r, fd_set* w, fd_set* x, timeval* timeout) {
  if (!is_light()) return REAL(select)(count, r, w, x, timeout);
  if (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) return fail_with(EINVAL);
  std::int64_t ns = for_ever;
  if (timeout != nullptr)
    ns = ns_of(timeout->tv_sec, std::min<std::int64_t>(timeout->tv_usec, most_seconds) * 1000);
  return select_for(count, r, w, x, ns, nullptr, timeout);
}
GODWIT_EXPORT int pselect(int count, fd_set* r, fd_set* w, fd_set* x, const timespec* timeout,
                          const sigset_t* mask) {
  if (!is_light()) return REAL(pselect)(count, r, w, x, timeout, mask);
  if (is_bad(timeout)) return fail_with(EINVAL);
  return select_for(count, r, w, x, timeout != nullptr ? ns_of(timeout->tv_sec, timeout->tv_nsec) : for_ever,
                    mask, nullptr);
}
GODWIT_EXPORT int epoll_wait(int fd, epoll_event* events, int most, int timeout_ms) {
  if (!is_light()) return REAL(epoll_wait)(fd, events, most, timeout_ms);
  return epoll_wait_for(fd, events, most, timeout_ms, nullptr);
}
GODWIT_EXPORT int epoll_pwait(int fd, epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
  if (!is_light()) return REAL(epoll_pwait)(fd, events, most, timeout_ms, mask);
  return epoll_wait_for(fd, events, most, timeout_ms, mask);
}
GODWIT_EXPORT int close(int fd) { return gio::close(fd); }
GODWIT_EXPORT void closefrom(int first) noexcept { gio::closefrom(first); }
GODWIT_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  static bool said = false;
  if ((flags & CLOSE_RANGE_UNSHARE) != 0 && is_light())
    not_supported(said, "CLOSE_RANGE_UNSHARE",
                  "the threads of the program share their workers, and these share the descriptors");
  return gio::close_range(first, last, static_cast<unsigned>(flags));
}
GODWIT_EXPORT int dup2(int from, int to) noexcept { return gio::dup2(from, to); }
GODWIT_EXPORT int dup3(int from, int to, int flags) noexcept { return gio::dup3(from, to, flags); }
GODWIT_EXPORT int setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) noexcept {
  return gio::setsockopt(fd, level, name, value, bytes);
}
GODWIT_EXPORT int fcntl(int fd, int command, ...) {
  va_list args;
  va_start(args, command);
  const auto argument = va_arg(args, std::intptr_t);
  va_end(args);
  return gio::fcntl(fd, command, argument);
}
extern "C" [[gnu::visibility("default"), gnu::alias("fcntl")]] int fcntl64(int fd, int command, ...);
GODWIT_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list args;
  va_start(args, request);
  void* const argument = va_arg(args, void*);
  va_end(args);
  godwit::events::descriptor* d = request == FIONBIO ? godwit::events::managed(fd) : nullptr;
  if (d == nullptr) return REAL(ioctl)(fd, request, argument);
  int r;
  {
    const std::lock_guard not_changed_now(d->mode);  // as in io::fcntl
    r = REAL(ioctl)(fd, request, argument);
  }
  if (r >= 0) gio::forget(fd);
  return r;
}

// What the compiler makes of these with _FORTIFY_SOURCE.
GODWIT_EXPORT ssize_t __read_chk(int fd, void* to, std::size_t bytes, std::size_t room) {
  if (bytes > room) __chk_fail();
  return read(fd, to, bytes);
}
GODWIT_EXPORT ssize_t __recv_chk(int fd, void* to, std::size_t bytes, std::size_t room, int flags) {
  if (bytes > room) __chk_fail();
  return recv(fd, to, bytes, flags);
}
GODWIT_EXPORT ssize_t __recvfrom_chk(int fd, void* to, std::size_t bytes, std::size_t room, int flags,
                                     sockaddr* peer, socklen_t* peer_bytes) {
  if (bytes > room) __chk_fail();
  return recvfrom(fd, to, bytes, flags, peer, peer_bytes);
}
GODWIT_EXPORT int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, std::size_t room) {
  if (room / sizeof *fds < count) __chk_fail();
  return poll(fds, count, timeout_ms);
}
GODWIT_EXPORT int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask,
                              std::size_t room) {
  if (room / sizeof *fds < count) __chk_fail();
  return ppoll(fds, count, timeout, mask);
}
