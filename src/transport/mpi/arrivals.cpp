// See arrivals.hpp.
#include "transport/mpi/arrivals.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#if !defined(SYS_epoll_pwait2)
#define SYS_epoll_pwait2 441  // the same on all architectures, since 5.11
#endif

namespace godwit::transport::mpi {

namespace {
void only_wake(int) {}

/// A socket; or a poll of sockets of somebody else's, which can be polled itself.
bool brings_messages(int folder, const char* name) noexcept {
  char what[64] = {};
  if (readlinkat(folder, name, what, sizeof what - 1) < 0) return false;
  return std::strncmp(what, "socket:", 7) == 0 || std::strcmp(what, "anon_inode:[eventpoll]") == 0;
}
}  // namespace

arrivals::arrivals() noexcept : os_thread_(static_cast<std::uint32_t>(syscall(SYS_gettid))) {
  sigset_t urgent;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  pthread_sigmask(SIG_BLOCK, &urgent, &mask_before_);
  mask_in_wait_ = mask_before_;
  sigdelset(&mask_in_wait_, SIGURG);
  struct sigaction wakes = {};
  wakes.sa_handler = only_wake;
  sigaction(SIGURG, &wakes, &action_before_);
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  if (poll_ < 0) return;
  watch_all();
  if (poll_for(0) < 0 && errno != EINTR) close(std::exchange(poll_, -1));
}

arrivals::~arrivals() {
  if (poll_ >= 0) close(poll_);
  sigset_t urgent;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  constexpr timespec at_once{};
  sigtimedwait(&urgent, nullptr, &at_once);  // of a bell that nobody waited for
  sigaction(SIGURG, &action_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

int arrivals::poll_for(std::uint64_t ns) noexcept {
  epoll_event events[16];
  const timespec limit{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  return static_cast<int>(
      syscall(SYS_epoll_pwait2, poll_, events, 16, &limit, &mask_in_wait_, std::size_t{NSIG / 8}));
}

bool arrivals::wait(std::uint32_t timeout_us) noexcept {
  if (poll_for(std::uint64_t{timeout_us} * 1000) != 0) return true;
  if (lowest_free() != lowest_free_) watch_all();
  return false;
}

int arrivals::lowest_free() const noexcept {
  const int copy = fcntl(poll_, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0) close(copy);
  return copy;
}

/// Edges only: what stays readable, because it is not MPI's or MPI lets it lie, must not wake us again.
void arrivals::watch_all() noexcept {
  if (DIR* const all = opendir("/proc/self/fd"); all != nullptr) {
    while (const dirent* const each = readdir(all)) {
      const int descriptor = std::atoi(each->d_name);
      epoll_event what{.events = EPOLLIN | EPOLLET, .data = {}};
      if (descriptor != poll_ && brings_messages(dirfd(all), each->d_name))
        epoll_ctl(poll_, EPOLL_CTL_ADD, descriptor, &what);  // again: it says so, and nothing else happens
    }
    closedir(all);
  }
  lowest_free_ = lowest_free();
}

}  // namespace godwit::transport::mpi
