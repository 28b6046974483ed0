// Tests of stacks that do not migrate, of the inherited stack's protection, and of private heaps.
// test: timeout=60
#include "stack/stack.hpp"

#include "support/child.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace {

namespace stack = godwit::stack;

TEST(stack, private_memory_has_a_guard_below) {
  constexpr std::size_t bytes = 100'000 / 4096 * 4096;
  std::byte* low = stack::map_private(bytes);
  std::memset(low, 1, bytes);
  const auto child = support::run_child([&] {
    std::signal(SIGSEGV, SIG_DFL);
    *reinterpret_cast<volatile char*>(low - 1) = 1;
    return 0;
  });
  EXPECT_EQ(child.status, 128 + SIGSEGV) << show(child);
}

// Each guard makes two mappings of one, of which a process may have 65,530 by default.
TEST(stack, more_private_memory_than_a_process_may_have_mappings) {
  constexpr std::size_t bytes = 4096;
  std::vector<std::byte*> all(70'000);
  for (std::byte*& low : all) {
    low = stack::map_private(bytes);
    *low = std::byte{1};
    const auto at = reinterpret_cast<std::uint64_t>(low);
    const bool chosen = at >> 40 == 0x6a;  // not where the system lets nobody choose
    EXPECT_TRUE(!chosen || at % (std::uint64_t{1} << 32) >= std::uint64_t{1} << 31)
        << "two numbers side by side would look like it: " << low;
  }
  for (std::byte* low : all) stack::unmap_private(low, bytes);
  std::byte* guarded = stack::map_private(bytes);
  const auto child = support::run_child([&] {
    std::signal(SIGSEGV, SIG_DFL);
    *reinterpret_cast<volatile char*>(guarded - 1) = 1;
    return 0;
  });
  EXPECT_EQ(child.status, 128 + SIGSEGV) << "there is room for guards again: " << show(child);
  stack::unmap_private(guarded, bytes);
}

int child_marker_;

TEST(stack, the_system_stack_holds_our_locals) {
  int local = 0;
  const stack::range r = stack::system_stack();
  EXPECT_TRUE(r.holds(reinterpret_cast<std::uintptr_t>(&local)));
  EXPECT_FALSE(r.holds(r.high));
  EXPECT_FALSE(r.holds(reinterpret_cast<std::uintptr_t>(&child_marker_)));
}

TEST(stack, of_a_pthread_is_not_protected) {
  stack::range r{1, 2};
  std::thread([&] { r = stack::system_stack(); }).join();
  EXPECT_EQ(r.high, 0u) << "its thread-local data lies there as well";
}

TEST(stack, a_private_heap_holds_what_is_allocated_after_it) {
  const auto child = support::run_child([] {
    const auto before = std::make_unique<int>(7);
    rusage start{};
    getrusage(RUSAGE_SELF, &start);
    const long faults = start.ru_minflt;
    const stack::range two = stack::own_private_heap(2, 4, true);
    if (two.high == 0) return 50;  // cannot be done here
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    if (used.ru_minflt - faults > 5000) return 2;  // the old heap is small, and used up at once
    bool inside = true;
    for (std::size_t n = 16; n < (16u << 20); n *= 2) {
      void* p = std::malloc(n);
      const bool holds = two.holds(reinterpret_cast<std::uintptr_t>(p));
      if (!holds) std::printf("%zu bytes at %p\n", n, p);
      inside = inside && holds;
      std::memset(p, 1, n);
      std::free(p);
    }
    return inside && *before == 7 ? 0 : 1;
  });
  if (child.status == 50) GTEST_SKIP() << "no private heaps in this build";
  EXPECT_EQ(child.status, 0) << show(child);
}

// There the system puts mappings into the lowest gap, from the next program on.
TEST(stack, a_private_heap_holds_it_also_without_a_limit_on_stacks) {
  const bool had_it =
      support::run_child([] { return stack::own_private_heap(0, 2, true).high == 0 ? 50 : 0; }).status == 0;
  if (!had_it) GTEST_SKIP() << "no private heaps in this build";
  const auto child = support::run_child([] {
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_STACK, &none) != 0) return 50;
    setenv("GTEST_FILTER", "stack.a_private_heap_holds_what_is_allocated_after_it", 1);
    execl("/proc/self/exe", "stack_test", nullptr);
    return 1;
  });
  if (child.status == 50) GTEST_SKIP() << "the hard limit is lower";
  EXPECT_EQ(child.status, 0) << show(child);
  EXPECT_EQ(child.out.find("SKIPPED"), std::string::npos) << child.out;
  EXPECT_NE(child.out.find("[       OK ]"), std::string::npos) << child.out;
}

TEST(stack, private_heaps_of_different_workers_do_not_meet) {
  const auto window = [](std::uint32_t number) {
    const auto child = support::run_child([number] {
      const stack::range r = stack::own_private_heap(number, 3, true);
      std::printf("%zx %zx", static_cast<std::size_t>(r.low), static_cast<std::size_t>(r.high));
      return 0;
    });
    stack::range r;
    EXPECT_EQ(std::sscanf(child.out.c_str(), "%zx %zx", &r.low, &r.high), 2) << show(child);
    return r;
  };
  const stack::range a = window(0), b = window(1), c = window(2);
  if (a.high == 0) GTEST_SKIP() << "no private heaps in this build";
  EXPECT_LE(a.high, b.low);
  EXPECT_LE(b.high, c.low);
}

}  // namespace
