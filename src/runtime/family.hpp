// What a process that forked workers does for them: stop signals, their ends, and what those mean.
//
// Used by run_processes.cpp and by run_mpi.cpp, where each rank forks its own workers.
#pragma once

#include "transport/shm/segment.hpp"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace godwit::runtime {

/// Catches the signals that mean "stop", for as long as a run is on. Afterwards those that nobody took are
/// sent again, and mean what they meant before. But none after one that has ended the run: a terminal, a
/// launcher and other ranks may all send one for the same wish. One at a time.
class interrupt_guard {
 public:
  interrupt_guard();  ///< throws std::runtime_error
  ~interrupt_guard();
  interrupt_guard(const interrupt_guard&) = delete;
  interrupt_guard& operator=(const interrupt_guard&) = delete;
  int fd() const noexcept;
  struct what {
    int signal;                  ///< 0: none
    std::uint64_t sender, user;  ///< as in cause_of_death
  };
  /// A pending stop signal.
  what take() noexcept;
  /// One has ended the run, here or in another process.
  void heard() noexcept { heard_ = true; }
  static bool is_status_of_signal(int status) noexcept;

  // Around fork() of this process or a worker: a child that is no worker has the meanings from before the
  // run, so that signals for it are its own. Signals wait meanwhile. after_* have the mask from before_fork.
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child(bool is_worker) noexcept;

 private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  void restore_meanings() const noexcept;
  struct sigaction before_[3]{};
  bool heard_ = false;
};

/// In a worker: the process that supervises it looks at what it watches. Ends the run if that cannot be had.
void wake_supervisor() noexcept;

/// In words.
std::string interrupted(const interrupt_guard::what& got);

/// The forked workers, as seen by their supervisor. Kills those that are left when it goes.
class family {
 public:
  family() = default;
  ~family() { kill_all(); }
  family(const family&) = delete;
  family& operator=(const family&) = delete;
  void add(std::uint32_t worker, pid_t pid);
  std::size_t alive() const noexcept { return members_.size(); }
  void kill_all() noexcept;
  /// Sleep until something may have happened, @p timeout_ms at most (-1: no limit).
  void sleep(int stop_fd, int timeout_ms) const;
  /// f(worker, pid) for each that is alive.
  template <class F>
  void each(F&& f) const {
    for (const member& m : members_) f(m.worker, m.pid);
  }
  struct end {
    std::uint32_t worker;
    pid_t pid;
    int status;           // as from waitpid
    std::string program;  ///< what it had become by exec; empty: it had not
    bool known = true;    ///< false: somebody else got the status
  };
  /// One worker that has ended since the last call, if there is one.
  std::optional<end> next_end() noexcept;

 private:
  struct member {
    std::uint32_t worker;
    pid_t pid;
    int fd;  // pidfd, -1 where the kernel has none
  };
  static void kill(const member& m) noexcept;
  std::vector<member> members_;  // those that are alive
};

/// Why the run is over before its end: a stop signal; or a worker that ended, in its own words if it left
/// any.
struct verdict {
  int status = 0;  ///< 0: it is not, as far as can be seen now
  std::string message;
};
verdict look_at(family& workers, interrupt_guard& stop, const transport::shm::segment& memory);

}  // namespace godwit::runtime
