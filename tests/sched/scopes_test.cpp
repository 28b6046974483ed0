// Tests of scopes: who is cancelled, what a shield and a stand-in do, and the count of strands.
// test: once
#include "sched/scopes.hpp"

#include "context/context.hpp"
#include "sched/host.hpp"

#include <gtest/gtest.h>

namespace {

using namespace host_of_tests;
namespace detail = godwit::detail;

struct scopes_of_a_thread : testing::Test {
  host all{2, 2};  // and a worker on another host
  carried_words words;
  scopes it{all.here(0), all.heap_of(0), words};

  void SetUp() override {
    detail::hot_words& hot = all.hot(0);
    hot.self = &hot;
    hot.cancellations = &all.node().cancellations;
    godwit::context::use_hot_words(&hot);
    hot.in_runtime = 1;
    words.init(all.here(0).words, nullptr);
  }
  void TearDown() override { godwit::context::use_hot_words(nullptr); }
  ref enter(scope_kind kind = scope_kind::scope, std::uint64_t deadline_ns = 0) {
    const ref scope = it.make(kind, deadline_ns);
    words.enter(scope, nullptr);
    it.changed();
    return scope;
  }
  scope_node& at(ref scope) { return *all.here(0).at<scope_node>(scope); }
  bool cancel(ref scope) { return scopes::request_in_place(all.here(0), scope, it.identity_of(scope)); }
  void leave() {
    words.leave(at(words.scope()).parent);
    it.changed();
  }
};

TEST_F(scopes_of_a_thread, a_request_is_for_all_below) {
  EXPECT_FALSE(it.ask());
  const ref outer = enter();
  const ref inner = enter();
  EXPECT_FALSE(it.ask());
  EXPECT_TRUE(cancel(inner));
  EXPECT_FALSE(cancel(inner)) << "it was already";
  EXPECT_TRUE(it.ask());
  leave();
  EXPECT_FALSE(it.ask());
  EXPECT_TRUE(cancel(outer));
  EXPECT_TRUE(it.ask());
  enter();
  EXPECT_TRUE(it.ask()) << "a scope inside";
  enter(scope_kind::shield);
  EXPECT_FALSE(it.ask()) << "a shield";
  leave();
  EXPECT_TRUE(it.ask()) << "and outside of it again";
}

TEST_F(scopes_of_a_thread, every_worker_of_the_host_is_told) {
  const ref scope = enter();
  all.hot(0).poll = all.hot(1).poll = 0;
  cancel(scope);
  EXPECT_EQ(all.hot(0).poll.load(), 1u);
  EXPECT_EQ(all.hot(1).poll.load(), 1u);
  EXPECT_EQ(all.node().cancellations.load(), 2u);
}

TEST_F(scopes_of_a_thread, spawns_are_looked_at_while_it_is_cancelled_and_after_a_change) {
  const ref scope = enter();
  EXPECT_NE(all.hot(0).poll.load(), 0u);
  all.hot(0).poll = 0;
  EXPECT_FALSE(it.ask());
  EXPECT_EQ(all.hot(0).poll.load(), 0u);
  cancel(scope);
  all.hot(0).poll = 0;
  EXPECT_TRUE(it.ask());
  EXPECT_NE(all.hot(0).poll.load(), 0u);
}

TEST_F(scopes_of_a_thread, a_token_that_is_too_late_finds_another_identity) {
  const ref first = enter();
  const std::uint64_t identity = it.identity_of(first);
  leave();
  all.heap_of(0).free(&at(first));
  const ref second = enter();
  EXPECT_EQ(second, first) << "the same memory";
  EXPECT_FALSE(scopes::request_in_place(all.here(0), second, identity));
  EXPECT_FALSE(it.ask());
}

TEST_F(scopes_of_a_thread, a_deadline_is_a_request) {
  enter(scope_kind::scope, godwit::base::fast_ns() + 3'600'000'000'000);
  EXPECT_FALSE(it.ask());
  const ref over = enter(scope_kind::scope, 1);
  EXPECT_TRUE(it.ask());
  EXPECT_EQ(at(over).request.load() & 1, 1u);
  leave();
  all.hot(0).poll = 0;
  EXPECT_FALSE(it.ask());
  EXPECT_NE(all.hot(0).poll.load(), 0u) << "the next spawn looks at the time";
}

TEST_F(scopes_of_a_thread, strands_are_counted) {
  const auto& memory = *all.here(0).memory;
  const ref scope = enter();
  add_strand(memory, scope);
  add_strand(memory, scope);
  take_strand_back(memory, scope);
  EXPECT_EQ(count_strand_off(memory, scope), 0u);
  EXPECT_EQ(count_strand_off(memory, scope), scope) << "the last one";
}

TEST_F(scopes_of_a_thread, a_stand_in_counts_for_a_strand_of_another_hosts_scope) {
  const auto& memory = *all.here(0).memory;
  const ref far = godwit::transport::make_ref(worker_no{2}, 4096);
  const ref here = it.near(far);
  EXPECT_NE(here, far);
  EXPECT_EQ(it.near(here), here);
  EXPECT_EQ(ask_scopes(memory, here).ask_on, far);
  EXPECT_EQ(at(here).references.load(), 1u);
  add_strand(memory, here);
  EXPECT_EQ(taken_along(memory, here), here) << "others stay";
  EXPECT_EQ(count_strand_off(memory, here), 0u);
  EXPECT_EQ(taken_along(memory, here), far) << "the last one takes its place along";
  EXPECT_EQ(at(here).freed.load(), freed_marked);
  const ref again = it.near(far);
  EXPECT_EQ(count_strand_off(memory, again), far) << "the last one counts it off there";
  EXPECT_TRUE(it.is_or_stands_for(far, far));
}

}  // namespace
