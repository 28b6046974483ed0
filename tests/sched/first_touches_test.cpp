// Tests of src/sched/first_touches: which memory is there afterwards, and how much.
// test: timeout=60
#include "sched/first_touches.hpp"

#include "support/child.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace godwit::sched;
using godwit::transport::shm::layout;
using godwit::transport::shm::plan;
using godwit::transport::shm::segment;

constexpr std::uint64_t MiB = 1 << 20;

class touches : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("STRESS_EMULATED") != nullptr)
      GTEST_SKIP() << "the emulator's mincore calls every page resident";
  }
  void TearDown() override { memory_.destroy(); }

  void have(std::uint32_t workers, const layout& l = plan(4096, 8192, 4096, MiB, MiB)) {
    memory_.create(workers, l);
  }
  /// All that a worker @p me touches, before it runs out of pieces; if it is never @p idle, what it touches
  /// at the start.
  void work(std::uint32_t me, bool idle, bool crowded) {
    site here;
    here.memory = &memory_;
    here.me = worker_no{me};
    here.near = memory_.near();
    here.crowded = crowded;
    first_touches t(here);
    t.init();
    while (idle && t.more()) t.next();
  }
  void idle(std::uint32_t me, bool crowded = false) { work(me, true, crowded); }
  bool is_there(std::uint32_t worker, std::uint64_t offset) {
    unsigned char resident = 0;
    std::byte* at = memory_.at(worker_no{worker}, memory_.common() + offset);
    return mincore(at, 1, &resident) == 0 && (resident & 1) != 0;
  }
  /// KiB of stacks, slots and heap.
  std::vector<std::uint64_t> kib(std::uint32_t worker) {
    const layout& l = memory_.where();
    const auto count = [&](std::uint64_t from, std::uint64_t bytes) {
      std::uint64_t pages = 0;
      for (std::uint64_t i = 0; i < bytes; i += 4096) pages += is_there(worker, from + i);
      return pages * 4;
    };
    return {count(l.stack, l.stack_bytes), count(l.slots, l.slots_bytes), count(l.heap, l.heap_bytes)};
  }
  segment memory_;
};

TEST_F(touches, what_a_steal_between_two_needs) {
  have(2);
  EXPECT_EQ(kib(0), (std::vector<std::uint64_t>{0, 0, 0}));
  idle(1);
  for (const std::uint32_t w : {0u, 1u}) EXPECT_EQ(kib(w), (std::vector<std::uint64_t>{16, 4, 16})) << w;
  const layout& l = memory_.where();
  EXPECT_TRUE(is_there(0, l.stack + l.stack_bytes - 4096)) << "stacks grow downwards";
  EXPECT_TRUE(is_there(0, l.heap));
}

TEST_F(touches, its_own_and_the_next_ones_at_the_start) {
  have(4);
  work(3, false, false);
  for (const std::uint32_t w : {3u, 0u}) EXPECT_EQ(kib(w), (std::vector<std::uint64_t>{16, 4, 16})) << w;
  for (const std::uint32_t w : {1u, 2u}) EXPECT_EQ(kib(w), (std::vector<std::uint64_t>{0, 0, 0})) << w;
}

TEST_F(touches, next_neighbours_only) {
  have(12);
  idle(11);
  for (std::uint32_t w = 0; w < 12; ++w)
    EXPECT_EQ(is_there(w, memory_.where().heap), w == 11 || w < first_touches::neighbours) << w;
}

TEST_F(touches, nothing_where_workers_share_cpus) {
  have(2);
  idle(0, true);
  EXPECT_EQ(kib(0), (std::vector<std::uint64_t>{0, 0, 0}));
}

TEST_F(touches, no_more_than_there_is) {
  have(2, plan(4096, 8192, 4096, 8192, 4096));
  idle(0);
  EXPECT_EQ(kib(1), (std::vector<std::uint64_t>{8, 4, 4}));
}

}  // namespace
