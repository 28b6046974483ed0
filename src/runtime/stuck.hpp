// Workers that wait for ever inside the C library: for a std::mutex that a suspended thread holds, above all.
// They are not idle, so the scheduler's deadlock report does not see them; the process that supervises does,
// by looking at /proc now and then.
//
// Nothing is guessed. A wait counts only if it has no end of its own (a futex without a timeout), if no
// thread is left that could end it -- of that process; for a word of the heap that workers share, of any:
// all others wait like this, at the same moment, or are idle workers, and main has no other thread -- and no
// signal handler of the program's could. Where the system does not tell, nothing is reported. Not under MPI,
// where a rank has threads of the MPI library. Called by: run_processes.cpp, run_threads.cpp.
// Tests: tests/api/stuck_test.cpp, tests/runtime/stuck_watch_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace godwit::runtime {

class stuck_watch {
 public:
  explicit stuck_watch(std::uint32_t workers);

  /// Milliseconds until the next look; at most @p timeout_ms unless that is -1 (no limit).
  int sleep_ms(int timeout_ms) const;
  /// Is it time for a look? If so the next one is planned.
  bool due();

  struct wait {
    std::uint32_t worker;
    pid_t tid;
    std::uint64_t word;  ///< address of the futex
    std::uint64_t sp;    ///< the waiting thread's
    bool shared;         ///< other processes may wake it
    std::uint64_t runs;  ///< so often it has stopped to run
    /// Whether it has run in between is not asked.
    bool operator==(const wait& w) const noexcept {
      return worker == w.worker && tid == w.tid && word == w.word && sp == w.sp && shared == w.shared;
    }
  };
  /// Does OS thread @p tid, worker @p worker, wait with no end?
  static bool waits(pid_t tid, std::uint32_t worker, wait& how);
  /// These were seen one after the other, and threads that let each other go may all be found waiting. True:
  /// none has run since, so at one moment all of them waited.
  static bool at_once(const std::vector<wait>& seen);
  /// Process @p pid has no more than @p threads threads, and handles none of the signals but those that the
  /// runtime does.
  static bool nobody_else(pid_t pid, std::size_t threads, bool in_process);

  /// These waits were seen in this look. True: they and no others for the third time.
  bool seen(const std::vector<wait>& now);

 private:
  std::uint64_t every_ns_, next_ns_;
  std::vector<wait> before_;
  unsigned times_ = 0;
};

/// One line. @p stack: the thread's from sp on, @p bytes of it can be read (0: the place is not known).
std::string describe_stuck(const stuck_watch::wait& w, const std::uint64_t* stack, std::size_t bytes);

}  // namespace godwit::runtime
