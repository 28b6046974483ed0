// The calls of godwit/io.hpp that move data. docs/protocols/events.md, "A call". Test: tests/io/.
//
// All have one shape: try without waiting -- unless the last call found that nothing was left and no event
// has come since --, and if there is nothing, wait for an event. What the program sees of the descriptor does
// not change: sockets are asked not to wait per call (MSG_DONTWAIT), pipes and the like too (RWF_NOWAIT);
// only accept and connect, which have no such flag, put the file into non-blocking mode for the length of one
// call.
#include <godwit/io.hpp>

#include <algorithm>
#include <climits>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>

#include "base/clock.hpp"
#include "io/descriptors.hpp"
#include "io/events.hpp"
#include "io/system.hpp"

namespace godwit::io {

namespace {

using events::descriptor;
using events::int_with_errno;
using events::managed;
using events::raw;
using events::side;
using events::with_errno;

/// One blocking call on @p fd.
class call {
 public:
  call(int fd, descriptor& d, side at, const char* what) noexcept : fd_(fd), d_(d), at_(at), what_(what) {}

  /// f() until it gives back something else than -EAGAIN. @p partial(n): less than asked for.
  template <class F, class Partial>
  long operator()(F f, Partial partial) noexcept {
    for (;;) {
      const std::uint64_t before = d_.state();
      if (descriptor::may_try(before, at_)) {
        const long n = f();
        if (n >= 0) {
          if (at_ == side::read && n > 0 && (before & descriptor::drains) != 0 && partial(n))
            d_.drained(before);
          else
            d_.took(at_);
          return n;
        }
        if (n == -EINTR) continue;
        if (n != -EAGAIN) {
          d_.took(at_);  // what woke this thread is still there for the next one
          return n;
        }
      }
      if (const int error = wait(before); error != 0) return -error;
    }
  }
  template <class F>
  long operator()(F f) noexcept {
    return (*this)(f, [](long) { return false; });
  }

  /// Until an event after @p before. 0 or an errno.
  int wait(std::uint64_t before) noexcept {
    if ((before & descriptor::watched) == 0)
      if (const int error = d_.watch(fd_); error != 0) {
        cannot_wait_ = error == EPERM;
        return error;
      }
    const std::uint64_t limit = d_.timeout_ns(at_);
    if (limit != 0 && deadline_ == 0) deadline_ = base::now_ns() + limit;
    const int error = d_.await(fd_, at_, before, what_, deadline_);
    cannot_wait_ = error == EPERM;
    return error == ETIMEDOUT ? EAGAIN : error;
  }
  /// The number stands for a file by now. Else an EPERM is what the system call itself gave.
  bool cannot_wait() const noexcept { return cannot_wait_; }

 private:
  int fd_;
  descriptor& d_;
  side at_;
  const char* what_;
  std::uint64_t deadline_ = 0;
  bool cannot_wait_ = false;
};

constexpr long seen_no_socket = -ENOTSOCK;

/// What it is, learned without a system call where a socket's own call already said so. EPERM: a file, which
/// cannot be waited for. 0: pipe, terminal, eventfd...
int know_other(int fd, descriptor& d) noexcept {
  if ((d.state() & descriptor::socket) != 0) d.forget(false);  // the number stands for something else by now
  // No instance of epoll is made only to be told that this is a file.
  if (struct stat what;
      events::epoll() < 0 && fstat(fd, &what) == 0 && (S_ISREG(what.st_mode) || S_ISDIR(what.st_mode)))
    return EPERM;
  return d.watch(fd);
}

/// Ready, at this moment? For what knows no call that does not wait.
bool is_ready(int fd, side at) noexcept {
  pollfd p{fd, static_cast<short>(at == side::read ? POLLIN : POLLOUT), 0};
  constexpr timespec now{};
  return raw(SYS_ppoll, &p, 1, &now, nullptr, 0) != 0;
}

/// read or write of something that is no socket: at once or -EAGAIN.
long try_vector(int fd, descriptor& d, side at, const iovec* v, int count) noexcept {
#if !defined(RWF_NOWAIT)
  constexpr int RWF_NOWAIT = 8;
#endif
  if ((d.state() & descriptor::no_nowait) == 0) {
    const long n = raw(at == side::read ? SYS_preadv2 : SYS_pwritev2, fd, v, count, -1L, -1L, RWF_NOWAIT);
    // EPERM: perhaps from a filter of system calls that does not know this one; else the next call gives it.
    if (n != -EOPNOTSUPP && n != -ENOSYS && n != -ESPIPE && n != -EPERM) return n;
    d.learn(descriptor::no_nowait);
  }
  if (!is_ready(fd, at)) return -EAGAIN;
  if (at == side::read) return raw(SYS_readv, fd, v, count);
  // Room for this much is what "ready" promises.
  const iovec* first = std::find_if(v, v + count, [](const iovec& i) { return i.iov_len != 0; });
  if (first == v + count) return raw(SYS_writev, fd, v, count);
  return raw(SYS_write, fd, first->iov_base, std::min<std::size_t>(first->iov_len, PIPE_BUF));
}

/// What is left of a vector when some bytes are done. Longer ones than fit are cut: the caller comes again.
class rest_of {
 public:
  rest_of(const iovec* v, int count) noexcept : from_(v), left_(count) { fill(); }
  bool empty() const noexcept { return count_ == 0; }
  iovec* data() noexcept { return here_; }
  int count() const noexcept { return count_; }
  std::size_t bytes() const noexcept {
    std::size_t sum = 0;
    for (int i = 0; i < count_; ++i) sum += here_[i].iov_len;
    return sum;
  }
  void advance(std::size_t done) noexcept {
    int i = 0;
    for (; i < count_ && done >= here_[i].iov_len; ++i) done -= here_[i].iov_len;
    std::copy(here_ + i, here_ + count_, here_);
    count_ -= i;
    if (count_ != 0) {
      here_[0].iov_base = static_cast<char*>(here_[0].iov_base) + done;
      here_[0].iov_len -= done;
    }
    fill();
  }

 private:
  void fill() noexcept {
    for (; count_ < most && left_ > 0; ++from_, --left_)
      if (from_->iov_len != 0) here_[count_++] = *from_;
  }
  static constexpr int most = 16;
  iovec here_[most];
  int count_ = 0;
  const iovec* from_;
  int left_;
};

std::size_t bytes_of(const iovec* v, std::size_t count) noexcept {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += v[i].iov_len;
  return sum;
}

/// Write all: what a blocking descriptor promises. f(rest) writes some.
template <class F>
long write_all(call& c, rest_of rest, F f) noexcept {
  long done = 0;
  for (;;) {
    const long n = c([&] { return f(rest); });
    if (n < 0) return done != 0 ? done : n;
    done += n;
    rest.advance(static_cast<std::size_t>(n));
    if (rest.empty()) return done;
  }
}

long receive(int fd, descriptor& d, void* to, std::size_t bytes, int flags, sockaddr* peer,
             socklen_t* peer_bytes, const char* what) noexcept {
  call c(fd, d, side::read, what);
  const bool plain = (flags & ~MSG_NOSIGNAL) == 0;
  long done = 0;
  for (;;) {
    const long n = c(
        [&] {
          return raw(SYS_recvfrom, fd, static_cast<char*>(to) + done, bytes - static_cast<std::size_t>(done),
                     flags | ((flags & MSG_ERRQUEUE) == 0 ? MSG_DONTWAIT : 0), peer, peer_bytes);
        },
        [&](long got) {
          return plain && static_cast<std::size_t>(got) + static_cast<std::size_t>(done) < bytes;
        });
    if (n < 0) return done != 0 ? done : n;
    done += n;
    if ((flags & MSG_WAITALL) == 0 || (flags & MSG_PEEK) != 0 || n == 0 ||
        static_cast<std::size_t>(done) == bytes || d.refuses_to_wait(fd))
      return done;
    int type = 0;
    socklen_t size = sizeof type;
    if (raw(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return done;
  }
}

long transmit(int fd, descriptor& d, const void* from, std::size_t bytes, int flags, const sockaddr* peer,
              socklen_t peer_bytes, const char* what) noexcept {
  call c(fd, d, side::write, what);
  std::size_t done = 0;
  for (;;) {
    const long n = c([&] {
      return raw(SYS_sendto, fd, static_cast<const char*>(from) + done, bytes - done, flags | MSG_DONTWAIT,
                 peer, peer_bytes);
    });
    if (n < 0) return done != 0 ? static_cast<long>(done) : n;
    done += static_cast<std::size_t>(n);
    if (done >= bytes) return static_cast<long>(done);
  }
}

long transmit_message(int fd, descriptor& d, const msghdr* message, int flags, const char* what) noexcept {
  call c(fd, d, side::write, what);
  msghdr m = *message;
  const std::size_t all = bytes_of(m.msg_iov, m.msg_iovlen);
  // rare: as one piece; what a stream cannot take at once is written in pieces below
  if (m.msg_iovlen > 16 || all == 0) {
    const long n = c([&] { return raw(SYS_sendmsg, fd, &m, flags | MSG_DONTWAIT); });
    if (n < 0 || static_cast<std::size_t>(n) >= all) return n;
    rest_of rest(m.msg_iov, static_cast<int>(m.msg_iovlen));
    rest.advance(static_cast<std::size_t>(n));
    const long more = write_all(c, rest, [&](rest_of& r) {
      msghdr part{};
      part.msg_iov = r.data();
      part.msg_iovlen = static_cast<std::size_t>(r.count());
      return raw(SYS_sendmsg, fd, &part, flags | MSG_DONTWAIT);
    });
    return more < 0 ? n : n + more;
  }
  return write_all(c, rest_of(m.msg_iov, static_cast<int>(m.msg_iovlen)), [&](rest_of& r) {
    m.msg_iov = r.data();
    m.msg_iovlen = static_cast<std::size_t>(r.count());
    const long n = raw(SYS_sendmsg, fd, &m, flags | MSG_DONTWAIT);
    if (n > 0) {  // these go with the first byte
      m.msg_control = nullptr;
      m.msg_controllen = 0;
    }
    return n;
  });
}

/// read, readv, write, writev of what is no socket.
long other(int fd, descriptor& d, side at, const iovec* v, int count, const char* what) noexcept {
  for (;;) {
    if (const int error = know_other(fd, d); error == EBADF)
      return -EBADF;
    else if (error != 0)  // a file
      return raw(at == side::read ? SYS_readv : SYS_writev, fd, v, count);
    call c(fd, d, at, what);
    const std::size_t all = bytes_of(v, static_cast<std::size_t>(count));
    long n;
    if (at == side::read)
      n = c([&] { return try_vector(fd, d, at, v, count); },
            [&](long got) { return static_cast<std::size_t>(got) < all; });
    else if (count <= 16 && all != 0)
      n = write_all(c, rest_of(v, count),
                    [&](rest_of& r) { return try_vector(fd, d, at, r.data(), r.count()); });
    else
      n = c([&] { return try_vector(fd, d, at, v, count); });
    if (n != -EPERM || !c.cannot_wait()) return n;
  }
}

/// In non-blocking mode for the length of one call, which has no flag for that.
template <class F>
long without_waiting(int fd, descriptor& d, F f) noexcept {
  const std::lock_guard hold(d.mode);
  const long mode = raw(SYS_fcntl, fd, F_GETFL);
  if (mode < 0) return mode;
  if ((mode & O_NONBLOCK) != 0) return f();
  raw(SYS_fcntl, fd, F_SETFL, mode | O_NONBLOCK);
  const long r = f();
  raw(SYS_fcntl, fd, F_SETFL, mode);
  return r;
}

bool is_plain_socket(descriptor& d) noexcept { return (d.state() & descriptor::other) == 0; }

}  // namespace

int error() noexcept { return errno; }

ssize_t read(int fd, void* to, std::size_t bytes) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr) return with_errno(raw(SYS_read, fd, to, bytes));
  if (is_plain_socket(*d))
    if (const long n = receive(fd, *d, to, bytes, 0, nullptr, nullptr, "read"); n != seen_no_socket)
      return with_errno(n);
  const iovec v{to, bytes};
  return with_errno(other(fd, *d, side::read, &v, 1, "read"));
}

ssize_t write(int fd, const void* from, std::size_t bytes) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr) return with_errno(raw(SYS_write, fd, from, bytes));
  if (is_plain_socket(*d))
    if (const long n = transmit(fd, *d, from, bytes, 0, nullptr, 0, "write"); n != seen_no_socket)
      return with_errno(n);
  const iovec v{const_cast<void*>(from), bytes};
  return with_errno(other(fd, *d, side::write, &v, 1, "write"));
}

ssize_t readv(int fd, const iovec* to, int count) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr || count < 0 || count > IOV_MAX) return with_errno(raw(SYS_readv, fd, to, count));
  if (is_plain_socket(*d)) {
    msghdr m{};
    m.msg_iov = const_cast<iovec*>(to);
    m.msg_iovlen = static_cast<std::size_t>(count);
    const std::size_t all = bytes_of(to, m.msg_iovlen);
    call c(fd, *d, side::read, "readv");
    const long n = c([&] { return raw(SYS_recvmsg, fd, &m, MSG_DONTWAIT); },
                     [&](long got) { return static_cast<std::size_t>(got) < all; });
    if (n != seen_no_socket) return with_errno(n);
  }
  return with_errno(other(fd, *d, side::read, to, count, "readv"));
}

ssize_t writev(int fd, const iovec* from, int count) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr || count < 0 || count > IOV_MAX) return with_errno(raw(SYS_writev, fd, from, count));
  if (is_plain_socket(*d)) {
    msghdr m{};
    m.msg_iov = const_cast<iovec*>(from);
    m.msg_iovlen = static_cast<std::size_t>(count);
    if (const long n = transmit_message(fd, *d, &m, 0, "writev"); n != seen_no_socket) return with_errno(n);
  }
  return with_errno(other(fd, *d, side::write, from, count, "writev"));
}

ssize_t pread(int fd, void* to, std::size_t bytes, off_t at) noexcept {
  return with_errno(raw(SYS_pread64, fd, to, bytes, at));
}

ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t at) noexcept {
  return with_errno(raw(SYS_pwrite64, fd, from, bytes, at));
}

ssize_t recv(int fd, void* to, std::size_t bytes, int flags) noexcept {
  return io::recvfrom(fd, to, bytes, flags, nullptr, nullptr);
}

ssize_t recvfrom(int fd, void* to, std::size_t bytes, int flags, sockaddr* peer,
                 socklen_t* peer_bytes) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr || (flags & MSG_DONTWAIT) != 0)
    return with_errno(raw(SYS_recvfrom, fd, to, bytes, flags, peer, peer_bytes));
  return with_errno(receive(fd, *d, to, bytes, flags, peer, peer_bytes, "recv"));
}

ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr || (flags & (MSG_DONTWAIT | MSG_ERRQUEUE)) != 0)
    return with_errno(raw(SYS_recvmsg, fd, message, flags));
  const msghdr asked = *message;
  const std::size_t all = bytes_of(message->msg_iov, message->msg_iovlen);
  call c(fd, *d, side::read, "recvmsg");
  long n = c(
      [&] {
        *message = asked;
        return raw(SYS_recvmsg, fd, message, flags | MSG_DONTWAIT);
      },
      [&](long got) {
        return (flags & ~(MSG_NOSIGNAL | MSG_CMSG_CLOEXEC)) == 0 && static_cast<std::size_t>(got) < all;
      });
  if (n > 0 && (flags & MSG_WAITALL) != 0 && (flags & MSG_PEEK) == 0 && static_cast<std::size_t>(n) < all &&
      !d->refuses_to_wait(fd)) {
    rest_of rest(asked.msg_iov, static_cast<int>(asked.msg_iovlen));
    rest.advance(static_cast<std::size_t>(n));
    while (!rest.empty()) {
      const long more = receive(fd, *d, rest.data()->iov_base, rest.data()->iov_len, MSG_WAITALL, nullptr,
                                nullptr, "recvmsg");
      if (more <= 0) break;
      n += more;
      if (static_cast<std::size_t>(more) < rest.data()->iov_len) break;
      rest.advance(static_cast<std::size_t>(more));
    }
  }
  return with_errno(n);
}

ssize_t send(int fd, const void* from, std::size_t bytes, int flags) noexcept {
  return io::sendto(fd, from, bytes, flags, nullptr, 0);
}

ssize_t sendto(int fd, const void* from, std::size_t bytes, int flags, const sockaddr* peer,
               socklen_t peer_bytes) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr || (flags & MSG_DONTWAIT) != 0)
    return with_errno(raw(SYS_sendto, fd, from, bytes, flags, peer, peer_bytes));
  return with_errno(transmit(fd, *d, from, bytes, flags, peer, peer_bytes, "send"));
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr || (flags & MSG_DONTWAIT) != 0) return with_errno(raw(SYS_sendmsg, fd, message, flags));
  return with_errno(transmit_message(fd, *d, message, flags, "sendmsg"));
}

int accept(int fd, sockaddr* peer, socklen_t* peer_bytes) noexcept {
  return io::accept4(fd, peer, peer_bytes, 0);
}

int accept4(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr) return int_with_errno(raw(SYS_accept4, fd, peer, peer_bytes, flags));
  if (const int error = d->watch(fd); error != 0) return int_with_errno(error == EPERM ? -ENOTSOCK : -error);
  call c(fd, *d, side::read, "accept");
  const long made = c(
      [&] { return without_waiting(fd, *d, [&] { return raw(SYS_accept4, fd, peer, peer_bytes, flags); }); });
  // The number is new, whatever is known of it.
  if (made >= 0)
    if (descriptor* n = events::descriptor_of(static_cast<int>(made));
        n != nullptr && n->state() % descriptor::one_event != 0)
      n->forget(true);
  return int_with_errno(made);
}

int connect(int fd, const sockaddr* peer, socklen_t peer_bytes) noexcept {
  descriptor* d = managed(fd);
  if (d == nullptr) return int_with_errno(raw(SYS_connect, fd, peer, peer_bytes));
  std::uint64_t before = d->state();
  long n = without_waiting(fd, *d, [&] { return raw(SYS_connect, fd, peer, peer_bytes); });
  for (std::int64_t pause = 100'000; n == -EAGAIN; pause = std::min<std::int64_t>(pause * 2, 10'000'000)) {
    // A local socket whose peer's queue is full: no event tells when there is room.
    if (d->watch(fd) != 0 || d->refuses_to_wait(fd)) break;
    detail::sleep_ns(pause);
    n = without_waiting(fd, *d, [&] { return raw(SYS_connect, fd, peer, peer_bytes); });
  }
  // EALREADY: begun by an earlier call, which a signal interrupted: a blocking one waits for the rest.
  if (n != -EINPROGRESS && n != -EALREADY) return int_with_errno(n);
  call c(fd, *d, side::write, "connect");
  for (;;) {
    const int error = c.wait(before);
    if (error != 0) return int_with_errno(error == EAGAIN ? n : -error);
    before = d->state();
    if (!is_ready(fd, side::write)) continue;
    int result = 0;
    socklen_t size = sizeof result;
    n = raw(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &result, &size);
    return int_with_errno(n < 0 ? n : -result);
  }
}

}  // namespace godwit::io
