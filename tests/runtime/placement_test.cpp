// Which workers the ranks of a job get: shares, numbering, hosts. No MPI: the ranks are made up. See
// src/runtime/placement.hpp.
#include "runtime/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace {

using godwit::options;
using godwit::runtime::machine_table;
using godwit::runtime::placement;

machine_table on(std::initializer_list<std::uint64_t> machines) {
  return machine_table(std::vector<std::uint64_t>(machines));
}

options with(std::uint32_t workers, const char* hosts = "auto") {
  options o;
  o.workers = workers;
  o.hosts = godwit::choice::named{hosts};
  return o;
}

using ranges = std::vector<std::vector<std::uint32_t>>;
ranges as_lists(const std::vector<godwit::transport::shm::near_range>& all) {
  ranges lists;
  for (const auto& r : all) lists.push_back({r.first, r.count});
  return lists;
}
ranges of_rank(const placement& p) { return as_lists(p.of_rank); }
ranges hosts(const placement& p) { return as_lists(p.hosts); }
using rank_lists = std::vector<std::vector<int>>;

/// What holds for every placement, asked by each of its ranks.
void check_invariants(const machine_table& ranks, const options& o) {
  std::uint32_t first = 0;
  const placement p(ranks, 0, o);
  for (std::size_t h = 0; h < p.hosts.size(); ++h) {  // hosts: without gaps, and none is empty
    EXPECT_EQ(p.hosts[h].first, first);
    EXPECT_GT(p.hosts[h].count, 0u);
    std::uint32_t count = 0;
    for (const int r : p.ranks_of[h]) {
      const auto& own = p.of_rank[static_cast<std::size_t>(r)];
      EXPECT_EQ(own.first, first + count);
      EXPECT_GT(own.count, 0u);
      count += own.count;
      EXPECT_EQ(placement(ranks, r, o).my_host, h);
    }
    EXPECT_EQ(count, p.hosts[h].count);
    first += count;
  }
  EXPECT_EQ(first, p.workers);
  EXPECT_EQ(p.ranks_of.size(), p.hosts.size());
  EXPECT_EQ(p.of_rank[0].first, 0u);  // worker 0 is on rank 0
  EXPECT_GT(p.of_rank[0].count, 0u);
  for (std::size_t r = 0; r < ranks.of_rank.size(); ++r) {
    const placement mine(ranks, static_cast<int>(r), o);
    EXPECT_EQ(of_rank(mine), of_rank(p));  // all ranks agree
    EXPECT_EQ(hosts(mine), hosts(p));
    EXPECT_EQ(mine.ranks_of, p.ranks_of);
    EXPECT_EQ(mine.has_workers(), p.of_rank[r].count != 0);
    if (!mine.has_workers()) {
      EXPECT_EQ(mine.my_host, placement::no_host);
    }
  }
}

TEST(placement, one_worker_per_rank_unless_asked_otherwise) {
  const placement p(on({7, 7, 7}), 1, with(0));
  EXPECT_EQ(p.workers, 3u);
  EXPECT_EQ(of_rank(p), (ranges{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(hosts(p), (ranges{{0, 3}}));
  EXPECT_EQ(p.ranks_of, (rank_lists{{0, 1, 2}}));
  EXPECT_EQ(p.my_host, 0u);
}

TEST(placement, numbers_follow_the_hosts_in_blocks) {
  const placement p(on({7, 7, 9, 9}), 3, with(0));
  EXPECT_EQ(of_rank(p), (ranges{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(hosts(p), (ranges{{0, 2}, {2, 2}}));
  EXPECT_EQ(p.ranks_of, (rank_lists{{0, 1}, {2, 3}}));
  EXPECT_EQ(p.my_host, 1u);
}

TEST(placement, cyclic_ranks_give_ranges_all_the_same) {
  const auto ranks = on({9, 7, 9, 7, 9});  // hosts in the order of their lowest rank, not of their hash
  const placement p(ranks, 3, with(0));
  EXPECT_EQ(of_rank(p), (ranges{{0, 1}, {3, 1}, {1, 1}, {4, 1}, {2, 1}}));
  EXPECT_EQ(hosts(p), (ranges{{0, 3}, {3, 2}}));
  EXPECT_EQ(p.ranks_of, (rank_lists{{0, 2, 4}, {1, 3}}));
  EXPECT_EQ(p.my_host, 1u);
}

TEST(placement, more_workers_than_ranks_the_first_ranks_get_one_more) {
  const placement p(on({7, 9, 7}), 2, with(8));
  EXPECT_EQ(p.workers, 8u);
  EXPECT_EQ(of_rank(p), (ranges{{0, 3}, {5, 3}, {3, 2}}));
  EXPECT_EQ(hosts(p), (ranges{{0, 5}, {5, 3}}));
  EXPECT_EQ(p.my_host, 0u);
}

TEST(placement, fewer_workers_than_ranks_the_last_ranks_get_none) {
  const auto ranks = on({7, 9, 7, 9, 11});
  const placement p(ranks, 3, with(3));
  EXPECT_EQ(of_rank(p), (ranges{{0, 1}, {2, 1}, {1, 1}, {3, 0}, {3, 0}}));
  EXPECT_EQ(hosts(p), (ranges{{0, 2}, {2, 1}}));  // the third host has no workers and does not count
  EXPECT_EQ(p.ranks_of, (rank_lists{{0, 2}, {1}}));
  EXPECT_FALSE(p.has_workers());
  EXPECT_EQ(p.my_host, placement::no_host);
  EXPECT_TRUE(placement(ranks, 1, with(3)).has_workers());
}

TEST(placement, a_host_without_workers_is_none) {
  // Ranks 0 and 1 work; the machine of ranks 2 and 3 has nothing to do.
  const auto ranks = on({7, 11, 9, 9});
  const placement p(ranks, 1, with(2));
  EXPECT_EQ(hosts(p), (ranges{{0, 1}, {1, 1}}));
  EXPECT_EQ(p.ranks_of, (rank_lists{{0}, {1}}));
  EXPECT_EQ(p.my_host, 1u);
  EXPECT_FALSE(placement(ranks, 2, with(2)).has_workers());
}

TEST(placement, hosts_ranks_makes_every_rank_a_host) {
  const placement p(on({7, 7, 7}), 2, with(4, "ranks"));
  EXPECT_EQ(of_rank(p), (ranges{{0, 2}, {2, 1}, {3, 1}}));
  EXPECT_EQ(hosts(p), of_rank(p));
  EXPECT_EQ(p.ranks_of, (rank_lists{{0}, {1}, {2}}));
  EXPECT_EQ(p.my_host, 2u);
}

TEST(placement, all_ranks_agree_and_ranges_have_no_gaps) {
  const std::vector<machine_table> jobs = {
      on({7}), on({7, 7}), on({7, 9}), on({7, 9, 7}), on({1, 2, 3, 1, 2}), on({1, 1, 2, 2, 3, 3, 1}),
  };
  for (const auto& ranks : jobs)
    for (const char* how : {"auto", "ranks"})
      for (const std::uint32_t workers : {0u, 1u, 2u, 3u, 5u, 6u, 7u, 8u, 64u}) {
        SCOPED_TRACE(std::to_string(ranks.of_rank.size()) + " ranks, hosts=" + how +
                     ", workers=" + std::to_string(workers));
        check_invariants(ranks, with(workers, how));
      }
}

TEST(placement, machines_are_numbered_by_their_lowest_ranks) {
  const machine_table machines = on({9, 7, 9, 11, 7});
  EXPECT_EQ(machines.of_rank, (std::vector<std::uint32_t>{0, 1, 0, 2, 1}));
  EXPECT_EQ(machines.first_rank, (std::vector<int>{0, 1, 3}));
}

TEST(placement, companions_carry_for_as_many_neighbours_or_one_less) {
  for (std::uint32_t ranks = 1; ranks <= 50; ++ranks)
    for (std::uint32_t companions = 1; companions <= 60; ++companions) {
      SCOPED_TRACE(std::to_string(companions) + " companions of " + std::to_string(ranks) + " ranks");
      std::vector<std::uint32_t> served(ranks);  // by each
      for (std::uint32_t i = 0, last = 0; i < ranks; ++i) {
        const std::uint32_t carrier = godwit::runtime::carrier_of(i, ranks, companions);
        EXPECT_TRUE(carrier == last || carrier == i);  // neighbours, and who carries does so for himself
        ++served.at(last = carrier);
      }
      std::erase(served, 0u);
      EXPECT_EQ(served.size(), std::min(ranks, companions));
      const auto [fewest, most] = std::ranges::minmax(served);
      EXPECT_LE(most - fewest, 1u);
    }
}

/// The largest job that the papers report, as launchers number ranks: filling host after host, or in turn.
TEST(placement, of_110592_ranks_on_2304_hosts) {
  constexpr std::uint32_t hosts = 2304, each = 48, n = hosts * each;
  for (const bool in_turn : {false, true}) {
    std::vector<std::uint64_t> hashes;
    for (std::uint32_t r = 0; r < n; ++r)
      hashes.push_back((in_turn ? r % hosts : r / each) * 0x9E3779B97F4A7C15u);
    const placement p(machine_table(hashes), n - 1, with(0));
    ASSERT_EQ(p.hosts.size(), hosts);
    EXPECT_EQ(p.my_host, hosts - 1);
    for (std::uint32_t h = 0; h < hosts; ++h) {
      ASSERT_EQ(p.hosts[h].first, h * each);
      ASSERT_EQ(p.hosts[h].count, each);
      ASSERT_EQ(p.ranks_of[h].front(), static_cast<int>(in_turn ? h : h * each));
    }
  }
}

/// A step for each pair of hosts would be 5 * 10^11: that would not end within the time for a test.
TEST(placement, takes_linear_time) {
  constexpr std::uint32_t n = 1'000'000;
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t r = 0; r < n; ++r) hashes.push_back(r);
  const placement p(machine_table(hashes), 7, with(0));
  EXPECT_EQ(p.hosts.size(), n);
  EXPECT_EQ(p.my_host, 7u);
}

}  // namespace
