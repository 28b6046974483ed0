// Policy iso in virtual time: each thread's stack at an address of its own, in one memory for all workers.
// (The suites of all policies run under it, too: extras.cmake.)
// test: skip-qemu
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>
#include <godwit/policy.hpp>
#include <godwit/sim.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace {

namespace gw = godwit;
using gw::policies::iso;

gw::options simulated(std::uint32_t workers, const char* steal) {
  gw::options o = support::schedule(workers, steal, 0, 7);
  o.substrate = gw::choice::substrate::sim;
  o.policy = gw::choice::policy::iso;
  o.quiet = true;
  return o;
}

constexpr std::uint64_t leaf_ns = 2'000;

/// 2^depth if each thread finds its frame as it was, where it was, on whatever worker it goes on.
std::uint64_t iso_tree(int depth) {
  if (depth == 0) {
    gw::sim::charge(leaf_ns);
    return 1;
  }
  int here = depth;
  int* volatile at = &here;
  auto a = iso::spawn([depth] { return iso_tree(depth - 1); });
  const std::uint64_t b = iso_tree(depth - 1);
  const std::uint64_t sum = a.join() + b;
  return at == &here && *at == depth ? sum : 0;
}

TEST(simulated_iso, each_thread_has_an_address_of_its_own) {
  for (const std::uint32_t workers : {1u, 3u, 64u, 1024u})
    for (const char* steal : {"none", "random", "children"}) {
      gw::options o = simulated(workers, steal);
      o.sim_jitter_ns = 500;
      EXPECT_EQ(gw::run<std::uint64_t>([] { return iso_tree(10); }, o), 1024u) << workers << ' ' << steal;
      std::uint64_t steals = 0, bytes = 0;
      for (const gw::worker_stats& s : gw::last_run_stats()) {
        steals += s.steals;
        bytes += s.stolen_bytes;
      }
      if (std::string_view(steal) == "none") {
        EXPECT_EQ(steals != 0, workers != 1);
      }
      EXPECT_GE(bytes, 64 * steals) << "what a thief copies between processes is counted";
    }
}

/// Threads that end on other workers than they began on: these use their stacks again.
TEST(simulated_iso, stacks_are_given_back) {
  gw::options o = simulated(4, "children");
  o.stack_bytes = 4 << 20;  // some 100 stacks for each
  EXPECT_EQ(gw::run<int>(
                [] {
                  int n = 0;
                  for (int i = 0; i < 2'000; ++i) {
                    auto a = iso::spawn([] {
                      gw::sim::charge(20'000);
                      return 1;
                    });
                    gw::sim::charge(1'000);
                    n += a.join();
                  }
                  return n;
                },
                o),
            2'000);
}

}  // namespace
