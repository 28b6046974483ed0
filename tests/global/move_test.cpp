// Parts of movable memory that go from worker to worker while others use them: include/godwit/move.hpp,
// docs/protocols/move.md. Runs under MPI as well (tests/mpi), where most of it happens.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace gw = godwit;

namespace {

constexpr std::uint64_t page = 4096, words_of_page = page / 8;

/// Empty: all right.
template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>([f] { return std::string(f()); }, o);
}

gw::distribution dealt_out() { return gw::distribution::cyclic(page).movable(page); }

std::uint32_t mix(std::uint64_t i) { return static_cast<std::uint32_t>(i * 0x9e3779b97f4a7c15u >> 40); }

TEST(Move, TheWorkerHasItAndTheBytesAreTheSame) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       const std::uint64_t words = 8 * words_of_page;
                       const auto p = gw::allocate<std::uint64_t>(words, dealt_out());
                       for (std::uint64_t i = 0; i < words; ++i) gw::put(p + i, i * i);
                       for (std::uint32_t round = 0; round < 3; ++round)
                         for (std::uint64_t b = 0; b < 8; ++b) {
                           const std::uint32_t to = mix(round * 8 + b) % n;
                           const auto at = p + b * words_of_page + 7;
                           const auto wanted = gw::owner_of(at) == to ? gw::move_result::already_there
                                                                      : gw::move_result::moved;
                           if (gw::move(at, to).join() != wanted) return "result " + std::to_string(b);
                           if (gw::owner_of(at) != to) return "owner " + std::to_string(b);
                           if (gw::home_of(at) != b % n) return std::string("the home stays");
                         }
                       for (std::uint64_t i = 0; i < words; ++i)
                         if (p[i] != i * i) return "get " + std::to_string(i);
                       const auto s = gw::checkout(p, words, gw::access::read);
                       for (std::uint64_t i = 0; i < words; ++i)
                         if (s[i] != i * i) return "checkout " + std::to_string(i);
                       return std::string();
                     }),
            "");
}

TEST(Move, ManyPartsAtOnceAndBack) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       gw::distribution how = gw::distribution::blocked();
                       const std::uint64_t words = 300 * words_of_page + 5;
                       const auto p = gw::allocate<std::uint64_t>(words, how.movable(2 * page));
                       // No vector lives across a join: the thread may go on elsewhere.
                       auto bytes = [words] {
                         std::vector<std::uint64_t> v(words);
                         for (std::uint64_t i = 0; i < words; ++i) v[i] = 3 * i + 1;
                         return v;
                       };
                       gw::put(p, bytes().data(), words);
                       for (std::uint32_t to = n; to-- > 0;) {
                         gw::move(p, words, to).join();
                         if (gw::owner_of(p) != to || gw::owner_of(p + (words - 1)) != to)
                           return std::string("owner");
                         std::vector<std::uint64_t> back(words);
                         gw::get(p, back.data(), words);
                         if (back != bytes()) return "bytes at " + std::to_string(to);
                       }
                       if (gw::move(p, words, 0).join() != gw::move_result::already_there)
                         return std::string("there");
                       gw::deallocate(p, words);
                       return std::string();
                     }),
            "");
}

TEST(Move, WhatCannotBeAskedForIsRefused) {
  EXPECT_EQ(in_a_run({},
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
                       const auto local = gw::global_new<int>(5);
                       const auto p = gw::allocate<int>(100, gw::distribution::at(0).movable());
                       if (!refused([&] { gw::move(fixed, 0).join(); })) return "not movable";
                       if (!refused([&] { gw::move(local, 0).join(); })) return "local";
                       if (!refused([&] { gw::move(p, gw::worker_count()).join(); })) return "no such worker";
                       if (!refused([&] { gw::move(p + 50, 51, 0).join(); })) return "behind the end";
                       if (gw::move(p, 0, 0).join() != gw::move_result::already_there) return "nothing";
                       if (!refused([] { gw::allocate<int>(9, gw::distribution::cyclic(64).movable()); }))
                         return "blocks that are no pages";
                       if (!refused([] { gw::allocate<int>(9, gw::distribution::cyclic().movable(5000)); }))
                         return "parts that are no pages";
                       if (!refused([] {
                             gw::allocate<int>(9, gw::distribution::cyclic(3 * page).movable(2 * page));
                           }))
                         return "a part in two blocks";
                       gw::deallocate(fixed, 100);
                       gw::global_delete(local);
                       gw::deallocate(p, 100);
                       return "";
                     }),
            "");
}

/// Threads that add, while others move what they add to: no addition is lost, and none is made twice.
std::string additions_under_moves(std::uint64_t each, std::uint64_t moves) {
  constexpr std::uint64_t threads = 4;
  const std::uint32_t n = gw::worker_count();
  constexpr std::uint64_t parts = 4;
  const auto p = gw::allocate<std::uint64_t>(parts * words_of_page, dealt_out());
  for (std::uint64_t b = 0; b < parts; ++b) gw::put(p + b * words_of_page, 0);
  std::array<gw::future<void>, 2 * threads> all;
  for (std::uint64_t t = 0; t < threads; ++t) {
    all[2 * t] = gw::spawn([=] {
      for (std::uint64_t i = 0; i < each; ++i)
        gw::atomic_fetch_add(p + mix(t * each + i) % parts * words_of_page, std::uint64_t{1},
                             i % 2 == 0 ? std::memory_order_seq_cst : std::memory_order_relaxed);
    });
    all[2 * t + 1] = gw::spawn([=] {
      for (std::uint64_t i = 0; i < moves; ++i)
        gw::move(p + mix(t + 100 * i) % parts * words_of_page, mix(7 * t + i) % n).join();
    });
  }
  for (auto& f : all) f.join();
  std::uint64_t sum = 0;
  for (std::uint64_t b = 0; b < parts; ++b) sum += p[b * words_of_page];
  gw::deallocate(p, parts * words_of_page);
  return sum == threads * each ? "" : std::to_string(sum) + " of " + std::to_string(threads * each);
}

TEST(Move, NoAdditionIsLost) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(in_a_run(o, [] { return additions_under_moves(100, 20); }), "");
  });
}

/// A tree of threads, each of which changes its part of an array by checkouts and puts, several times, with
/// joins in between; meanwhile the parts move.
std::string checkouts_under_moves(std::uint64_t words, std::uint64_t part, std::uint64_t rounds,
                                  std::uint64_t moves) {
  const std::uint32_t n = gw::worker_count();
  const auto p = gw::allocate<std::uint64_t>(words, gw::distribution::cyclic(part).movable(part));
  for (auto& x : gw::checkout(p, words, gw::access::write)) x = 0;
  auto mover = gw::spawn([=] {
    for (std::uint64_t i = 0; i < moves; ++i) gw::move(p + mix(i) % words, mix(i + 1) % n).join();
  });
  constexpr std::uint64_t pieces = 8;
  for (std::uint64_t r = 0; r < rounds; ++r) {
    std::array<gw::future<void>, pieces> all;
    const std::uint64_t shift = r * 37 % (words / pieces);
    for (std::uint64_t k = 0; k < pieces; ++k)
      all[k] = gw::spawn([=] {
        const std::uint64_t low = k == 0 ? 0 : k * words / pieces + shift - words / pieces;
        const std::uint64_t high =
            k + 1 == pieces ? words : (k + 1) * words / pieces + shift - words / pieces;
        if (low < high) {
          auto s = gw::checkout(p + low, high - low, gw::access::read_write);
          for (auto& x : s) ++x;
        }
        if (low < high) gw::put(p + low, gw::get(p + low) + 1000);
      });
    for (auto& f : all) f.join();
  }
  mover.join();
  std::uint64_t sum = 0;
  {
    const auto s = gw::checkout(p, words, gw::access::read);
    for (const std::uint64_t x : s) sum += x % 1000;
  }
  gw::deallocate(p, words);
  return sum == words * rounds ? "" : std::to_string(sum) + " of " + std::to_string(words * rounds);
}

TEST(Move, NoWriteOfACheckoutIsLost) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(in_a_run(o, [] { return checkouts_under_moves(20 * words_of_page + 3, page, 4, 30); }), "");
  });
}

// Parts of several units of the cache, of which some are dirty or new enough and others are not.
TEST(Move, NoWriteOfACheckoutIsLostInLargeParts) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(in_a_run(o, [] { return checkouts_under_moves(99 * words_of_page, 16 * page, 4, 30); }), "");
  });
}

/// A thread holds a checkout of what another one, perhaps on another host, wants to have.
std::string moves_of_what_is_held() {
  const auto p =
      gw::allocate<std::uint64_t>(words_of_page, gw::distribution::at(gw::worker_id()).movable(page), page);
  const auto flags = gw::allocate<std::uint64_t>(2, gw::distribution::at(0));
  gw::put(p, 5);
  gw::put(flags, 0);
  gw::put(flags + 1, 0);
  auto mover = gw::spawn([=] {
    while (gw::atomic_load(flags) == 0) gw::yield();
    const std::uint32_t owner = gw::owner_of(p), me = gw::worker_id();
    const gw::move_result r = gw::move(p, me).join();
    const std::uint32_t now = gw::owner_of(p);
    gw::atomic_store(flags + 1, 1);
    if (r == gw::move_result::busy) return now == owner ? 1 : 2;
    return r == gw::move_result::no_room || now != me ? 3 : 1;
  });
  {
    auto held = gw::checkout(p, 1, gw::access::read_write);
    gw::atomic_store(flags, 1);
    const auto since = std::chrono::steady_clock::now();
    while (gw::atomic_load(flags + 1) == 0 &&
           std::chrono::steady_clock::now() - since < std::chrono::milliseconds(400)) {
    }
    held[0] += 1;
  }
  const int result = mover.join();
  const std::uint64_t value = gw::get(p);
  gw::deallocate(p, words_of_page);
  gw::deallocate(flags, 2);
  if (value != 6) return "the write of who held it is lost: " + std::to_string(value);
  return result == 1 ? "" : "result " + std::to_string(result);
}

TEST(Move, WhatIsHeldForLongStaysWhereItIs) {
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(in_a_run(support::schedule(4), [] { return moves_of_what_is_held(); }), "");
}

TEST(Move, BudgetsFollow) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       const auto used = gw::allocate<std::uint64_t>(n, gw::distribution::local());
                       auto look = [used] {
                         gw::on_each_worker([used] {
                           gw::put(used + gw::worker_id(), gw::global_memory_usage().used_bytes);
                         });
                         std::array<std::uint64_t, 64> all{};
                         gw::get(used, all.data(), gw::worker_count());
                         return all;
                       };
                       const auto before = look();
                       const auto p = gw::allocate<std::uint64_t>(64 * words_of_page, dealt_out());
                       for (std::uint64_t i = 0; i < 200; ++i)
                         gw::move(p + mix(i) % 64 * words_of_page, mix(i + 5) % n).join();
                       gw::deallocate(p, 64 * words_of_page);
                       const auto after = look();
                       gw::deallocate(used, n);
                       return after == before ? ""
                                              : "used before " + std::to_string(before[0]) + ", after " +
                                                    std::to_string(after[0]);
                     }),
            "");
}

}  // namespace
