// Threads and calls that go to data or to workers: include/godwit/spawn_at.hpp, docs/protocols/parcels.md;
// and pin (checkout.hpp). Runs under MPI as well (tests/mpi), where most of it happens.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "sched/worker.hpp"
#include "support/substrate.hpp"
#include "support/schedule.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gw = godwit;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool heaps_are_mixed = true;
#else
constexpr bool heaps_are_mixed = false;
#endif
constexpr std::uint64_t page = 4096, words_of_page = page / 8;

/// Empty: all right.
template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>([f] { return std::string(f()); }, o);
}
/// On this substrate and, on one host, on threads.
template <class F>
void on_substrates(F f) {
  EXPECT_EQ(in_a_run({}, f), "");
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = 3;
  EXPECT_EQ(in_a_run(o, f), "") << "threads";
}

[[maybe_unused]] gw::distribution dealt_out() { return gw::distribution::cyclic(page).movable(page); }
std::uint32_t mix(std::uint64_t i) { return static_cast<std::uint32_t>(i * 0x9e3779b97f4a7c15u >> 40); }

template <class F>
bool refused(F f) {
  try {
    f();
    return false;
  } catch (const std::invalid_argument&) {
    return true;
  }
}

TEST(SpawnAt, BeginsAtTheWorker) {
  on_substrates([] {
    const std::uint32_t n = gw::worker_count();
    for (std::uint32_t round = 0; round < 3; ++round)
      for (std::uint32_t w = 0; w < n; ++w)
        if (const auto at = gw::spawn_at(gw::worker(w), [] { return gw::worker_id(); }).join(); at != w)
          return "sent to " + std::to_string(w) + ", began at " + std::to_string(at);
    if (!refused([] { gw::spawn_at(gw::worker(gw::worker_count()), [] {}).join(); }))
      return std::string("no such worker");
    return std::string();
  });
}

TEST(SpawnAt, ArgumentsResultsAndExceptionsOfAllKinds) {
  on_substrates([] {
    const gw::worker last(gw::worker_count() - 1);
    if (gw::spawn_at(
            last, [](int a, double b) { return a + b; }, 2, 0.5)
            .join() != 2.5)
      return "plain";
    const auto doubled = [](std::string s, std::vector<int> v) {
      for (int i : v) s += std::to_string(i);
      return s;
    };
    if (gw::spawn_at(last, doubled, std::string("x"), std::vector<int>{1, 2, 3}).join() != "x123")
      return "encoded";
    const auto sum = [](std::vector<std::uint64_t> v) {
      for (std::uint64_t& x : v) x *= 2;
      return v;
    };
    // Nothing to compare it with may be made before the join, after which this may be another worker.
    const auto are_eights = [](const std::vector<std::uint64_t>& v) {
      return v == std::vector<std::uint64_t>(100'000, 8);
    };
    if (!are_eights(gw::spawn_at(last, sum, std::vector<std::uint64_t>(100'000, 4)).join())) return "large";
    struct {
      std::array<std::uint64_t, 700> words;  // more than fits into a message
    } big{};
    big.words[699] = 5;
    if (gw::spawn_at(last, [big] { return big.words[699]; }).join() != 5) return "a large closure";
    auto failing = gw::spawn_at(last, [] { throw std::out_of_range("sent"); });
    try {
      failing.join();
      return "nothing thrown";
    } catch (const std::out_of_range& e) {
      if (std::string(e.what()) != "sent") return "another exception";
    }
    return "";
  });
}

long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

/// They spawn, wait for each other and send further ones themselves.
long tree(std::uint32_t depth, std::uint64_t seed) {
  if (depth == 0) return fib(8);
  const std::uint32_t n = gw::worker_count();
  auto a = gw::spawn_at(gw::worker(mix(seed) % n), [=] { return tree(depth - 1, 2 * seed + 1); });
  auto b = gw::spawn([=] { return tree(depth - 1, 2 * seed + 2); });
  auto c = gw::spawn_at(
      gw::worker(mix(seed + 7) % n), [](std::vector<int> v) { return long(v.size()); },
      std::vector<int>(depth));
  const long left = a.join();
  const long right = b.join();
  return left + right + c.join();
}
constexpr long tree_of(std::uint32_t depth) { return depth == 0 ? 21 : 2 * tree_of(depth - 1) + depth; }

TEST(SpawnAt, TreesOfThreadsThatAreSentEverywhere) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>([] { return tree(5, 1); }, o), tree_of(5)) << "workers " << o.workers;
  });
}

/// A pin that would not have to wait: its memory is this host's.
template <class T>
bool is_here(gw::global_ptr<T> p) {
  return !gw::try_pin(p, 1).empty();
}

TEST(SpawnAt, BeginsWhereTheMemoryIs) {
  on_substrates([] {
    const std::uint32_t n = gw::worker_count();
    const auto p = gw::allocate<std::uint64_t>(8 * words_of_page, dealt_out());
    const auto fixed = gw::allocate<int>(1000, gw::distribution::cyclic(16));
    for (std::uint64_t round = 0; round < 3; ++round)
      for (std::uint64_t b = 0; b < 8; ++b) {
        const auto at = p + b * words_of_page + round;
        gw::put(at, 10 * b + round);
        const auto read = [at] { return is_here(at) ? gw::get(at) : std::uint64_t{9999}; };
        if (gw::spawn_at(at, read).join() != 10 * b + round) return "before a move " + std::to_string(b);
        gw::move(at, mix(8 * round + b) % n).join();
        if (gw::spawn_at(at, read).join() != 10 * b + round) return "after a move " + std::to_string(b);
        const auto f = fixed + 125 * b;
        if (!gw::spawn_at(f, [f] { return is_here(f); }).join()) return "fixed " + std::to_string(b);
      }
    gw::deallocate(p, 8 * words_of_page);
    gw::deallocate(fixed, 1000);
    return std::string();
  });
}

TEST(SpawnAt, WithCallsWhereTheMemoryIs) {
  on_substrates([] {
    const std::uint32_t n = gw::worker_count();
    const auto p = gw::allocate<std::uint64_t>(8 * words_of_page, dealt_out());
    for (std::uint64_t b = 0; b < 8; ++b) {
      const auto at = p + b * words_of_page;
      gw::with(at, words_of_page, gw::access::write, [b](std::span<std::uint64_t> s) {
        for (auto& x : s) x = b;
      }).join();
      gw::move(at, mix(b) % n).join();
      auto sum = gw::with(at, words_of_page, gw::access::read, [](std::span<const std::uint64_t> s) {
        std::uint64_t all = 0;
        for (const auto x : s) all += x;
        return all;
      });
      auto failing = gw::with(at, 1, gw::access::read_write, [](std::span<std::uint64_t> s) -> std::string {
        s[0] += 5;
        throw std::out_of_range("at the owner");
      });
      auto text = gw::with(at, 1, gw::access::read, [](auto s) { return std::to_string(s[0]); });
      // They were called in some order.
      if (const std::uint64_t got = sum.join(); got != b * words_of_page && got != b * words_of_page + 5)
        return "sum of " + std::to_string(b) + ": " + std::to_string(got);
      try {
        failing.join();
        return std::string("nothing thrown");
      } catch (const std::out_of_range&) {
      }
      if (const std::string got = text.join(); got != std::to_string(b) && got != std::to_string(b + 5))
        return "text " + got;
      if (gw::get(at) != b + 5) return "changed once " + std::to_string(b);
    }
    gw::deallocate(p, 8 * words_of_page);
    return std::string();
  });
}

TEST(SpawnAt, TheRunningThreadLeaves) {
  on_substrates([] {
    const std::uint32_t n = gw::worker_count();
    std::array<std::uint64_t, 50> local{};  // goes along
    for (std::uint32_t i = 0; i < 3 * n; ++i) {
      const std::uint32_t to = mix(i) % n;
      if (!gw::migrate_to(gw::worker(to))) return "kept " + std::to_string(i);
      if (gw::worker_id() != to) return "at another worker " + std::to_string(i);
      for (auto& x : local) ++x;
    }
    for (const auto x : local)
      if (x != 3 * n) return std::string("locals");
    if (!refused([] { gw::migrate_to(gw::worker(gw::worker_count())); }))
      return std::string("no such worker");
    const auto p = gw::allocate<std::uint64_t>(8 * words_of_page, dealt_out());
    for (std::uint64_t b = 0; b < 8; ++b) {
      const auto at = p + b * words_of_page;
      gw::put(at, b);
      gw::move(at, mix(b + 40) % n).join();
      if (!gw::go_to(at)) return "kept before block " + std::to_string(b);
      const auto here = gw::pin(at, 1, gw::access::read);
      if (here[0] != b) return "block " + std::to_string(b);
    }
    // Children and their parent go different ways.
    auto child = gw::spawn([n] {
      gw::migrate_to(gw::worker(n - 1));
      return gw::worker_id();
    });
    gw::migrate_to(gw::worker(0));
    if (child.join() != n - 1) return std::string("child");
    gw::deallocate(p, 8 * words_of_page);
    return std::string();
  });
}

TEST(SpawnAt, WhoOwnsHeapStays) {
  GODWIT_NEEDS_PROCESSES("they have one heap");
  if (heaps_are_mixed) GTEST_SKIP() << "heaps are not told apart";
  gw::options o;
  o.heap = gw::choice::heap::separate;
  EXPECT_EQ(in_a_run(o,
                     [] {
                       const std::uint32_t here = gw::worker_id(), n = gw::worker_count();
                       if (n == 1) return "";
                       std::vector<int> owned(100, 1);
                       if (gw::migrate_to(gw::worker((here + 1) % n))) return "it left its vector behind";
                       return owned[5] == 1 && gw::worker_id() == here ? "" : "moved";
                     }),
            "");
}

/// Leaves names of the worker's heap below the caller's frame, where nothing is.
[[gnu::noinline]] void scribble_below() {
  int* const owned = new int(1);
  int* volatile marks[512];
  for (auto& m : marks) m = owned;
  delete marks[511];
}

TEST(SpawnAt, WhatLiesBelowTheStackKeepsNobody) {
  GODWIT_NEEDS_PROCESSES("they have one heap");
  EXPECT_EQ(in_a_run({},
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       for (std::uint32_t i = 0; i < 3 * n; ++i) {
                         scribble_below();
                         if (!gw::migrate_to(gw::worker((gw::worker_id() + 1) % n))) return "kept";
                       }
                       return "";
                     }),
            "");
}

TEST(Pin, HoldsMemoryAndMayNest) {
  on_substrates([] {
    const auto p = gw::allocate<std::uint64_t>(2 * words_of_page,
                                               gw::distribution::at(gw::worker_count() - 1).movable(page));
    if (!gw::go_to(p)) return "kept";
    {
      auto a = gw::pin(p + 1, 2 * words_of_page - 1);
      a[words_of_page] = 7;
      const auto b = gw::pin(p, 1, gw::access::read);
      const auto c = gw::try_pin(p, 1, gw::access::read);
      if (c.empty() || b.size() != 1 || a.data() != b.data() + 1) return "nested";
    }
    if (gw::move(p, 0).join() == gw::move_result::busy) return "still held";
    gw::deallocate(p, 2 * words_of_page);
    return "";
  });
}

/// Threads and calls are sent to memory that others move about: each is carried out once, and calls find it
/// there.
std::string storm(std::uint64_t each, std::uint64_t moves) {
  constexpr std::uint64_t parts = 4, senders = 3;
  const std::uint32_t n = gw::worker_count();
  const auto p = gw::allocate<std::uint64_t>(parts * words_of_page, dealt_out());
  for (std::uint64_t b = 0; b < parts; ++b)
    for (std::uint64_t i = 0; i < 3; ++i) gw::put(p + b * words_of_page + i, 0);
  std::array<gw::future<void>, 2 * senders> all;
  for (std::uint64_t t = 0; t < senders; ++t) {
    all[2 * t] = gw::spawn([=] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const auto at = p + mix(t * each + i) % parts * words_of_page;
        auto thread = gw::spawn_at(at, [=] { gw::atomic_fetch_add(at, std::uint64_t{1}); });
        auto call = gw::with(at, 3, gw::access::read_write, [](std::span<std::uint64_t> s) {
          __atomic_fetch_add(&s[1], 1, __ATOMIC_RELAXED);
        });
        if (i % 4 == 0 && gw::go_to(at))
          if (const auto here = gw::try_pin(at, 3); !here.empty())
            __atomic_fetch_add(&here[2], 1, __ATOMIC_RELAXED);
        thread.join();
        call.join();
      }
    });
    all[2 * t + 1] = gw::spawn([=] {
      for (std::uint64_t i = 0; i < moves; ++i)
        gw::move(p + mix(t + 100 * i) % parts * words_of_page, mix(7 * t + i) % n).join();
    });
  }
  for (auto& f : all) f.join();
  std::array<std::uint64_t, 3> sum{};
  for (std::uint64_t b = 0; b < parts; ++b)
    for (std::uint64_t i = 0; i < 3; ++i) sum[i] += gw::get(p + b * words_of_page + i);
  gw::deallocate(p, parts * words_of_page);
  if (sum[0] != senders * each || sum[1] != senders * each)
    return std::to_string(sum[0]) + " threads and " + std::to_string(sum[1]) + " calls of " +
           std::to_string(senders * each);
  return "";
}

TEST(SpawnAt, EachIsCarriedOutOnceWhileMemoryMoves) {
  support::for_each_schedule([](gw::options o) {
    o.check_global = gw::choice::check_global::off;  // they write to the same words, by atomics of their own
    EXPECT_EQ(in_a_run(o, [] { return storm(20, 30); }), "");
  });
}

/// Threads wait at worker 0's host for parts that lie there, while other hosts have nothing to do. Some begin
/// elsewhere, where their parts have come: option rebalance. Else none does.
std::string queue_up(bool rebalances) {
  constexpr std::uint64_t parts = 16, threads = 64;
  const auto p =
      gw::allocate<std::uint64_t>(parts * words_of_page, gw::distribution::at(0).movable(page), page);
  const auto far_host = [] { return godwit::sched::this_worker().here().shape.my_host != 0; };
  const bool several = !godwit::sched::this_worker().here().one_host();
  std::uint64_t rounds = 0, elsewhere = 0;
  for (; rounds < (several && rebalances ? 200 : 3) && elsewhere == 0; ++rounds) {
    for (std::uint64_t b = 0; b < parts; ++b) {
      gw::move(p + b * words_of_page, 0).join();
      gw::put(p + b * words_of_page, 0);
    }
    std::array<gw::future<bool>, threads> all;
    for (std::uint64_t t = 0; t < threads; ++t) {
      const auto at = p + mix(t) % parts * words_of_page;
      all[t] = gw::spawn_at(at, [at, far_host] {
        gw::atomic_fetch_add(at, std::uint64_t{1});
        const auto since = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - since < std::chrono::microseconds(300)) {
        }
        return far_host();
      });
    }
    for (auto& t : all) elsewhere += t.join();
    std::uint64_t sum = 0;
    for (std::uint64_t b = 0; b < parts; ++b) sum += gw::get(p + b * words_of_page);
    if (sum != threads) return std::to_string(sum) + " of them in round " + std::to_string(rounds);
  }
  gw::deallocate(p, parts * words_of_page);
  if ((elsewhere != 0) != (several && rebalances)) return std::to_string(elsewhere) + " ran elsewhere";
  return "";
}

TEST(SpawnAt, ThreadsThatWaitGoToIdleHostsWithTheirMemory) {
  const auto fetched = [] {
    std::uint64_t n = 0;
    for (const gw::worker_stats& s : gw::last_run_stats()) n += s.threads_fetched;
    return n;
  };
  EXPECT_EQ(in_a_run({}, [] { return queue_up(false); }), "");
  EXPECT_EQ(fetched(), 0u);
  gw::options o;
  o.rebalance = true;
  EXPECT_EQ(in_a_run(o, [] { return queue_up(true); }), "");
}

TEST(SpawnAt, EachIsCarriedOutOnceWhileMemoryMovesAndIsFetched) {
  support::for_each_schedule([](gw::options o) {
    o.check_global = gw::choice::check_global::off;
    o.rebalance = true;
    EXPECT_EQ(in_a_run(o, [] { return storm(20, 10); }), "");
  });
}

/// Requests that this worker has made to other hosts.
std::uint64_t requests() {
  const auto& here = godwit::sched::this_worker().here();
  return here.one_host() ? 0 : here.net.far().requests();
}

TEST(SpawnAt, AMessageEach) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       constexpr std::uint64_t count = 100;
                       const gw::worker last(gw::worker_count() - 1);
                       std::array<gw::future<void>, count> threads;
                       const std::uint64_t before = requests();
                       for (auto& t : threads) t = gw::spawn_at(last, [] {});
                       const std::uint64_t took = requests() - before;
                       const bool far = !godwit::sched::this_worker().here().net.is_near(
                           godwit::transport::worker_no{last.number});
                       for (auto& t : threads) t.join();
                       // One each; that they are counted takes none.
                       if (took != (far ? count : 0)) return std::to_string(took) + " requests";
                       return std::string();
                     }),
            "");
}

template <class F>
std::string on_policy(gw::choice::policy policy, F f) {
  gw::options o;
  o.policy = policy;
  o.workers = 3;
  return in_a_run(o, f);
}

/// In a frame of its own: what it leaves in one that lives on would keep the thread (migrate_to).
[[gnu::noinline]] bool a_text_comes_back(std::uint32_t w) {
  auto text = gw::spawn_at(
      gw::worker(w), [](std::string s) { return s + "!"; }, std::string("sent"));
  return text.join() == "sent!";
}

TEST(SpawnAt, UnderEveryPolicy) {
  using gw::choice::policy;
  for (const auto which :
       {policy::greedy, policy::stalling, policy::locked_free, policy::stalling_locked_free, policy::iso,
        policy::crude, policy::child_full, policy::child_rtc})
    EXPECT_EQ(on_policy(which,
                        [which] {
                          const bool stays = which == policy::child_full || which == policy::child_rtc;
                          for (std::uint32_t w = 0; w < 3; ++w) {
                            auto at = gw::spawn_at(gw::worker(w), [] { return gw::worker_id(); });
                            if (!a_text_comes_back(w)) return "text";
                            if (at.join() != w) return "worker";
                            const bool was_there = gw::worker_id() == w;
                            if (gw::migrate_to(gw::worker(w)) == (stays && !was_there)) return "migrate_to";
                            if (!stays && gw::worker_id() != w) return "elsewhere";
                          }
                          return "";
                        }),
              "")
        << static_cast<int>(which);
}

}  // namespace
