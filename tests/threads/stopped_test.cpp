// A cancelled scope ends the sleep of threads below it, and waits with a limit of time. Threads that have not
// begun are taken away. docs/cancel.md, docs/protocols/cancel.md (CA5), park.md.
// test: timeout=120
#include "places.hpp"
#include "support/stops.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace {

namespace gw = godwit;
using namespace std::chrono_literals;
using support::everywhere;
using support::stops;

constexpr auto for_ever = 1h;

TEST(stopped, a_deadline_ends_a_sleep) {
  everywhere([] {
    EXPECT_FALSE(gw::with_deadline(5ms, [] { gw::this_thread::sleep_for(for_ever); }));
    // of a scope further out, too, and below a spawn
    EXPECT_FALSE(gw::with_deadline(5ms, [] {
      gw::cancel_scope inner;
      static_cast<void>(inner.run([] { gw::spawn([] { gw::this_thread::sleep_for(for_ever); }).join(); }));
    }));
    EXPECT_TRUE(gw::with_deadline(for_ever, [] { gw::this_thread::sleep_for(1ms); }));
  });
}

TEST(stopped, a_request_ends_all_sleeps_below_and_no_others) {
  everywhere([] {
    std::atomic<int> ended{0}, slept{0};
    gw::thread outside([&] {
      const auto before = std::chrono::steady_clock::now();
      gw::this_thread::sleep_for(10ms);
      if (std::chrono::steady_clock::now() - before >= 10ms) ++slept;
    });
    {
      gw::cancel_scope other;  // its threads are woken, and go on sleeping
      gw::thread inside([&] {
        const auto before = std::chrono::steady_clock::now();
        gw::this_thread::sleep_for(10ms);
        if (std::chrono::steady_clock::now() - before >= 10ms) ++slept;
      });
      gw::spawn([&] {
        gw::cancel_scope scope;
        std::vector<gw::thread> all;
        std::atomic<int> begun{0};
        for (int i = 0; i < 50; ++i)
          all.emplace_back([&, i] {
            ++begun;
            if (stops([&] { gw::this_thread::sleep_for(i % 2 == 0 ? for_ever : 30min); })) ++ended;
          });
        while (begun < 50) gw::yield();
        scope.cancel();
        gw::cancel_shield shield;
        for (auto& t : all) t.join();
      }).join();
      inside.join();
    }
    outside.join();
    EXPECT_EQ(ended, 50);
    EXPECT_EQ(slept, 2);
  });
}

/// Whether it comes before a sleep, in the middle of its begin, or during it: nobody sleeps on.
TEST(stopped, a_request_at_any_moment_ends_a_sleep) {
  everywhere([] {
    for (int i = 0; i < 200; ++i) {
      gw::cancel_scope scope;
      std::atomic<bool> begun{false};
      auto sleeper = gw::create([&] {
        begun = true;
        return stops([] { gw::this_thread::sleep_for(for_ever); });
      });
      while (!begun) gw::yield();
      for (int spin = 0; spin < i * 20; ++spin) asm volatile("");
      scope.cancel();
      gw::cancel_shield shield;
      EXPECT_TRUE(sleeper.join());
    }
  });
}

TEST(stopped, a_sleep_in_a_scope_that_is_cancelled_does_not_begin_but_under_a_shield) {
  everywhere([] {
    gw::cancel_scope scope;
    scope.cancel();
    EXPECT_TRUE(stops([] { gw::this_thread::sleep_for(for_ever); }));
    const auto before = std::chrono::steady_clock::now();
    gw::cancel_shield shield;
    gw::this_thread::sleep_for(3ms);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 3ms);
  });
}

TEST(stopped, cleaning_up_sleeps_to_the_end) {
  everywhere([] {
    static std::atomic<bool> enough{false};
    struct sleeps {
      ~sleeps() {
        const auto before = std::chrono::steady_clock::now();
        gw::this_thread::sleep_for(3ms);
        enough = std::chrono::steady_clock::now() - before >= 3ms;
      }
    };
    enough = false;
    gw::cancel_scope scope;
    EXPECT_FALSE(scope.run([&] {
      const sleeps s;
      scope.cancel();
      gw::yield();
    }));
    EXPECT_TRUE(enough);
  });
}

TEST(stopped, waits_of_a_condition_variable_with_a_limit) {
  everywhere([] {
    gw::mutex m;
    gw::condition_variable never;
    const auto never_true = [] { return false; };
    bool held = false;
    EXPECT_FALSE(gw::with_deadline(5ms, [&] {
      std::unique_lock lock(m);
      try {
        never.wait(lock, never_true);
      } catch (const gw::cancelled&) {
        held = lock.owns_lock();
        throw;
      }
    }));
    EXPECT_TRUE(held);
    EXPECT_FALSE(gw::with_deadline(5ms, [&] {
      std::unique_lock lock(m);
      never.wait_for(lock, for_ever, never_true);
    }));
    gw::cancel_scope scope;
    std::atomic<bool> begun{false};
    auto waits = gw::create([&] {
      std::unique_lock lock(m);
      begun = true;
      return stops([&] { never.wait_for(lock, for_ever, never_true); });
    });
    while (!begun) gw::yield();
    scope.cancel();
    gw::cancel_shield shield;
    EXPECT_TRUE(waits.join());
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

/// Woken because of some other scope: it is no time-out.
TEST(stopped, another_scope_that_is_cancelled_is_no_time_out) {
  everywhere([] {
    gw::mutex m;
    gw::condition_variable changed;
    bool done = false;
    gw::cancel_scope scope;
    std::atomic<bool> begun{false};
    auto waits = gw::create([&] {
      std::unique_lock lock(m);
      begun = true;
      return changed.wait_for(lock, for_ever, [&] { return done; });
    });
    while (!begun) gw::yield();
    for (int i = 0; i < 20; ++i) {
      gw::cancel_scope other;
      other.cancel();
      gw::cancel_shield shield;
      gw::yield();
    }
    {
      const std::lock_guard lock(m);
      done = true;
    }
    changed.notify_all();
    EXPECT_TRUE(waits.join());
  });
}

struct counted {
  explicit counted(std::atomic<int>& n) : left(&n) { ++*left; }
  counted(const counted& other) : left(other.left) { ++*left; }
  counted(counted&& other) noexcept : left(other.left) { ++*left; }
  ~counted() { --*left; }
  std::atomic<int>* left;
};

TEST(stopped, threads_that_have_not_begun_are_taken_away_with_what_they_own) {
  everywhere([] {
    std::atomic<int> closures{0}, begun{0};
    for (int round = 0; round < 20; ++round) {
      gw::cancel_scope scope;
      for (int i = 0; i < 200; ++i) {
        static_cast<void>(gw::create([&, c = counted(closures)] { ++begun; }));
        static_cast<void>(gw::create([&] { ++begun; }));
      }
      auto one = gw::create([&, c = counted(closures)] { return ++begun; });
      scope.cancel();
      static_cast<void>(stops([&] { one.join(); }));
    }
    EXPECT_EQ(closures, 0);
  });
}

/// A closure's destructor is ordinary code: it may wait, and find itself at another worker.
TEST(stopped, a_closure_may_wait_when_it_is_destroyed) {
  everywhere([] {
    gw::mutex m;
    std::atomic<int> destroyed{0};
    struct waits {
      gw::mutex* m;
      std::atomic<int>* count;
      waits(gw::mutex& of, std::atomic<int>& n) : m(&of), count(&n) {}
      waits(waits&& other) noexcept : m(std::exchange(other.m, nullptr)), count(other.count) {}
      ~waits() {
        if (m == nullptr) return;
        const std::lock_guard lock(*m);
        gw::cancel_shield shield;
        gw::this_thread::sleep_for(100us);
        ++*count;
      }
    };
    {
      gw::cancel_scope scope;
      for (int i = 0; i < 20; ++i) static_cast<void>(gw::create([w = waits(m, destroyed)] {}));
      scope.cancel();
    }
    EXPECT_EQ(destroyed, 20);
  });
}

}  // namespace
