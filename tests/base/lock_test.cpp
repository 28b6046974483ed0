// Tests of the lock whose word says who holds it.
// test: tsan
#include "base/lock.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

using namespace godwit::base;

TEST(lock, says_who_holds_it) {
  std::atomic<std::uint64_t> word{0};
  ASSERT_TRUE(try_lock(word, holder_of(3)));
  EXPECT_EQ(word.load(), 4u);
  EXPECT_FALSE(try_lock(word, holder_of(0)));
  EXPECT_EQ(word.load(), 4u) << "who did not get it leaves the holder's name";
  unlock(word, holder_of(3));
  EXPECT_EQ(word.load(), 0u);
  EXPECT_TRUE(try_lock(word, holder_of(0)));
}

TEST(lock, an_OS_thread_that_is_no_worker_has_a_name_of_its_own) {
  EXPECT_EQ(holder(), outsider);
  EXPECT_NE(holder(), holder_of(0));
}

TEST(lock, is_free_where_its_holder_does_not_exist) {
  short_lock l;
  l.forget_holder();  // nobody has it
  l.lock();
  l.forget_holder();
  l.lock();
  l.unlock();
}

TEST(lock, one_at_a_time) {
  constexpr int threads = 4, rounds = 20'000;
  std::atomic<std::uint32_t> word{0};
  short_lock other;
  int count = 0, others = 0;
  std::vector<std::thread> all;
  for (std::uint32_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      for (int r = 0; r < rounds; ++r) {
        lock(word, holder_of(i));
        ++count;
        unlock(word, holder_of(i));
        other.lock();
        ++others;
        other.unlock();
      }
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(count, threads * rounds);
  EXPECT_EQ(others, threads * rounds);
}

}  // namespace
