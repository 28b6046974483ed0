// Tests of scheduler and parallel_backend that need no stdexec: what the header uses of it is in standin/
// (extras.cmake). With stdexec itself: scheduler_test.cpp.
// test: timeout=60 skip-clang once
#include "places.hpp"

#include <godwit/scheduler.hpp>

#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

namespace ex = stdexec;
namespace psr = ex::parallel_scheduler_replacement;
namespace gw = godwit;

namespace {

using support::everywhere;

struct with_token {
  ex::inplace_stop_token token;
  ex::inplace_stop_token query(ex::get_stop_token_t) const noexcept { return token; }
};
/// Tells how it was completed: 1 value, 2 stopped; and in how large a run.
struct told {
  std::promise<int>* how;
  ex::inplace_stop_token token;
  void set_value() && noexcept { how->set_value(gw::worker_count() == 2 ? 1 : -1); }
  void set_stopped() && noexcept { how->set_value(2); }
  with_token get_env() const noexcept { return {token}; }
};

TEST(senders, schedule_completes_in_a_thread_of_its_own) {
  everywhere([] {
    const auto me = gw::this_thread::get_id();
    auto result = gw::sync_wait(ex::let_value(gw::scheduler().schedule(), [] {
      auto child = gw::spawn([] { return 5; });
      gw::yield();
      return ex::just(gw::this_thread::get_id(), child.join());
    }));
    ASSERT_TRUE(result);
    EXPECT_NE(std::get<0>(*result), me);
    EXPECT_EQ(std::get<1>(*result), 5);
    EXPECT_THROW(gw::sync_wait(ex::let_value(gw::scheduler().schedule(),
                                             []() -> ex::just_sender<> { throw std::out_of_range("no"); })),
                 std::out_of_range);
  });
}

/// Cannot be connected.
struct unconnected {
  using sender_concept = ex::sender_tag;
  template <template <class...> class Tuple>
  using values = Tuple<>;
  template <class R>
  ex::just_sender<>::operation<R> connect(R) && {
    throw std::out_of_range("no");
  }
};

TEST(senders, one_that_cannot_be_connected_leaves_nothing_behind) {
  gw::options o = support::on_threads(1);
  o.heap_bytes = std::size_t{8} << 20;  // less than a record for each
  gw::run(o, [] {
    for (int i = 0; i < 100'000; ++i) EXPECT_THROW(gw::sync_wait(unconnected{}), std::out_of_range);
  });
}

TEST(senders, from_outside_of_a_run_and_stopped_before_it_begins) {
  gw::background_run run(support::on_threads(2));
  for (const bool stop : {false, true}) {
    ex::inplace_stop_source source;
    if (stop) source.request_stop();
    std::promise<int> how;
    auto operation = ex::connect(gw::scheduler(run).schedule(), told{&how, source.get_token()});
    ex::start(operation);
    EXPECT_EQ(how.get_future().get(), stop ? 2 : 1);
  }
}

template <class Tag, class Policy, class F>
auto bulk(Policy policy, int n, F f) {
  using data = ex::bulk_data<Policy, int, F>;
  return gw::scheduler::domain::transform_sender(
      ex::set_value_t(),
      ex::bulk_sender<Tag, data, gw::scheduler::sender>{
          {}, {policy, n, std::move(f)}, gw::scheduler().schedule()},
      ex::env<>());
}

TEST(senders, bulk_is_split_unless_the_policy_forbids_it) {
  everywhere([] {
    constexpr int n = 1000;
    std::vector<std::atomic<int>> calls(n);
    std::atomic<int> chunks{0};
    const auto count = [&](int b, int e) {
      ++chunks;
      for (; b != e; ++b) ++calls[static_cast<std::size_t>(b)];
    };
    EXPECT_TRUE(gw::sync_wait(bulk<ex::bulk_chunked_t>(ex::par, n, count)));
    EXPECT_GE(chunks, 8);
    chunks = 0;
    EXPECT_TRUE(gw::sync_wait(bulk<ex::bulk_chunked_t>(ex::seq, n, count)));
    EXPECT_EQ(chunks, 1);
    EXPECT_TRUE(gw::sync_wait(
        bulk<ex::bulk_unchunked_t>(ex::par_unseq, n, [&](int i) { ++calls[static_cast<std::size_t>(i)]; })));
    for (const auto& c : calls) ASSERT_EQ(c, 3);
    EXPECT_TRUE(gw::sync_wait(bulk<ex::bulk_chunked_t>(ex::par, 0, [](int, int) { ADD_FAILURE(); })));
    EXPECT_THROW(gw::sync_wait(bulk<ex::bulk_unchunked_t>(ex::par, n,
                                                          [](int i) {
                                                            if (i == 50) throw std::out_of_range("50");
                                                          })),
                 std::out_of_range);
  });
}

struct items : psr::bulk_item_receiver_proxy {
  std::promise<int> how;
  std::atomic<std::size_t> sum{0}, parts{0};
  void set_value() noexcept override { how.set_value(1); }
  void set_stopped() noexcept override { how.set_value(2); }
  void execute(std::size_t b, std::size_t e) noexcept override {
    ++parts;
    for (; b != e; ++b) sum += b;
  }
};

TEST(senders, the_parallel_scheduler_of_the_program) {
  gw::parallel_backend ours(support::on_threads(2));
  psr::parallel_scheduler_backend& backend = ours;
  std::byte room[8];  // too small, and enough
  alignas(64) std::byte more[256];
  for (const std::span<std::byte> storage : {std::span<std::byte>(room), std::span<std::byte>(more)}) {
    items one, chunked, each, stopped;
    backend.schedule(one, storage);
    EXPECT_EQ(one.how.get_future().get(), 1);
    backend.schedule_bulk_chunked(1000, chunked, storage);
    EXPECT_EQ(chunked.how.get_future().get(), 1);
    EXPECT_EQ(chunked.sum, 499'500u);
    EXPECT_GE(chunked.parts, 16u);
    backend.schedule_bulk_unchunked(1000, each, storage);
    EXPECT_EQ(each.how.get_future().get(), 1);
    EXPECT_EQ(each.parts, 1000u);
    ex::inplace_stop_source stop;
    stop.request_stop();
    stopped.token = stop.get_token();
    backend.schedule_bulk_chunked(1000, stopped, storage);
    EXPECT_EQ(stopped.how.get_future().get(), 2);
    EXPECT_EQ(stopped.parts, 0u);
  }
}

}  // namespace
