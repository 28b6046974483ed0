// A checkout held where its thread may leave: the run ends, with the place. Test of src/runtime/slow_path.cpp
// and of what future.hpp and task.hpp do in programs compiled without NDEBUG.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/child.hpp"

#include <cstdlib>

namespace gw = godwit;

namespace {

support::outcome with_checks(const std::function<void(gw::global_ptr<long>)>& body) {
  return support::run_child([&] {
    gw::options o;
    o.workers = 2;
    o.check_global = gw::choice::check_global::on;
    unsetenv("GODWIT_CHECK_GLOBAL");
    return gw::run(
        0, nullptr,
        [&body] {
          auto p = gw::allocate<long>(100, gw::distribution::cyclic(64));
          body(p);
          std::puts("not reached");
        },
        o);
  });
}

void expect_held(const support::outcome& o, const char* doing) {
  EXPECT_FALSE(o.timed_out) << show(o);
  EXPECT_NE(o.status, 0) << show(o);
  EXPECT_TRUE(o.err_has("is held across a")) << show(o);
  EXPECT_TRUE(o.err_has(doing)) << show(o);
  EXPECT_TRUE(o.err_has("held_test.cpp:")) << show(o);
  EXPECT_EQ(o.out.find("not reached"), std::string::npos) << show(o);
  EXPECT_EQ(o.left_behind, 0) << show(o);
}

TEST(CheckoutHeld, AcrossASpawn) {
  expect_held(with_checks([](gw::global_ptr<long> p) {
                auto c = gw::checkout(p, 10, gw::access::read);
                auto f = gw::spawn([] { return 1; });
                f.join();
              }),
              "held across a spawn");
}

TEST(CheckoutHeld, AcrossAJoin) {
  expect_held(with_checks([](gw::global_ptr<long> p) {
                // Stolen or not: at the join the thread waits with the checkout open.
                auto f = gw::spawn([] {
                  gw::yield();
                  return 1;
                });
                auto c = gw::checkout(p, 10, gw::access::write);
                f.join();
              }),
              "held across a join");
}

TEST(CheckoutHeld, AcrossAYield) {
  expect_held(with_checks([](gw::global_ptr<long> p) {
                auto c = gw::checkout(p, 10, gw::access::read_write);
                gw::yield();
              }),
              "held across a yield");
}

TEST(CheckoutHeld, AcrossARebalance) {
  expect_held(with_checks([](gw::global_ptr<long> p) {
                const auto movable = gw::allocate<long>(512, gw::distribution::at(0).movable(4096));
                auto c = gw::checkout(p, 10, gw::access::read);
                gw::rebalance(movable, 512);
              }),
              "held across a rebalance");
}

TEST(CheckoutHeld, AcrossInvoke) {
  expect_held(with_checks([](gw::global_ptr<long> p) {
                auto c = gw::checkout(p, 10, gw::access::read);
                gw::invoke([] { return 1; }, [] { return 2; });
              }),
              "held across a");
}

TEST(CheckoutHeld, AcrossOnEachWorker) {
  expect_held(with_checks([](gw::global_ptr<long> p) {
                auto c = gw::checkout(p, 10, gw::access::read);
                gw::on_each_worker([] {});
              }),
              "held across a");
}

// Without checks, in any build: where the thread leaves.
TEST(CheckoutHeld, IsNoticedWithoutChecksWhenTheThreadLeaves) {
  const auto o = support::run_child([] {
    gw::options opts;
    opts.workers = 2;
    opts.check_global = gw::choice::check_global::off;
    opts.force_steal = gw::choice::force_steal::parents;
    for (const char* name : {"GODWIT_CHECK_GLOBAL", "GODWIT_FORCE_STEAL"}) unsetenv(name);
    return gw::run(
        0, nullptr,
        [] {
          auto p = gw::allocate<long>(100);
          auto c = gw::checkout(p, 10, gw::access::read);
          auto f = gw::spawn([] { return 1; });
          f.join();
        },
        opts);
  });
  EXPECT_FALSE(o.timed_out) << show(o);
  EXPECT_NE(o.status, 0) << show(o);
  EXPECT_TRUE(o.err_has("held across a spawn")) << show(o);
}

TEST(CheckoutHeld, CheckedInBeforeIsFine) {
  const long sum = gw::run<long>([] {
    auto p = gw::allocate<long>(100, gw::distribution::cyclic(64));
    long s = 0;
    for (int round = 0; round < 50; ++round) {
      {
        auto c = gw::checkout(p, 100, gw::access::read_write);
        for (long& x : c) x = round;
      }
      auto f = gw::spawn([=] {
        auto c = gw::checkout(p, 50, gw::access::read);
        return c[0] + c[49];
      });
      s += f.join();
      auto c = gw::checkout(p + 50, 50, gw::access::read);
      s += c[0];
      c.checkin();
      gw::yield();
    }
    gw::deallocate(p, 100);
    return s;
  });
  EXPECT_EQ(sum, 3 * 49 * 50 / 2);
}

}  // namespace
