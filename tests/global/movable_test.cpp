// Containers whose parts move while they are used: docs/containers.md, docs/moving.md. Runs under MPI as well
// (tests/mpi), where most of it happens.
#include <gtest/gtest.h>
#include <godwit/algorithm.hpp>
#include <godwit/godwit.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "witness.hpp"

using namespace container_runs;

namespace {

constexpr std::uint64_t page = 4096;

gw::distribution dealt_out() { return gw::distribution::cyclic(page).movable(page); }
std::uint32_t mix(std::uint64_t i) { return static_cast<std::uint32_t>(i * 0x9e3779b97f4a7c15u >> 40); }

/// Moves elements of a vector to and fro, round after round.
struct mover {
  gw::global_span<long> s;
  std::uint32_t me;
  void operator()() const {
    for (std::uint64_t round = 0; round < 20; ++round) {
      const std::uint64_t first = mix(round * 3 + me) % s.size();
      const std::uint64_t n = std::min<std::uint64_t>(s.size() - first, 1 + mix(round) % 1500);
      const std::uint32_t to = mix(round * 7 + me) % gw::worker_count();
      const gw::move_result r = gw::move(s.subspan(first, n), to).join();
      WANT(r == gw::move_result::moved || r == gw::move_result::already_there || r == gw::move_result::busy);
    }
  }
};

TEST(Movable, AnElementGoesToAWorker) {
  in_all_runs([] {
    gw::global_vector<long> v(5000, dealt_out(), 4);
    for (std::uint32_t w = 0; w < gw::worker_count(); ++w) {
      WANT(v.move(600, 700, w).join() <= gw::move_result::moved);
      for (const std::uint64_t i : {600u, 1000u, 1299u})
        WANT(gw::owner_of(v.data() + static_cast<std::ptrdiff_t>(i)) == w);
    }
    gw::global_array<long> a(3000, gw::distribution::blocked().movable(page), 5);
    a.move(0, 3000, gw::worker_count() - 1).join();
    WANT(gw::owner_of(a.data()) == gw::worker_count() - 1 && a[2999] == 5);
    WANT_THROW(a.move(2000, 1001, 0), std::out_of_range, "there are 3000 elements");
    WANT_THROW(a.move(0, 1, gw::worker_count()), std::invalid_argument, "there is no worker");
    gw::global_vector<long> still(10);
    WANT_THROW(still.move(0, 1, 0), std::invalid_argument, "not movable");
  });
}

TEST(Movable, AlgorithmsGoOnWhilePartsMove) {
  in_all_runs([] {
    constexpr std::uint64_t n = 6000;
    gw::global_vector<long> v(n, dealt_out(), 0);
    auto x = gw::spawn(mover{v.span(), 0});
    auto y = gw::spawn(mover{v.span(), 1});
    for (long round = 1; round <= 3; ++round) {
      gw::for_each(v.span(), [](long& e) { ++e; });
      WANT(gw::reduce(v.span(), 0l) == static_cast<long>(n) * round);
    }
    const auto s = v.span();
    for (std::uint64_t i = 0; i < n; i += 7) v[i] = static_cast<long>(n - i);
    for (std::uint64_t i = 0; i < n; i += 7) WANT(s[i] == static_cast<long>(n - i));
    x.join();
    y.join();
    gw::sort(v.span());
    WANT(gw::is_sorted(v.span()));
  });
}

TEST(Movable, GrowsAndShrinksWhereverItsPartsAre) {
  in_all_runs([] {
    gw::global_vector<long> v(gw::distribution::blocked().movable(page));
    for (long i = 0; i < 6000; ++i) {
      v.push_back(i);
      if (i % 500 == 99)
        v.move(static_cast<std::uint64_t>(i) / 2, 50, mix(static_cast<std::uint64_t>(i)) % gw::worker_count())
            .join();
    }
    v.append(v.span());
    v.move(0, v.size(), 0).join();
    for (long i = 0; i < 12'000; i += 11) WANT(v[static_cast<std::uint64_t>(i)] == i % 6000);
    v.resize(100);
    v.shrink_to_fit();
    v.move(0, 100, gw::worker_count() - 1).join();
    WANT(v.back() == 99 && v.size() == 100);
  });
}

TEST(Movable, ManyAppendWhilePartsMove) {
  in_all_runs([] {
    gw::global_vector<long> v(100, dealt_out(), 1);
    const auto out = v.begin_append(4000);
    // The room for all of it is there: what is appended moves as well.
    auto x = gw::spawn(mover{{v.data(), 4100}, 2});
    const auto append = [out] {
      for (long i = 0; i < 2000; ++i) out.push_back(i);
    };
    gw::invoke(append, append);
    x.join();
    v.end_append(out);
    WANT(v.size() == 4100);
    WANT(gw::reduce(v.span(), 0l) == 100 + 2 * 1999 * 1000);
  });
}

using counts = gw::global_map<std::uint64_t, std::uint64_t>;

/// Buckets move while others insert, update, erase and find.
TEST(Movable, AMapGoesOnWhileBucketsMove) {
  in_all_runs([] {
    counts map(3000, gw::distribution::cyclic(page).movable(page));
    const std::uint64_t buckets = map.bucket_count();
    const auto count_up = [m = map.view()](std::uint64_t who) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        m.fetch_add(i % 50, 1);
        const std::uint64_t own = 1000 * (who + 1) + i;
        WANT(m.insert(own, i));
        WANT(m.find(own) == i);
        if (i % 3 == 0) {
          WANT(m.erase(own));
          WANT(!m.contains(own));
        } else {
          WANT(m.update(own, [](std::uint64_t& v) { v += 5; }));
        }
      }
    };
    auto x = gw::spawn([count_up] { count_up(0); });
    auto y = gw::spawn([count_up] { count_up(1); });
    for (std::uint64_t round = 0; round < 20; ++round) {
      const std::uint64_t first = mix(round) % buckets;
      map.move(first, std::min<std::uint64_t>(buckets - first, 100), mix(round * 5) % gw::worker_count())
          .join();
    }
    x.join();
    y.join();
    map.check_invariants();
    for (std::uint64_t k = 0; k < 50; ++k) WANT(map.find(k) == 4u);
    WANT(map.size() == 50 + 2 * 66);
    map.reserve(20'000);
    WANT(map.bucket_count() > buckets);
    const std::uint64_t b = map.bucket_of(1001);
    map.move(b, 1, gw::worker_count() - 1).join();
    WANT(map.owner_of(1001) == gw::worker_count() - 1);
    WANT(map.find(1001) == 6u);
    map.check_invariants();
    WANT_THROW(map.move(map.bucket_count(), 1, 0), std::out_of_range, "global_map");
    map.clear();
    WANT(map.empty());
  });
}

TEST(Movable, AMapComesAlongWithItsDistribution) {
  in_all_runs([] {
    counts map(500, gw::distribution::blocked().movable());
    map.insert(1, 2);
    auto back = gw::spawn([m = std::move(map)]() mutable {
                  m.insert(3, 4);
                  return std::move(m);
                }).join();
    back.rehash(5000);
    WANT(back.move(0, back.bucket_count(), gw::worker_count() - 1).join() <= gw::move_result::moved);
    WANT(back.find(1) == 2u && back.find(3) == 4u);
  });
}

/// Elements that own something, in parts that move: the bytes are all there is to it.
TEST(Movable, NestedVectorsMove) {
  in_all_runs([] {
    using inner = gw::global_vector<int>;
    gw::global_vector<inner> v(400, dealt_out(), [](std::uint64_t i) {
      inner w;
      for (int k = 0; k < static_cast<int>(i % 5); ++k) w.push_back(k);
      return w;
    });
    for (std::uint64_t round = 0; round < 10; ++round) {
      v.move(round * 30, 60, mix(round) % gw::worker_count()).join();
      v.span().subspan(round * 31, 1).checkout(gw::access::read_write)[0].push_back(9);
    }
    std::uint64_t entries = 0;
    for (std::uint64_t i = 0; i < v.size(); ++i)
      entries += v.span().subspan(i, 1).checkout(gw::access::read)[0].size();
    WANT(entries == 400 / 5 * 10 + 10);
  });
}

/// Who has them destroys them, whoever their homes are, and each once, also where a part ends within one.
TEST(Movable, ElementsAreDestroyedByWhoHasThem) {
  static_assert(page % sizeof(witness) != 0);
  in_all_runs([] {
    constexpr std::uint64_t n = 700;
    const std::uint32_t workers = gw::worker_count();
    witness_counts counts;
    gw::global_vector<witness> v(
        n, dealt_out(), [c = counts.data()](std::uint64_t i) { return witness(static_cast<int>(i), c); });
    v.move(100, 500, workers - 1).join();
    v.move(300, 100, 0).join();
    std::uint64_t expected[4] = {};
    for (std::uint64_t i = 0; i < n; ++i) ++expected[gw::owner_of(v.data() + static_cast<std::ptrdiff_t>(i))];
    v.reset();
    for (std::uint32_t w = 0; w < workers; ++w) WANT(counts.of(w) == expected[w]);
  });
}

/// Between hosts, where a fetch is a request. (On one there is none.)
TEST(Movable, WhatHasMovedIsNotFetchedToBeDestroyed) {
  gw::options o;
  o.workers = 2;
  gw::run<void>(
      [] {
        gw::global_vector<gw::global_vector<int>> v(2000, gw::distribution::at(0).movable(page));
        v.move(0, 2000, 1).join();
      },
      o);
  std::uint64_t requests = 0;
  for (const gw::worker_stats& s : gw::last_run_stats()) requests += s.far_gets + s.global_fetches;
  EXPECT_LE(requests, 100u);
}

}  // namespace
