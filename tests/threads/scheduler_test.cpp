// Tests of scheduler and parallel_backend with stdexec, where there is one (extras.cmake).
// test: timeout=120 skip-clang once
#include "places.hpp"

#if !__has_include(<stdexec/execution.hpp>)

TEST(scheduler, needs_stdexec) {
  GTEST_SKIP() << "stdexec was not found: godwit/scheduler.hpp is NOT TESTED. Configure with "
                  "-DGODWIT_STDEXEC=FOLDER, the include folder of a checkout of stdexec";
}

#else

#include <godwit/scheduler.hpp>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ex = stdexec;
namespace psr = ex::parallel_scheduler_replacement;
namespace gw = godwit;

auto psr::query_parallel_scheduler_backend() -> std::shared_ptr<psr::parallel_scheduler_backend> {
  static const auto backend = std::make_shared<gw::parallel_backend>(support::on_threads(3));
  return backend;
}

namespace {

using support::everywhere;

static_assert(ex::scheduler<gw::scheduler>);
static_assert(ex::sender<decltype(gw::scheduler().schedule())>);

TEST(scheduler, then_runs_in_a_thread_of_the_run) {
  everywhere([] {
    const gw::scheduler here;
    const auto me = gw::this_thread::get_id();
    auto [there, v] = gw::sync_wait(ex::schedule(here) | ex::then([] {
                                      auto child = gw::spawn([] { return 5; });
                                      gw::yield();
                                      return std::pair(gw::this_thread::get_id(), child.join());
                                    }) |
                                    ex::let_value([](auto& p) { return ex::just(p.first, p.second); }))
                          .value();
    EXPECT_NE(there, me);
    EXPECT_EQ(v, 5);
  });
}

TEST(scheduler, several_at_once_and_transfers) {
  everywhere([] {
    const gw::scheduler here;
    auto number = [&](int i) { return ex::schedule(here) | ex::then([i] { return gw::yield(), i; }); };
    auto [a, b, c] = gw::sync_wait(ex::when_all(number(1), number(2), number(3))).value();
    EXPECT_EQ(a + 10 * b + 100 * c, 321);
    auto [s] = gw::sync_wait(ex::just(std::string("moved")) | ex::continues_on(here) |
                             ex::then([](std::string t) { return t + " on"; }))
                   .value();
    EXPECT_EQ(s, "moved on");
  });
}

TEST(scheduler, errors_and_stops_come_through) {
  everywhere([] {
    const gw::scheduler here;
    EXPECT_THROW(gw::sync_wait(ex::schedule(here) | ex::then([] { throw std::out_of_range("no"); })),
                 std::out_of_range);
    EXPECT_FALSE(gw::sync_wait(ex::schedule(here) | ex::let_value([] { return ex::just_stopped(); })));
    ex::inplace_stop_source stop;
    stop.request_stop();
    bool ran = false;
    EXPECT_FALSE(gw::sync_wait(ex::write_env(ex::schedule(here) | ex::then([&] { ran = true; }),
                                             ex::prop{ex::get_stop_token, stop.get_token()})));
    EXPECT_FALSE(ran) << "it was stopped before it began";
  });
}

TEST(scheduler, in_a_cancelled_scope_it_completes) {
  everywhere([] {
    const gw::scheduler here;
    int begun = 0;
    gw::cancel_scope scope;
    EXPECT_FALSE(scope.run([&] {
      scope.cancel();
      EXPECT_TRUE(gw::sync_wait(ex::schedule(here) | ex::then([&] { ++begun; })));
      gw::sync_wait(ex::schedule(here) | ex::then([&] {
                      ++begun;
                      gw::yield();
                    }));
      ADD_FAILURE() << "the error came through";
    }));
    EXPECT_EQ(begun, 2);
  });
}

/// Every kind of bulk: each index once, in parts unless the policy forbids it.
template <class Wait>
void bulk_calls_all_once(Wait wait, auto scheduler) {
  constexpr std::size_t n = 1000;
  std::vector<std::atomic<int> > calls(n);
  std::atomic<std::size_t> chunks{0};
  auto [v] = wait(ex::schedule(scheduler) | ex::then([] { return 7; }) |
                  ex::bulk(ex::par, n, [&](std::size_t i, int& x) { calls[i] += x; }) |
                  ex::bulk_chunked(ex::par, n,
                                   [&](std::size_t b, std::size_t e, int& x) {
                                     ++chunks;
                                     for (; b != e; ++b) calls[b] += 10 * x;
                                   }) |
                  ex::bulk_unchunked(ex::par_unseq, n, [&](std::size_t i, int& x) { calls[i] += 100 * x; }))
                 .value();
  EXPECT_EQ(v, 7);
  for (const auto& c : calls) ASSERT_EQ(c, 777);
  EXPECT_GT(chunks, 1u) << "it was not split";
  chunks = 0;
  wait(ex::schedule(scheduler) |
       ex::bulk_chunked(ex::seq, n, [&](std::size_t, std::size_t, auto&...) { ++chunks; }));
  EXPECT_EQ(chunks, 1u) << "seq was split";
  wait(ex::schedule(scheduler) | ex::bulk(ex::par, 0, [](int) { ADD_FAILURE(); }));
}

TEST(scheduler, bulk_is_split_among_workers) {
  everywhere([] {
    bulk_calls_all_once([](auto&& s) { return gw::sync_wait(std::move(s)); }, gw::scheduler());
    std::atomic<std::size_t> called{0};
    EXPECT_THROW(gw::sync_wait(ex::schedule(gw::scheduler()) |  //
                               ex::bulk_unchunked(ex::par, 100,
                                                  [&](int i) {
                                                    ++called;
                                                    if (i == 50) throw std::out_of_range("50");
                                                  })),
                 std::out_of_range);
    EXPECT_GT(called, 50u) << "the other parts were called as well";
  });
}

TEST(scheduler, from_outside_of_a_run) {
  gw::background_run run(support::on_threads(2));
  const gw::scheduler there(run);
  auto [workers] = ex::sync_wait(ex::schedule(there) | ex::then([] { return gw::worker_count(); })).value();
  EXPECT_EQ(workers, 2u);
  bulk_calls_all_once([](auto&& s) { return ex::sync_wait(std::move(s)); }, there);
}

TEST(scheduler, without_a_run_it_says_what_to_do) {
  EXPECT_DEATH(ex::sync_wait(ex::schedule(gw::scheduler())),
               "a godwit::scheduler was used outside godwit::run: take that of a godwit::background_run");
}

TEST(parallel_scheduler, is_ours) {
  const auto scheduler = ex::get_parallel_scheduler();
  auto [workers] =
      ex::sync_wait(ex::schedule(scheduler) | ex::then([] { return gw::worker_count(); })).value();
  EXPECT_EQ(workers, 3u);
  bulk_calls_all_once([](auto&& s) { return ex::sync_wait(std::move(s)); }, scheduler);
}

TEST(parallel_scheduler, a_bulk_in_a_cancelled_scope_is_stopped) {
  const auto scheduler = ex::get_parallel_scheduler();
  auto [stopped] =
      ex::sync_wait(ex::schedule(scheduler) | ex::then([&] {
                      bool none = false;
                      gw::cancel_scope scope;
                      scope.run([&] {
                        scope.cancel();
                        none = !gw::sync_wait(ex::schedule(scheduler) | ex::bulk(ex::par, 100, [](int) {}));
                      });
                      return none;
                    }))
          .value();
  EXPECT_TRUE(stopped);
}

}  // namespace

#endif
