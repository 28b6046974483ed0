// Tests of several companions a host (GODWIT_COMPANIONS), on simulated hosts.
// test: skip-qemu
#include "runtime/sim_hosts.hpp"
#include "sim/simulated_runs.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace simulated_runs;

std::vector<std::uint32_t> companions_of(std::uint32_t workers, std::uint32_t companions) {
  const godwit::runtime::sim_hosts hosts(workers, 2, godwit::transport::mpi::way::server, companions, {}, 1);
  std::vector<std::uint32_t> of;
  for (std::uint32_t w = 0; w < workers; ++w) of.push_back(static_cast<std::uint32_t>(hosts.bell_of(w)));
  return of;
}

TEST(sim_companions, each_carries_for_its_neighbours) {
  using list = std::vector<std::uint32_t>;
  EXPECT_EQ(companions_of(10, 1), (list{0, 0, 0, 0, 0, 5, 5, 5, 5, 5}));
  EXPECT_EQ(companions_of(10, 2), (list{0, 0, 0, 3, 3, 5, 5, 5, 8, 8}));
  EXPECT_EQ(companions_of(6, 100), (list{0, 1, 2, 3, 4, 5}));
}

/// All workers of either host add to words of the other one's workers, as fast as they can.
std::uint64_t ns_of_adding(std::uint32_t companions) {
  gw::options o = on_hosts(24, 2, gw::choice::way::server);
  o.sim_machine = "wisteria";
  o.check_global = gw::choice::check_global::off;  // a check is a request more
  o.companions = companions;
  return gw::run<std::uint64_t>(
      [] {
        constexpr std::uint64_t each = 512, times = 400;
        const std::uint64_t n = gw::worker_count();
        const auto words = gw::allocate<std::uint64_t>(n * each, gw::distribution::blocked());
        const std::uint64_t from = gw::sim::now_ns();
        gw::on_each_worker([words, n] {
          const auto other = words + (gw::worker_id() + n / 2) % n * each;
          for (std::uint64_t i = 0; i < times; ++i) gw::atomic_fetch_add(other, 1);
        });
        const std::uint64_t took = gw::sim::now_ns() - from;
        for (std::uint64_t w = 0; w < n; ++w) EXPECT_EQ(gw::get(words + w * each), times) << w;
        gw::deallocate(words, n * each);
        return took;
      },
      o);
}

TEST(sim_companions, more_carry_more_at_once) {
  const std::uint64_t one = ns_of_adding(1), two = ns_of_adding(2), four = ns_of_adding(4);
  EXPECT_GT(one, two * 3 / 2);
  EXPECT_GT(two, four * 5 / 4);
}

TEST(sim_companions, right_under_every_seed) {
  const std::uint64_t seeds = support::number_from_environment("STRESS_SEEDS", 50);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::uint32_t hosts = 2 + seed % 2;
    gw::options o = on_hosts(hosts * 3 + seed % 4, hosts, gw::choice::way::server, seed,
                             seed % 3 == 0 ? "random" : "none");
    o.companions = 2 + seed % 3;
    o.sim_faults = seed % 2 == 0 ? "all" : "";
    ASSERT_EQ(timed_fib(10, o).value, 55) << "seed " << seed;
  }
}

TEST(sim_companions, other_ways_have_one_for_each_rank) {
  gw::options o = on_hosts(4, 2, gw::choice::way::assist);
  o.companions = 2;
  try {
    gw::run<int>([] { return 0; }, o);
    ADD_FAILURE() << "not refused";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("--godwit-companions"), std::string::npos) << e.what();
  }
}

}  // namespace
