// What is done in a copy of the process: its result, and what becomes of a copy that dies or takes too long.
// test: timeout=60 skip-tsan
#include "base/copy_of_process.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <unistd.h>

namespace {

using godwit::base::done_in_copy;

TEST(CopyOfProcess, HasWhatThisOneHasAndChangesNothing) {
  struct numbers {
    int first = 1, second = 2;
  } n;
#if defined(__sparc__)
  GTEST_SKIP() << "there is no copy";
#endif
  const auto adds = [](void* of) { return (static_cast<numbers*>(of)->first += 4) == 5; };
  EXPECT_TRUE(done_in_copy(adds, &n, 5000));
  EXPECT_TRUE(done_in_copy(adds, &n, 5000));
  EXPECT_EQ(n.first, 1);
}

TEST(CopyOfProcess, SaysWhatWasNotDone) {
  EXPECT_FALSE(done_in_copy([](void*) { return false; }, nullptr, 5000));
  EXPECT_FALSE(done_in_copy([](void*) { return raise(SIGKILL) == 0; }, nullptr, 5000));
  EXPECT_FALSE(done_in_copy([](void*) { return pause() == 0; }, nullptr, 20));
}

}  // namespace
