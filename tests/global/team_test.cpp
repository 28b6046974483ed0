// SPMD regions: include/godwit/team.hpp. Runs under MPI as well (tests/mpi).
#include "container_runs.hpp"

#include "support/child.hpp"
#include "support/schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

using namespace container_runs;

namespace {

static_assert(gw::plain<gw::team> && sizeof(gw::team) == 16);

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

struct larger {
  std::int64_t operator()(std::int64_t a, std::int64_t b) const noexcept { return std::max(a, b); }
};
struct wide {
  double x[20];
};

TEST(Team, EveryMemberComesOnce) {
  in_schedules([] {
    gw::global_array<std::uint32_t> came(gw::worker_count(), gw::distribution::blocked(), 0u);
    gw::on_all([s = came.span()](gw::team t) {
      WANT(t.size() == gw::worker_count() && t.rank() < t.size());
      gw::atomic_fetch_add(s.data() + t.rank(), 1u);
    });
    for (std::uint32_t i = 0; i < came.size(); ++i) WANT(came[i] == 1u);
  });
}

TEST(Team, Collectives) {
  in_schedules([] {
    const auto came = gw::global_new<std::uint32_t>(0u);
    gw::on_all([came](gw::team t) {
      const std::int64_t n = t.size(), r = t.rank();
      for (std::uint32_t round = 1; round <= 6; ++round) {
        gw::atomic_fetch_add(came, 1, std::memory_order_relaxed);
        t.barrier();
        WANT(gw::atomic_load(came, std::memory_order_relaxed) == round * t.size());
        t.barrier();
        WANT(t.all_reduce(r + round) == n * (n - 1) / 2 + n * round);
        WANT(t.all_reduce(r * r, larger()) == (n - 1) * (n - 1));
        const std::uint32_t root = round % t.size();
        WANT(t.broadcast(10 * r + round, root) == 10 * root + round);
        const wide w = t.broadcast(wide{{1.5 * static_cast<double>(r), 2}}, root);
        WANT(w.x[0] == 1.5 * root && w.x[1] == 2);
        const auto product = t.reduce(std::int64_t{2}, std::multiplies<std::int64_t>(), root);
        WANT(product.has_value() == (t.rank() == root));
        WANT(!product || *product == std::int64_t{1} << n);
      }
    });
    gw::global_delete(came);
  });
}

TEST(Team, AllGather) {
  in_schedules([] {
    gw::global_array<wide> room(gw::worker_count(), gw::distribution::cyclic(sizeof(wide)));
    gw::on_all([all = room.span()](gw::team t) {
      for (std::uint32_t round = 1; round <= 4; ++round) {
        t.all_gather(wide{{t.rank() + 0.5, static_cast<double>(round)}}, all);
        for (std::uint32_t r = 0; r < t.size(); ++r) {
          const wide w = all[r];
          WANT(w.x[0] == r + 0.5 && w.x[1] == round);
        }
        t.barrier();  // before it is written again
      }
    });
    gw::on_all([all = room.span()](gw::team t) {
      WANT_THROW(t.all_gather(wide{}, all.subspan(1)), std::invalid_argument, "give it one for each member");
    });
  });
}

TEST(Team, MembersSpawnAndJoin) {
  in_schedules([] {
    gw::on_all([](gw::team t) {
      std::uint64_t sum = 0;
      for (int k = 0; k < 5; ++k) {
        auto f = gw::spawn([r = t.rank()] { return r + 1u; });
        auto g = gw::spawn([r = t.rank()] { return r + 2u; });
        sum += t.all_reduce(f.join() + g.join());
      }
      WANT(sum == 5u * (t.size() * (t.size() - 1) + 3 * t.size()));
    });
  });
}

TEST(Team, OneInsideAnother) {
  in_schedules([] {
    gw::on_all([](gw::team outer) {
      const auto r = outer.rank();
      gw::on_all([r](gw::team t) { WANT(t.all_reduce(r) == r * t.size()); });
      outer.barrier();
    });
  });
}

TEST(Team, WhoLeavesByAnExceptionLeavesNobodyWaiting) {
  in_schedules([] {
    if (gw::worker_count() == 1) return;
    WANT_THROW(gw::on_all([](gw::team t) {
                 t.barrier();
                 if (t.rank() == 1) throw std::domain_error("this one");
                 t.barrier();
                 t.barrier();
               }),
               std::domain_error, "this one");
  });
}

TEST(Team, CancelledWhileItsMembersAreSpawned) {
  in_schedules([] {
    gw::cancel_scope scope;
    const bool ended = scope.run([&] {
      gw::on_all([token = scope.token()](gw::team t) {
        if (t.rank() == 0) token.cancel();
        t.barrier();  // for members that, as a rule, do not come any more
      });
    });
    WANT(ended || gw::worker_count() > 1);
  });
}

TEST(Team, CancelledAtAnyMoment) {
  in_schedules([] {
    for (int i = 0; i < 40; ++i) {
      gw::cancel_scope scope;
      const bool ended = scope.run([&] {
        auto other = gw::spawn([token = scope.token(), i] {
          for (volatile int wait = 0; wait < 20 * i;) wait = wait + 1;
          token.cancel();
        });
        gw::on_all([](gw::team t) {
          for (int k = 0; k < 3; ++k) t.barrier();
        });
        other.join();
      });
      WANT(!ended);
    }
  });
}

TEST(Team, DifferentCollectivesAreFoundOut) {
  in_schedules([] {
    if (gw::worker_count() == 1) return;
    WANT_THROW(gw::on_all([](gw::team t) {
                 if (t.rank() == 0)
                   t.all_reduce(1);
                 else
                   t.barrier();
               }),
               std::logic_error, "team_test.cpp");
    WANT_THROW(gw::on_all([](gw::team t) { t.broadcast(1, t.rank() % 2); }), std::logic_error,
               "another root");
    WANT_THROW(gw::on_all([](gw::team t) { t.broadcast(1, t.size()); }), std::out_of_range, "has no member");
  });
}

TEST(TeamMistakes, AMemberThatDoesNotCome) {
  const auto out = support::run_child([] {
    gw::options o;
    o.workers = 2;
    return gw::run(
        0, nullptr,
        [] {
          gw::on_all([](gw::team t) {
            if (t.rank() == 0) t.barrier();
          });
        },
        o);
  });
  EXPECT_EQ(out.status, 70) << support::show(out);
  EXPECT_TRUE(out.err_has("deadlock") && out.err_has("team_test.cpp")) << support::show(out);
}

}  // namespace
