// Tests of the words that go with threads: which thread of a deque has which, and what a continuation brings
// to who takes it. That every thread of a run sees those of its creator: tests/api/cancel_test.cpp.
// test: once
#include "sched/carried.hpp"

#include "context/context.hpp"
#include "sched/exposure.hpp"
#include "sched/far_calls.hpp"
#include "sched/host.hpp"

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace host_of_tests;
namespace detail = godwit::detail;

struct words_of_threads : testing::Test {
  public_words shared;
  std::array<spawn_slot, 8> slots{};
  carried_words words;
  void SetUp() override { words.init(&shared, &slots[1]); }
};

TEST_F(words_of_threads, are_those_of_the_scope_that_was_entered_last_before_the_spawn) {
  EXPECT_EQ(words.now(), carried{});
  EXPECT_EQ(words.scope_of(&slots[1]), 0u);
  words.enter(64, &slots[2]);
  words.enter(128, &slots[4]);
  EXPECT_EQ(words.scope_of(&slots[1]), 0u);
  EXPECT_EQ(words.scope_of(&slots[2]), 64u);
  EXPECT_EQ(words.scope_of(&slots[3]), 64u);
  EXPECT_EQ(words.scope_of(&slots[4]), 128u);
  EXPECT_EQ(words.scope(), 128u);
  words.leave(64);
  EXPECT_EQ(words.scope(), 64u);
  words.leave(0);
  EXPECT_EQ(words.now(), carried{});
}

TEST_F(words_of_threads, two_scopes_of_one_thread_are_told_apart_by_the_last) {
  words.enter(64, &slots[2]);
  words.enter(128, &slots[2]);
  EXPECT_EQ(words.scope_of(&slots[2]), 128u);
  words.leave(64);
  EXPECT_EQ(words.scope_of(&slots[2]), 64u);
}

TEST_F(words_of_threads, come_with_a_thread_and_its_scopes_parents_are_found_when_it_leaves_them) {
  words.come({.scope = 256, .segment = 7 << 6});
  EXPECT_EQ(words.now(), (carried{256, 7 << 6}));
  EXPECT_EQ(words.scope_of(&slots[1]), 256u);
  words.leave(192);
  EXPECT_EQ(words.scope_of(&slots[1]), 192u);
  words.leave(0);
  EXPECT_EQ(words.scope(), 0u);
  words.come({});
  EXPECT_EQ(words.now(), carried{});
}

TEST_F(words_of_threads, a_parent_that_goes_on_in_place_has_its_own_again) {
  words.enter(64, &slots[2]);   // the parent
  words.enter(128, &slots[3]);  // its child, which suspends
  words.parent_goes_on(&slots[2]);
  EXPECT_EQ(words.scope(), 64u);
  words.parent_goes_on(&slots[1]);
  EXPECT_EQ(words.scope(), 0u);
}

TEST_F(words_of_threads, a_thread_whose_parents_are_gone_is_the_first_of_the_deque) {
  words.enter(64, &slots[2]);
  words.enter(128, &slots[4]);
  words.moved_down();
  EXPECT_EQ(words.scope_of(&slots[1]), 128u);
  EXPECT_EQ(words.scope(), 128u);
}

/// A deque of worker 0 in which threads spawn.
struct words_that_are_taken : testing::Test {
  host all{2};
  account counts;
  deque_owner deque;
  join_records records{all.here(0), all.heap_of(0)};
  ancestors frames{all.here(0), deque};
  carried_words words;
  exposure exposing{all.here(0), deque, records, frames, words, counts};
  std::array<std::uintptr_t, 64> stack{};

  void SetUp() override {
    detail::hot_words& hot = all.hot(0);
    hot.self = &hot;
    godwit::context::use_hot_words(&hot);
    counts.init(all.here(0).words->stats, nullptr);
    auto* slots = reinterpret_cast<spawn_slot*>(all.memory().common() + all.memory().where().slots);
    deque.init(&hot, all.here(0).words, slots, godwit::base::turn_of, []() noexcept {});
    words.init(all.here(0).words, slots + 1);
    deque.sentinel().sp = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size());
    hot.in_runtime = 1;
  }
  void TearDown() override { godwit::context::use_hot_words(nullptr); }
  void spawn() {
    *all.hot(0).bottom = {};
    all.hot(0).bottom->sp = reinterpret_cast<std::uintptr_t>(stack.data() + 8);
    ++all.hot(0).bottom;
  }
  /// What worker 1 finds of the oldest continuation.
  carried taken() {
    carried got;
    const site& thief = all.here(1);
    const auto outcome = steal(
        thief.net, thief.holder(), worker_no{0}, thief.words, true, [] {},
        [&](const spawn_slot& own, const spawn_slot&, spawn_slot*, ref) {
          got = carried_along(*thief.memory, *thief.words_of(worker_no{0}), own);
          return true;
        });
    EXPECT_EQ(outcome, steal_outcome::taken);
    return got;
  }
};

TEST_F(words_that_are_taken, are_those_of_the_thread_that_is_taken) {
  auto* outer = all.heap_of(0).allocate(object_kind::record, 256);
  auto* inner = all.heap_of(0).allocate(object_kind::record, 256);
  static_cast<record*>(outer)->references = static_cast<record*>(inner)->references = 1;
  words.come({.segment = 5 << 6});
  spawn();
  words.enter(all.ref_of(outer), all.hot(0).bottom);
  spawn();
  words.enter(all.ref_of(inner), all.hot(0).bottom);
  spawn();
  exposing.expose(all.hot(0).bottom, 0x1f80);
  words.leave(all.ref_of(outer));  // what is public stays as it is
  EXPECT_EQ(taken(), (carried{0, 5 << 6}));
  EXPECT_EQ(taken(), (carried{all.ref_of(outer), 5 << 6}));
  EXPECT_EQ(taken(), (carried{all.ref_of(inner), 5 << 6}));
}

}  // namespace
