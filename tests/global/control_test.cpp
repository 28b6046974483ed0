// Control objects: include/godwit/control.hpp, docs/protocols/control.md. Runs under MPI as well (tests/mpi).
#include "container_runs.hpp"

#include "support/child.hpp"
#include "support/schedule.hpp"

#include <array>
#include <cstdint>
#include <string>

using namespace container_runs;

namespace {

static_assert(std::is_trivially_copyable_v<gw::global_latch> && sizeof(gw::global_latch) == 8);
static_assert(gw::plain<gw::control<int>> && gw::plain<gw::reduction<double>> &&
              gw::plain<gw::all_reduce<int>>);
static_assert(!std::is_copy_constructible_v<gw::owned<gw::global_latch>>);

/// f(home) under every schedule, for homes that are the calling worker and others.
template <class F>
void with_homes(F f) {
  support::for_each_schedule([&](const gw::options& o) {
    EXPECT_NO_THROW({
      try {
        gw::run<void>(
            [f] {
              f(gw::calling_worker);
              f(gw::worker_count() - 1);
              f(gw::worker_count() / 2);
            },
            o);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
        throw;
      }
    });
  });
}

TEST(Control, ALatchOpensWhenAllHaveCome) {
  with_homes([](std::uint32_t home) {
    const gw::owned<gw::global_latch> l(3u, home);
    const auto seen = gw::global_new<std::uint64_t>(0);
    WANT(!l->try_wait());
    std::array<gw::future<std::uint64_t>, 20> waiting;
    for (auto& w : waiting)
      w = gw::spawn([l = l.get(), seen] {
        l.wait();
        l.wait();
        return gw::get(seen);
      });
    auto others = gw::spawn([l = l.get(), seen] {
      gw::spawn([l] { l.count_down(2); }).join();
      WANT(!l.try_wait());
      gw::put(seen, std::uint64_t{42});  // seen by all who go on because of what follows
      l.count_down();
    });
    for (auto& w : waiting) WANT(w.join() == 42);
    others.join();
    WANT(l->try_wait());
    WANT_THROW(l->count_down(), std::logic_error, "control_test.cpp");
    l->count_down(0);
    const gw::owned<gw::global_latch> open(0u);
    open->wait();
    gw::global_delete(seen);
  });
}

TEST(Control, TooManyCountsChangeNothing) {
  with_homes([](std::uint32_t home) {
    const gw::owned<gw::global_latch> l(2u, home);
    WANT_THROW(l->count_down(3), std::logic_error, "2 are left, and this is 3");
    WANT(!l->try_wait());
    l->count_down(2);
    l->wait();
  });
}

TEST(Control, ASemaphoreLetsInSoMany) {
  with_homes([](std::uint32_t home) {
    const gw::owned<gw::global_semaphore> s(2u, home);
    const auto inside = gw::global_new<std::int64_t>(0);
    std::array<gw::future<void>, 12> all;
    for (auto& f : all)
      f = gw::spawn([s = s.get(), inside] {
        s.acquire();
        WANT(gw::atomic_fetch_add(inside, 1) < 2);
        gw::yield();
        gw::atomic_fetch_sub(inside, 1);
        s.release();
      });
    for (auto& f : all) f.join();
    WANT(s->try_acquire() && s->try_acquire() && !s->try_acquire());
    s->release(2);
    s->acquire();
    WANT_THROW(s->release(~std::uint64_t{0}), std::logic_error, "more than 2^64");
    gw::global_delete(inside);
  });
}

TEST(Control, MoreWaitThanTheObjectHasRoomFor) {
  with_homes([](std::uint32_t home) {
    constexpr std::uint64_t most = 400;  // more than one message tells of
    const gw::owned<gw::global_semaphore> s(0u, home);
    std::array<gw::future<void>, most> all;
    for (auto& f : all) f = gw::spawn([s = s.get()] { s.acquire(); });
    s->release(most - 1);
    s->release(1);
    for (auto& f : all) f.join();
    WANT(!s->try_acquire());
  });
}

struct quad {
  std::int64_t a[6];
  friend bool operator==(const quad&, const quad&) = default;
};
struct add_quads {
  quad operator()(const quad& x, const quad& y) const noexcept {
    quad z{};
    for (int i = 0; i < 6; ++i) z.a[i] = x.a[i] + y.a[i];
    return z;
  }
};

TEST(Control, AReductionGivesTheSumToAllWhoAsk) {
  with_homes([](std::uint32_t home) {
    constexpr std::int64_t n = 30;
    const gw::owned<gw::reduction<quad, add_quads>> r(static_cast<std::uint64_t>(n), home);
    WANT(!r->try_get());
    std::array<gw::future<quad>, 5> asking;
    for (auto& f : asking) f = gw::spawn([r = r.get()] { return r.get(); });  // larger than a record holds
    std::array<gw::future<void>, n> all;
    for (std::int64_t i = 0; i < n; ++i)
      all[static_cast<std::size_t>(i)] = gw::spawn([r = r.get(), i] { r.contribute({{i, 1, 2, 3, 4, -i}}); });
    const quad sum{{n * (n - 1) / 2, n, 2 * n, 3 * n, 4 * n, -n * (n - 1) / 2}};
    for (auto& f : asking) WANT(f.join() == sum);
    WANT(r->get() == sum && *r->try_get() == sum);
    for (auto& f : all) f.join();
    WANT_THROW(r->contribute(sum), std::logic_error, "all contributions have come");
    const gw::owned<gw::reduction<int, std::multiplies<int>>> product(2u, home);
    product->contribute(6);
    product->contribute(7);
    WANT(product->get() == 42);
  });
}

TEST(Control, AnAllReduceIsUsedAgainAndAgain) {
  with_homes([](std::uint32_t home) {
    constexpr std::int64_t members = 7, rounds = 15;
    const gw::owned<gw::all_reduce<std::int64_t>> sums(static_cast<std::uint64_t>(members), home);
    const gw::owned<gw::all_reduce<quad, add_quads>> quads(static_cast<std::uint64_t>(members), home);
    std::array<gw::future<void>, members> all;
    for (std::int64_t i = 0; i < members; ++i)
      all[static_cast<std::size_t>(i)] = gw::spawn([s = sums.get(), q = quads.get(), i] {
        for (std::int64_t k = 0; k < rounds; ++k) {
          WANT(s.contribute(i + k) == members * (members - 1) / 2 + members * k);
          WANT(q.contribute({{k, i, 0, 0, 0, 1}}) ==
               quad{{members * k, members * (members - 1) / 2, 0, 0, 0, members}});
        }
      });
    for (auto& f : all) f.join();
  });
}

TEST(Control, ABarrierSeparatesPhases) {
  with_homes([](std::uint32_t home) {
    constexpr std::uint32_t members = 6, rounds = 12;
    const gw::owned<gw::global_barrier> b(members, home);
    const auto came = gw::global_new<std::uint32_t>(0u);
    std::array<gw::future<void>, members> all;
    for (auto& f : all)
      f = gw::spawn([b = b.get(), came] {
        for (std::uint32_t k = 1; k <= rounds; ++k) {
          gw::atomic_fetch_add(came, 1, std::memory_order_relaxed);
          b.arrive_and_wait();
          WANT(gw::atomic_load(came, std::memory_order_relaxed) == k * members);
          b.arrive_and_wait();
        }
      });
    for (auto& f : all) f.join();
    gw::global_delete(came);
  });
}

/// A bounded buffer: two conditions at one object.
struct buffer {
  std::uint64_t first = 0, count = 0;
  int items[3] = {};
};

TEST(Control, OfOnesOwnWithSeveralConditions) {
  with_homes([](std::uint32_t home) {
    constexpr int each = 20;
    const gw::owned<gw::control<buffer>> b(buffer{}, home);
    std::array<gw::future<int>, 6> all;
    for (int p = 0; p < 3; ++p) {
      all[static_cast<std::size_t>(2 * p)] = gw::spawn([b = b.get(), p] {
        for (int i = 0; i < each; ++i)
          b.when([x = p * each + i](buffer& s) noexcept {
            if (s.count == 3) return false;
            s.items[(s.first + s.count++) % 3] = x;
            return true;
          });
        return 0;
      });
      all[static_cast<std::size_t>(2 * p + 1)] = gw::spawn([b = b.get()] {
        int sum = 0;
        for (int i = 0; i < each; ++i)
          sum += b.when([](buffer& s) noexcept {
            if (s.count == 0) return std::optional<int>();
            --s.count;
            return std::optional<int>(s.items[s.first++ % 3]);
          });
        return sum;
      });
    }
    int sum = 0;
    for (auto& f : all) sum += f.join();
    WANT(sum == 60 * 59 / 2);
    WANT(b->set([](buffer& s) noexcept { return s.count; }) == 0);
    WANT(!b->try_when([](buffer& s) noexcept { return s.count != 0; }));
    b->set([](buffer& s) noexcept { s.count = 2; });
    WANT(*b->try_when([](buffer& s) noexcept { return std::optional<std::uint64_t>(s.count); }) == 2);
  });
}

TEST(Control, WhoGoesOnMayLetOthersGoOn) {
  with_homes([](std::uint32_t home) {
    const gw::owned<gw::control<int>> turn(0, home);
    std::array<gw::future<void>, 10> all;
    for (int i = 10; i-- > 0;)  // the last one comes first
      all[static_cast<std::size_t>(i)] = gw::spawn([t = turn.get(), i] {
        t.when([i](int& now) noexcept { return now == i + 1 ? ++now, true : false; });
      });
    turn->set([](int& now) noexcept { now = 1; });
    for (auto& f : all) f.join();
    WANT(turn->set([](int& now) noexcept { return now; }) == 11);
  });
}

TEST(Control, WhatCannotBeAskedForIsRefused) {
  with_homes([](std::uint32_t) {
    WANT_THROW(gw::global_latch::make(1, gw::worker_count()), std::invalid_argument, "there is no worker");
    WANT_THROW(gw::reduction<int>::make(0), std::invalid_argument, "reduction of 0");
    WANT_THROW(gw::all_reduce<int>::make(0), std::invalid_argument, "all_reduce of 0");
    WANT_THROW(gw::global_barrier::make(0), std::invalid_argument, "global_barrier of 0");
  });
}

/// As long as all workers wait for each other in blocking calls, this would hang.
template <class P>
std::string under_policy() {
  const gw::owned<gw::global_latch> l(4u);
  const gw::owned<gw::all_reduce<int>> sum(4u, gw::worker_count() - 1);
  using future = typename P::template future<int>;
  std::array<future, 4> all;
  for (int i = 0; i < 4; ++i)
    all[static_cast<std::size_t>(i)] = P::spawn([l = l.get(), s = sum.get(), i] {
      int got = 0;
      for (int k = 0; k < 10; ++k) got += s.contribute(i);
      l.count_down();
      l.wait();
      return got;
    });
  l->wait();
  for (auto& f : all)
    if (f.join() != 60) return "sum";
  return {};
}

TEST(Control, UnderEveryPolicyWithFutures) {
  for (const auto policy :
       {gw::choice::policy::greedy, gw::choice::policy::stalling, gw::choice::policy::locked_free,
        gw::choice::policy::stalling_locked_free, gw::choice::policy::child_full, gw::choice::policy::iso,
        gw::choice::policy::crude}) {
    gw::options o = support::schedule(3);
    o.policy = policy;
    SCOPED_TRACE(name_of(policy));
    EXPECT_EQ(gw::with_policy(policy,
                              [&](auto p) {
                                using P = decltype(p);
                                if constexpr (P::has_futures)
                                  return gw::run<std::string>([] { return under_policy<P>(); }, o);
                                else
                                  return std::string("no futures");
                              }),
              "");
  }
}

// What ends a run: each in a process of its own.

template <class F>
support::outcome ends(F f, gw::options o = {}) {
  if (o.workers == 0) o.workers = 2;
  return support::run_child([&] { return gw::run(0, nullptr, f, o); });
}

TEST(ControlMistakes, AllWaitForEver) {
  const auto out = ends([] {
    const gw::owned<gw::global_latch> l(1u);
    auto f = gw::spawn([l = l.get()] { l.wait(); });
    l->wait();
    f.join();
  });
  EXPECT_EQ(out.status, 70) << support::show(out);
  EXPECT_TRUE(out.err_has("deadlock")) << support::show(out);
  EXPECT_TRUE(out.err_has("control_test.cpp")) << support::show(out);
}

TEST(ControlMistakes, UsedAfterItsEnd) {
  const auto out = ends([] {
    const auto l = gw::global_latch::make(1);
    l.destroy();
    l.count_down();
  });
  EXPECT_EQ(out.status, 70) << support::show(out);
  EXPECT_TRUE(out.err_has("a global_latch was used at") && out.err_has("it was destroyed before"))
      << support::show(out);
}

TEST(ControlMistakes, DestroyedWhileSomebodyWaits) {
  gw::options o;
  o.workers = 1;  // the child runs first, until it waits
  const auto out = ends(
      [] {
        const auto s = gw::global_semaphore::make(0);
        auto f = gw::spawn([s] { s.acquire(); });
        s.destroy();
        f.join();
      },
      o);
  EXPECT_EQ(out.status, 70) << support::show(out);
  EXPECT_TRUE(out.err_has("was destroyed at") && out.err_has("while a thread waits for it"))
      << support::show(out);
}

TEST(ControlMistakes, WaitedForUnderACheckout) {
  const auto out = ends([] {
    const gw::owned<gw::global_latch> l(0u);
    const auto p = gw::global_new<int>(1);
    const auto open = gw::checkout(p, 1, gw::access::read);
    l->wait();
  });
  EXPECT_EQ(out.status, 70) << support::show(out);
  EXPECT_TRUE(out.err_has("checkout") && out.err_has("control_test.cpp")) << support::show(out);
}

TEST(ControlMistakes, OneInsideTheOther) {
  static gw::global_latch latch;
  const auto out = ends([] {
    latch = gw::global_latch::make(1);
    const gw::owned<gw::control<int>> c(0);
    c->set([](int&) noexcept { latch.count_down(); });
  });
  EXPECT_EQ(out.status, 70) << support::show(out);
  EXPECT_TRUE(out.err_has("under the lock of another object")) << support::show(out);
}

TEST(ControlMistakes, WherePoliciesHaveNoFutures) {
  gw::options o;
  o.policy = gw::choice::policy::child_rtc;
  const auto out = ends(
      [] {
        const gw::owned<gw::global_latch> l(0u);
        l->wait();
      },
      o);
  EXPECT_EQ(out.status, 70) << support::show(out);
  EXPECT_TRUE(out.err_has("child_rtc") && out.err_has("global_latch")) << support::show(out);
}

TEST(ControlMistakes, OutsideARun) {
  const auto out = support::run_child([] {
    gw::global_latch().count_down();
    return 0;
  });
  EXPECT_TRUE(out.err_has("outside godwit::run")) << support::show(out);
}

TEST(ControlMistakes, NothingIsLeftBehind) {
  const auto out = support::run_child([] {
    return run_checked([] {
      const gw::owned<gw::global_semaphore> s(0u, 1u);
      std::array<gw::future<void>, 30> all;
      for (auto& f : all) f = gw::spawn([s = s.get()] { s.acquire(); });
      s->release(30);
      for (auto& f : all) f.join();
    });
  });
  EXPECT_EQ(out.status, 0) << support::show(out);
  EXPECT_EQ(out.err, "") << support::show(out);
}

}  // namespace
