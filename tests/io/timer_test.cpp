// Timers and sleeping: order, that nobody is woken early or lost, stopped against expiring, and that sleeping
// keeps no worker.
// test: timeout=180
#include "seams/timer.hpp"
#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

namespace {

namespace gw = godwit;
using gw::detail::timer;

std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

/// On 1, 2 and 4 workers that are threads, also with random steals and delays.
void on_threads(const std::function<void()>& f) {
  for (const std::uint32_t workers : {1u, 2u, 4u})
    for (const bool forced : {false, true}) {
      gw::options o;
      o.substrate = gw::choice::substrate::threads;
      o.workers = workers;
      if (forced) {
        o.force_steal = gw::choice::force_steal::random;
        o.delay_us = 20;
        o.seed = workers + 7;
      }
      SCOPED_TRACE(testing::Message() << workers << " workers, forced " << forced);
      gw::run<void>([&f] { f(); }, o);
    }
}

void sleep_ns(std::uint64_t ns) {
  ASSERT_TRUE(gw::detail::sleep_until_ns(now_ns() + ns, gw::detail::place::here()));
}

TEST(timer, outside_a_run_there_is_no_sleep) { EXPECT_FALSE(gw::detail::sleep_until_ns(0, {})); }

TEST(timer, never_early) {
  on_threads([] {
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t until = now_ns() + 200'000;
      gw::detail::sleep_until_ns(until, {});
      EXPECT_GE(now_ns(), until);
    }
    gw::detail::sleep_until_ns(0, {});  // long ago
  });
}

// The same worker wakes them, so they run in the order of their deadlines.
TEST(timer, order_on_one_worker) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = 1;
  gw::run<void>(
      [] {
        std::vector<int> order;
        std::vector<gw::future<void>> threads;
        const std::uint64_t base = now_ns() + 5'000'000;
        std::vector<int> places(100);
        for (int i = 0; i < 100; ++i) places[static_cast<std::size_t>(i)] = i;
        std::shuffle(places.begin(), places.end(), std::mt19937(3));
        for (const int p : places)
          threads.push_back(gw::spawn([p, base, to = &order] {
            gw::detail::sleep_until_ns(base + static_cast<std::uint64_t>(p) * 1000, {});
            to->push_back(p);
          }));
        for (auto& t : threads) t.join();
        ASSERT_EQ(order.size(), 100u);
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
      },
      o);
}

TEST(timer, many_sleep) {
  on_threads([] {
    std::vector<gw::future<void>> threads;
    std::atomic<int> done{0};
    std::mt19937 random(5);
    for (int i = 0; i < 2000; ++i)
      threads.push_back(gw::spawn([ns = random() % 10'000'000, to = &done] {
        sleep_ns(ns);
        to->fetch_add(1);
      }));
    for (auto& t : threads) t.join();
    EXPECT_EQ(done.load(), 2000);
  });
}

// As many sleep at once as there are threads: if one kept its worker, this would take their sum, 20 s.
TEST(timer, sleep_keeps_no_worker) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = 1;
  const std::uint64_t before = now_ns();
  gw::run<void>(
      [] {
        std::vector<gw::future<void>> threads;
        for (int i = 0; i < 200; ++i) threads.push_back(gw::spawn([] { sleep_ns(100'000'000); }));
        for (auto& t : threads) t.join();
      },
      o);
  EXPECT_LT(now_ns() - before, 10'000'000'000u);
}

struct raced {
  std::atomic<int> expired{0};
  static void on_expiry(timer* t) noexcept { static_cast<raced*>(t->arg)->expired.fetch_add(1); }
};

// Who stops a timer gets true or the timer has expired, once, and is not touched any more.
TEST(timer, stopped_against_expired) {
  on_threads([] {
    std::vector<gw::future<void>> threads;
    std::atomic<int> stopped{0}, expired{0};
    for (int i = 0; i < 16; ++i)
      threads.push_back(gw::spawn([i, s = &stopped, e = &expired] {
        std::mt19937 random(static_cast<unsigned>(i));
        for (int k = 0; k < 60; ++k) {
          raced r;
          timer t{now_ns() + random() % 100'000, raced::on_expiry, &r};
          gw::detail::start_timer(&t);
          if (random() % 2 != 0)
            sleep_ns(random() % 100'000);
          else
            gw::yield();
          if (gw::detail::stop_timer(&t)) {
            s->fetch_add(1);
            EXPECT_EQ(r.expired.load(), 0);
          } else {
            e->fetch_add(1);
            EXPECT_EQ(r.expired.load(), 1);
          }
        }
      }));
    for (auto& t : threads) t.join();
    EXPECT_EQ(stopped.load() + expired.load(), 16 * 60);
  });
}

// From the middle of the heap, in any order; those that are left expire in time.
TEST(timer, stopped_in_any_order) {
  on_threads([] {
    constexpr std::size_t n = 500;
    std::vector<timer> timers(n);
    std::atomic<int> expired{0};
    std::mt19937 random(11);
    const std::uint64_t base = now_ns() + 100'000'000;
    for (auto& t : timers) {
      t = {base + random() % 1'000'000,
           [](timer* self) noexcept { static_cast<std::atomic<int>*>(self->arg)->fetch_add(1); }, &expired};
      gw::detail::start_timer(&t);
    }
    std::vector<std::size_t> places(n);
    for (std::size_t i = 0; i < n; ++i) places[i] = i;
    std::shuffle(places.begin(), places.end(), random);
    int stopped = 0;
    for (std::size_t i = 0; i < n / 2; ++i) stopped += gw::detail::stop_timer(&timers[places[i]]);
    gw::detail::sleep_until_ns(base + 1'000'000, {});
    int late = 0;
    for (std::size_t i = n / 2; i < n; ++i) late += gw::detail::stop_timer(&timers[places[i]]);
    EXPECT_EQ(stopped + late + expired.load(), static_cast<int>(n));
    EXPECT_EQ(late, 0);
  });
}

// A worker that computes and spawns nothing does not keep others' deadlines from being met by the others.
TEST(timer, a_busy_worker_delays_nobody) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = 2;
  gw::run<void>(
      [] {
        std::atomic<bool> woke{false};
        auto sleeper = gw::spawn([to = &woke] {
          sleep_ns(2'000'000);
          to->store(true);
        });
        const std::uint64_t limit = now_ns() + 20'000'000'000;
        while (!woke.load() && now_ns() < limit) {
        }
        EXPECT_TRUE(woke.load());
        sleeper.join();
      },
      o);
}

// Timers of a run that ended with an error are not there in the next one.
TEST(timer, runs_leave_nothing_behind) {
  for (int i = 0; i < 5; ++i) {
    gw::options o;
    o.substrate = gw::choice::substrate::threads;
    o.workers = 2;
    gw::run<void>([] { sleep_ns(100'000); }, o);
  }
}

}  // namespace
