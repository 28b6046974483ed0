// on_rank on one machine: once, in the process that called run, with plain memory; what it refuses. With MPI:
// tests/mpi/calls_check.cpp.
#include <gtest/gtest.h>
#include <godwit/algorithm.hpp>
#include <godwit/godwit.hpp>
#include <godwit/policy.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "container_runs.hpp"

using namespace container_runs;

namespace {

constexpr std::uint64_t n = 10'000;

TEST(OnRank, RunsOnceInTheProcessThatCalledRun) {
  const pid_t main = getpid();
  in_all_runs([main] {
    auto at = gw::allocate<std::uint64_t>(2);
    gw::put(at, std::uint64_t{0});
    gw::on_rank(
        [main](gw::rank r, std::span<std::uint64_t> mine) {
          mine[0] += getpid() == main && r.number == 0 && r.count == 1 ? 1 : 1000;
          mine[1] = mine.size();
        },
        gw::global_span<std::uint64_t>(at, 2));
    WANT(gw::get(at) == 1);
    WANT(gw::get(at + 1) == 2);
    gw::deallocate(at, 2);
  });
}

TEST(OnRank, SeesAndChangesWhatThreadsWrote) {
  in_all_runs([] {
    auto all = gw::allocate<std::uint32_t>(n, gw::distribution::blocked());
    gw::for_each(gw::global_span<std::uint32_t>(all, n), [](std::uint32_t& v) { v = 7; });
    auto busy = gw::spawn([] { return gw::worker_count(); });
    gw::on_rank(
        [](gw::rank, std::span<std::uint32_t> mine, std::uint32_t more) {
          if (mine.size() != n) throw std::logic_error("not all");
          for (std::uint32_t& v : mine) v += more;
        },
        gw::global_span<std::uint32_t>(all, n), 5u);
    WANT(busy.join() == gw::worker_count());
    for (std::uint64_t i = 0; i < n; i += 101) WANT(gw::get(all + i) == 12);
    gw::deallocate(all, n);
  });
}

TEST(OnRank, ProgramsThatItStartsCanBeStopped) {
  in_all_runs([] {
    auto at = gw::allocate<std::uint64_t>(1);
    gw::put(at, std::uint64_t{0});
    gw::on_rank(
        [](gw::rank, std::span<std::uint64_t> mine) {
          for (const char* stop : {"kill -TERM $$; exit 3", "kill -HUP $$; exit 3"})
            if (WIFSIGNALED(std::system(stop))) ++mine[0];
        },
        gw::global_span<std::uint64_t>(at, 1));
    WANT(gw::get(at) == 2);
    gw::deallocate(at, 1);
  });
}

TEST(OnRank, CallsOfSeveralThreadsComeOneAfterTheOther) {
  in_all_runs([] {
    auto at = gw::allocate<std::uint64_t>(1);
    gw::put(at, std::uint64_t{0});
    gw::for_each(gw::index_range(0, 6), [at](int) {
      gw::on_rank([](gw::rank, std::span<std::uint64_t> mine) { ++mine[0]; },
                  gw::global_span<std::uint64_t>(at, 1));
    });
    WANT(gw::get(at) == 6);
    gw::deallocate(at, 1);
  });
}

TEST(OnRank, FromThreadsOfEveryPolicy) {
  for (const char* name : {"greedy", "stalling", "iso", "child_full", "child_rtc"})
    for (const unsigned workers : {1u, 2u}) {
      gw::options o;
      o.workers = workers;
      o.policy = gw::choice::named{name};
      SCOPED_TRACE(std::string(name) + ", workers: " + std::to_string(workers));
      gw::with_policy(gw::choice::named{name}, [&](auto p) {
        using P = decltype(p);
        EXPECT_EQ(gw::run<std::uint64_t>(
                      [] {
                        auto at = gw::allocate<std::uint64_t>(1);
                        gw::put(at, std::uint64_t{0});
                        const auto call = [at] {
                          gw::on_rank([](gw::rank, std::span<std::uint64_t> mine) { ++mine[0]; },
                                      gw::global_span<std::uint64_t>(at, 1));
                        };
                        auto f = P::spawn(call);
                        auto g = P::spawn(call);
                        call();  // others run where it waits, and call as well
                        g.join();
                        f.join();
                        const std::uint64_t calls = gw::get(at);
                        gw::deallocate(at, 1);
                        return calls;
                      },
                      o),
                  3u);
      });
    }
}

TEST(OnRank, GivesBackWhatWasThrown) {
  in_all_runs([] {
    WANT_THROW(gw::on_rank([](gw::rank) { throw std::runtime_error("too cold"); }), std::runtime_error,
               "godwit: on_rank: rank 0: too cold");
    WANT_THROW(gw::on_rank([](gw::rank) { throw 3; }), std::runtime_error, "no std::exception");
    gw::on_rank([](gw::rank) {});  // goes on
  });
}

TEST(OnRank, IsNotLeftByWhoIsCancelledMeanwhile) {
  in_all_runs([] {
    for (int i = 0; i < 2; ++i) {
      std::uint64_t done = 0;
      gw::cancel_scope scope(std::chrono::milliseconds(2));
      static_cast<void>(scope.run([&] {
        gw::on_rank([](gw::rank) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); });
        done = 1;
      }));
      WANT(done == 1);
    }
  });
}

TEST(OnRank, RefusesWhatMayLeave) {
  in_all_runs([] {
    auto all = gw::allocate<std::uint32_t>(n, gw::distribution::blocked().movable(4096));
    const gw::global_span<std::uint32_t> span(all, n);
    WANT_THROW(gw::on_rank([](gw::rank, std::span<std::uint32_t>) {}, span), std::runtime_error, "movable");
    gw::deallocate(all, n);
  });
}

TEST(OnRankMistakes, OutsideARun) {
  EXPECT_THROW(gw::on_rank([](gw::rank) {}), std::logic_error);
}

}  // namespace
