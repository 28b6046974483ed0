// Libraries with threads of their own, used before run and inside. What cannot work is named.
// test: timeout=240 skip-qemu
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <pthread.h>
#include <thread>

#if GODWIT_TEST_TBB
#include <tbb/parallel_for.h>
#endif

namespace {

namespace gw = godwit;
using support::outcome;
using support::run_child;
using support::schedule;
using support::show;

/// @p use before run, in a child of a run, in its parent, and in another run; all must give the same.
template <class F>
void expect_everywhere(F use) {
  for (const char* force : {"none", "random"})
    for (const std::uint32_t workers : {1u, 3u}) {
      SCOPED_TRACE(std::string(force) + " " + std::to_string(workers));
      const outcome child = run_child(
          [&] {
            const long right = use();
            for (int round = 0; round < 2; ++round) {
              const long sum = gw::run<long>(
                  [use] {
                    auto f = gw::spawn([use] { return use(); });
                    const long here = use();
                    return here + f.join();
                  },
                  schedule(workers, force));
              if (sum != 2 * right || use() != right) return 1;
            }
            return 0;
          },
          {}, 20);
      EXPECT_EQ(child.status, 0) << show(child);
    }
}

#if GODWIT_TEST_OPENMP
long sum_by_openmp() {
  long sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(4)
  for (int i = 0; i < 1000; ++i) sum += i;
  return sum;
}
TEST(libraries, openmp) { expect_everywhere(sum_by_openmp); }
#endif

#if GODWIT_TEST_TBB
long sum_by_tbb() {
  std::atomic<long> sum{0};
  tbb::parallel_for(0, 100'000, [&](int i) { sum += i % 7; });
  return sum;
}
TEST(libraries, tbb) { expect_everywhere(sum_by_tbb); }
#endif

TEST(libraries, std_async) {
  expect_everywhere([] { return std::async(std::launch::async, [] { return 42L; }).get(); });
}

TEST(libraries, threads_that_have_ended_are_no_matter) {
  const outcome child = run_child([] {
    for (int i = 0; i < 4; ++i) std::thread([] {}).join();
    return gw::run<int>([] { return 0; }, schedule(2));
  });
  EXPECT_EQ(child.status, 0) << show(child);
  EXPECT_EQ(child.err, "");
}

TEST(libraries, threads_that_exist_are_named_once) {
  const outcome child = run_child([] {
    std::promise<void> end;
    const auto wait = [over = end.get_future().share()] { over.wait(); };
    std::thread a(wait), b(wait), c(wait);
    pthread_setname_np(a.native_handle(), "the-logger");
    pthread_setname_np(b.native_handle(), "a-pool");
    pthread_setname_np(c.native_handle(), "a-pool");
    const int sum = gw::run<int>([] { return 1; }, schedule(2)) + gw::run<int>([] { return 2; }, schedule(2));
    end.set_value();
    a.join();
    b.join();
    c.join();
    return sum;
  });
  EXPECT_EQ(child.status, 3) << show(child);
  if (support::on_threads()) {
    EXPECT_EQ(child.err, "");
    return;
  }
  EXPECT_TRUE(child.err_has("warning")) << show(child);
  EXPECT_TRUE(child.err_has("a-pool (2), the-logger.")) << show(child);
  EXPECT_EQ(child.err_lines(), 1) << show(child);
}

}  // namespace
