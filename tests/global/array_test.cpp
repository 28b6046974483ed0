// global_array: ownership, moving between threads and runs, errors.
#include "container_runs.hpp"

#include "support/substrate.hpp"
#include "support/child.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <tuple>
#include <vector>

using namespace container_runs;

namespace {

constinit gw::global_array<int> never_used;
gw::global_array<int> left_over;

static_assert(gw::coded<gw::global_array<int>> && !std::is_copy_constructible_v<gw::global_array<int>>);
static_assert(std::is_trivially_copyable_v<gw::global_span<int>>);

struct point {
  double x, y;
  bool operator==(const point&) const = default;
};

long sum(gw::global_span<const long> s) {
  if (s.size() <= 100) {
    const auto open = s.checkout(gw::access::read);
    return std::accumulate(open.begin(), open.end(), 0L);
  }
  const std::uint64_t half = s.size() / 2;
  auto [a, b] = gw::invoke([=] { return sum(s.first(half)); }, [=] { return sum(s.subspan(half)); });
  return a + b;
}

TEST(GlobalArray, IsFilledReadAndWritten) {
  in_all_runs([] {
    for (const auto& d :
         {gw::distribution::local(), gw::distribution::blocked(), gw::distribution::cyclic(4096)}) {
      gw::global_array<long> a(100'001, d, 3L);
      WANT(a.size() == 100'001 && a.size_bytes() == 800'008 && !a.empty());
      WANT(sum(a) == 300'003);
      a[5] = 10;
      a.front() = 1;
      a.back() = 2;
      a.at(7) += 4;
      WANT(a[5] == 10 && a[0] == 1 && a[100'000] == 2 && a.at(7) == 7);
      const auto& c = a;
      WANT(c[5] == 10 && c.front() == 1 && c.back() == 2 && c.end() - c.begin() == 100'001);
      WANT(sum(c) == 300'003 + 7 - 2 - 1 + 4);
    }
    gw::global_array<point> p(10, gw::distribution::local(), point{1, 2});
    WANT(p[9].load() == point{1, 2});
  });
}

TEST(GlobalArray, ALargeOneIsFilledByManyThreads) {
  gw::options o;
  o.workers = 2;
  o.force_steal = godwit::choice::force_steal::parents;
  gw::run<void>(
      [] {
        gw::global_array<long> a(1'000'000, gw::distribution::blocked(), 1L);
        WANT(sum(a.span()) == 1'000'000);
      },
      o);
  std::uint64_t moved = 0;
  for (const auto& s : gw::last_run_stats()) moved += s.steals + s.suspends;
  EXPECT_GT(moved, 0u);
}

TEST(GlobalArray, AtSaysWhatIsThere) {
  in_all_runs([] {
    gw::global_array<int> a(10);
    WANT_THROW(a.at(10), std::out_of_range, "at(10): there are 10 elements");
    WANT_THROW(std::as_const(a).at(~0ull), std::out_of_range, "there are 10 elements");
    gw::global_array<int> none;
    WANT_THROW(none.at(0), std::out_of_range, "there are 0 elements");
  });
}

TEST(GlobalArray, EmptyOnesAreHarmless) {
  gw::global_array<int> outside;
  EXPECT_TRUE(outside.empty());
  EXPECT_TRUE(outside.span().empty());
  outside.reset();
  EXPECT_TRUE(never_used.empty());
  in_all_runs([] {
    gw::global_array<int> a, b(0), c(0, gw::distribution::cyclic(), 7);
    WANT(a.empty() && b.empty() && c.empty() && a.data() == nullptr && b.begin() == b.end());
    a = std::move(b);
    swap(a, c);
    WANT(a.checkout(gw::access::read).empty());
  });
}

TEST(GlobalArray, MovesIntoThreadsAndComesBack) {
  in_all_runs([] {
    gw::global_array<long> a(1000, gw::distribution::blocked(), 1L);
    const auto where = a.data();
    auto back = gw::spawn([a = std::move(a)]() mutable {
                  gw::spawn([s = a.span()] { s[1] = 5; }).join();
                  gw::yield();
                  return std::move(a);
                }).join();
    WANT(a.empty());  // NOLINT: moved from, and says so
    WANT(back.data() == where && back[1] == 5);
    auto as_argument = gw::spawn(
        [](gw::global_array<long> b) {
          b[2] = 6;
          return b;
        },
        std::move(back));
    auto again = as_argument.join();
    WANT(again.data() == where && again[2] == 6);
    auto [x, y] = gw::invoke([] { return gw::global_array<int>(10, gw::distribution::local(), 1); },
                             [] { return gw::global_array<int>(20, gw::distribution::local(), 2); });
    WANT(x.size() == 10 && y.size() == 20 && x[9] == 1 && y[19] == 2);
  });
}

gw::global_array<int> grown(int depth) {
  if (depth == 0) return gw::global_array<int>(1, gw::distribution::local(), 1);
  auto [a, b] = gw::invoke([=] { return grown(depth - 1); }, [=] { return grown(depth - 1); });
  gw::global_array<int> both(a.size() + b.size());
  gw::copy_n<int>(a.data(), a.size(), both.data());
  gw::copy_n<int>(b.data(), b.size(), both.data() + static_cast<std::ptrdiff_t>(a.size()));
  return both;
}

TEST(GlobalArray, TreeOfThreadsReturnsArrays) {
  in_all_runs([] {
    auto a = grown(8);
    WANT(a.size() == 256);
    const auto s = a.checkout(gw::access::read);
    WANT(std::all_of(s.begin(), s.end(), [](int x) { return x == 1; }));
  });
}

TEST(GlobalArray, ReleaseAdoptReset) {
  in_all_runs([] {
    gw::global_array<int> a(10, gw::distribution::local(), 4);
    gw::global_span<int> s = a.release();
    WANT(a.empty() && s.size() == 10 && s[9] == 4);
    auto b = gw::global_array<int>::adopt(s);
    WANT(b.size() == 10 && b.data() == s.data());
    b.reset();
    WANT(b.empty());
    b = gw::global_array<int>(3, gw::distribution::local(), 9);
    WANT(b[2] == 9);
    auto& self = b;
    b = std::move(self);
    WANT(b[2] == 9);
  });
}

TEST(GlobalArray, FreesWhatItOwnsAlsoWhenSomethingIsThrown) {
  const auto o = support::run_child([] {
    return run_checked([] {
      try {
        gw::global_array<int> a(1000, gw::distribution::cyclic(), 1);
        gw::spawn([a = std::move(a)]() mutable {
          gw::global_array<int> b(10);
          a.at(5000);
        }).join();
      } catch (const std::out_of_range&) {
      }
      auto f = gw::spawn([] { return gw::global_array<int>(10, gw::distribution::local(), 2); });
      gw::global_array<int> moved_to;
      moved_to = f.join();
      moved_to = gw::global_array<int>(20);
    });
  });
  EXPECT_EQ(o.status, 0) << support::show(o);
  EXPECT_FALSE(o.err_has("not freed")) << support::show(o);
}

TEST(GlobalArray, WhatIsNotFreedIsReportedWithItsPlace) {
  const auto o = support::run_child(
      [] { return run_checked([] { static_cast<void>(gw::global_array<int>(1000).release()); }); });
  EXPECT_TRUE(o.err_has("not freed") && o.err_has("array_test.cpp")) << support::show(o);
}

TEST(GlobalArray, OutlivesItsRun) {
  gw::options o;
  o.workers = 2;
  gw::global_array<int>& a = left_over;  // a local of ours could not be written in a run
  a = gw::run<gw::global_array<int>>(
      [] { return gw::global_array<int>(100, gw::distribution::blocked(), 8); }, o);
  EXPECT_EQ(a.size(), 100u);
  try {
    static_cast<void>(a[3].load());
    ADD_FAILURE() << "read after the run";
  } catch (const std::logic_error& e) {
    EXPECT_NE(std::string(e.what()).find("global_array belongs to a run that is over"), std::string::npos)
        << e.what();
  }
  EXPECT_THROW(a.span(), std::logic_error);
  EXPECT_THROW(a.checkout(gw::access::read), std::logic_error);
  // In another run the same addresses are somebody else's.
  gw::run<void>(
      [] {
        gw::global_array<int>& a = left_over;
        gw::global_array<int> mine(100, gw::distribution::blocked(), 1);
        WANT_THROW(a[0], std::logic_error, "another one is on now");
        WANT_THROW(static_cast<gw::global_span<int>>(a), std::logic_error, "is over");
        gw::global_array<int> taken(std::move(a));
        WANT(taken.size() == 100);
        taken.reset();  // frees nothing
        WANT(taken.empty() && mine[99] == 1);
      },
      o);
  a.reset();
  EXPECT_TRUE(a.empty());
}

TEST(GlobalArray, AGlobalVariableLeftFullIsHarmless) {
  const auto o = support::run_child([] {
    gw::options opts;
    opts.workers = 2;
    opts.check_global = godwit::choice::check_global::off;  // else what is left over is reported
    unsetenv("GODWIT_CHECK_GLOBAL");                        // it counts before that
    for (int i = 0; i < 2; ++i)
      if (gw::run(
              0, nullptr, [] { left_over = gw::global_array<int>(100, gw::distribution::blocked(), 1); },
              opts) != 0)
        return 1;
    left_over = gw::run<gw::global_array<int>>([] { return gw::global_array<int>(5); }, opts);
    return left_over.size() == 5 ? 0 : 2;  // and it is destroyed behind main
  });
  EXPECT_EQ(o.status, 0) << support::show(o);
  EXPECT_EQ(o.err, "");
}

TEST(GlobalArray, HasOneOwnerAlsoThroughASharedFuture) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  in_all_runs([] {
    gw::shared_future<gw::global_array<int>> f = gw::spawn([] { return gw::global_array<int>(10); });
    WANT_THROW(f.get(), std::logic_error, "one owner");
  });
}

TEST(GlobalArray, StaysItsOwnersWhereASharedFutureRefuses) {
  GODWIT_NEEDS_PROCESSES("a fatal error ends the process");
  const auto o = support::run_child([] {
    return run_checked([] {
      gw::shared_future<gw::global_array<int>> f = gw::spawn([] { return gw::global_array<int>(10); });
      for (int i = 0; i < 2; ++i) WANT_THROW(f.get(), std::logic_error, "one owner");
    });
  });
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.err, "");  // it was freed by its owner
}

// As it is in one heap, as bytes between private ones.
TEST(GlobalArray, ResultsThatNobodyTakesAreFreed) {
  for (const auto heap : {gw::choice::heap::automatic, gw::choice::heap::separate}) {
    const auto of = support::run_child([heap] {
      gw::options o;
      o.heap = heap;
      return run_checked(
          [] {
            const auto make = [] { return gw::global_array<int>(10'000); };
            for (int i = 0; i < 20; ++i) {
              const gw::cancel_scope until_they_end;
              static_cast<void>(gw::spawn(make));
              const auto late = gw::spawn([make] {
                gw::yield();
                return std::pair(make(), gw::global_vector<int>(10, gw::distribution::local(), 1));
              });
              gw::yield();
              gw::shared_future<gw::global_map<int, int>> map = gw::spawn([] {
                gw::global_map<int, int> m(10);
                m.insert(1, 2);
                return m;
              });
              const auto copy = map;
            }
          },
          2, o);
    });
    EXPECT_EQ(of.status, 0);
    EXPECT_EQ(of.err, "");
  }
}

TEST(GlobalArray, NoRoomIsAnException) {
  in_all_runs([] {
    WANT_THROW(gw::global_array<long>(std::uint64_t{1} << 50), gw::global_bad_alloc, "godwit");
    WANT_THROW(gw::global_array<long>(~std::uint64_t{0}), gw::global_bad_alloc, "godwit");
    WANT_THROW(gw::global_array<int>(10, gw::distribution::at(999), 1), std::invalid_argument,
               "no worker 999");
  });
}

TEST(GlobalArray, OutsideARunItSaysSo) {
  const auto o = support::run_child([] {
    gw::global_array<int> a(10);
    return 0;
  });
  EXPECT_NE(o.status, 0);
  EXPECT_TRUE(o.err_has("outside godwit::run")) << support::show(o);
}

}  // namespace
