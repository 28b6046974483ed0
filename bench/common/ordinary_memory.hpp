// What benchmarks on ordinary memory have in common (quicksort, matmul): one computation as plain calls, in
// godwit on substrate threads, in TBB, in OpenMP, in OS threads and in other libraries; sizes on the command
// line; the figures that follow. Tests: bench.quicksort, bench.matmul.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness.hpp"

namespace bench {

/// One computation of one size. What is captured must live as long as the program.
struct computation {
  std::string title;
  std::function<void()> prepare;   ///< its input, as new
  std::function<bool()> is_right;  ///< its result
  std::function<void()> calls;
  std::function<void()> godwit;  ///< in a root thread
  std::function<void(unsigned workers)> tbb, openmp, std_threads;
  struct library {
    std::string name;
    std::function<void(unsigned workers)> compute;
  };
  std::vector<library> libraries;  ///< others that were found
};

/// main() of such a benchmark. @p of makes the computation of a size. Gives back the exit status.
int compare_on_ordinary_memory(program& p, const std::string& name, const std::string& sizes_are,
                               std::vector<std::size_t> usual, std::vector<std::size_t> quick,
                               const std::function<computation(std::size_t n)>& of);

}  // namespace bench
