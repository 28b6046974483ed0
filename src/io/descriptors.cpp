// See descriptors.hpp; docs/protocols/events.md, "Descriptors".
#include "io/descriptors.hpp"

#include <fcntl.h>
#include <mutex>
#include <netinet/in.h>
#include <new>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/clock.hpp"
#include "base/check.hpp"
#include "io/events.hpp"
#include "io/system.hpp"
#include "io/timers.hpp"

namespace godwit::events {

namespace {

// Two levels, for numbers up to 2^24. Made on demand, kept for the life of the process.
constexpr unsigned chunk_bits = 10, chunk_count = 1 << 14;
std::atomic<descriptor*> chunks[chunk_count];  // W by compare-exchange
std::atomic<unsigned> chunks_end{0};           // none is used from here on. W all

std::atomic<std::uint32_t> waited_for{0};  // threads that wait for descriptors. W all
constexpr std::uint64_t check_every_ns = 100'000'000;
// somebody began to wait since the last check, or was not checked yet. W all
std::atomic<std::uint32_t> unchecked{0};
std::atomic<std::uint64_t> next_check_ns{0};  // W who checks

}  // namespace

/// Those to unpark, when the lock is free again.
class descriptor::woken {
 public:
  woken() = default;
  woken(const woken&) = delete;
  ~woken() { flush(); }
  void add(suspension* s) noexcept {
    detail::waiter* w = s->end();  // SU1
    if (w == nullptr) return;
    if (count_ == std::size(list_)) flush();
    list_[count_++] = w;
  }

 private:
  void flush() noexcept {
    for (unsigned i = 0; i < count_; ++i) events::unpark(list_[i]);
    count_ = 0;
  }
  detail::waiter* list_[16];
  unsigned count_ = 0;
};

void descriptor::put(waiting& w) noexcept {
  list& l = lists_[static_cast<unsigned>(w.at)];
  GODWIT_ASSERT(!w.listed && w.who != nullptr, "who waits is in a list once");
  GODWIT_ASSERT((l.first == nullptr) == (l.last == nullptr), "a list has two ends");
  // The wait that the checks count begins with the first; others that come and go meanwhile do not put it
  // off.
  if (age_ == 2 || !any_waits()) age_ = 0;
  w.next = nullptr;
  w.prev = l.last;
  (l.last != nullptr ? l.last->next : l.first) = &w;
  l.last = &w;
  w.listed = true;
  // In one order with check_descriptors: either that finds us in the list, or we see that it has begun.
  waited_for.fetch_add(1, std::memory_order_seq_cst);
  if (unchecked.load(std::memory_order_seq_cst) == 0) unchecked.store(1, std::memory_order_relaxed);
}

void descriptor::take_out(waiting& w) noexcept {
  list& l = lists_[static_cast<unsigned>(w.at)];
  GODWIT_ASSERT(w.listed, "who is taken out is in the list");
  GODWIT_ASSERT((w.prev != nullptr ? w.prev->next : l.first) == &w, "a list is linked both ways");
  GODWIT_ASSERT((w.next != nullptr ? w.next->prev : l.last) == &w, "a list is linked both ways");
  GODWIT_ASSERT(waited_for.load(std::memory_order_relaxed) != 0, "who waits is counted");
  (w.prev != nullptr ? w.prev->next : l.first) = w.next;
  (w.next != nullptr ? w.next->prev : l.last) = w.prev;
  w.listed = false;
  waited_for.fetch_sub(1, std::memory_order_relaxed);
}

int descriptor::control(int operation, int fd, std::uint64_t state) noexcept {
  epoll_event e{};
  e.events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET | ((state & watched_out) != 0 ? EPOLLOUT : 0u);
  e.data.u64 = std::uint64_t{generation_} << 32 | static_cast<std::uint32_t>(fd);
  return static_cast<int>(-raw(SYS_epoll_ctl, epoll(), operation, fd, &e));
}

/// Its flags (F_GETFL), or -errno.
long descriptor::mode_of(int fd) noexcept {
  const std::lock_guard not_changed_now(mode);  // by a call of ours, for its length
  return raw(SYS_fcntl, fd, F_GETFL);
}

int descriptor::watch_locked(int fd) noexcept {
  if ((state() & watched) != 0) return 0;
  prepare();
  int error = control(EPOLL_CTL_ADD, fd, 0);
  // A file that was watched before, under the same number: it came back by dup2.
  if (error == EEXIST) error = control(EPOLL_CTL_MOD, fd, 0);
  if (error != 0) return error;
  std::uint64_t bits = watched | readable | writable;
  const long flags = mode_of(fd);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0) bits |= nonblocking;
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (raw(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0) {
    bits |= socket;
    if (protocol == IPPROTO_TCP) bits |= drains;
    constexpr int names[2] = {SO_RCVTIMEO, SO_SNDTIMEO};
    for (unsigned i = 0; i < 2; ++i) {
      timeval limit{};
      size = sizeof limit;
      const bool have = raw(SYS_getsockopt, fd, SOL_SOCKET, names[i], &limit, &size) == 0;
      const std::uint64_t us = have ? static_cast<std::uint64_t>(limit.tv_sec) * 1'000'000 +
                                          static_cast<std::uint64_t>(limit.tv_usec)
                                    : 0;
      timeout_us_[i] = us < ~std::uint32_t{0} ? static_cast<std::uint32_t>(us) : ~std::uint32_t{0};
    }
  } else {
    bits |= other;
    struct stat what;
    if (fstat(fd, &what) == 0 && S_ISFIFO(what.st_mode) && (flags & O_DIRECT) == 0) bits |= drains;
    timeout_us_[0] = timeout_us_[1] = 0;
  }
  learn(bits);
  return 0;
}

int descriptor::watch(int fd) noexcept {
  const std::lock_guard hold(lock_);
  return watch_locked(fd);
}

/// Not before somebody waits to write: pipes and local sockets make an event of every byte that is read at
/// the other end.
int descriptor::want_out(int fd) noexcept {
  if ((state() & watched_out) != 0) return 0;
  learn(watched_out);
  return control(EPOLL_CTL_MOD, fd, watched_out);
}

bool descriptor::refuses_to_wait(int fd, woken& to) noexcept {
  if ((state() & nonblocking) == 0) return false;
  const long flags = mode_of(fd);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0) return true;
  forget_locked(false, to);
  return false;
}
bool descriptor::refuses_to_wait(int fd) noexcept {
  woken to;
  const std::lock_guard hold(lock_);
  return refuses_to_wait(fd, to);
}

int descriptor::await(int fd, side at, std::uint64_t before, const char* what,
                      std::uint64_t deadline_ns) noexcept {
  suspension s;
  waiting w{.who = &s, .at = at, .takes = true};
  {
    woken to;
    const std::lock_guard hold(lock_);
    if (const int error = watch_locked(fd); error != 0) return error;
    if ((state() & nonblocking) != 0) return refuses_to_wait(fd, to) ? EAGAIN : 0;
    const std::uint64_t now = state();
    if (at == side::write && want_out(fd) != 0) return 0;  // closed or replaced: the call will tell
    if (now / one_event != before / one_event) return 0;   // DS2
    state_.fetch_and(~flag(at), std::memory_order_relaxed);
    put(w);
  }
  delay();
  bool expired;
  const bool disturbed = !suspend_until(s, deadline_ns, what, expired);
  leave(w);
  if (w.closed) return EBADF;
  if (!expired && !disturbed) return 0;
  // Both happened, perhaps: then the event is another's.
  if ((state() & (flag(at) | ended)) != 0) took(at);
  return disturbed ? EINTR : ETIMEDOUT;
}

int descriptor::enlist(int fd, waiting& w) noexcept {
  const std::lock_guard hold(lock_);
  if (const int error = watch_locked(fd); error != 0) return error;
  if (w.at == side::write) static_cast<void>(want_out(fd));
  put(w);
  return 0;
}

void descriptor::leave(waiting& w) noexcept {
  const std::lock_guard hold(lock_);
  if (w.listed) take_out(w);
}

void descriptor::wake_next(side at) noexcept {
  woken to;
  const std::lock_guard hold(lock_);
  for (waiting* w = lists_[static_cast<unsigned>(at)].first; w != nullptr; w = w->next)
    if (w->takes) {
      take_out(*w);
      to.add(w->who);
      return;
    }
}

void descriptor::happened(std::uint32_t generation, std::uint32_t what) noexcept {
  woken to;
  const std::lock_guard hold(lock_);
  if (generation != generation_) return;  // of a file that had this number before
  const bool hung_up = (what & (EPOLLHUP | EPOLLERR)) != 0;
  std::uint64_t bits = 0;
  if (hung_up || (what & (EPOLLIN | EPOLLRDHUP | EPOLLPRI)) != 0) bits |= readable;
  if (hung_up || (what & EPOLLOUT) != 0) bits |= writable;
  if (hung_up || (what & (EPOLLRDHUP | EPOLLPRI)) != 0) bits |= ended;
  std::uint64_t before = state_.load(std::memory_order_relaxed);
  // DS1, DS2
  while (!state_.compare_exchange_weak(before, (before | bits) + one_event, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
  for (unsigned i = 0; i < 2; ++i) {
    if ((bits & (i == 0 ? readable : writable)) == 0) continue;
    bool taken = false;
    for (waiting *w = lists_[i].first, *next; w != nullptr; w = next) {
      next = w->next;
      if (w->takes && taken && (bits & ended) == 0) continue;
      taken = taken || w->takes;
      take_out(*w);
      to.add(w->who);
    }
  }
}

void descriptor::forget(bool closed) noexcept {
  woken to;
  const std::lock_guard hold(lock_);
  forget_locked(closed, to);
}

void descriptor::forget_locked(bool closed, woken& to) noexcept {
  ++generation_;
  const std::uint64_t before = state_.load(std::memory_order_relaxed);
  state_.store((before / one_event + 1) * one_event, std::memory_order_release);
  for (list& l : lists_)
    while (waiting* w = l.first) {
      w->closed = closed;
      take_out(*w);
      to.add(w->who);
    }
}

bool descriptor::check(int fd) noexcept {
  if (!any_waits()) return false;
  woken to;
  const std::lock_guard hold(lock_);
  if (!any_waits() || age_ == 2) return false;
  if (++age_ != 2) return true;
  // Makes an event if it is ready now. What is found is true under the lock: without it, the number may be
  // another file's, which is not to be forgotten.
  if (const int error = control(EPOLL_CTL_MOD, fd, state()); error != 0) forget_locked(error == EBADF, to);
  return false;
}

void descriptor::clear() noexcept {
  lists_[0] = lists_[1] = {};
  state_.store(0, std::memory_order_relaxed);
  ++generation_;
}

descriptor* descriptor_of(int fd) noexcept {
  const auto number = static_cast<unsigned>(fd);
  const unsigned c = number >> chunk_bits;
  if (c >= chunk_count) return nullptr;
  descriptor* chunk = chunks[c].load(std::memory_order_acquire);
  if (chunk == nullptr) [[unlikely]] {
    auto* made = new (std::nothrow) descriptor[std::size_t{1} << chunk_bits];
    if (made == nullptr) base::fatal("no memory for what is known of file descriptor %d", fd);
    if (chunks[c].compare_exchange_strong(chunk, made, std::memory_order_seq_cst))
      chunk = made;
    else
      delete[] made;
    for (unsigned end = chunks_end.load(std::memory_order_seq_cst);
         end <= c && !chunks_end.compare_exchange_weak(end, c + 1, std::memory_order_seq_cst);) {
    }
  }
  return chunk + (number & ((1u << chunk_bits) - 1));
}

bool descriptors_waited_for() noexcept { return waited_for.load(std::memory_order_relaxed) != 0; }

void descriptor_event(std::uint64_t tag, std::uint32_t what) noexcept {
  if (descriptor* d = descriptor_of(static_cast<int>(tag & 0xffffffff)))
    d->happened(static_cast<std::uint32_t>(tag >> 32), what);
}

bool descriptors_want_a_check(std::uint64_t now) noexcept {
  return unchecked.load(std::memory_order_relaxed) != 0 && descriptors_waited_for() &&
         now >= next_check_ns.load(std::memory_order_relaxed);
}

namespace {
template <class F>
void for_each_descriptor(F f) {
  const unsigned end = chunks_end.load(std::memory_order_seq_cst);
  for (unsigned c = 0; c < end; ++c)
    if (descriptor* chunk = chunks[c].load(std::memory_order_acquire))
      for (unsigned i = 0; i < 1u << chunk_bits; ++i) f(static_cast<int>(c << chunk_bits | i), chunk[i]);
}
}  // namespace

void check_descriptors(std::uint64_t now) noexcept {
  unchecked.store(0, std::memory_order_seq_cst);
  bool again = false;
  for_each_descriptor([&](int fd, descriptor& d) { again |= d.check(fd); });
  if (again) unchecked.store(1, std::memory_order_seq_cst);
  // With very many, no more than a hundredth of one worker's time.
  const std::uint64_t took = base::now_ns() - now;
  next_check_ns.store(now + (took * 100 > check_every_ns ? took * 100 : check_every_ns),
                      std::memory_order_relaxed);
}

void forget_descriptors(unsigned first, unsigned last, bool closed) noexcept {
  const unsigned end = chunks_end.load(std::memory_order_seq_cst) << chunk_bits;
  for (unsigned fd = first; fd <= last && fd < end; ++fd)
    if (descriptor* chunk = chunks[fd >> chunk_bits].load(std::memory_order_acquire)) {
      descriptor& d = chunk[fd & ((1u << chunk_bits) - 1)];
      if (d.state() % descriptor::one_event != 0) d.forget(closed);
    } else {
      fd |= (1u << chunk_bits) - 1;
    }
}

void clear_descriptors() noexcept {
  for_each_descriptor([](int, descriptor& d) { d.clear(); });
  waited_for.store(0, std::memory_order_seq_cst);
  unchecked.store(0, std::memory_order_seq_cst);
  next_check_ns.store(0, std::memory_order_seq_cst);
}

}  // namespace godwit::events
