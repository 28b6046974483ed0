// Child stealing on substrate threads: its threads have no stacks in place, but its workers share one
// process, and each needs what a worker process has to itself: its part of global memory above all. Run after
// run, since what one leaves behind meets the next.
// test: timeout=240
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/child.hpp"

#include <set>
#include <string>

namespace gw = godwit;

namespace {

gw::options workers(std::uint32_t n, const char* policy) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.policy = gw::choice::named{policy};
  o.workers = n;
  o.stack_bytes = 4 << 20;
  return o;
}

/// Every leaf allocates, writes, reads back and frees memory of its own, and adds to what all share.
template <class P>
long tree(int depth, gw::global_ptr<long> sum) {
  if (depth == 0) {
    auto own = gw::allocate<long>(16);
    for (int i = 0; i < 16; ++i) own[i] = i;
    long here = 0;
    for (int i = 0; i < 16; ++i) here += own[i];
    gw::deallocate(own, 16);
    gw::atomic_fetch_add(sum, here);
    return here;
  }
  auto left = P::spawn([=] { return tree<P>(depth - 1, sum); });
  auto right = P::spawn([=] { return tree<P>(depth - 1, sum); });
  const long l = left.join();
  return l + right.join();
}

TEST(child_stealing, every_worker_has_its_own_global_memory) {
  for (const char* policy : {"child_rtc", "child_full"})
    gw::with_policy(gw::choice::named{policy}, [&](auto p) {
      using P = decltype(p);
      for (int run = 0; run < 15; ++run) {
        const auto [returned, summed] = gw::run<std::pair<long, long>>(
            [] {
              auto sum = gw::allocate<long>(1);
              sum[0] = 0;
              const long r = tree<P>(7, sum);
              const long s = sum[0];
              gw::deallocate(sum, 1);
              return std::pair(r, s);
            },
            workers(4, policy));
        EXPECT_EQ(returned, 128 * 120) << policy;
        EXPECT_EQ(summed, 128 * 120) << policy;
      }
    });
}

/// Without a codec.
struct person {
  std::string name;
  std::set<int> numbers;
};

// All memory is everybody's: nothing has to be written as bytes.
TEST(child_stealing, closures_and_results_of_any_type_are_handed_over) {
  for (const char* policy : {"child_rtc", "child_full"})
    gw::with_policy(gw::choice::named{policy}, [&](auto p) {
      using P = decltype(p);
      EXPECT_EQ(gw::run<int>(
                    [] {
                      int right = 0;
                      for (int i = 0; i < 100; ++i) {
                        auto f = P::spawn([name = std::string("short"), i] { return person{name, {i}}; });
                        auto g = P::spawn([](person q) { return q; }, person{"other", {i}});
                        const person a = f.join(), b = g.join();
                        right += a.name == "short" && b.name == "other" && a.numbers == b.numbers;
                      }
                      return right;
                    },
                    workers(4, policy)),
                100)
          << policy;
    });
}

}  // namespace
