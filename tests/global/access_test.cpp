// get, put, atomics, checkout on one host. Test of include/godwit/global_*.hpp.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/child.hpp"

#include <numeric>

namespace gw = godwit;

namespace {

gw::options two() {
  gw::options o;
  o.workers = 2;
  return o;
}

TEST(GlobalAccess, PutAndGetSeeEachOtherAcrossWorkers) {
  const long sum = gw::run<long>([] {
    auto p = gw::allocate<long>(1000, gw::distribution::cyclic(1024));
    for (int i = 0; i < 1000; ++i) p[i] = i;
    auto f = gw::spawn([=] {
      long s = 0;
      for (int i = 0; i < 500; ++i) s += p[i];
      return s;
    });
    long s = 0;
    for (int i = 500; i < 1000; ++i) s += gw::get(p + i);
    s += f.join();
    gw::deallocate(p, 1000);
    return s;
  }, two());
  EXPECT_EQ(sum, 499500);
}

TEST(GlobalAccess, CheckoutIsContiguousAcrossBlocks) {
  const long sum = gw::run<long>([] {
    auto p = gw::allocate<long>(10000, gw::distribution::cyclic(1024));
    {
      auto s = gw::checkout(p, 10000, gw::access::write);
      std::iota(s.begin(), s.end(), 0L);
    }
    auto s = gw::checkout(p, 10000, gw::access::read);
    return std::accumulate(s.begin(), s.end(), 0L);
  }, two());
  EXPECT_EQ(sum, 49995000);
}

TEST(GlobalAccess, AtomicsFromManyThreadsAddUp) {
  const long total = gw::run<long>([] {
    auto p = gw::global_new<long>(0);
    struct adder {
      static void add(gw::global_ptr<long> at, int depth) {
        if (depth == 0) {
          gw::atomic_fetch_add(at, 1L);
          return;
        }
        gw::invoke([=] { add(at, depth - 1); }, [=] { add(at, depth - 1); });
      }
    };
    adder::add(p, 12);
    const long v = gw::atomic_load(p);
    gw::global_delete(p);
    return v;
  }, two());
  EXPECT_EQ(total, 4096);
}

}  // namespace
