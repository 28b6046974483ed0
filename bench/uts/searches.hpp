// The parallel searches of the tree, one function per runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tree.hpp"

namespace uts {

/// Which children get a thread of their own, in every runtime alike.
enum class threads : int {
  every,  ///< every child, leaves too
  inner,  ///< children that have children; leaves are counted by their parent
};

/// Counters for the live display, written by the workers, read by their supervisor.
struct live_page {
  static constexpr unsigned most_workers = 1024;
  struct alignas(64) cell {
    std::atomic<std::uint64_t> nodes;  ///< W its worker, R supervisor
  };
  cell of_worker[most_workers];
};
/// Where the live searches count; set before the run.
extern live_page* live;

/// The search under a policy, as a godwit root thread calls it. @p ni: SHA instructions; @p with_live: keep
/// live counters (default policy only).
totals (*search_under(const std::string& policy, bool ni, bool with_live))(threads which);
/// The same by plain recursion.
totals search_plain(threads which, bool ni);
/// Empty totals where the runtime is not installed.
totals search_tbb(unsigned workers, threads which, bool ni);
totals search_openmp(unsigned workers, threads which, bool ni);

struct library {
  std::string name;
  totals (*search)(unsigned workers, threads which, bool ni);
};
totals search_lace(unsigned workers, threads which, bool ni);  ///< where it was found, as the next one
totals search_libfork(unsigned workers, threads which, bool ni);
/// Other libraries that were found: of threads, Lace, libfork.
std::vector<library> libraries();

}  // namespace uts
