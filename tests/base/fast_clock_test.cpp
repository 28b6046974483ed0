// Tests of src/base/fast_clock.cpp: the clock by way of the CPU's counter agrees with the kernel's, before
// and after it has been measured, and in forked processes. Where the kernel does not trust the counter both
// are the same clock.
// test: timeout=60
#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using godwit::base::fast_clock_;
using godwit::base::fast_ns;
using godwit::base::now_ns;
using godwit::base::prepare_fast_clock;

/// However long this process was stopped in between: `fast` was read between two of the other.
struct reading {
  std::uint64_t before, fast, after;
};
reading read() {
  reading r{};
  r.before = now_ns();
  r.fast = fast_ns();
  r.after = now_ns();
  return r;
}

/// @p r is right but for 1/50 of the time since the counter was measured, and 100 us.
void expect_right(const reading& r) {
  const std::uint64_t margin = (r.after - fast_clock_.from_ns) / 50 + 100'000;
  EXPECT_GE(r.fast + margin, r.before);
  EXPECT_LE(r.fast, r.after + margin);
}

void rest(long ms) {
  const timespec t{0, ms * 1'000'000};
  nanosleep(&t, nullptr);
}

TEST(fast_clock, is_the_kernels_clock_before_it_is_measured) {
  if (fast_clock_.ns_per_tick != 0) GTEST_SKIP() << "measured already";
  const reading r = read();
  EXPECT_GE(r.fast, r.before);
  EXPECT_LE(r.fast, r.after);
}

TEST(fast_clock, lies_between_two_looks_at_the_kernels_clock) {
  rest(20);  // measured over this time at least
  prepare_fast_clock();
  if (fast_clock_.ns_per_tick == 0) {
    const reading r = read();
    EXPECT_TRUE(r.before <= r.fast && r.fast <= r.after);
    return;
  }
  for (int i = 0; i < 10; ++i) {
    expect_right(read());
    rest(10);
  }
}

TEST(fast_clock, never_goes_back) {
  prepare_fast_clock();
  std::uint64_t last = fast_ns();
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t now = fast_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(fast_clock, measured_again_it_still_agrees) {
  prepare_fast_clock();
  rest(20);
  prepare_fast_clock();
  if (fast_clock_.ns_per_tick == 0) GTEST_SKIP() << "the kernel does not trust the counter";
  expect_right(read());
}

TEST(fast_clock, is_the_same_in_forked_processes) {
  rest(20);
  prepare_fast_clock();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rest(10);
    expect_right(read());
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
