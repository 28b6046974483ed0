// Tests of the mutexes and once_flag: exclusion under every schedule, the standard's guards, time limits,
// deadlock reports, misuse.
// test: timeout=240
#include "places.hpp"

#include "support/child.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using namespace std::chrono_literals;
using support::everywhere;
using support::on_threads;

/// Many threads count under the lock, suspending there now and then: exclusion holds if nothing is lost.
template <class Mutex>
void count_together() {
  everywhere([] {
    Mutex m;
    long count = 0;
    std::atomic<int> inside{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 16; ++i)
      all.emplace_back([&, i] {
        for (int k = 0; k < 200; ++k) {
          std::lock_guard guard(m);
          EXPECT_EQ(inside.fetch_add(1), 0);
          const long before = count;
          if ((k + i) % 16 == 0) gw::yield();
          if ((k + i) % 32 == 0) gw::spawn([] {}).join();
          count = before + 1;
          inside.fetch_sub(1);
        }
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(count, 16 * 200);
  });
}

TEST(mutex, excludes) { count_together<gw::mutex>(); }
TEST(mutex, timed_excludes) { count_together<gw::timed_mutex>(); }
TEST(mutex, recursive_excludes) { count_together<gw::recursive_mutex>(); }
TEST(mutex, shared_excludes_writers) { count_together<gw::shared_mutex>(); }

TEST(mutex, heavy_contention) {
  gw::run<int>(
      [] {
        gw::mutex m;
        long count = 0;
        std::vector<gw::thread> all;
        for (int i = 0; i < 1000; ++i)
          all.emplace_back([&] {
            for (int k = 0; k < 100; ++k) {
              std::lock_guard guard(m);
              ++count;
            }
          });
        for (auto& t : all) t.join();
        EXPECT_EQ(count, 100'000);
        return 0;
      },
      on_threads(4));
}

TEST(mutex, works_with_the_standards_guards) {
  everywhere([] {
    gw::mutex a, b;
    gw::timed_mutex c;
    long both = 0;
    std::vector<gw::thread> all;
    for (int i = 0; i < 8; ++i)
      all.emplace_back([&, i] {
        for (int k = 0; k < 50; ++k) {
          if (i % 2 == 0) {
            std::scoped_lock guard(a, b);
            ++both;
          } else {
            std::unique_lock one(b, std::defer_lock), two(a, std::defer_lock);
            std::lock(one, two);
            ++both;
          }
          std::unique_lock timed(c, 100s);
          EXPECT_TRUE(timed.owns_lock());
        }
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(both, 400);
  });
}

TEST(mutex, try_lock) {
  everywhere([] {
    gw::mutex m;
    EXPECT_TRUE(m.try_lock());
    gw::create([&] { EXPECT_FALSE(m.try_lock()); }).join();
    m.unlock();
    gw::create([&] {
      EXPECT_TRUE(m.try_lock());
      m.unlock();
    }).join();
  });
}

TEST(mutex, recursive) {
  everywhere([] {
    gw::recursive_mutex m;
    m.lock();
    EXPECT_TRUE(m.try_lock());
    m.lock();
    gw::create([&] { EXPECT_FALSE(m.try_lock()); }).join();
    m.unlock();
    m.unlock();
    gw::create([&] { EXPECT_FALSE(m.try_lock()); }).join();
    m.unlock();
    gw::create([&] {
      EXPECT_TRUE(m.try_lock());
      m.unlock();
    }).join();
  });
}

TEST(mutex, time_limits) {
  everywhere([] {
    gw::timed_mutex m;
    m.lock();
    auto waits = gw::create([&] {
      EXPECT_FALSE(m.try_lock_for(2ms));
      EXPECT_FALSE(m.try_lock_until(std::chrono::steady_clock::now() + 1ms));
      EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + 1ms));
      EXPECT_FALSE(m.try_lock_for(-1s));
    });
    waits.join();
    auto gets = gw::create([&] {
      EXPECT_TRUE(m.try_lock_for(100s));
      m.unlock();
    });
    gw::this_thread::sleep_for(1ms);
    m.unlock();
    gets.join();
  });
}

// Notify and time-out race: whatever wins, nobody is lost and nobody has it twice.
TEST(mutex, time_limit_races) {
  everywhere([] {
    gw::timed_mutex m;
    std::atomic<int> inside{0};
    std::atomic<int> got{0}, late{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 8; ++i)
      all.emplace_back([&, i] {
        for (int k = 0; k < 20; ++k) {
          if (!m.try_lock_for(std::chrono::microseconds(20 + 13 * ((i + k) % 8)))) {
            ++late;
            continue;
          }
          EXPECT_EQ(inside.fetch_add(1), 0);
          gw::yield();
          inside.fetch_sub(1);
          m.unlock();
          ++got;
        }
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(got + late, 160);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

// The one who gets it last deletes it.
TEST(mutex, may_be_destroyed_by_the_last_one) {
  everywhere([] {
    for (int round = 0; round < 100; ++round) {
      struct shared {
        gw::mutex m;
        int holders = 2;
      };
      auto* s = new shared;
      const auto let_go = [](shared* p) {
        p->m.lock();
        const bool last = --p->holders == 0;
        p->m.unlock();
        if (last) delete p;
      };
      gw::thread t(let_go, s);
      let_go(s);
      t.join();
    }
  });
}

TEST(shared_mutex, readers_together_writers_alone) {
  everywhere([] {
    gw::shared_mutex m;
    std::atomic<int> readers{0}, writers{0};
    long value = 0;
    std::vector<gw::thread> all;
    for (int i = 0; i < 12; ++i)
      all.emplace_back([&, i] {
        for (int k = 0; k < 60; ++k) {
          if ((i + k) % 4 == 0) {
            std::lock_guard guard(m);
            EXPECT_EQ(writers.fetch_add(1), 0);
            EXPECT_EQ(readers, 0);
            if (k % 8 == 0) gw::yield();
            ++value;
            writers.fetch_sub(1);
          } else {
            std::shared_lock guard(m);
            ++readers;
            EXPECT_EQ(writers, 0);
            if (k % 8 == 0) gw::yield();
            --readers;
          }
        }
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(value, 12 * 60 / 4);
    EXPECT_TRUE(m.try_lock());
    EXPECT_FALSE(m.try_lock_shared());
    m.unlock();
    EXPECT_TRUE(m.try_lock_shared());
    EXPECT_TRUE(m.try_lock_shared());
    EXPECT_FALSE(m.try_lock());
    m.unlock_shared();
    m.unlock_shared();
  });
}

TEST(shared_mutex, writer_that_gives_up_lets_readers_in) {
  everywhere([] {
    gw::shared_timed_mutex m;
    m.lock_shared();
    gw::binary_semaphore begun(0);
    gw::thread writer([&] {
      begun.release();
      EXPECT_FALSE(m.try_lock_for(3ms));
    });
    begun.acquire();
    gw::thread reader([&] {
      std::shared_lock guard(m, 100s);
      EXPECT_TRUE(guard.owns_lock());
    });
    reader.join();
    writer.join();
    m.unlock_shared();
    EXPECT_TRUE(m.try_lock_for(1s));
    m.unlock();
  });
}

TEST(call_once, runs_once_and_again_after_an_exception) {
  everywhere([] {
    gw::once_flag flag;
    std::atomic<int> tries{0}, ran{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 20; ++i)
      all.emplace_back([&] {
        try {
          gw::call_once(
              flag,
              [&](int fails) {
                gw::yield();
                if (++tries <= fails) throw std::runtime_error("not yet");
                ++ran;
              },
              3);
          EXPECT_EQ(ran, 1);
        } catch (const std::runtime_error&) {
        }
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(tries, 4);
    EXPECT_EQ(ran, 1);
  });
}

TEST(mutex, deadlock_is_reported_with_its_place) {
  const auto o = support::run_child([] {
    return gw::run(
        0, nullptr,
        [] {
          gw::mutex a, b;
          gw::binary_semaphore first(0), second(0);
          gw::thread t([&] {
            b.lock();
            first.release();
            second.acquire();
            a.lock();
          });
          a.lock();
          first.acquire();
          second.release();
          b.lock();
          t.join();
        },
        on_threads(2));
  });
  EXPECT_EQ(o.status, 70) << support::show(o);
  EXPECT_TRUE(o.err_has("deadlock")) << support::show(o);
  EXPECT_TRUE(o.err_has("mutex_test.cpp")) << support::show(o);
  EXPECT_TRUE(o.err_has("a mutex")) << support::show(o);
}

#ifndef NDEBUG
TEST(mutex, misuse_is_noticed_in_debug_builds) {
  const auto twice = support::run_child([] {
    return gw::run(
        0, nullptr,
        [] {
          gw::mutex m;
          m.lock();
          m.lock();
        },
        on_threads(1));
  });
  EXPECT_TRUE(twice.err_has("locked by a thread that holds it at ")) << support::show(twice);
  const auto not_mine = support::run_child([] {
    return gw::run(
        0, nullptr,
        [] {
          gw::mutex m;
          m.lock();
          gw::create([&] { m.unlock(); }).join();
        },
        on_threads(1));
  });
  EXPECT_TRUE(not_mine.err_has("unlocked by a thread that does not hold it")) << support::show(not_mine);
}
#endif

TEST(mutex, outside_a_run) {
  gw::mutex m;
  m.lock();
  EXPECT_FALSE(m.try_lock());
  m.unlock();
  const auto o = support::run_child([&] {
    m.lock();
    m.lock();
    return 0;
  });
  EXPECT_NE(o.status, 0);
  EXPECT_TRUE(o.err_has(
#ifdef NDEBUG
      "mutex was called outside godwit::run"
#else
      "mutex"
#endif
      ))
      << support::show(o);
}

}  // namespace
