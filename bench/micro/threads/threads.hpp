// What threads cost, in ours and in other libraries: the same loops, a file per library. Used by main.cpp
// only.
//
// Not every library has everything: TBB's and OpenMP's tasks are no threads, they cannot wait for each other;
// OS threads do not come by the million.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "../../common/clock.hpp"

namespace threads {

/// One library. Functions give back ns per operation; an empty one: it has no such thing.
struct library {
  std::string name;
  bool installed = true;
  /// @p live threads are created, then joined in order, until @p total have been.
  std::function<double(unsigned workers, std::size_t live, std::size_t total)> create_join;
  /// One worker: this many threads yield in turns.
  std::function<double(std::size_t threads, std::size_t yields)> yield;
  /// One worker: two threads hand a turn to and fro, so that each turn suspends one thread and resumes the
  /// other.
  std::function<double(std::size_t turns)> hand_over;
  std::size_t most_live = std::numeric_limits<std::size_t>::max();
  std::size_t slower = 1;  ///< numbers of operations are divided by it
};

library ours();
library std_thread();
library tbb();
library openmp();
library lace();  ///< where it was found, as the next one
library libfork();
std::vector<library> others();  ///< that were found: Argobots, MassiveThreads, Qthreads, Lace, libfork

inline double per(std::uint64_t start, std::size_t operations) {
  return static_cast<double>(bench::now_ns() - start) / static_cast<double>(operations);
}

/// ns per create + join. create_all(live) and join_all() do what their names say.
template <class CreateAll, class JoinAll>
double create_join_ns(std::size_t live, std::size_t total, CreateAll&& create_all, JoinAll&& join_all) {
  const auto round = [&] {
    create_all(live);
    join_all();
  };
  if (live < total) round();  // warm
  const std::uint64_t start = bench::now_ns();
  std::size_t done = 0;
  for (; done < total; done += live) round();
  return per(start, done);
}

/// ns per turn that two threads hand over by semaphores: @p Thread and @p Semaphore like the standard's.
template <class Thread, class Semaphore>
double hand_over_ns(std::size_t turns) {
  Semaphore to(0), fro(0);
  Thread other([&] {
    for (std::size_t i = 0; i < turns / 2; ++i) {
      to.acquire();
      fro.release();
    }
  });
  const std::uint64_t start = bench::now_ns();
  for (std::size_t i = 0; i < turns / 2; ++i) {
    to.release();
    fro.acquire();
  }
  const double ns = per(start, turns);
  other.join();
  return ns;
}

}  // namespace threads
