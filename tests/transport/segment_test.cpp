// Tests of the shared memory of a run: layout, what forked workers see at which address, limits, nothing left
// behind.
// test: timeout=60
#include "transport/shm/segment.hpp"

#include "support/child.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace godwit::transport;
using shm::layout;
using shm::plan;
using shm::segment;

constexpr std::uint64_t MiB = 1 << 20;

layout small_layout() { return plan(4096, 8192, 4096, 4 * MiB, 16 * MiB); }

TEST(segment, layout_has_room_order_and_guards) {
  for (const std::uint64_t stack : {65536ull, 1000000ull, 1ull << 30, 1ull << 36}) {
    const layout l = plan(4096, 5000, 3000, stack, 3 * MiB);
    EXPECT_EQ(l.hot, 0u);
    EXPECT_GE(l.words, l.hot + 4096);
    EXPECT_GE(l.front, l.words + 3000) << "the words that all look at are in the front";
    EXPECT_LE(l.front, l.slots);
    EXPECT_GE(l.slots, l.words + 5000);
    EXPECT_GE(l.heap, l.slots + l.slots_bytes + MiB) << "a guard between slots and heap";
    EXPECT_GE(l.stack, l.heap + l.heap_bytes + MiB) << "a guard between heap and stack";
    EXPECT_GE(l.span, l.stack + l.stack_bytes + MiB) << "a guard above the stack";
    EXPECT_GE(l.stack_bytes, stack);
    EXPECT_GE(l.slots_bytes / 64, stack / 48) << "the stack is full before the slots are";
    for (const std::uint64_t at : {l.words, l.slots, l.heap, l.stack, l.span}) EXPECT_EQ(at % 4096, 0u);
  }
}

TEST(segment, in_turn_what_is_used_together_lies_together) {
  const shm::parts_in_turn parts{.companion = 64 << 10,
                                 .scheduler = 256 << 10,
                                 .hot = 192,
                                 .words = 30'000,
                                 .words_in_page = 4'416,
                                 .heap = 128 << 10,
                                 .slots = 200 << 10,
                                 .stack = 128 << 10};
  const layout l = shm::plan_in_turn(parts);
  EXPECT_GE(l.companion_end, parts.companion);
  EXPECT_GE(l.hot, l.companion_end + parts.scheduler);
  EXPECT_EQ(l.words, l.hot + parts.hot) << "in one page, if the words begin in it";
  EXPECT_EQ((l.words + parts.words_in_page) % 4096, 0u);
  EXPECT_GE(l.heap, l.words + parts.words);
  EXPECT_LT(l.heap, l.words + parts.words + 64);
  EXPECT_GE(l.slots, l.heap + l.heap_bytes);
  EXPECT_GE(l.stack, l.slots + l.slots_bytes);
  EXPECT_GE(l.span, l.stack + l.stack_bytes);
  EXPECT_GE(l.heap_bytes, parts.heap);
  EXPECT_GE(l.slots_bytes, parts.slots);
  EXPECT_GE(l.stack_bytes, parts.stack);
  for (const std::uint64_t at : {l.slots, l.stack, l.stack_bytes}) EXPECT_EQ(at % 4096, 0u);
  EXPECT_EQ(l.span, MiB) << "two workers share a page of page tables";
}

TEST(segment, in_turn_what_lies_in_no_segment_is_where_it_is) {
  segment s;
  s.create_in_turn(3, shm::plan_in_turn({.hot = 192, .words = 4096, .heap = 4096, .stack = 4096}));
  const segment second = s.seen_by(worker_no{1}, {1, 2});
  int mine = 0;
  EXPECT_EQ(second.reach(worker_no{2}, &mine), &mine);
  std::byte* const last = second.common() + s.where().span - 1;
  EXPECT_EQ(second.reach(worker_no{2}, last), last + s.where().span) << "the same byte of the third worker";
  EXPECT_EQ(second.reach(worker_no{1}, second.stacks()), second.kept_stacks(worker_no{1}));
  s.destroy();
}

TEST(segment, refs_name_worker_and_offset) {
  const ref r = make_ref(worker_no{4095}, 0x12'3456'7840);
  EXPECT_EQ(index(ref_worker(r)), 4095u);
  EXPECT_EQ(ref_offset(r), 0x12'3456'7840u);
  EXPECT_GE(r, std::uint64_t{1} << 48) << "no word of a stack that is a ref looks like a pointer";
  segment s;
  s.create(2, small_layout());
  int* p = reinterpret_cast<int*>(s.common() + s.where().heap + 64);
  EXPECT_EQ(s.offset_of(p), s.where().heap + 64);
  EXPECT_EQ(s.at<int>(make_ref(worker_no{1}, s.offset_of(p))), s.at(worker_no{1}, p));
  s.destroy();
}

// Two forked workers and their parent: the same common address is each worker's own memory.
TEST(segment, forked_workers_reach_each_other) {
  segment s;
  s.create(2, small_layout());
  auto* const value = reinterpret_cast<word*>(s.common() + s.where().heap);
  auto* const on_stack = reinterpret_cast<word*>(s.common() + s.where().stack + s.where().stack_bytes) - 1;
  for (std::uint32_t me = 0; me < 2; ++me)
    if (fork() == 0) {
      s.adopt(worker_no{me});
      s.common()[100] = std::byte(me + 1);
      on_stack->store(me + 50);
      const worker_no other{1 - me};
      value->store(me + 10);
      s.remote_fetch_add(other, value + 1, 5);
      while (s.remote_load(other, value, std::memory_order_acquire) != 11 - me) usleep(100);
      std::uint64_t got = 0;
      s.remote_get(other, &got, value, sizeof got);
      const std::uint64_t mine = 1000 + me;
      s.remote_put(other, value + 2, &mine, sizeof mine);
      s.remote_fence();
      _exit(got == 11 - me ? 0 : 1);
    }
  for (int i = 0; i < 2; ++i) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  for (std::uint32_t w = 0; w < 2; ++w) {
    const worker_no n{w};
    EXPECT_EQ(s.at(n, value)->load(), w + 10);
    EXPECT_EQ(s.at(n, value + 1)->load(), 5u);
    EXPECT_EQ(s.at(n, value + 2)->load(), 1001 - w);
    EXPECT_EQ(s.at(n, on_stack)->load(), w + 50);
    EXPECT_EQ(*s.at(n, s.common() + 100), std::byte(w + 1)) << "the hot page is the start of the segment";
    std::uint64_t expected = 5;
    EXPECT_TRUE(s.remote_compare_exchange(n, value + 1, expected, 6));
    EXPECT_FALSE(s.remote_compare_exchange(n, value + 1, expected, 7));
    EXPECT_EQ(expected, 6u);
    EXPECT_EQ(s.remote_exchange(n, value + 1, 0), 6u);
  }
  s.destroy();
  EXPECT_EQ(support::own_shared_memory(), 0);
}

/// KiB of page tables that this process has.
std::uint64_t page_tables() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmPTE:")) return std::strtoull(line.c_str() + 6, nullptr, 10);
  return 0;
}

TEST(segment, looking_at_all_fronts_takes_few_page_tables) {
  if (std::getenv("STRESS_EMULATED") != nullptr) GTEST_SKIP() << "the page tables are the emulator's";
  constexpr std::uint32_t workers = 200;
  segment s;
  s.create(workers, plan(4096, 8192, 4096, 1024 * MiB, 4096 * MiB));
  const std::uint64_t before = page_tables();
  std::uint64_t sum = 0;
  for (std::uint32_t w = 0; w < workers; ++w)
    sum += s.remote_load(worker_no{w}, reinterpret_cast<word*>(s.common() + s.where().words),
                         std::memory_order_relaxed);
  EXPECT_EQ(sum, 0u);
  EXPECT_LT(page_tables() - before, 100u) << "KiB, eight a worker where each segment is looked into";
  s.destroy();
}

TEST(segment, guards_fault) {
  segment s;
  s.create(1, small_layout());
  const layout& l = s.where();
  for (const std::uint64_t at :
       {l.slots + l.slots_bytes, l.heap - 1, l.heap + l.heap_bytes, l.stack - 1, l.stack + l.stack_bytes}) {
    const auto child = support::run_child([&] {
      std::signal(SIGSEGV, SIG_DFL);
      s.adopt(worker_no{0});
      *reinterpret_cast<volatile char*>(s.common() + at) = 1;
      return 0;
    });
    EXPECT_EQ(child.status, 128 + SIGSEGV) << "offset " << at << ' ' << show(child);
  }
  s.destroy();
}

TEST(segment, tells_how_much_stack_was_touched) {
  if (std::getenv("STRESS_EMULATED") != nullptr)
    GTEST_SKIP() << "the emulator's mincore calls every page resident";
  segment s;
  s.create(1, small_layout());
  const auto child = support::run_child([&] {
    s.adopt(worker_no{0});
    std::byte* low = s.common() + s.where().stack;
    std::byte* high = low + s.where().stack_bytes;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (segment::touched_from_top(low, high) != 0) return 1;
    high[-1] = std::byte(1);
    if (segment::touched_from_top(low, high) != page) return 2;
    for (std::byte* p = high - 2 * MiB; p < high; p += page) *p = std::byte(1);
    if (segment::touched_from_top(low, high) != 2 * MiB) return 3;
    segment::discard(high - 2 * MiB, 2 * MiB);
    return high[-1] == std::byte(0) ? 0 : 4;
  });
  EXPECT_EQ(child.status, 0) << show(child);
  s.destroy();
}

TEST(segment, without_fronts_all_of_a_segment_lies_in_one_range) {
  segment s;
  s.create(3, plan(4096, 8192, 0, 4 * MiB, 16 * MiB));
  EXPECT_EQ(s.where().front, 0u);
  for (std::uint32_t w = 0; w < 3; ++w)
    EXPECT_EQ(s.at(worker_no{w}, s.common() + s.where().words),
              s.common() + s.where().span * (w + 1) + s.where().words);
  s.destroy();
}

TEST(segment, create_and_destroy_many_times) {
  for (int i = 0; i < 100; ++i) {
    segment s;
    s.create(3, small_layout());
    s.destroy();
  }
  EXPECT_EQ(support::own_shared_memory(), 0);
}

TEST(segment, what_cannot_be_had_is_said) {
  segment s;
  try {
    s.create(1, plan(4096, 4096, 4096, 1ull << 40, 1ull << 40));
    ADD_FAILURE() << "a segment larger than a ref can address";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("--godwit-heap-bytes"), std::string::npos) << e.what();
  }
  EXPECT_EQ(support::own_shared_memory(), 0);
  const auto child = support::run_child([] {
    rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    segment t;
    try {
      t.create(1, small_layout());
    } catch (const std::runtime_error& e) {
      return std::string(e.what()).find("ulimit -f") != std::string::npos ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(child.status, 0) << show(child);
}

}  // namespace
