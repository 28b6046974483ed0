// global_vector: growth against std::vector, ownership, appending from many threads.
#include "container_runs.hpp"

#include "support/child.hpp"

#include <algorithm>
#include <list>
#include <numeric>
#include <random>
#include <vector>

using namespace container_runs;

namespace {

constinit gw::global_vector<int> never_used;

bool same(const gw::global_vector<long>& v, const std::vector<long>& w) {
  if (v.size() != w.size() || v.capacity() < v.size()) return false;
  const auto s = v.checkout(gw::access::read);
  return std::equal(s.begin(), s.end(), w.begin(), w.end());
}

TEST(GlobalVector, ResizeInACancelledScopeAddsNothing) {
  in_all_runs([] {
    gw::global_vector<long> v(gw::distribution::blocked());
    v.push_back(7);
    gw::cancel_scope scope;
    scope.cancel();
    WANT(!scope.run([&] { v.resize(1'000'000, 5); }));
    WANT(v.size() == 1 && v[0] == 7);
  });
}

TEST(GlobalVector, BehavesLikeStdVector) {
  in_all_runs([] {
    for (const auto& d :
         {gw::distribution::local(), gw::distribution::blocked(), gw::distribution::cyclic(1024)}) {
      gw::global_vector<long> v(d);
      std::vector<long> w;
      std::mt19937 random(5);
      // No thread may leave here: w is on this worker's heap. resize of few elements spawns nothing.
      for (int i = 0; i < 3000; ++i) {
        const auto n = static_cast<long>(random() % 100);
        switch (random() % 12) {
          case 0:
          case 1:
          case 2:
          case 3:
            v.push_back(n);
            w.push_back(n);
            break;
          case 4:
            v.emplace_back(n) = n + 1;
            w.push_back(n + 1);
            break;
          case 5:
            if (w.empty()) break;
            v.pop_back();
            w.pop_back();
            break;
          case 6:
            v.resize(w.size() / 2 + static_cast<std::size_t>(n), n);
            w.resize(w.size() / 2 + static_cast<std::size_t>(n), n);
            break;
          case 7: {
            std::vector<long> more(static_cast<std::size_t>(n));
            std::iota(more.begin(), more.end(), n);
            v.append(more);
            w.insert(w.end(), more.begin(), more.end());
            break;
          }
          case 8: {
            const std::list<long> more{1, 2, n};
            v.append_range(more);
            w.insert(w.end(), more.begin(), more.end());
            break;
          }
          case 9: {  // part of itself
            const std::size_t first = w.size() / 3, count = w.size() / 4;
            if (w.size() > 10'000) break;
            v.append(v.span().subspan(first, count));
            const std::vector<long> more(w.begin() + static_cast<long>(first),
                                         w.begin() + static_cast<long>(first + count));
            w.insert(w.end(), more.begin(), more.end());
            break;
          }
          case 10:
            if (n < 50) {
              v.shrink_to_fit();
              WANT(v.capacity() == v.size());
            } else {
              v.reserve(w.size() + static_cast<std::size_t>(n));
              WANT(v.capacity() >= w.size() + static_cast<std::size_t>(n));
            }
            break;
          case 11:
            if (n > 5) break;
            v.clear();
            w.clear();
            WANT(v.empty());
            break;
        }
        WANT(i % 50 != 0 || same(v, w));
      }
      WANT(same(v, w));
    }
  });
}

TEST(GlobalVector, GrowthIsAmortisedAndReservedRoomDoesNotMove) {
  in_all_runs([] {
    gw::global_vector<int> v;
    int moves = 0;
    for (int i = 0; i < 100'000; ++i) {
      const auto before = v.data();
      v.push_back(i);
      moves += v.data() != before;
    }
    WANT(moves <= 15);
    WANT(v[99'999] == 99'999 && v.front() == 0 && v.back() == 99'999);
    gw::global_vector<int> r;
    r.reserve(1000);
    const auto at = r.data();
    for (int i = 0; i < 1000; ++i) r.push_back(i);
    WANT(r.data() == at && r.capacity() == 1000);
  });
}

TEST(GlobalVector, KeepsItsDistribution) {
  in_all_runs([] {
    gw::global_vector<long> v(gw::distribution::cyclic(1024));
    for (long i = 0; i < 2000; ++i) v.push_back(i);
    for (std::uint64_t i = 0; i < 2000; ++i)
      WANT(gw::home_of(v.data() + static_cast<long>(i)) == i * 8 / 1024 % gw::worker_count());
    gw::global_vector<long> moved(std::move(v));
    moved.shrink_to_fit();
    WANT(gw::home_of(moved.data() + 1000) == 8000 / 1024 % gw::worker_count());
  });
}

TEST(GlobalVector, LargeOnesAreFilledByManyThreads) {
  in_all_runs([] {
    gw::global_vector<int> v(300'000, gw::distribution::blocked(), 7);
    v.resize(500'000, 8);
    v.resize(400'000);
    const auto s = v.checkout(gw::access::read);
    WANT(std::accumulate(s.begin(), s.end(), 0L) == 300'000 * 7L + 100'000 * 8L);
  });
}

TEST(GlobalVector, MovesIntoThreadsAndComesBack) {
  in_all_runs([] {
    gw::global_vector<int> v(gw::distribution::blocked());
    v.append_range(std::vector<int>{1, 2, 3});
    for (int round = 0; round < 20; ++round)
      v = gw::spawn([v = std::move(v), round]() mutable {
            gw::spawn([s = v.span()] { s[0] = s[0] + 1; }).join();
            v.push_back(round);
            return std::move(v);
          }).join();
    WANT(v.size() == 23 && v[0] == 21 && v[22] == 19);
    gw::global_array<int> a = std::move(v).into_array();
    WANT(v.empty() && v.capacity() == 0);  // NOLINT: moved from, and says so
    WANT(a.size() == 23 && a[22] == 19);
    v.push_back(5);
    WANT(v.size() == 1 && v[0] == 5);
  });
}

TEST(GlobalVector, AtSaysWhatIsThere) {
  in_all_runs([] {
    gw::global_vector<int> v(3);
    WANT(v.at(2) == 0);
    WANT_THROW(v.at(3), std::out_of_range, "global_vector::at(3): there are 3 elements");
  });
}

void append_tree(gw::global_appender<int> out, int first, int count) {
  if (count == 1) {
    out.push_back(first);
    return;
  }
  if (count == 16) {
    int some[16];
    std::iota(some, some + 16, first);
    const std::uint64_t at = out.append(some);
    WANT(at + 16 <= 4096 + 3);
    return;
  }
  gw::invoke([=] { append_tree(out, first, count / 2); },
             [=] { append_tree(out, first + count / 2, count - count / 2); });
}

TEST(GlobalVector, ManyThreadsAppend) {
  in_all_runs([] {
    gw::global_vector<int> v(3, gw::distribution::cyclic(1024), -1);
    const auto out = v.begin_append(4096);
    gw::invoke([=] { append_tree(out, 0, 2048); },
               [=] {
                 for (int i = 2048; i < 4096; i += 2)
                   gw::spawn([=] { out.push_back(i), out.push_back(i + 1); }).join();
               });
    WANT_THROW(out.push_back(0), std::length_error, "begin_append");
    int two[2] = {0, 0};
    WANT_THROW(out.append(two), std::length_error, "4099 slots");
    v.end_append(out);
    WANT(v.size() == 4099);
    auto s = v.checkout(gw::access::read_write);
    std::sort(s.begin(), s.end());
    for (int i = 0; i < 3; ++i) WANT(s[static_cast<std::size_t>(i)] == -1);
    for (int i = 0; i < 4096; ++i) WANT(s[static_cast<std::size_t>(i) + 3] == i);
  });
}

TEST(GlobalVector, AppendingLessThanReservedLeavesNoHole) {
  in_all_runs([] {
    gw::global_vector<int> v;
    const auto out = v.begin_append(10);
    int seven[7] = {1, 2, 3, 4, 5, 6, 7};
    out.append(seven);
    WANT_THROW(out.append(seven), std::length_error, "10 slots");
    out.push_back(8);
    v.end_append(out);
    WANT(v.size() == 8 && v[7] == 8);
  });
}

TEST(GlobalVector, OutlivesItsRun) {
  gw::options o;
  o.workers = 2;
  auto v = gw::run<gw::global_vector<int>>(
      [] { return gw::global_vector<int>(5, gw::distribution::blocked(), 1); }, o);
  EXPECT_EQ(v.size(), 5u);
  EXPECT_THROW(v.push_back(1), std::logic_error);
  EXPECT_THROW(v.clear(), std::logic_error);
  EXPECT_THROW(v.span(), std::logic_error);
  EXPECT_TRUE(never_used.empty());
  gw::run<void>(
      [&v] {
        WANT_THROW(v.reserve(100), std::logic_error, "global_vector belongs to a run that is over");
        WANT_THROW(v[0], std::logic_error, "another one");
      },
      o);
  v.reset();
  EXPECT_TRUE(v.empty());
}

TEST(GlobalVector, NoRoomChangesNothing) {
  in_all_runs([] {
    gw::global_vector<int> v;
    v.push_back(1);
    WANT_THROW(v.reserve(std::uint64_t{1} << 50), gw::global_bad_alloc, "godwit");
    WANT_THROW(v.resize(std::uint64_t{1} << 50), gw::global_bad_alloc, "godwit");
    WANT(v.size() == 1 && v[0] == 1);
  });
}

TEST(GlobalVector, FreesAllItHad) {
  const auto o = support::run_child([] {
    return run_checked([] {
      gw::global_vector<int> v(gw::distribution::cyclic());
      for (int i = 0; i < 10'000; ++i) v.push_back(i);
      v.append(v.span());
      const auto out = v.begin_append(3);
      out.push_back(1);
      v.end_append(out);
      v.shrink_to_fit();
      gw::global_vector<int> w = std::move(v);
      gw::spawn([w = std::move(w)]() mutable { w.push_back(1); }).join();
    });
  });
  EXPECT_EQ(o.status, 0) << support::show(o);
  EXPECT_FALSE(o.err_has("not freed")) << support::show(o);
}

}  // namespace
