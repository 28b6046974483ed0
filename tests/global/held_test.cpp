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

// Its function must neither spawn nor wait (tests/api/death_test.cpp), but may do all else.
TEST(CheckoutHeld, AFunctionOfOnEachWorkerMayUseGlobalMemory) {
  for (const auto substrate : {gw::choice::substrate::processes, gw::choice::substrate::threads}) {
    const auto o = support::run_child([=] {
      gw::options opts;
      opts.workers = 3;
      opts.substrate = substrate;
      for (const char* name : {"GODWIT_WORKERS", "GODWIT_SUBSTRATE"}) unsetenv(name);
      return gw::run(
          0, nullptr,
          [] {
            constexpr long page = 512;
            const auto p = gw::allocate<long>(3 * page, gw::distribution::at(0).movable(page * sizeof(long)));
            const gw::owned<gw::control<long>> sum(0);
            gw::on_each_worker([p, sum = sum.get()] {
              const long me = gw::worker_id();
              const auto mine = p + me * page;
              static_cast<void>(gw::move(mine, page, gw::worker_id()).join());
              gw::put(mine, me);
              {
                const auto c = gw::checkout(mine, 2, gw::access::read_write);
                c[1] = c[0] + 1;
              }
              const auto own = gw::allocate<long>(2);
              gw::put(own, gw::get(mine + 1));
              gw::freeze(own);
              sum.set([n = gw::get(own)](long& all) noexcept { all += n; });
              gw::thaw(own);
              gw::deallocate(own, 2);
            });
            auto f = gw::spawn([] { return 6L; });  // and this is no call any more
            if (sum->set([](long& all) noexcept { return all; }) != f.join()) std::abort();
            gw::deallocate(p, 3 * page);
          },
          opts);
    });
    EXPECT_EQ(o.status, 0) << show(o);
  }
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
