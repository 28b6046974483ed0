// Groups: include/godwit/group.hpp, docs/protocols/group.md. Runs under MPI as well (tests/mpi).
#include "container_runs.hpp"

#include "support/child.hpp"
#include "support/schedule.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

using namespace container_runs;

namespace {

static_assert(gw::plain<gw::group> && sizeof(gw::group) == 16);

using counter = gw::global_ptr<std::uint64_t>;

void add(counter c, std::uint64_t n = 1) { gw::atomic_fetch_add(c, n, std::memory_order_relaxed); }

template <class F>
void in_schedules(F f) {
  support::for_each_schedule([&](const gw::options& o) {
    EXPECT_NO_THROW({
      try {
        gw::run<void>(f, o);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
        throw;
      }
    });
  });
}

void tree(gw::group g, counter c, int depth) {
  add(c);
  if (depth == 0) return;
  g.spawn(tree, g, c, depth - 1);
  g.spawn([=] { tree(g, c, depth - 1); });
}

TEST(Group, WaitsForAllThatWereSpawnedInIt) {
  in_schedules([] {
    const auto c = gw::global_new<std::uint64_t>(0u);
    for (const std::uint32_t home : {gw::calling_worker, gw::worker_count() - 1}) {
      const gw::owned<gw::group> g(home);
      for (int round = 0; round < 3; ++round) {
        gw::put(c, std::uint64_t{0});
        g->spawn(tree, g.get(), c, 5);
        g->wait();
        WANT(gw::get(c) == 63);
      }
    }
    gw::global_delete(c);
  });
}

TEST(Group, WhatMembersWroteIsSeen) {
  in_schedules([] {
    constexpr std::uint64_t n = 64;
    const gw::owned<gw::group> g;
    gw::global_array<std::uint64_t> a(n, gw::distribution::cyclic(16), 0u);
    for (std::uint64_t i = 0; i < n; ++i)
      g->spawn([i, g = g.get(), s = a.span()] {
        g.spawn([i, s] { s.subspan(i, 1).checkout(gw::access::write)[0] = i + 1; });
      });
    g->wait();
    const auto s = a.checkout(gw::access::read);
    for (std::uint64_t i = 0; i < n; ++i) WANT(s[i] == i + 1);
  });
}

TEST(Group, MembersBeginWhereTheirMemoryIs) {
  in_schedules([] {
    constexpr std::uint64_t words = 512, parts = 6;
    const gw::owned<gw::group> g;
    const auto p =
        gw::allocate<std::uint64_t>(parts * words, gw::distribution::cyclic(words * 8).movable(words * 8));
    const auto added = p + 1;  // by an atomic, and the others without: not the same word
    gw::put(added, std::uint64_t{0});
    for (std::uint64_t i = 0; i < parts; ++i) gw::put(p + i * words, std::uint64_t{0});
    for (std::uint64_t i = 0; i < parts; ++i) {
      if (i % 2 != 0) gw::move(p + i * words, static_cast<std::uint32_t>(i) % gw::worker_count()).join();
      g->spawn_at(p + i * words, [at = p + i * words] { gw::pin(at)[0] += 1; });  // throws where it is not
    }
    g->spawn_at(gw::worker(gw::worker_count() - 1), [g = g.get(), added] { g.spawn(add, added, 100u); });
    g->wait();
    WANT(gw::get(added) == 100);
    for (std::uint64_t i = 0; i < parts; ++i) WANT(gw::get(p + i * words) == 1);
    try {
      g->spawn_at(gw::worker(gw::worker_count()), [] {});
      WANT(false);
    } catch (const std::invalid_argument&) {
    }
    g->wait();
    gw::deallocate(p, parts * words);
  });
}

TEST(Group, AnEmptyOneHasNothingToWaitFor) {
  in_schedules([] {
    const gw::owned<gw::group> g;
    g->wait();
    g->wait();
    const gw::owned<gw::group> never_waited_for(gw::worker_count() - 1);
    never_waited_for->spawn([] {});
  });
}

TEST(Group, FlatLoopsOfMembersThatWereStolen) {
  in_schedules([] {
    const gw::owned<gw::group> g;
    const auto c = gw::global_new<std::uint64_t>(0u);
    for (int i = 0; i < 4; ++i)
      g->spawn([g = g.get(), c] {
        for (int k = 0; k < 25; ++k) {
          g.spawn([c] { add(c); });
          gw::yield();
        }
      });
    g->wait();
    WANT(gw::get(c) == 100);
    gw::global_delete(c);
  });
}

TEST(Group, SeveralWaitAndOthersGoOnSpawning) {
  in_schedules([] {
    const gw::owned<gw::group> g;
    const auto c = gw::global_new<std::uint64_t>(0u);
    const gw::owned<gw::global_latch> started(1u);
    auto outsider = gw::spawn([g = g.get(), c, l = started.get()] {
      for (int i = 0; i < 20; ++i) {
        g.spawn(tree, g, c, 2);
        if (i == 0) l.count_down();
        gw::yield();
      }
    });
    std::array<gw::future<void>, 3> waiting;
    for (auto& w : waiting)
      w = gw::spawn([g = g.get(), c, l = started.get()] {
        l.wait();
        for (int i = 0; i < 3; ++i) {
          g.wait();
          WANT(gw::atomic_load(c) >= 7);
        }
      });
    outsider.join();
    g->wait();
    WANT(gw::get(c) == 140);
    for (auto& w : waiting) w.join();
    gw::global_delete(c);
  });
}

TEST(Group, WaitCalledBeforeTheLastSpawn) {
  in_schedules([] {
    const gw::owned<gw::group> g;
    const auto c = gw::global_new<std::uint64_t>(0u);
    const gw::owned<gw::global_latch> go(1u);
    g->spawn([g = g.get(), c, l = go.get()] {
      l.wait();  // the other one waits for the group already, or soon
      g.spawn(tree, g, c, 4);
    });
    auto opener = gw::spawn([l = go.get()] {
      for (int i = 0; i < 3; ++i) gw::yield();
      l.count_down();
    });
    g->wait();
    WANT(gw::get(c) == 31);
    opener.join();
    gw::global_delete(c);
  });
}

TEST(Group, OneInTheOther) {
  in_schedules([] {
    const gw::owned<gw::group> outer;
    const auto c = gw::global_new<std::uint64_t>(0u);
    for (std::uint32_t i = 0; i < 3; ++i)
      outer->spawn([=, g = outer.get()] {
        const gw::owned<gw::group> inner(i % gw::worker_count());
        inner->spawn(tree, inner.get(), c, 3);
        inner->spawn(tree, g, c, 2);  // its children are the outer one's
        inner->wait();
        WANT(gw::atomic_load(c) >= 15);
        g.spawn([c] { add(c, 100); });
      });
    outer->wait();
    WANT(gw::get(c) == 3 * (15 + 7 + 100));
    gw::global_delete(c);
  });
}

TEST(Group, TheFirstExceptionComesOutWhenAllHaveEnded) {
  in_schedules([] {
    const gw::owned<gw::group> g(gw::worker_count() - 1);
    const auto c = gw::global_new<std::uint64_t>(0u);
    for (int i = 0; i < 10; ++i)
      g->spawn([g = g.get(), c, i] {
        g.spawn(tree, g, c, 3);
        if (i % 2 == 0) throw std::out_of_range("one of five");
      });
    WANT_THROW(g->wait(), std::out_of_range, "one of five");
    WANT(gw::get(c) == 150);
    g->wait();  // it was thrown once
    g->spawn([] { throw 7; });
    try {
      g->wait();
      WANT(false);
    } catch (int x) {
      WANT(x == 7);
    }
    gw::global_delete(c);
  });
}

TEST(Group, AnExceptionPassesOneThatIsNotEmpty) {
  in_schedules([] {
    const auto c = gw::global_new<std::uint64_t>(0u);
    const gw::owned<gw::global_latch> go(1u), done(1u);
    auto thrower = gw::spawn([c, go = go.get(), done = done.get()] {
      const gw::owned<gw::group> g;
      g->spawn([c, go, done] {
        go.wait();
        add(c);
        done.count_down();
      });
      throw std::out_of_range("passes by");
    });
    WANT_THROW(thrower.join(), std::out_of_range, "passes by");
    WANT(gw::get(c) == 0);
    go->count_down();
    done->wait();
    WANT(gw::get(c) == 1);
    gw::global_delete(c);
  });
}

TEST(Group, SpawnDoesNotWaitForAMemberThatIsCancelled) {
  in_schedules([] {
    const gw::owned<gw::global_latch> open(1);
    const gw::owned<gw::group> g;
    gw::cancel_scope scope;
    scope.run([&] {
      g->spawn([token = scope.token(), open = open.get()] {
        token.cancel();
        open.wait();  // for what its parent does next
      });
      open->count_down();
    });
    g->wait();
  });
}

TEST(Group, ArgumentsAsOfSpawn) {
  in_schedules([] {
    const gw::owned<gw::group> g;
    const auto c = gw::global_new<std::uint64_t>(0u);
    g->spawn([c](std::string s, std::vector<int> v) { add(c, s.size() + v.size()); }, std::string("five!"),
             std::vector<int>(37));
    auto moved = std::make_unique<std::uint64_t>(58u);
    g->spawn([c, p = std::move(moved)] { add(c, *p); });
    g->spawn([c] {
      add(c, 900);
      return std::string("dropped");
    });
    g->wait();
    WANT(gw::get(c) == 1000);
    gw::global_delete(c);
  });
}

template <class P>
struct policy_tree {
  static void grow(gw::group g, counter c, int depth) {
    add(c);
    for (int i = 0; depth != 0 && i < 2; ++i) g.spawn_by<P>(&policy_tree::grow, g, c, depth - 1);
  }
};

TEST(Group, UnderEveryPolicyWithFutures) {
  for (const auto policy :
       {gw::choice::policy::greedy, gw::choice::policy::stalling, gw::choice::policy::locked_free,
        gw::choice::policy::stalling_locked_free, gw::choice::policy::child_full, gw::choice::policy::iso,
        gw::choice::policy::crude}) {
    gw::options o = support::schedule(3);
    o.policy = policy;
    SCOPED_TRACE(name_of(policy));
    const auto grown = gw::with_policy(policy, [&](auto p) -> std::uint64_t {
      using P = decltype(p);
      if constexpr (!P::has_futures)
        return 0;
      else
        return gw::run<std::uint64_t>(
            [] {
              const gw::owned<gw::group> g;
              const auto c = gw::global_new<std::uint64_t>(0u);
              for (int round = 0; round < 3; ++round) {
                g->spawn_by<P>(&policy_tree<P>::grow, g.get(), c, 6);
                g->wait();
              }
              const std::uint64_t all = gw::get(c);
              gw::global_delete(c);
              return all;
            },
            o);
    });
    EXPECT_EQ(grown, 3u * 127u);
  }
}

TEST(GroupMistakes, AMemberThatWaitsForItsGroup) {
  const auto out = support::run_child([] {
    gw::options o;
    o.workers = 2;
    return gw::run(
        0, nullptr,
        [] {
          const gw::owned<gw::group> g;
          g->spawn([g = g.get()] { g.wait(); });
          g->wait();
        },
        o);
  });
  EXPECT_EQ(out.status, 70) << support::show(out);
  EXPECT_TRUE(out.err_has("deadlock") && out.err_has("group_test.cpp")) << support::show(out);
}

TEST(GroupMistakes, AnExceptionThatNobodyAsksFor) {
  const auto out = support::run_child([] {
    return run_checked([] {
      const gw::owned<gw::group> g;
      g->spawn([] { throw std::runtime_error("unseen in a group"); });
    });
  });
  EXPECT_EQ(out.status, 0) << support::show(out);
  EXPECT_TRUE(out.err_has("unseen in a group")) << support::show(out);
  EXPECT_EQ(out.err_lines(), 1) << support::show(out);  // and nothing is left behind
}

}  // namespace
