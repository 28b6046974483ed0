// What tests of simulated runs have in common: a tree of threads whose leaves are charged, and options.
// Used by tests/sim/run_test.cpp, run_hosts_test.cpp.
#pragma once

#include "support/schedule.hpp"

#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>

#include <cstdint>

namespace simulated_runs {

namespace gw = godwit;

inline gw::options simulated(std::uint32_t workers, std::uint64_t seed = 1, const char* steal = "none") {
  gw::options o = support::schedule(workers, steal, 0, seed);
  o.substrate = gw::choice::substrate::sim;
  o.sim_machine = "example";
  o.sim_seed = seed;
  o.quiet = true;
  return o;
}

inline constexpr std::uint64_t leaf_ns = 2'000;

inline int fib(int n) {
  if (n < 2) {
    gw::sim::charge(leaf_ns);
    return n;
  }
  auto a = gw::spawn([n] { return fib(n - 1); });
  const int b = fib(n - 2);
  return a.join() + b;
}

struct outcome {
  int value;
  std::uint64_t ns;
};

/// fib(n), and the virtual time that it takes.
inline outcome timed_fib(int n, const gw::options& o) {
  return gw::run<outcome>(
      [n] {
        const std::uint64_t from = gw::sim::now_ns();
        const int v = fib(n);
        return outcome{v, gw::sim::now_ns() - from};
      },
      o);
}

inline gw::options on_hosts(std::uint32_t workers, std::uint32_t hosts, gw::choice::way way,
                            std::uint64_t seed = 1, const char* steal = "none") {
  gw::options o = simulated(workers, seed, steal);
  o.sim_hosts = hosts;
  o.way = way;
  return o;
}
inline constexpr gw::choice::way all_ways[] = {gw::choice::way::server, gw::choice::way::assist,
                                               gw::choice::way::am, gw::choice::way::rma};

inline std::uint64_t far_steals() {
  std::uint64_t n = 0;
  for (const gw::worker_stats& s : gw::last_run_stats()) n += s.far_steals;
  return n;
}

}  // namespace simulated_runs
