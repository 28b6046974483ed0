// Tests of thread, jthread, create, this_thread: begin, end, results, exceptions, ids -- under every schedule
// of substrate threads.
// test: timeout=180
#include "places.hpp"

#include "support/child.hpp"
#include "support/schedule.hpp"

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using support::everywhere;
using support::on_threads;

/// There stacks are few.
bool emulated() { return support::number_from_environment("STRESS_EMULATED", 0) != 0; }

TEST(thread, runs_and_is_joined) {
  everywhere([] {
    std::atomic<int> sum{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 100; ++i) all.emplace_back([&sum, i] { sum += i; });
    for (auto& t : all) {
      EXPECT_TRUE(t.joinable());
      t.join();
      EXPECT_FALSE(t.joinable());
    }
    EXPECT_EQ(sum, 4950);
  });
}

/// What it waits for is in the queue of a worker that computes.
TEST(thread, who_yields_alone_takes_what_others_have) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  std::atomic<bool> yields{false}, done{false}, over{false};
                  gw::thread waiter([&] {
                    while (!done && !over) {
                      yields = true;
                      gw::yield();
                    }
                  });
                  while (!yields) gw::yield();  // or it waits for this worker, until the other one takes it
                  gw::thread other([&] { done = true; });
                  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                  while (!done && std::chrono::steady_clock::now() < limit) {
                  }
                  const bool in_time = done;
                  over = true;
                  other.join();
                  waiter.join();
                  return in_time ? 0 : 1;
                },
                on_threads(2)),
            0);
}

TEST(thread, takes_arguments_of_any_movable_type) {
  everywhere([] {
    std::string out;
    auto p = std::make_unique<std::vector<int>>(1000, 3);
    gw::thread t(
        [](std::unique_ptr<std::vector<int>> v, const std::string& s,
           std::reference_wrapper<std::string> to) {
          to.get() = s + std::to_string(std::accumulate(v->begin(), v->end(), 0));
        },
        std::move(p), "sum ", std::ref(out));
    t.join();
    EXPECT_EQ(out, "sum 3000");
    struct object {
      int value = 1;
      void set(int v) { value = v; }
    } o;
    gw::thread(&object::set, &o, 7).join();
    EXPECT_EQ(o.value, 7);
    std::function<void()> f = [&out] { out = "function"; };
    gw::thread(f).join();
    EXPECT_EQ(out, "function");
  });
}

TEST(thread, creator_goes_on_first) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  int order = 0, mine = 0, its = 0;
                  gw::thread t([&] { its = ++order; });
                  mine = ++order;
                  t.join();
                  return mine * 10 + its;
                },
                on_threads(1)),
            12);
}

// A thread that has not begun is run by who joins it: docs/protocols/park.md.
TEST(thread, joined_before_it_begins) {
  std::string said;
  gw::run<int>(
      [&] {
        gw::thread a([&] { said += 'a'; }), b([&] { said += 'b'; }), c([&] { said += 'c'; });
        c.join();
        said += ' ';
        b.join();
        a.join();
        return 0;
      },
      on_threads(1));
  EXPECT_EQ(said, "c ba") << "nobody else's turn comes first";
}

TEST(thread, joined_before_it_begins_is_still_a_thread) {
  everywhere([] {
    const int to_zero = FE_TOWARDZERO, up = FE_UPWARD;
    for (int i = 0; i < (emulated() ? 8 : 50); ++i) {
      const auto mine = gw::this_thread::get_id();
      std::fesetround(up);
      gw::thread::id its;
      bool whole = true;
      gw::thread t(i % 2 == 0 ? gw::priority::high : gw::priority::normal, [&] {
        its = gw::this_thread::get_id();
        whole = std::fegetround() == up;
        std::fesetround(to_zero);
        if (i % 5 == 0) gw::yield();
        gw::thread inner([&, i] { whole = whole && (i % 3 != 0 || std::fegetround() == to_zero); });
        if (i % 7 == 0) gw::this_thread::sleep_for(std::chrono::microseconds(10));
        inner.join();
        whole = whole && its == gw::this_thread::get_id() && std::fegetround() == to_zero;
      });
      const auto named = t.get_id();
      std::fesetround(FE_TONEAREST);
      t.join();
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
      EXPECT_TRUE(whole);
      EXPECT_EQ(its, named);
      EXPECT_EQ(mine, gw::this_thread::get_id());
    }
  });
}

TEST(thread, joins_nest) {
  everywhere([] {
    const std::function<int(int)> depth = [&](int n) {
      return n == 0 ? 0 : 1 + gw::create([&, n] { return depth(n - 1); }).join();
    };
    const int n = emulated() ? 20 : 1500;  // more than begin on top of each other
    EXPECT_EQ(depth(n), n);
  });
}

TEST(thread, many_join_one_that_has_not_begun) {
  everywhere([] {
    for (int i = 0; i < 20; ++i) {
      auto one = gw::create([i] {
                   if (i % 2 == 0) gw::yield();
                   return i;
                 }).share();
      std::vector<gw::future<int>> all;
      for (int k = 0; k < 5; ++k) all.push_back(gw::create([one]() mutable { return one.get(); }));
      for (auto& f : all) EXPECT_EQ(f.join(), i);
      EXPECT_EQ(one.get(), i);
    }
  });
}

TEST(thread, exception_comes_out_of_join) {
  everywhere([] {
    gw::thread t([] { throw std::out_of_range("thread"); });
    EXPECT_THROW(t.join(), std::out_of_range);
    EXPECT_FALSE(t.joinable());
    gw::thread none;
    EXPECT_THROW(none.join(), std::system_error);
    EXPECT_THROW(none.detach(), std::system_error);
  });
}

TEST(thread, joining_itself_throws) {
  everywhere([] {
    gw::thread t;
    gw::binary_semaphore set(0), seen(0);
    bool thrown = false;
    t = gw::thread([&] {
      set.acquire();
      try {
        t.join();
      } catch (const std::system_error& e) {
        thrown = e.code() == std::errc::resource_deadlock_would_occur;
      }
      seen.release();
    });
    set.release();
    seen.acquire();
    t.join();
    EXPECT_TRUE(thrown);
  });
}

TEST(thread, detached_ones_are_waited_for) {
  std::atomic<int> done{0};
  support::for_each_place([&](const gw::options& o) {
    done = 0;
    gw::run<int>(
        [&] {
          for (int i = 0; i < 50; ++i)
            gw::thread([&] {
              for (int k = 0; k < 5; ++k) gw::this_thread::yield();
              ++done;
            }).detach();
          return 0;
        },
        o);
    EXPECT_EQ(done, 50);
  });
}

TEST(thread, detach_does_not_wait_in_a_cancelled_scope) {
  everywhere([] {
    std::atomic<int> ended{0};
    gw::cancel_scope scope;
    scope.run([&] {
      gw::latch begun(1), open(1);
      gw::thread t([&] {
        begun.count_down();
        open.wait();
        ++ended;
      });
      begun.wait();
      scope.cancel();
      t.detach();
      open.count_down();
      const gw::cancel_shield to_the_end;
      while (ended == 0) gw::yield();
    });
    EXPECT_EQ(ended, 1);
  });
}

TEST(thread, ids) {
  everywhere([] {
    std::set<gw::thread::id> seen;
    gw::mutex m;
    std::vector<gw::thread> all;
    gw::barrier<> together(21);
    for (int i = 0; i < 20; ++i)
      all.emplace_back([&] {
        const auto me = gw::this_thread::get_id();
        {
          std::lock_guard guard(m);
          seen.insert(me);
        }
        together.arrive_and_wait();
        EXPECT_EQ(me, gw::this_thread::get_id());
      });
    std::set<gw::thread::id> named;
    for (auto& t : all) named.insert(t.get_id());
    together.arrive_and_wait();
    EXPECT_EQ(seen, named);
    EXPECT_EQ(seen.size(), 20u);
    for (auto& t : all) t.join();
    const auto mine = gw::this_thread::get_id();
    EXPECT_NE(mine, gw::thread::id());
    EXPECT_FALSE(seen.contains(mine));
    auto child = gw::spawn([] {
      const auto it = gw::this_thread::get_id();
      gw::yield();
      return it == gw::this_thread::get_id();
    });
    EXPECT_EQ(mine, gw::this_thread::get_id());
    EXPECT_TRUE(child.join());
    std::ostringstream text;
    text << mine;
    EXPECT_FALSE(text.str().empty());
    EXPECT_EQ(std::hash<gw::thread::id>()(mine), std::hash<gw::thread::id>()(gw::this_thread::get_id()));
  });
}

TEST(thread, id_outside_a_run) { EXPECT_EQ(gw::this_thread::get_id(), gw::thread::id()); }

TEST(thread, moves_and_swaps) {
  everywhere([] {
    gw::thread a([] {}), b;
    const auto id = a.get_id();
    b = std::move(a);
    EXPECT_FALSE(a.joinable());
    EXPECT_EQ(b.get_id(), id);
    swap(a, b);
    EXPECT_EQ(a.get_id(), id);
    a.join();
  });
}

TEST(thread, million_that_have_not_begun) {
  const int n = emulated() ? 10'000 : 1'000'000;
  std::atomic<long> sum{0};
  gw::run<int>(
      [&] {
        std::vector<gw::thread> all;
        all.reserve(static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i) all.emplace_back([&sum] { sum.fetch_add(1, std::memory_order_relaxed); });
        for (auto& t : all) t.join();
        return 0;
      },
      on_threads(2));
  EXPECT_EQ(sum, n);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(thread, hundred_thousand_that_wait) {
  gw::run<int>(
      [&] {
        const int n = emulated() ? 500 : 100'000;
        gw::latch all_here(n), go(1);
        std::vector<gw::thread> all;
        all.reserve(static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i)
          all.emplace_back([&] {
            all_here.count_down();
            go.wait();
          });
        all_here.wait();
        go.count_down();
        for (auto& t : all) t.join();
        return 0;
      },
      on_threads(2));
}
#endif

struct only_moves {  // no codec
  std::unique_ptr<std::string> text;
  std::function<int()> call;
};

TEST(create, gives_back_any_type) {
  everywhere([] {
    gw::future<int> a = gw::create([] { return 5; });
    gw::future<std::string> b = gw::create([](std::string s) { return s + "!"; }, std::string(100, 'x'));
    gw::future<only_moves> c = gw::create([] {
      return only_moves{std::make_unique<std::string>("box"), [] { return 9; }};
    });
    gw::future<void> d = gw::create([] {});
    EXPECT_EQ(a.join(), 5);
    EXPECT_EQ(b.join(), std::string(100, 'x') + "!");
    only_moves m = c.join();
    EXPECT_EQ(*m.text, "box");
    EXPECT_EQ(m.call(), 9);
    d.join();
    auto e = gw::create([]() -> only_moves { throw std::runtime_error("no box"); });
    EXPECT_THROW(e.join(), std::runtime_error);
    auto s = gw::create([] { return 3; }).share();
    EXPECT_EQ(s.get() + s.get(), 6);
  });
}

struct counted {
  static inline std::atomic<int> alive{0};
  counted() { ++alive; }
  counted(counted&&) noexcept { ++alive; }
  ~counted() { --alive; }
};

TEST(create, dropped_results_are_destroyed) {
  support::for_each_place([](const gw::options& o) {
    gw::run<int>(
        [] {
          for (int i = 0; i < 100; ++i) {
            auto dropped = gw::create([c = counted()]() mutable { return std::move(c); });
            if (i % 2 == 0) gw::yield();
            if (i % 3 == 0) static_cast<void>(dropped.join());
          }
          return 0;
        },
        o);
    EXPECT_EQ(counted::alive, 0);
  });
}

TEST(create, a_result_that_nobody_sees_owns_threads_that_still_run) {
  everywhere([] {
    std::atomic<int> ended{0};
    for (int round = 0; round < 10; ++round) {
      gw::cancel_scope scope;
      scope.run([&] {
        auto many = gw::create([&] {
          std::vector<gw::future<void>> all;
          for (int i = 0; i < 3; ++i)
            all.push_back(gw::create([&] {
              const gw::cancel_shield to_the_end;
              for (int k = 0; k < 5; ++k) gw::yield();
              ++ended;
            }));
          gw::yield();
          return all;
        });
        while (!many.ready()) gw::yield();
        scope.cancel();
        many.join();
        ADD_FAILURE() << "it was cancelled";
      });
    }
    EXPECT_LE(ended, 30);
  });
}

/// Its destructor runs where no thread is.
TEST(create, a_result_that_nobody_sees_must_not_wait_in_its_end) {
  for (const bool yields : {false, true}) {
    const auto o = support::run_child([yields] {
      return gw::run(on_threads(2), [yields] {
        struct waits {
          std::shared_ptr<gw::latch> until;
          bool yields;
          ~waits() {
            if (until != nullptr) yields ? gw::yield() : until->wait();
          }
        };
        auto open = std::make_shared<gw::latch>(1);
        std::atomic<bool> begun{false}, dropped{false};
        {
          auto unseen = gw::create([&] {
            begun = true;
            while (!dropped) gw::yield();
            return std::unique_ptr<waits>(new waits{open, yields});
          });
          while (!begun) gw::yield();
        }
        dropped = true;
        gw::this_thread::sleep_for(std::chrono::seconds(20));  // the run ends before
        open->count_down();
      });
    });
    EXPECT_EQ(o.status, 70) << support::show(o);
    EXPECT_TRUE(o.err_has("whose future was dropped before it ended")) << support::show(o);
  }
}

/// If its end waited there, with sanitizers the worker's own checks would end the run.
TEST(create, a_scope_s_end_begins_who_drops_a_thread_that_still_runs) {
  everywhere([] {
    std::atomic<int> ended{0};
    for (int round = 0; round < 50; ++round) {
      gw::cancel_scope scope;
      scope.run([&] {
        static_cast<void>(gw::create([&] {
          auto still_runs = gw::create([&] {
            const gw::cancel_shield to_the_end;
            for (int k = 0; k < 5; ++k) gw::yield();
            ++ended;
          });
          gw::yield();
          scope.cancel();
          return still_runs;
        }));
      });
    }
    EXPECT_LE(ended, 50);
  });
}

TEST(create, a_scope_ends_after_those_that_its_end_begins) {
  everywhere([] {
    std::atomic<int> ran{0};
    for (const bool cancelled : {false, true}) {
      ran = 0;
      {
        gw::cancel_scope scope;
        for (int i = 0; i < 60; ++i)
          static_cast<void>(gw::create([&ran, i, c = counted()] {
            if (i % 3 == 0) gw::yield();
            ++ran;
          }));
        if (cancelled)
          scope.cancel();
        else
          gw::create([&ran] { ++ran; }).join();
      }
      EXPECT_EQ(counted::alive, 0) << "all that is below has ended";
      EXPECT_TRUE(cancelled || ran == 61) << ran;
    }
  });
}

TEST(jthread, stops_and_joins) {
  everywhere([] {
    std::atomic<int> turns{0};
    std::atomic<bool> over{false};
    {
      gw::jthread t(
          [&](std::stop_token stop, int step) {
            while (!stop.stop_requested()) {
              turns += step;
              gw::yield();
            }
            over = true;
          },
          2);
      while (turns < 6) gw::yield();
    }
    EXPECT_TRUE(over);
  });
}

TEST(thread, destroyed_while_joinable_ends_the_program) {
  const auto o = support::run_child([] {
    return gw::run(
        0, nullptr, [] { gw::thread t([] {}); }, on_threads(2));
  });
  EXPECT_EQ(o.status, 128 + SIGABRT) << support::show(o);
}

TEST(thread, elsewhere_says_how_to_get_it) {
  const auto o = support::run_child([] {
    gw::options processes;
    processes.substrate = gw::choice::substrate::processes;
    return gw::run(
        0, nullptr, [] { gw::thread([] {}).join(); }, processes);
  });
  EXPECT_EQ(o.status, 70) << support::show(o);
  EXPECT_TRUE(o.err_has("--godwit-substrate=threads")) << support::show(o);
  const auto outside = support::run_child([] {
    gw::thread([] {}).join();
    return 0;
  });
  EXPECT_NE(outside.status, 0) << support::show(outside);
  EXPECT_TRUE(outside.err_has("outside godwit::run")) << support::show(outside);
}

TEST(thread, unseen_exception_is_reported) {
  const auto o = support::run_child([] {
    return gw::run(
        0, nullptr, [] { gw::thread([] { throw std::runtime_error("nobody joins"); }).detach(); },
        on_threads(2));
  });
  EXPECT_TRUE(o.err_has("nobody joins")) << support::show(o);
}

}  // namespace
