// Stacks of threads that ended give their memory back: beyond a few hundred free ones the system may take it
// (src/stack/pool.cpp).
// test: timeout=180 skip-qemu
#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace {

namespace gw = godwit;

/// What /proc/self/smaps says of all mappings together, in KiB; -1: the system does not say it.
long sum_of(const char* name) {
  std::ifstream maps("/proc/self/smaps");
  long sum = -1;
  for (std::string line; std::getline(maps, line);)
    if (long kb = 0;
        line.starts_with(name) && std::sscanf(line.c_str() + std::strlen(name), ": %ld", &kb) == 1)
      sum = (sum < 0 ? 0 : sum) + kb;
  return sum;
}

constexpr std::size_t frame = 32 << 10;

void touch_and_wait(gw::latch& begun, gw::latch& end) {
  volatile char used[frame];
  for (std::size_t i = 0; i < frame; i += 1024) used[i] = 1;
  begun.count_down();
  end.wait();
  ASSERT_EQ(used[frame - 1024], 1);
}

TEST(memory, stacks_of_ended_threads_can_be_taken) {
  if (sum_of("LazyFree") < 0) GTEST_SKIP() << "the system does not say what it may take";
  for (const std::uint32_t workers : {1u, 4u}) {
    gw::options o;
    o.substrate = gw::choice::substrate::threads;
    o.workers = workers;
    gw::run<void>(
        [] {
          constexpr int n = 2000;
          const long before = sum_of("LazyFree");
          for (int round = 0; round < 2; ++round) {  // the second time with stacks that were given back
            gw::latch begun(n), end(1);
            std::vector<gw::thread> all;
            for (int i = 0; i < n; ++i) all.emplace_back([&] { touch_and_wait(begun, end); });
            begun.wait();
            end.count_down();
            for (auto& t : all) t.join();
          }
          // 2,000 stacks, of which 512 in the pool and up to 64 per worker keep theirs.
          const long given = sum_of("LazyFree") - before;
          EXPECT_GT(given, long{n} * (frame >> 10) / 2) << "KiB";
        },
        o);
  }
}

}  // namespace
