// Checkouts that are begun, and completed later: include/godwit/checkout.hpp, docs/protocols/global.md. Runs
// under MPI as well (tests/mpi), where there is something to wait for.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "container_runs.hpp"
#include "support/child.hpp"

using namespace container_runs;

namespace {

using word = std::uint64_t;
constexpr std::uint64_t unit_words = (16 << 10) / sizeof(word);

gw::global_array<word> counted(std::uint64_t n, const gw::distribution& d) {
  gw::global_array<word> a(n, d);
  for (std::uint64_t i = 0; i < n;) {
    const std::uint64_t some = std::min<std::uint64_t>(n - i, 4096);
    const auto s = a.span().subspan(i, some).checkout(gw::access::write);
    for (std::uint64_t k = 0; k < some; ++k) s[k] = 3 * (i + k) + 1;
    i += some;
  }
  return a;
}

std::uint64_t sum_of_stats(std::uint64_t gw::worker_stats::*what) {
  std::uint64_t sum = 0;
  for (const gw::worker_stats& s : gw::last_run_stats()) sum += s.*what;
  return sum;
}

TEST(Begun, BringsWhatIsThere) {
  in_all_runs([] {
    for (const gw::distribution& d :
         {gw::distribution::blocked(), gw::distribution::cyclic(4096), gw::distribution::cyclic(64),
          gw::distribution::cyclic(1 << 20), gw::distribution::cyclic(4096).movable()}) {
      constexpr std::uint64_t n = 40 * unit_words + 17;
      gw::global_array<word> a = counted(n, d);
      for (const auto& range : {std::pair<std::uint64_t, std::uint64_t>{0, n},
                                {5, 1},
                                {unit_words - 3, 6},
                                {n - 1, 1},
                                {100, 0},
                                {3 * unit_words + 7, 20 * unit_words}}) {
        auto begun = gw::checkout_begin(
            gw::global_ptr<const word>(a.data()) + static_cast<std::ptrdiff_t>(range.first), range.second,
            gw::access::read);
        const auto s = begun.complete();
        WANT(s.size() == range.second);
        for (std::uint64_t i = 0; i < s.size(); ++i) WANT(s[i] == 3 * (range.first + i) + 1);
      }
    }
  });
}

TEST(Begun, WhatIsWrittenStays) {
  in_all_runs([] {
    gw::global_array<word> a = counted(9 * unit_words, gw::distribution::cyclic(8192));
    {
      auto some = gw::checkout_begin(a.data() + 100, 5 * unit_words, gw::access::read_write);
      auto all_new = gw::checkout_begin(a.data() + 7 * unit_words, unit_words, gw::access::write);
      const auto s = some.complete();
      for (word& x : s) ++x;
      const auto t = all_new.complete();
      for (word& x : t) x = 8;
    }
    gw::spawn([s = a.span()] {
      const auto all = s.checkout(gw::access::read);
      for (std::uint64_t i = 0; i < all.size(); ++i) {
        const bool mine = i >= 100 && i < 100 + 5 * unit_words;
        const word wanted = i >= 7 * unit_words && i < 8 * unit_words ? 8 : 3 * i + 1 + (mine ? 1 : 0);
        WANT(all[i] == wanted);
      }
    }).join();
  });
}

/// GL9: what the host writes while the answer is under way is not lost, in whatever way it is written.
TEST(Begun, OldAnswersAreNotTaken) {
  in_all_runs([] {
    for (std::uint32_t home = 0; home < gw::worker_count(); ++home) {
      gw::global_array<word> a(unit_words, gw::distribution::at(home), 7);
      const auto p = a.data();
      for (int way = 0; way < 4; ++way) {
        const word v = 100 + static_cast<word>(way);
        gw::fence();
        auto begun = gw::checkout_begin(p, 2, gw::access::read);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the answer is here, and old from now on
        switch (way) {
          case 0:
            gw::put(p + 9, v);
            break;
          case 1:
            gw::atomic_store(p + 9, v, std::memory_order_relaxed);
            break;
          case 2:
            gw::checkout(p + 9, 1, gw::access::write)[0] = v;
            break;
          default:
            gw::checkout(p + 9, 1, gw::access::write)[0] = v;
            gw::fence();
        }
        const auto s = begun.complete();
        WANT(s[0] == 7 && s[1] == 7);
        WANT(gw::checkout(p + 9, 1, gw::access::read)[0] == v);
        WANT(gw::get(p + 9) == v);
      }
    }
  });
}

TEST(Begun, ManyAtOnceAndSomeGivenUp) {
  in_all_runs([] {
    constexpr std::uint64_t n = 64;
    gw::global_array<word> a = counted(n * unit_words, gw::distribution::cyclic(16 << 10));
    std::vector<gw::begun_checkout<const word>> begun;
    for (std::uint64_t i = 0; i < n; ++i)
      begun.push_back(gw::checkout_begin(a.data() + static_cast<std::ptrdiff_t>(i * unit_words + i), 10,
                                         gw::access::read));
    for (std::uint64_t i = n; i-- > 0;) {
      if (i % 3 == 0) continue;
      const auto s = begun[i].complete();
      for (std::uint64_t k = 0; k < 10; ++k) WANT(s[k] == 3 * (i * unit_words + i + k) + 1);
    }
  });
}

/// Neighbours in the same units, each in its own words, in every way that there is.
struct neighbour {
  gw::global_span<word> all;
  std::uint64_t me, count;

  void operator()() const {
    std::uint64_t random = me * 0x9e3779b97f4a7c15u + 12345;
    std::array<word, 64> mine{};
    const auto at = [&](std::uint64_t k) {
      return all.data() + static_cast<std::ptrdiff_t>(k * 97 * count + me);
    };
    for (int step = 0; step < 200; ++step) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t k = random >> 58, other = (random >> 50) % 64;
      auto begun = gw::checkout_begin(at(k), 1, gw::access::read_write);
      if (other != k) switch (random >> 40 & 3) {
          case 0:
            gw::put(at(other), ++mine[other]);
            break;
          case 1:
            WANT(gw::atomic_fetch_add(at(other), word{1}, std::memory_order_relaxed) == mine[other]++);
            break;
          case 2:
            WANT(gw::checkout(at(other), 1, gw::access::read_write)[0]++ == mine[other]++);
            break;
          default:
            gw::fence();
        }
      if ((random >> 45 & 7) == 0) continue;  // given up
      const auto s = begun.complete();
      WANT(s[0] == mine[k]);
      s[0] = ++mine[k];
    }
    for (std::uint64_t k = 0; k < 64; ++k) WANT(gw::get(at(k)) == mine[k]);
  }
};

TEST(Begun, NeighboursInTheSameUnits) {
  in_all_runs([] {
    constexpr std::uint64_t count = 4;
    for (const gw::distribution& d : {gw::distribution::blocked(), gw::distribution::cyclic(4096)}) {
      gw::global_array<word> a(64 * 97 * count, d, 0);
      const auto s = a.span();
      auto x = gw::spawn(neighbour{s, 0, count});
      auto y = gw::spawn(neighbour{s, 1, count});
      auto z = gw::spawn(neighbour{s, 2, count});
      neighbour{s, 3, count}();
      x.join();
      y.join();
      z.join();
    }
  });
}

/// The next piece is under way while this one is worked on.
TEST(Begun, PieceByPiece) {
  in_all_runs([] {
    constexpr std::uint64_t n = unit_words + 5, pieces = 12;
    gw::global_array<word> a = counted(n * pieces, gw::distribution::blocked());
    auto next = gw::checkout_begin(a.data(), n, gw::access::read);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      const auto now = next.complete();
      if (i + 1 < pieces)
        next = gw::checkout_begin(a.data() + static_cast<std::ptrdiff_t>((i + 1) * n), n, gw::access::read);
      for (std::uint64_t k = 0; k < n; ++k) WANT(now[k] == 3 * (i * n + k) + 1);
    }
  });
}

TEST(Begun, OnceOnly) {
  in_all_runs([] {
    gw::global_array<word> a = counted(10, gw::distribution::blocked());
    auto begun = gw::checkout_begin(a.data(), 10, gw::access::read);
    auto moved = std::move(begun);
    WANT(moved.complete()[9] == 28);
    WANT_THROW(moved.complete(), std::logic_error, "was completed before");
    WANT_THROW(begun.complete(), std::logic_error, "was completed before");
  });
}

TEST(Begun, WhatDoesNotFitIsSaidWhenItIsCompleted) {
  gw::options o;
  o.cache_bytes = 1 << 20;
  gw::run<void>(
      [] {
        gw::global_array<word> a(300 * unit_words, gw::distribution::at(gw::worker_count() - 1), 5);
        const bool far = gw::try_local(a.data()) == nullptr;
        auto begun = gw::checkout_begin(a.data(), a.size(), gw::access::read);
        if (far)
          WANT_THROW(begun.complete(), gw::global_bad_alloc, "does not fit into the cache");
        else
          WANT(begun.complete()[1] == 5);
        WANT(gw::checkout(a.data(), 10, gw::access::read)[9] == 5);
      },
      o);
}

TEST(Begun, AJoinInBetweenIsFoundOut) {
  const auto o = support::run_child([] {
    return run_checked([] {
      gw::global_array<word> a = counted(10, gw::distribution::blocked());
      auto begun = gw::checkout_begin(a.data(), 10, gw::access::read);
      gw::spawn([] {}).join();
    });
  });
  EXPECT_NE(o.status, 0) << support::show(o);
  EXPECT_TRUE(o.err_has("is held across a spawn")) << support::show(o);
}

/// Between hosts: one request for many units, and each is fetched once.
TEST(Begun, IsOneRequestAndFetchedOnce) {
  gw::run<void>([] {
    gw::global_array<word> a(16 * unit_words, gw::distribution::at(gw::worker_count() - 1), 5);
    gw::fence();
    auto begun = gw::checkout_begin(a.data(), a.size(), gw::access::read);
    const auto s = begun.complete();
    WANT(s[16 * unit_words - 1] == 5);
  });
  if (gw::is_first_process()) {
    const std::uint64_t fetched = sum_of_stats(&gw::worker_stats::global_fetches);
    EXPECT_LE(fetched, 17u);
  }
}

}  // namespace
