// What wakes a companion that sleeps between messages: the bell of its workers and, where MPI waits for
// messages at sockets, a message.
//
// MPI has no call that sleeps until something comes. But over TCP its messages come to sockets of this
// process, so a poll of these sockets ends when one is there. Elsewhere (networks that bypass the kernel) it
// ends with the bell or its time, as if there were no sockets. A futex cannot be waited for together with
// sockets, so the bell is a signal here: SIGURG, blocked but while the poll lasts. One that comes before the
// poll ends it at once. docs/protocols/far.md; test: tests/transport/arrivals_test.cpp.
#pragma once

#include <csignal>
#include <cstdint>

namespace godwit::transport::mpi {

/// Of the calling OS thread, which alone may use it. While it lives SIGURG is this object's in that thread.
class arrivals {
 public:
  /// Cost: a look at all descriptors of the process, some microseconds each.
  arrivals() noexcept;
  ~arrivals();
  arrivals(const arrivals&) = delete;
  arrivals& operator=(const arrivals&) = delete;

  /// False: the kernel (before 5.11) or something around it has no such poll, and nobody may wait here.
  bool usable() const noexcept { return poll_ >= 0; }
  /// Who rings the bell sends SIGURG to it.
  std::uint32_t os_thread() const noexcept { return os_thread_; }
  /// Sleep until a socket has got something since the last wait, SIGURG has come, or @p timeout_us are over.
  /// False: only the time.
  bool wait(std::uint32_t timeout_us) noexcept;

 private:
  int poll_for(std::uint64_t ns) noexcept;
  void watch_all() noexcept;
  int lowest_free() const noexcept;

  int poll_ = -1;
  int lowest_free_ = -1;  ///< descriptor after the last watch_all: another one means that some have come
  std::uint32_t os_thread_ = 0;
  sigset_t mask_before_{}, mask_in_wait_{};
  struct sigaction action_before_ {};
};

}  // namespace godwit::transport::mpi
