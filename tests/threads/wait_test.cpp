// Tests of condition variables, semaphores, latch, barrier, sleep and the list that they wait in -- under
// every schedule.
// test: timeout=240
#include "places.hpp"

#include "support/child.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace {

namespace gw = godwit;
using namespace std::chrono_literals;
using support::everywhere;
using support::on_threads;

template <class Mutex, class Condition>
struct queue {
  Mutex m;
  Condition not_empty, not_full;
  std::deque<int> values;
  void put(int v) {
    std::unique_lock lock(m);
    not_full.wait(lock, [&] { return values.size() < 4; });
    values.push_back(v);
    not_empty.notify_one();
  }
  int take() {
    std::unique_lock lock(m);
    not_empty.wait(lock, [&] { return !values.empty(); });
    const int v = values.front();
    values.pop_front();
    not_full.notify_one();
    return v;
  }
};

template <class Mutex, class Condition>
void through_a_queue() {
  everywhere([] {
    queue<Mutex, Condition> q;
    std::atomic<long> sum{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 4; ++i) {
      all.emplace_back([&, i] {
        for (int k = 0; k < 100; ++k) q.put(i * 100 + k);
      });
      all.emplace_back([&] {
        for (int k = 0; k < 100; ++k) sum += q.take();
      });
    }
    for (auto& t : all) t.join();
    EXPECT_EQ(sum, 400 * 399 / 2);
  });
}

TEST(condition_variable, bounded_queue) { through_a_queue<gw::mutex, gw::condition_variable>(); }
TEST(condition_variable, any_bounded_queue) {
  through_a_queue<gw::shared_mutex, gw::condition_variable_any>();
}

TEST(condition_variable, notify_all_wakes_all) {
  everywhere([] {
    gw::mutex m;
    gw::condition_variable c;
    int waiting = 0;
    bool go = false;
    std::vector<gw::thread> all;
    for (int i = 0; i < 50; ++i)
      all.emplace_back([&] {
        std::unique_lock lock(m);
        ++waiting;
        c.notify_all();
        c.wait(lock, [&] { return go; });
      });
    {
      std::unique_lock lock(m);
      c.wait(lock, [&] { return waiting == 50; });
      go = true;
    }
    c.notify_all();
    for (auto& t : all) t.join();
  });
}

TEST(condition_variable, time_limits) {
  everywhere([] {
    gw::mutex m;
    gw::condition_variable c;
    std::unique_lock lock(m);
    EXPECT_EQ(c.wait_for(lock, 1ms), std::cv_status::timeout);
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_EQ(c.wait_until(lock, std::chrono::system_clock::now() + 1ms), std::cv_status::timeout);
    EXPECT_EQ(c.wait_until(lock, std::chrono::steady_clock::now() - 1ms), std::cv_status::timeout);
    EXPECT_FALSE(c.wait_for(lock, 1ms, [] { return false; }));
    bool set = false;
    gw::thread t([&] {
      std::lock_guard guard(m);
      set = true;
      c.notify_one();
    });
    EXPECT_TRUE(c.wait_for(lock, 100s, [&] { return set; }));
    lock.unlock();
    t.join();
  });
}

TEST(condition_variable, notify_races_with_time_out) {
  everywhere([] {
    gw::mutex m;
    gw::condition_variable c;
    std::atomic<int> notified{0}, late{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 8; ++i)
      all.emplace_back([&, i] {
        for (int k = 0; k < 20; ++k) {
          std::unique_lock lock(m);
          ++(c.wait_for(lock, std::chrono::microseconds(10 + 17 * ((i + k) % 7))) == std::cv_status::timeout
                 ? late
                 : notified);
        }
      });
    for (int k = 0; k < 200; ++k) {
      c.notify_one();
      gw::yield();
    }
    for (auto& t : all) t.join();
    EXPECT_EQ(notified + late, 160);
  });
}

// As the standard allows: those that were notified may be on their way out of wait. The page goes: who
// touches it ends the test.
TEST(condition_variable, may_be_destroyed_after_notify_all) {
  everywhere([] {
    constexpr std::size_t bytes = 64 << 10;
    for (int i = 0; i < 100; ++i) {
      void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(page, MAP_FAILED);
      auto* c = new (page) gw::condition_variable;
      gw::mutex m;
      bool set = false;
      std::vector<gw::thread> all;
      for (int k = 0; k < 4; ++k)
        all.emplace_back([&, k] {
          std::unique_lock lock(m);
          if (k % 2 == 0)
            c->wait(lock, [&] { return set; });
          else
            c->wait_for(lock, std::chrono::microseconds(i * k % 60), [&] { return set; });
        });
      for (int k = 0; k < i % 4; ++k) gw::yield();
      {
        const std::lock_guard guard(m);
        set = true;
        if (i % 2 == 0) c->notify_all();
      }
      if (i % 2 != 0) c->notify_all();
      c->~condition_variable();
      munmap(page, bytes);
      for (auto& t : all) t.join();
    }
  });
}

TEST(condition_variable, any_stops) {
  everywhere([] {
    gw::mutex m;
    gw::condition_variable_any c;
    gw::jthread t([&](std::stop_token stop) {
      std::unique_lock lock(m);
      EXPECT_FALSE(c.wait(lock, stop, [] { return false; }));
    });
    gw::yield();
    t.request_stop();
    t.join();
  });
}

TEST(semaphore, limits_how_many) {
  everywhere([] {
    gw::counting_semaphore<3> places(3);
    std::atomic<int> inside{0}, most{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 20; ++i)
      all.emplace_back([&] {
        for (int k = 0; k < 30; ++k) {
          places.acquire();
          const int now = ++inside;
          for (int m = most; now > m && !most.compare_exchange_weak(m, now);) {
          }
          if (k % 5 == 0) gw::yield();
          --inside;
          places.release();
        }
      });
    for (auto& t : all) t.join();
    EXPECT_LE(most, 3);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(places.try_acquire());
    EXPECT_FALSE(places.try_acquire());
    EXPECT_FALSE(places.try_acquire_for(1ms));
    places.release(3);
    EXPECT_TRUE(places.try_acquire_until(std::chrono::system_clock::now() + 1s));
  });
}

// In the waiter's frame: gone as soon as acquire comes back.
TEST(semaphore, may_be_destroyed_after_acquire) {
  everywhere([] {
    std::vector<gw::thread> all;
    for (int i = 0; i < 300; ++i) {
      auto done = std::make_unique<gw::binary_semaphore>(0);
      gw::thread([d = done.get()] { d->release(); }).detach();
      if (i % 3 == 0) gw::yield();
      done->acquire();
      std::memset(static_cast<void*>(done.get()), 0xff, sizeof(gw::binary_semaphore));
    }
  });
}

TEST(semaphore, release_races_with_time_out) {
  everywhere([] {
    gw::counting_semaphore<> s(0);
    std::atomic<int> got{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 8; ++i)
      all.emplace_back([&, i] {
        for (int k = 0; k < 20; ++k)
          if (s.try_acquire_for(std::chrono::microseconds(10 + 17 * ((i + k) % 7)))) ++got;
      });
    for (int k = 0; k < 100; ++k) {
      s.release();
      gw::yield();
    }
    for (auto& t : all) t.join();
    while (s.try_acquire()) ++got;
    EXPECT_EQ(got, 100);
  });
}

TEST(latch, counts_down) {
  everywhere([] {
    for (int round = 0; round < 20; ++round) {
      auto here = std::make_unique<gw::latch>(30);
      auto go = std::make_unique<gw::latch>(1);
      std::vector<gw::thread> all;
      for (int i = 0; i < 29; ++i)
        all.emplace_back([&] {
          here->count_down();
          go->wait();
        });
      here->arrive_and_wait();
      EXPECT_TRUE(here->try_wait());
      here.reset();
      go->count_down();
      for (auto& t : all) t.join();
    }
  });
}

TEST(barrier, phases) {
  everywhere([] {
    int phase = 0;
    std::atomic<int> arrived{0};
    auto at_end = [&]() noexcept {
      EXPECT_EQ(arrived, 10 * (phase + 1));
      gw::yield();
      ++phase;
    };
    gw::barrier together(10, at_end);
    std::vector<gw::thread> all;
    for (int i = 0; i < 10; ++i)
      all.emplace_back([&, i] {
        for (int k = 0; k < 20; ++k) {
          ++arrived;
          if (i % 2 == 0) {
            together.arrive_and_wait();
          } else {
            auto token = together.arrive();
            gw::yield();
            together.wait(std::move(token));
          }
          EXPECT_GE(phase, k + 1);
        }
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(phase, 20);
  });
}

TEST(barrier, drop) {
  everywhere([] {
    gw::barrier<> together(3);
    std::atomic<int> turns{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 3; ++i)
      all.emplace_back([&, i] {
        for (int k = 0; k <= i; ++k) {
          ++turns;
          if (k == i)
            together.arrive_and_drop();
          else
            together.arrive_and_wait();
        }
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(turns, 6);
  });
}

TEST(sleep, takes_its_time) {
  everywhere([] {
    const auto before = std::chrono::steady_clock::now();
    std::vector<gw::thread> all;
    for (int i = 0; i < 200; ++i) all.emplace_back([] { gw::this_thread::sleep_for(3ms); });
    for (auto& t : all) t.join();
    gw::this_thread::sleep_until(std::chrono::system_clock::now() + 1ms);
    gw::this_thread::sleep_for(-1s);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 4ms);
  });
}

TEST(sleep, works_outside_too) {
  const auto before = std::chrono::steady_clock::now();
  gw::this_thread::sleep_for(1ms);
  EXPECT_GE(std::chrono::steady_clock::now() - before, 1ms);
}

TEST(wait, deadlock_names_what_is_waited_for) {
  const auto o = support::run_child([] {
    return gw::run(
        0, nullptr,
        [] {
          gw::latch l(1);
          gw::barrier<> b(2);
          gw::mutex m;
          gw::condition_variable c;
          gw::binary_semaphore s(0);
          gw::thread([&] { l.wait(); }).detach();
          gw::thread([&] { b.arrive_and_wait(); }).detach();
          gw::thread([&] {
            std::unique_lock lock(m);
            c.wait(lock);
          }).detach();
          s.acquire();
        },
        on_threads(2));
  });
  EXPECT_EQ(o.status, 70) << support::show(o);
  for (const char* what :
       {"deadlock", "a latch", "a barrier", "a condition variable", "a semaphore", "wait_test.cpp"})
    EXPECT_TRUE(o.err_has(what)) << what << support::show(o);
}

TEST(wait, list_wakes_in_order) {
  gw::run<int>(
      [] {
        gw::detail::wait_list list;
        std::vector<int> order;
        std::vector<gw::thread> all;
        for (int i = 0; i < 5; ++i)
          all.emplace_back([&, i] {
            gw::detail::wait_node n;
            list.lock();
            list.wait(n, "test", gw::detail::place::here());
            order.push_back(i);
          });
        gw::yield();
        while (list.notify_one()) gw::yield();
        for (auto& t : all) t.join();
        EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
        return 0;
      },
      on_threads(1));
}

}  // namespace
