// Blocking I/O that suspends the thread and not its worker, on the substrate `threads`.
//
// The names, arguments, results and errno of POSIX. A thread that has to wait -- for data, room, a
// connection, a time -- is suspended, and its worker runs others. Everywhere else (outside a run, in threads
// that the program started itself, on the other substrates) these are just the system calls. A thread may go
// on at another worker after any of them, which has another `errno`: compilers may keep the address of the
// old one, so a loop that looks at `errno` asks io::error() instead. docs/io.md says what differs. Source:
// Uni-address threads' and MassiveThreads' blocking calls (001). Implemented in src/io;
// docs/protocols/events.md. Tests: tests/io/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

struct epoll_event;

namespace godwit::io {

/// `errno` of the worker that executes the caller now.
int error() noexcept;

// Cost of all that follow, when nothing has to be waited for: the system call and some nanoseconds. A wait
// adds two switches, and what is asked of epoll: once per descriptor, not per wait.
ssize_t read(int fd, void* to, std::size_t bytes) noexcept;
/// Like all that write: comes back when everything is written, unless the descriptor is non-blocking.
ssize_t write(int fd, const void* from, std::size_t bytes) noexcept;
ssize_t readv(int fd, const iovec* to, int count) noexcept;
ssize_t writev(int fd, const iovec* from, int count) noexcept;
/// Of files: these wait for the device, and the worker with them.
ssize_t pread(int fd, void* to, std::size_t bytes, off_t at) noexcept;
ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t at) noexcept;

ssize_t recv(int fd, void* to, std::size_t bytes, int flags) noexcept;
ssize_t recvfrom(int fd, void* to, std::size_t bytes, int flags, sockaddr* peer,
                 socklen_t* peer_bytes) noexcept;
ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept;
ssize_t send(int fd, const void* from, std::size_t bytes, int flags) noexcept;
ssize_t sendto(int fd, const void* from, std::size_t bytes, int flags, const sockaddr* peer,
               socklen_t peer_bytes) noexcept;
ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept;

int accept(int fd, sockaddr* peer, socklen_t* peer_bytes) noexcept;
int accept4(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags) noexcept;
int connect(int fd, const sockaddr* peer, socklen_t peer_bytes) noexcept;

int poll(pollfd* fds, nfds_t count, int timeout_ms) noexcept;
/// The signal mask is not used: signals for the program are not taken by workers.
int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask = nullptr) noexcept;
int select(int count, fd_set* readable, fd_set* writable, fd_set* except, timeval* timeout) noexcept;
int epoll_wait(int fd, epoll_event* events, int most, int timeout_ms) noexcept;

// Descriptors are closed and changed through these, so that it is known at once. What other code closes is
// noticed when its number is used again, at the latest 0.2 s after a thread began to wait for it.
/// Threads that wait for it get EBADF.
int close(int fd) noexcept;
/// All from @p first on, or first ... last, but for the two that workers sleep in. @p flags as in Linux; not
/// CLOSE_RANGE_UNSHARE (EINVAL): all workers have one table of descriptors.
void closefrom(int first) noexcept;
int close_range(unsigned first, unsigned last, unsigned flags) noexcept;
/// EBUSY: @p to is one that workers sleep in (some number near 1000).
int dup2(int from, int to) noexcept;
int dup3(int from, int to, int flags) noexcept;
/// F_SETFL with O_NONBLOCK above all.
int fcntl(int fd, int command, std::intptr_t argument = 0) noexcept;
/// SO_RCVTIMEO and SO_SNDTIMEO above all.
int setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) noexcept;
/// Somebody else changed what the number stands for, its mode or its time limits.
void forget(int fd) noexcept;

/// Milliseconds and the like as they stand there: deadlines are met late by up to some 50 us, never early.
int nanosleep(const timespec* time, timespec* left = nullptr) noexcept;
int usleep(unsigned us) noexcept;
unsigned sleep(unsigned seconds) noexcept;

namespace detail {
void sleep_ns(std::int64_t ns) noexcept;
}
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& time) noexcept {
  // seconds; counted in nanoseconds some durations are too large
  constexpr std::int64_t very_long = 1'000'000'000;
  if (std::chrono::duration_cast<std::chrono::duration<double>>(time).count() >=
      static_cast<double>(very_long))
    detail::sleep_ns(very_long * 1'000'000'000);
  else
    detail::sleep_ns(std::chrono::ceil<std::chrono::nanoseconds>(time).count());
}
template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& time) noexcept {
  for (auto now = Clock::now(); now < time; now = Clock::now()) sleep_for(time - now);
}

}  // namespace godwit::io
