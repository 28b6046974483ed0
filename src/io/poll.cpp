// poll, select and sleeping for threads: godwit/io.hpp. docs/protocols/events.md, "poll". Test:
// tests/io/poll_test.cpp.
//
// The kernel says what is ready (poll without waiting); we only wait until something may have changed. So
// nothing that is known of a descriptor has to be right, and what it says is what poll says.
#include "seams/timer.hpp"
#include <godwit/io.hpp>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "base/clock.hpp"
#include "io/descriptors.hpp"
#include "io/system.hpp"
#include "io/timers.hpp"

namespace godwit::io {

namespace {

using events::descriptor;
using events::int_with_errno;
using events::raw;
using events::side;
using events::suspension;
using events::waiting;
using godwit::detail::on_worker;

constexpr std::uint64_t for_ever = 0;

std::uint64_t after(std::int64_t ns) noexcept { return base::now_ns() + static_cast<std::uint64_t>(ns); }

/// In all lists that matter, for the length of one wait.
class everywhere {
 public:
  everywhere(pollfd* fds, nfds_t count, suspension& s) {
    places_.reserve(count);
    for (nfds_t i = 0; i < count; ++i) {
      if (fds[i].fd < 0) continue;
      descriptor* d = events::descriptor_of(fds[i].fd);
      if (d == nullptr) continue;
      if ((fds[i].events & POLLOUT) != 0) add(*d, fds[i].fd, side::write, s);
      if ((fds[i].events & ~POLLOUT) != 0 || (fds[i].events & POLLOUT) == 0)
        add(*d, fds[i].fd, side::read, s);
    }
  }
  /// A descriptor could not be entered, for lack of memory or of watches: look again after a while.
  bool incomplete() const noexcept { return incomplete_; }

 private:
  struct place {
    descriptor& of;
    waiting w;
    ~place() { of.leave(w); }
  };
  void add(descriptor& d, int fd, side at, suspension& s) {
    std::unique_ptr<place> made(new place{d, {.who = &s, .at = at, .takes = false}});
    places_.push_back(std::move(made));
    const int error = d.enlist(fd, places_.back()->w);
    if (error == 0) return;
    places_.pop_back();
    // these are always ready, or closed: poll says it
    if (error != EPERM && error != EBADF) incomplete_ = true;
  }
  std::vector<std::unique_ptr<place>> places_;  // other threads know their addresses
  bool incomplete_ = false;
};

/// @p look() without waiting, until it gives back something or @p deadline has passed.
template <class Look>
long look_until(pollfd* fds, nfds_t count, std::uint64_t deadline, const char* what, Look look) noexcept {
  for (;;) {
    if (const long n = look(); n != 0 && n != -EINTR) return n;  // PL1: and after it was woken
    if (deadline != for_ever && base::now_ns() >= deadline) return 0;
    suspension s;
    try {
      const everywhere lists(fds, count, s);
      if (const long n = look(); n != 0 && n != -EINTR) return n;  // PL1: after it is known where we wait
      constexpr std::int64_t a_while_ns = 10'000'000;
      const std::uint64_t next = !lists.incomplete()    ? deadline
                                 : deadline != for_ever ? std::min(deadline, after(a_while_ns))
                                                        : after(a_while_ns);
      bool expired;
      if (!events::suspend_until(s, next, what, expired)) return -EINTR;
    } catch (const std::bad_alloc&) {
      return -ENOMEM;
    }
  }
}

long poll_now(pollfd* fds, nfds_t count) noexcept {
  constexpr timespec now{};
  return raw(SYS_ppoll, fds, count, &now, nullptr, 0);
}

// three decades: longer times are as good as for ever, and overflow in nanoseconds
constexpr std::int64_t most_seconds = 1'000'000'000;
constexpr std::int64_t ns_of(const timespec& t) noexcept {
  return std::min<std::int64_t>(t.tv_sec, most_seconds) * 1'000'000'000 + t.tv_nsec;
}
timespec timespec_of(std::int64_t ns) noexcept { return {ns / 1'000'000'000, ns % 1'000'000'000}; }

bool is_bad(const timespec& t) noexcept {
  return t.tv_sec < 0 || t.tv_nsec < 0 || t.tv_nsec >= 1'000'000'000;
}

/// The sets of a select, as poll knows them.
class selection {
 public:
  selection(int count, fd_set* readable, fd_set* writable, fd_set* except)
      : kinds_{{readable, POLLIN, POLLIN | POLLHUP | POLLERR},
               {writable, POLLOUT, POLLOUT | POLLERR},
               {except, POLLPRI, POLLPRI}} {
    for (int fd = 0; fd < count; ++fd) {
      pollfd p{fd, 0, 0};
      for (const kind& k : kinds_)
        if (k.set != nullptr && FD_ISSET(fd, k.set)) p.events = static_cast<short>(p.events | k.asked);
      if (p.events != 0) fds_.push_back(p);
    }
  }
  /// Look until @p deadline. How many are ready, or -errno.
  long wait(std::uint64_t deadline) {
    return look_until(fds_.data(), fds_.size(), deadline, "select", [&]() -> long {
      const long r = poll_now(fds_.data(), fds_.size());
      if (r <= 0) return r;
      if (std::any_of(fds_.begin(), fds_.end(), [](const pollfd& p) { return (p.revents & POLLNVAL) != 0; }))
        return -EBADF;
      int n = 0;
      each_ready([&](const kind&, int) { ++n; });
      return n;
    });
  }
  /// Only those that are ready stay in the sets.
  void write_back() {
    for (const kind& k : kinds_)
      if (k.set != nullptr) FD_ZERO(k.set);
    each_ready([](const kind& k, int fd) { FD_SET(fd, k.set); });
  }

 private:
  struct kind {
    fd_set* set;
    short asked, means;
  };
  /// HUP alone makes nothing ready that was not asked for; poll reports it always.
  template <class F>
  void each_ready(F f) const {
    for (const pollfd& p : fds_)
      for (const kind& k : kinds_)
        if ((p.events & k.asked) != 0 && (p.revents & k.means) != 0) f(k, p.fd);
  }
  kind kinds_[3];
  std::vector<pollfd> fds_;
};

}  // namespace

int poll(pollfd* fds, nfds_t count, int timeout_ms) noexcept {
  if (timeout_ms < 0) return io::ppoll(fds, count, nullptr);
  const timespec t = timespec_of(std::int64_t{timeout_ms} * 1'000'000);
  return io::ppoll(fds, count, &t);
}

int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) noexcept {
  if (!on_worker()) {
    timespec t = timeout != nullptr ? *timeout : timespec{};
    return int_with_errno(raw(SYS_ppoll, fds, count, timeout != nullptr ? &t : nullptr, mask, 8));
  }
  if (timeout != nullptr && is_bad(*timeout)) return int_with_errno(-EINVAL);
  if (timeout != nullptr && ns_of(*timeout) == 0) return int_with_errno(poll_now(fds, count));
  const std::uint64_t deadline = timeout != nullptr ? after(ns_of(*timeout)) : for_ever;
  return int_with_errno(look_until(fds, count, deadline, "poll", [=] { return poll_now(fds, count); }));
}

int select(int count, fd_set* readable, fd_set* writable, fd_set* except, timeval* timeout) noexcept {
  if (!on_worker() || count < 0 || count > FD_SETSIZE) {
    timespec t = timeout != nullptr ? timespec{timeout->tv_sec, timeout->tv_usec * 1000} : timespec{};
    const long n =
        raw(SYS_pselect6, count, readable, writable, except, timeout != nullptr ? &t : nullptr, nullptr);
    if (timeout != nullptr) *timeout = {t.tv_sec, static_cast<suseconds_t>(t.tv_nsec / 1000)};
    return int_with_errno(n);
  }
  const std::uint64_t before = base::now_ns();
  std::uint64_t deadline = for_ever;
  if (timeout != nullptr) {
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0) return int_with_errno(-EINVAL);
    const std::int64_t us = std::min<std::int64_t>(timeout->tv_usec, most_seconds);
    deadline = before + static_cast<std::uint64_t>(ns_of({timeout->tv_sec, 0}) + us * 1000);
  }
  selection sets(count, readable, writable, except);
  const long n = sets.wait(deadline);
  if (timeout != nullptr) {
    const std::uint64_t now = base::now_ns();
    const std::uint64_t left = now < deadline ? deadline - now : 0;
    *timeout = {static_cast<time_t>(left / 1'000'000'000),
                static_cast<suseconds_t>(left % 1'000'000'000 / 1000)};
  }
  if (n < 0) return int_with_errno(n);
  sets.write_back();
  return static_cast<int>(n);
}

int epoll_wait(int fd, epoll_event* events, int most, int timeout_ms) noexcept {
  const auto look = [=](int ms) { return raw(SYS_epoll_pwait, fd, events, most, ms, nullptr, 0); };
  if (!on_worker() || timeout_ms == 0) return int_with_errno(look(timeout_ms));
  pollfd p{fd, POLLIN, 0};
  return int_with_errno(look_until(&p, 1,
                                   timeout_ms > 0 ? after(std::int64_t{timeout_ms} * 1'000'000) : for_ever,
                                   "epoll_wait", [=] { return look(0); }));
}

void detail::sleep_ns(std::int64_t ns) noexcept {
  if (ns < 0) ns = 0;
  if (godwit::detail::sleep_until_ns(after(ns), {})) return;
  timespec t = timespec_of(ns);
  while (raw(SYS_nanosleep, &t, &t) == -EINTR) {
  }
}

int nanosleep(const timespec* time, timespec* left) noexcept {
  if (!on_worker()) return int_with_errno(raw(SYS_nanosleep, time, left));
  if (is_bad(*time)) return int_with_errno(-EINVAL);
  detail::sleep_ns(ns_of(*time));
  return 0;
}

int usleep(unsigned us) noexcept {
  const timespec t = timespec_of(std::int64_t{us} * 1000);
  return io::nanosleep(&t);
}

unsigned sleep(unsigned seconds) noexcept {
  const timespec t{static_cast<time_t>(seconds), 0};
  timespec left{};
  return io::nanosleep(&t, &left) == 0 ? 0 : static_cast<unsigned>(left.tv_sec + (left.tv_nsec != 0));
}

}  // namespace godwit::io
