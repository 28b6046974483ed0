// Run a piece of a test in a process of its own and see what becomes of it: exit status, output, how long it
// took, and whether anything stayed behind.
//
// The child leads a process group; the test process makes itself the reaper of orphans, so that workers that
// outlive their supervisor are found. Used for everything that ends a run badly.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>

namespace support {

struct outcome {
  int status = -1;         ///< exit status, or 128 + signal, as a shell says it
  bool timed_out = false;  ///< it was killed by run_child
  int left_behind = 0;     ///< processes of its group that were still there after the grace period
  double seconds = 0;      ///< from the start, or from the moment that `during` came back, to the end
  std::string out;         ///< standard output
  std::string err;         ///< standard error

  /// Number of lines on standard error.
  int err_lines() const {
    int n = 0;
    for (const char c : err) n += c == '\n';
    return n + (!err.empty() && err.back() != '\n');
  }
  bool err_has(const char* words) const { return err.find(words) != std::string::npos; }
};

/// For EXPECT_... << all of it.
std::string show(const outcome& o);

/// Fork, run @p body in the child and exit with what it returns. @p during(pid) runs here meanwhile (for
/// example to kill somebody). The child's standard input is empty. Ends the group after @p limit_s.
outcome run_child(const std::function<int()>& body, const std::function<void(pid_t)>& during = {},
                  double limit_s = 30);

/// Mappings and descriptors of this process that belong to a run's shared memory.
int own_shared_memory();

}  // namespace support
