// Every policy runs the same programs and gives the same results, on every schedule; what a policy cannot do
// ends with a message. docs/policies.md
// test: timeout=300
#include "support/policies.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

namespace gw = godwit;

/// Is this one of those that STRESS_POLICIES=name:name names? Without it all that exist here are, and in the
/// build where spawns are looked at (extras.cmake), which concerns no other, lazy.
bool is_asked_for(std::string_view policy) {
#ifdef GODWIT_LAZY_LOOKS
  if (policy != "lazy") return false;
#endif
  if (!support::exists_here(policy)) return false;
  const char* names = std::getenv("STRESS_POLICIES");
  if (names == nullptr) return true;
  return (':' + std::string(names) + ':').find(':' + std::string(policy) + ':') != std::string::npos;
}

/// body(policy) with the type of @p name, if it is asked for.
template <class Body>
void with_policy(const char* name, Body&& body) {
  if (!is_asked_for(name)) return;
#ifdef GODWIT_LAZY_LOOKS
  body(gw::policies::lazy{});
#else
  gw::with_policy(gw::choice::named{name}, body);
#endif
}

/// body(policy, options) for all policies, worker counts and delays, and where they exist forced steals.
template <class Body>
void for_each_policy(Body&& body) {
  const bool everything = support::number_from_environment("STRESS_SHORT", 0) == 0;
  const std::uint64_t repeat = support::number_from_environment("STRESS_REPEAT", 1);
  std::uint64_t row = 0;
  for (std::uint64_t round = 0; round < repeat; ++round)
    for (const char* name : {"stalling", "locked_free", "stalling_locked_free", "crude", "iso", "child_rtc",
                             "child_full", "lazy", "greedy"}) {
      with_policy(name, [&](auto p) {
        for (const char* force : {"none", "parents", "random"})
          for (const std::uint32_t workers : {1u, 2u, 4u})
            for (const std::uint32_t delay_us : {0u, 5u}) {
              if (!support::is_forced_under(p, force)) continue;
              if (!everything && (workers > 2 || delay_us != 0 || std::string_view(force) == "parents"))
                continue;
              gw::options o = support::schedule(workers, force, delay_us, support::base_seed() + row++);
              o.policy = gw::choice::named{name};
              SCOPED_TRACE(std::string("policy=") + name + ' ' + support::describe(o));
              body(p, o);
              if (testing::Test::HasFailure()) return;
            }
      });
    }
}

template <class P>
[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = P::spawn([n] { return fib<P>(n - 1); });
  const long y = fib<P>(n - 2);
  return x.join() + y;
}

TEST(policy, fork_join) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    EXPECT_EQ(gw::run<long>([] { return fib<P>(18); }, o), 2584);
  });
}

struct large {
  std::array<long, 40> v;
};
template <class P>
[[gnu::noinline]] large many(int n, long from) {
  if (n == 0) {
    large l{};
    for (std::size_t i = 0; i < l.v.size(); ++i) l.v[i] = from + static_cast<long>(i);
    return l;
  }
  auto x = P::spawn([=] { return many<P>(n - 1, 2 * from); });
  auto y = P::spawn([=] { return many<P>(n - 1, 2 * from + 1); });
  large a = y.join();
  const large b = x.join();
  for (std::size_t i = 0; i < a.v.size(); ++i) a.v[i] += b.v[i];
  return a;
}

TEST(policy, results_larger_than_a_record) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    const large got = gw::run<large>([] { return many<P>(7, 1); }, o);
    long sum = 0;  // of 128 ... 255
    for (long i = 128; i < 256; ++i) sum += i;
    for (std::size_t i = 0; i < got.v.size(); ++i) EXPECT_EQ(got.v[i], sum + 128 * static_cast<long>(i));
  });
}

std::string text(int n) { return std::string(static_cast<std::size_t>(n), static_cast<char>('a' + n % 26)); }
bool is_text(const std::string& s, int n) { return s == text(n); }

TEST(policy, coded_results_and_arguments) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto a = P::spawn(text, 5);
                    auto b = P::spawn([](const std::string& s) { return s + s; }, text(100));
                    auto c = P::spawn([] { return fib<P>(10); });
                    int good = is_text(a.join(), 5);
                    good += c.join() == 55;
                    good += b.join().size() == 200;
                    return good;
                  },
                  o),
              3);
  });
}

TEST(policy, exceptions_come_out_of_join) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int caught = 0;
                    for (int i = 0; i < 20; ++i) {
                      auto f = P::spawn([i]() -> int {
                        if (i % 2 == 0) throw std::out_of_range("odd only");
                        return fib<P>(5) == 5;
                      });
                      try {
                        caught += f.join();
                      } catch (const std::out_of_range&) {
                        caught += 100;
                      }
                    }
                    return caught;
                  },
                  o),
              1010);
  });
}

TEST(policy, dropped_futures_run_all_the_same) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    support::shared<std::atomic<int>> ran;
    ran->store(0);
    gw::run<void>(
        [&ran = *ran] {
          for (int i = 0; i < 30; ++i) static_cast<void>(P::spawn([&ran] { ran.fetch_add(1); }));
        },
        o);
    EXPECT_EQ(ran->load(), 30);
  });
}

TEST(policy, futures_with_many_consumers) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    if constexpr (P::has_futures) {
      EXPECT_EQ(gw::run<long>(
                    [] {
                      gw::shared_future<long> first = P::spawn([] { return fib<P>(12); });
                      std::array<gw::future<long>, 10> all;
                      for (int i = 0; i < 10; ++i)
                        all[static_cast<std::size_t>(i)] = P::spawn([first, i] { return first.get() + i; });
                      long sum = 0;
                      for (auto& f : all) sum += f.join();
                      return sum;
                    },
                    o),
                10 * 144 + 45);
    }
  });
}

TEST(policy, futures_form_a_wavefront) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    if constexpr (P::has_futures) {
      EXPECT_EQ(gw::run<long>(
                    [] {
                      constexpr int n = 12;
                      std::array<gw::shared_future<long>, n> row;  // the newest future of each column
                      for (int y = 0; y < n; ++y)
                        for (std::size_t x = 0; x < n; ++x) {
                          gw::shared_future<long> left, above;
                          if (x > 0) left = row[x - 1];
                          if (y > 0) above = row[x];
                          row[x] = P::spawn([left, above]() -> long {
                            if (!left.valid() && !above.valid()) return 1;
                            long sum = 0;
                            if (left.valid()) sum += left.get();
                            if (above.valid()) sum += above.get();
                            return sum;
                          });
                        }
                      return row[n - 1].get();
                    },
                    o),
                705432);  // 22 over 11
    }
  });
}

template <class P>
[[gnu::noinline]] long chain(int n) {
  if (n == 0) return 0;
  auto f = P::spawn([n] { return chain<P>(n - 1) + 1; });
  return f.join();
}

/// Much more than a heap holds, of results and records that the last worker made.
TEST(policy, what_is_given_back_from_elsewhere_is_used_again) {
  for_each_policy([](auto, const gw::options& o) {
    gw::options small = o;
    small.heap_bytes = 1 << 20;
    EXPECT_EQ(gw::run<long>(
                  [] {
                    long sum = 0;
                    for (int i = 0; i < 4000; ++i) {
                      const large got = gw::spawn_at(gw::worker(gw::worker_count() - 1), [i] {
                                          large l{};
                                          l.v[39] = i % 2;
                                          return l;
                                        }).join();
                      sum += got.v[39];
                    }
                    return sum;
                  },
                  small),
              2000);
  });
}

TEST(policy, deep_chains) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    EXPECT_EQ(gw::run<long>([] { return chain<P>(500); }, o), 500);
  });
}

TEST(policy, every_worker_is_reached) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    support::shared<std::atomic<std::uint64_t>> mask;
    mask->store(0);
    const auto all = gw::run<std::uint64_t>(
        [&mask = *mask] {
          auto f = P::spawn([] { return fib<P>(14); });
          gw::on_each_worker([&mask] { mask.fetch_or(std::uint64_t{1} << gw::worker_id()); });
          static_cast<void>(f.join());
          gw::yield();
          return (std::uint64_t{1} << gw::worker_count()) - 1;
        },
        o);
    EXPECT_EQ(mask->load(), all);
  });
}

TEST(policy, tied_threads_stay) {
  for (const char* name : {"child_rtc", "child_full"})
    with_policy(name, [&](auto p) {
      using P = decltype(p);
      if constexpr (!P::migrates) {
        gw::options o;
        o.workers = 4;
        o.policy = gw::choice::named{name};
        EXPECT_EQ(gw::run<int>(
                      [] {
                        int moved = 0;
                        for (int i = 0; i < 200; ++i) {
                          const auto before = gw::worker_id();
                          auto f = P::spawn([] { return fib<P>(8); });
                          static_cast<void>(f.join());
                          moved += gw::worker_id() != before;
                        }
                        return moved;
                      },
                      o),
                  0)
            << name;
      }
    });
}

TEST(policy, arguments_larger_than_a_stack) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    EXPECT_EQ(gw::run<std::size_t>(
                  [] {
                    auto a = P::spawn([](const std::string& s) { return is_text(s, 200'000) ? s.size() : 0; },
                                      text(200'000));
                    return a.join();
                  },
                  o),
              200'000u);
  });
}

TEST(policy, threads_may_wait_by_yielding) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    support::shared<std::atomic<int>> shared;
    shared->store(0);
    gw::run<void>(
        [flag = shared.get()] {
          auto child = P::spawn([flag] { flag->store(1); });
          while (flag->load() == 0) gw::yield();
          child.join();
          if constexpr (P::has_futures) {
            // The second thread waits for the root, which may be what called it.
            gw::shared_future<int> first = P::spawn([] { return 1; });
            auto second = P::spawn([flag, first] {
              static_cast<void>(first.get());
              while (flag->load() == 1) gw::yield();
            });
            static_cast<void>(first.get());
            flag->store(2);
            second.join();
          }
        },
        o);
  });
}

TEST(policy, rounding_modes_do_not_reach_whom_a_thread_runs_above) {
  for (const char* name : {"child_rtc", "child_full"})
    with_policy(name, [&](auto p) {
      using P = decltype(p);
      for (const std::uint32_t workers : {1u, 2u}) {
        gw::options o;
        o.workers = workers;
        o.policy = gw::choice::named{name};
        EXPECT_EQ(gw::run<int>(
                      [] {
                        int other = 0;
                        for (int i = 0; i < 20; ++i) {
                          auto f = P::spawn([i] {
                            std::fesetround(FE_UPWARD);
                            if (i % 2 != 0) gw::yield();
                            return std::fegetround() == FE_UPWARD ? 0 : 1;
                          });
                          other += f.join();
                          other += std::fegetround() != FE_TONEAREST;
                        }
                        return other;
                      },
                      o),
                  0)
            << name;
      }
    });
}

TEST(policy, a_busy_worker_leaves_its_children_to_thieves) {
  for (const char* name : {"child_rtc", "child_full"})
    with_policy(name, [&](auto p) {
      using P = decltype(p);
      gw::options o;
      o.workers = 2;
      o.policy = gw::choice::named{name};
      support::shared<std::atomic<int>> shared;
      shared->store(0);
      gw::run<void>(
          [done = shared.get()] {
            constexpr int others = 16;
            std::array<gw::future<void>, others> all;
            for (auto& f : all) f = P::spawn([done] { done->fetch_add(1); });
            auto last = P::spawn([done] {  // whoever takes this one: the other worker does all the rest
              while (done->load() != others) std::this_thread::yield();
            });
            last.join();
            for (auto& f : all) f.join();
          },
          o);
      EXPECT_EQ(shared->load(), 16) << name;
    });
}

void spawn_one() {
  auto f = gw::spawn([] { return 1; });
  static_cast<void>(f.join());
}

TEST(policy, threads_of_another_policy_are_reported) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  for (const char* name : {"child_rtc", "child_full"})
    EXPECT_NE(
        support::failure(support::under(name), spawn_one).find("this run's policy is " + std::string(name)),
        std::string::npos);
  EXPECT_NE(
      support::failure(support::under("greedy"), [] { static_cast<void>(fib<gw::policies::child_full>(5)); })
          .find("this run's policy is greedy"),
      std::string::npos);
  EXPECT_NE(support::failure(support::under("stalling"), [] { static_cast<void>(fib<gw::policies::iso>(5)); })
                .find("this run's policy is stalling"),
            std::string::npos);
}

TEST(policy, shared_futures_for_several_threads_are_reported_where_nobody_may_wait_for_them) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  using P = gw::policies::child_rtc;
  const std::string said = support::failure(support::under("child_rtc"), [] {
    const gw::shared_future<long> first = P::spawn([] { return fib<P>(12); });
    auto second = P::spawn([first] { return first.get(); });
    static_cast<void>(second.join());
  });
  EXPECT_NE(said.find("policy is child_rtc"), std::string::npos) << said;
  EXPECT_NE(said.find("copied a shared_future"), std::string::npos) << said;
}

/// Not done before somebody waits for it, and for ever only as long as a test may fail.
long lasts() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) gw::yield();
  return 1;
}

TEST(policy, who_waits_for_a_thread_of_somebody_else_is_reported_where_that_must_not_be) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  using P = gw::policies::child_rtc;
  for (const std::uint32_t workers : {1u, 2u}) {
    const std::string said = support::failure(support::under("child_rtc", workers), [] {
      auto first = P::spawn(lasts);
      auto second = P::spawn([](gw::future<long> f) { return f.join(); }, std::move(first));
      static_cast<void>(second.join());
    });
    EXPECT_NE(said.find("waits for a thread that another one created"), std::string::npos) << said;
  }
}

TEST(policy, who_waits_for_a_group_of_somebody_else_is_reported_where_that_must_not_be) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  using P = gw::policies::child_rtc;
  const std::string said = support::failure(support::under("child_rtc", 1), [] {
    const auto g = std::make_unique<gw::task_group>();
    auto waits = P::spawn([g = g.get()] { g->wait(); });
    g->run_by<P>([] { gw::yield(); });  // the other one, which waits for it, runs on top of it
    waits.join();
  });
  EXPECT_NE(said.find("waits for a task_group that another one made"), std::string::npos) << said;
}

TEST(policy, a_thread_that_was_sent_is_waited_for_where_it_was_made) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  using P = gw::policies::child_rtc;
  const std::string said = support::failure(support::under("child_rtc", 2), [] {
    auto first = gw::spawn_at(gw::worker(1), lasts);
    auto second = P::spawn([](gw::future<long> f) { return f.join(); }, std::move(first));
    static_cast<void>(second.join());
  });
  EXPECT_NE(said.find("waits for a thread that another one created"), std::string::npos) << said;
}

TEST(policy, a_shared_future_that_stays_with_its_parent_works_everywhere) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const gw::shared_future<long> good = P::spawn([] { return fib<P>(10); });
                    const gw::shared_future<long> bad =
                        P::spawn([]() -> long { throw std::out_of_range("bad"); });
                    long caught = 0;
                    for (int i = 0; i < 2; ++i) {
                      try {
                        static_cast<void>(bad.get());
                      } catch (const std::out_of_range&) {
                        ++caught;
                      }
                    }
                    return good.get() + good.get() + caught;
                  },
                  o),
              2 * 55 + 2);
  });
}

[[gnu::noinline]] int use_stack(int n) {
  volatile char room[512];
  room[0] = static_cast<char>(n);
  asm volatile("" : : "r"(&room[0]) : "memory");  // or compilers keep the one byte only
  return n == 0 ? 0 : use_stack(n - 1) + room[0];
}

TEST(policy, full_stacks_that_are_used_up_are_reported) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  const std::string said = support::failure(support::under("child_full"), [] {
    auto f = gw::policies::child_full::spawn([] { return use_stack(200); });
    static_cast<void>(f.join());
  });
  EXPECT_NE(said.find("policy child_full: a thread used up its stack of 32 KiB"), std::string::npos) << said;
}

TEST(policy, too_many_waiting_children_are_reported) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  if (std::getenv("GODWIT_STACK_BYTES") != nullptr)
    GTEST_SKIP() << "the size of the deque is set from outside";
  for (const char* name : {"child_rtc", "child_full"})
    with_policy(name, [&](auto p) {
      using P = decltype(p);
      gw::options o = support::under(name, 1);
      o.stack_bytes = 1 << 20;
      const std::string said = support::failure(o, [] {
        for (int i = 0; i < 100'000; ++i) static_cast<void>(P::spawn([] {}));
      });
      EXPECT_NE(said.find("did not begin yet"), std::string::npos) << name << ": " << said;
    });
}

TEST(policy, impossible_combinations_are_refused) {
  gw::options o = support::under("child_full");
  o.force_steal = gw::choice::force_steal::parents;
  EXPECT_NE(support::failure(o, [] {}).find("none to be stolen"), std::string::npos);
  o = support::under("iso");
  o.span = true;
  EXPECT_NE(support::failure(o, [] {}).find("span=1"), std::string::npos);
  EXPECT_THROW(gw::with_policy(gw::choice::named{"eager"}, [](auto) {}), std::invalid_argument);
}

TEST(policy, deadlocks_are_found_where_waiting_threads_poll) {
  for (const char* name : {"stalling", "stalling_locked_free", "child_full"})
    with_policy(name, [&](auto p) {
      using P = decltype(p);
      if constexpr (P::has_futures) {
        for (const std::uint32_t workers : {1u, 2u, 4u}) {
          // A thread that waits for itself, by way of a future that it gets through shared memory.
          struct cell {
            std::atomic<int> there;
            gw::shared_future<int> future;
          };
          support::shared<cell> shared;
          const std::string said = support::failure(support::under(name, workers), [c = shared.get()] {
            c->future = P::spawn([c]() -> int {
              while (c->there.load() == 0) gw::yield();
              return c->future.get();
            });
            c->there.store(1);
            static_cast<void>(c->future.get());
          });
          EXPECT_NE(said.find("deadlock"), std::string::npos) << name << ": " << said;
        }
      }
    });
}

}  // namespace
