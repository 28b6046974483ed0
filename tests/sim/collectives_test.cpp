// What starting and ending the ranks of a real run is estimated to take.
// test: once
#include "sim/collectives.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::sim;

machine flat() { return parse_machine("latency_ns=1000\noverhead_ns=500\nbytes_per_ns=1", "m"); }

TEST(collectives, one_rank_exchanges_nothing_but_its_own_bytes) {
  EXPECT_LT(collectives_ns(flat(), 1, 1, 300), 2'000u);
}

TEST(collectives, twice_the_ranks_take_a_step_more_of_each_and_twice_what_is_gathered) {
  constexpr std::uint64_t steps_of_all = 1 * 2 + 1 + 25 * 2 + 11 + 2 + 4, message = 2000;
  constexpr std::uint64_t bytes_of_a_step = 2 * 2200 + 951 + 64 * 64;
  const std::uint64_t few = collectives_ns(flat(), 1024, 64, 300),
                      more = collectives_ns(flat(), 2048, 64, 300);
  EXPECT_EQ(more - few, steps_of_all * message + bytes_of_a_step + 1024 * (8 + 8 + 300));
}

TEST(collectives, a_run_of_110592_ranks_starts_and_ends_within_35_ms) {
  EXPECT_LT(collectives_ns(read_machine("wisteria"), 110'592, 2'304, 500), 35'000'000u);
}

}  // namespace
