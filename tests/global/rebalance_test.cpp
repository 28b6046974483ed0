// Heat, and parts that go to workers that have less: include/godwit/{heat,rebalance}.hpp. Runs under MPI as
// well (tests/mpi): accesses are counted only between hosts.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace gw = godwit;

namespace {

constexpr std::uint64_t page = 4096, words_of_page = page / 8;
using words = gw::global_ptr<std::uint64_t>;

/// Empty: all right.
template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>([f] { return std::string(f()); }, o);
}

words pages_at(std::uint32_t worker, std::uint64_t pages) {
  return gw::allocate<std::uint64_t>(pages * words_of_page, gw::distribution::at(worker).movable(page), page);
}

/// Another host has that worker. (Of movable memory try_local says nothing.)
bool is_far(std::uint32_t worker) {
  const auto p = gw::allocate<int>(1, gw::distribution::at(worker));
  const bool far = gw::try_local(p, 1) == nullptr;
  gw::deallocate(p, 1);
  return far;
}
bool several_hosts() {
  for (std::uint32_t w = 0; w < gw::worker_count(); ++w)
    if (is_far(w)) return true;
  return false;
}

std::string counts_of_a_page(std::uint32_t worker) {
  const bool far = is_far(worker), counted = several_hosts();
  const words p = pages_at(worker, 2);
  for (std::uint64_t i = 0; i < 30; ++i) gw::put(p + i, i);
  for (std::uint64_t i = 0; i < 20; ++i)
    if (gw::get(p + i) != i) return "get";
  for (std::uint64_t i = 0; i < 10; ++i) gw::atomic_fetch_add(p, std::uint64_t{1}, std::memory_order_relaxed);
  if (!far) static_cast<void>(gw::checkout(p + 3, 5, gw::access::read));  // else the cache may have it
  const std::uint64_t all = counted ? (far ? 60u : 61u) : 0u;
  const gw::part_heat h = gw::heat_of(p + 100);
  if (h.near != (far ? 0 : all) || h.far != (far ? all : 0))
    return "near " + std::to_string(h.near) + " far " + std::to_string(h.far) + " instead of " +
           std::to_string(all);
  if (h.by_other != h.far || (h.far != 0) != (h.other != ~0u))
    return "by other " + std::to_string(h.by_other);
  if (gw::heat_of(p + words_of_page).all() != 0) return "the other page was not touched";
  if (gw::heat_of(p).all() != all) return "to look is no access";
  gw::deallocate(p, 2 * words_of_page);
  return "";
}

TEST(Heat, EveryAccessIsCountedWhereThePartIs) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       for (const std::uint32_t w : {gw::worker_id(), gw::worker_count() - 1})
                         if (const std::string s = counts_of_a_page(w); !s.empty())
                           return "worker " + std::to_string(w) + ": " + s;
                       return std::string();
                     }),
            "");
}

TEST(Heat, PartsAreListedInOrderWithTheirOwners) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       constexpr std::uint64_t pages = 500;
                       const auto p = gw::allocate<std::uint64_t>(
                           pages * words_of_page - 5, gw::distribution::cyclic(page).movable(page));
                       for (std::uint64_t i = 0; i < pages; i += 7)
                         gw::move(p + i * words_of_page, static_cast<std::uint32_t>(i % 5) % n).join();
                       const auto some = gw::parts_of(p + words_of_page + 1, 2 * words_of_page);
                       if (some.size() != 3 || some[0].begin.address() != (p + words_of_page).address())
                         return "some " + std::to_string(some.size());
                       const auto all = gw::parts_of(p, pages * words_of_page - 5);
                       if (all.size() != pages) return "all " + std::to_string(all.size());
                       for (std::uint64_t i = 0; i < pages; ++i) {
                         const std::uint32_t owner = static_cast<std::uint32_t>(i % 7 == 0 ? i % 5 : i) % n;
                         if (all[i].owner != owner || all[i].home != i % n)
                           return "owner " + std::to_string(i);
                         if (all[i].bytes != (i == pages - 1 ? page - 40 : page))
                           return "bytes " + std::to_string(i);
                       }
                       if (!gw::parts_of(p, 0).empty()) return std::string("none");
                       return std::string();
                     }),
            "");
}

/// All at worker 0; the weight of page i is 1 + i % 3.
std::string rebalanced(const gw::balance_rule& how, bool all_help) {
  const std::uint32_t n = gw::worker_count();
  constexpr std::uint64_t pages = 48;
  const words p = pages_at(0, pages);
  for (std::uint64_t i = 0; i < pages * words_of_page; i += 64) gw::put(p + i, i);
  const auto weight = [p](const gw::part_info& part) {
    return 1 + (part.begin.address() - p.address()) / page % 3;
  };
  const gw::rebalance_result r = gw::rebalance(p, pages * words_of_page, how, weight);
  if (r.busy != 0) return "busy " + std::to_string(r.busy);
  if (r.before != n) return "before " + std::to_string(r.before);
  if (r.bytes != r.moves * page) return "bytes";
  if (n > 1 && r.after >= r.before) return "after " + std::to_string(r.after);
  if (n > 1 && all_help && r.after >= how.threshold) return "still " + std::to_string(r.after);
  if (n == 1 && r.moves != 0) return "moves";
  std::uint64_t moved = 0, most = 0, sum = 0;
  {
    std::vector<std::uint64_t> loads(n);
    for (const gw::part_info& part : gw::parts_of(p, pages * words_of_page)) {
      moved += part.owner != 0;
      loads[part.owner] += weight(part);
      sum += weight(part);
    }
    for (const std::uint64_t l : loads) most = std::max(most, l);
  }
  if (moved != r.moves) return "moved " + std::to_string(moved) + " of " + std::to_string(r.moves);
  if (static_cast<double>(most * n) / static_cast<double>(sum) != r.after)
    return "after is not what is there";
  for (std::uint64_t i = 0; i < pages * words_of_page; i += 64)
    if (gw::get(p + i) != i) return "a word";
  // Balanced: nothing is left to do.
  if (n > 1 && all_help && gw::rebalance(p, pages * words_of_page, how, weight).moves != 0) return "again";
  gw::deallocate(p, pages * words_of_page);
  return "";
}

TEST(Rebalance, ByWeightsOfTheUserWithEveryPolicy) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(in_a_run(o, [] { return rebalanced({.threshold = 1.3}, true); }), "");
    EXPECT_EQ(in_a_run(o, [] { return rebalanced({.to = gw::balance::successor}, false); }), "");
    EXPECT_EQ(in_a_run(o, [] { return rebalanced({.to = gw::balance::predecessor}, false); }), "");
    EXPECT_EQ(in_a_run(o, [] { return rebalanced({.to = gw::balance::random}, false); }), "");
    EXPECT_EQ(in_a_run(o,
                       [] {
                         return rebalanced({.to = gw::balance::user,
                                            .choose =
                                                [](std::size_t part, std::uint32_t, auto loads) {
                                                  return static_cast<std::uint32_t>(part % loads.size());
                                                }},
                                           false);
                       }),
              "");
  });
}

/// Every page is used by one worker. Affinity takes them there, by load they are dealt out.
std::string by_accesses(gw::balance to) {
  const std::uint32_t n = gw::worker_count();
  const std::uint64_t pages = 4 * n;
  const words p = pages_at(0, pages);
  const auto use = [=] {
    gw::on_each_worker([=] {
      for (std::uint64_t i = gw::worker_id(); i < pages; i += n)
        for (std::uint64_t k = 0; k < 100; ++k) gw::put(p + i * words_of_page + k, k);
    });
  };
  use();
  const bool counted = several_hosts();
  const gw::rebalance_result r = gw::rebalance(p, pages * words_of_page, {.to = to});
  if (r.busy != 0) return "busy";
  if (!counted) return r.moves == 0 && r.after == 1 ? "" : "on one host nothing is counted";
  if (to == gw::balance::least_loaded)
    return r.before > 1.9 && r.after < 1.4 ? "" : "after " + std::to_string(r.after);
  // Where who uses it is another host than worker 0's, it is that host's now; the others are where they were.
  for (const gw::part_info& part : gw::parts_of(p, pages * words_of_page)) {
    const auto user = static_cast<std::uint32_t>((part.begin.address() - p.address()) / page % n);
    if (is_far(user) != is_far(part.owner))
      return "worker " + std::to_string(part.owner) + " has what " + std::to_string(user) + " uses";
  }
  use();
  for (const gw::part_info& part : gw::parts_of(p, pages * words_of_page))
    if (part.heat.far != 0) return std::string("an access went to another host still");
  const gw::rebalance_result again = gw::rebalance(p, pages * words_of_page, {.to = to});
  if (again.moves != 0) return "what came is not wanted elsewhere";
  gw::deallocate(p, pages * words_of_page);
  return "";
}

TEST(Rebalance, ByAccesses) {
  EXPECT_EQ(in_a_run({}, [] { return by_accesses(gw::balance::least_loaded); }), "");
  EXPECT_EQ(in_a_run({}, [] { return by_accesses(gw::balance::affinity); }), "");
}

/// A thread holds a checkout of what another one gives away: between hosts it stays for this round.
std::string held() {
  const std::uint32_t n = gw::worker_count();
  const words p = pages_at(gw::worker_id(), 4);
  const auto flags = gw::allocate<std::uint64_t>(2, gw::distribution::at(0));
  gw::put(flags, 0);
  gw::put(flags + 1, 0);
  gw::put(p, 5);
  auto balancer = gw::spawn([=] {
    while (gw::atomic_load(flags) == 0) gw::yield();
    const std::uint32_t owner = gw::owner_of(p);
    const auto r =
        gw::rebalance(p, 4 * words_of_page, {.threshold = 1}, [](const gw::part_info&) { return 1; });
    const std::uint32_t now = gw::owner_of(p);
    gw::atomic_store(flags + 1, 1);
    if (n == 1) return r.moves == 0 ? 0 : 1;
    if (r.moves + r.busy < 4 - (4 + n - 1) / n) return 2;
    if (r.busy > 1) return 3;
    return r.busy == 1 && now != owner ? 4 : 0;
  });
  {
    auto mine = gw::checkout(p, 1, gw::access::read_write);
    gw::atomic_store(flags, 1);
    const auto since = std::chrono::steady_clock::now();
    while (gw::atomic_load(flags + 1) == 0 &&
           std::chrono::steady_clock::now() - since < std::chrono::milliseconds(300)) {
    }
    mine[0] += 1;
  }
  if (const int wrong = balancer.join(); wrong != 0) return "balancer " + std::to_string(wrong);
  if (gw::get(p) != 6) return "a write of the checkout was lost";
  gw::deallocate(p, 4 * words_of_page);
  gw::deallocate(flags, 2);
  return "";
}

TEST(Rebalance, WhatIsCheckedOutStaysInTheRound) {
  support::for_each_schedule([](const gw::options& o) { EXPECT_EQ(in_a_run(o, held), ""); });
}

/// Several threads balance the same memory by different policies while others add to it.
std::string storm(std::uint64_t rounds) {
  constexpr std::uint64_t pages = 12, adders = 3, each = 400;
  const words p = pages_at(0, pages);
  for (std::uint64_t i = 0; i < pages; ++i) gw::put(p + i * words_of_page, 0);
  gw::future<void> all[adders + 2];
  for (std::uint64_t t = 0; t < adders; ++t)
    all[t] = gw::spawn([=] {
      for (std::uint64_t i = 0; i < each; ++i)
        gw::atomic_fetch_add(p + (i * 7 + t) % pages * words_of_page, std::uint64_t{1});
    });
  for (std::uint64_t b = 0; b < 2; ++b)
    all[adders + b] = gw::spawn([=] {
      for (std::uint64_t r = 0; r < rounds; ++r)
        gw::rebalance(
            p, pages * words_of_page,
            {.to = b == 0 ? gw::balance::random : gw::balance::successor, .threshold = 1, .seed = r},
            [=](const gw::part_info& part) { return (part.begin.address() / page * 31 + r + b) % 5; });
    });
  for (auto& f : all) f.join();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < pages; ++i) sum += gw::get(p + i * words_of_page);
  gw::deallocate(p, pages * words_of_page);
  return sum == adders * each ? "" : std::to_string(sum) + " of " + std::to_string(adders * each);
}

TEST(Rebalance, NoAdditionIsLostWhileTwoBalance) {
  support::for_each_schedule(
      [](const gw::options& o) { EXPECT_EQ(in_a_run(o, [] { return storm(10); }), ""); });
}

/// With option rebalance, what a host uses of another one's memory comes to it: to some worker of it.
std::string comes_by_itself() {
  const std::uint32_t last = gw::worker_count() - 1;
  const words p = pages_at(last, 64);
  const bool far = is_far(last);
  const auto mine = gw::allocate<std::uint64_t>(1, gw::distribution::at(gw::worker_id()));
  const auto since = std::chrono::steady_clock::now();
  const auto waits = [&] { return std::chrono::steady_clock::now() - since < std::chrono::seconds(20); };
  std::uint64_t rounds = 0;
  // The second page only: the others are nobody's.
  for (bool here = false; !here && waits(); ++rounds) {
    for (std::uint64_t i = 0; i < 50; ++i) gw::put(p + words_of_page + i, rounds + i);
    here = !is_far(gw::owner_of(p + words_of_page));
    if (!far && rounds == 20) break;
  }
  if (is_far(gw::owner_of(p + words_of_page))) return "it did not come";
  for (std::uint64_t i = 0; i < 50; ++i)
    if (gw::get(p + words_of_page + i) != rounds - 1 + i) return "a word";
  for (std::uint64_t i = 0; i < 64; ++i)
    if (i != 1 && gw::owner_of(p + i * words_of_page) != last) return "page " + std::to_string(i) + " moved";
  gw::deallocate(p, 64 * words_of_page);
  gw::deallocate(mine, 1);
  return "";
}

gw::options by_itself() {
  gw::options o;
  o.workers = 4;
  o.rebalance = true;
  return o;
}

TEST(Rebalance, ByItselfWhatAHostUsesComesToIt) { EXPECT_EQ(in_a_run(by_itself(), comes_by_itself), ""); }

/// Allocations that come and go while idle workers look at them.
TEST(Rebalance, ByItselfAndFreedMeanwhile) {
  EXPECT_EQ(in_a_run(by_itself(),
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       const auto since = std::chrono::steady_clock::now();
                       std::uint64_t times = 0;
                       for (; times < 20 ||
                              std::chrono::steady_clock::now() - since < std::chrono::milliseconds(500);
                            ++times) {
                         const words p = pages_at(static_cast<std::uint32_t>(times % n), 8);
                         for (std::uint64_t i = 0; i < 8 * 20; ++i)
                           gw::put(p + i % 8 * words_of_page + i / 8, i);
                         for (std::uint64_t i = 0; i < 8 * 20; ++i)
                           if (gw::get(p + i % 8 * words_of_page + i / 8) != i) return "a word";
                         gw::deallocate(p, 8 * words_of_page);
                       }
                       return "";
                     }),
            "");
}

TEST(Rebalance, WhatCannotBeAskedForIsRefused) {
  EXPECT_EQ(
      in_a_run({},
               [] {
                 auto refused = [](auto f) {
                   try {
                     f();
                     return false;
                   } catch (const std::invalid_argument&) {
                     return true;
                   }
                 };
                 const auto fixed = gw::allocate<int>(100, gw::distribution::cyclic(16));
                 const auto p = gw::allocate<int>(100, gw::distribution::at(0).movable());
                 if (!refused([&] { gw::rebalance(fixed, 100); })) return "not movable";
                 if (!refused([&] { gw::parts_of(fixed, 100); })) return "parts of what is not movable";
                 if (!refused([&] { gw::rebalance(p, 101); })) return "behind the end";
                 if (!refused([&] { gw::rebalance(p, 100, {.threshold = 0.5}); })) return "threshold";
                 if (!refused([&] { gw::rebalance(p, 100, {}, [](const gw::part_info&) { return -1; }); }))
                   return "weight";
                 if (gw::rebalance(p, 0).moves != 0) return "nothing";
                 gw::deallocate(fixed, 100);
                 gw::deallocate(p, 100);
                 return "";
               }),
      "");
}

}  // namespace
