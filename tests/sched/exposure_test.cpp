// Tests of exposure: what a continuation has when it becomes public, when a signal may make it so, and which
// values are encoded before frames may leave.
#include "sched/exposure.hpp"

#include "context/context.hpp"
#include "sched/host.hpp"

#include <godwit/future.hpp>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace {

using namespace host_of_tests;
namespace detail = godwit::detail;

struct exposing : testing::Test {
  host all{1};
  site& here = all.here(0);
  account counts;
  deque_owner deque;
  join_records records{here, all.heap_of(0)};
  ancestors frames{here, deque};
  carried_words words;
  exposure it{here, deque, records, frames, words, counts};
  std::array<std::uintptr_t, 64> stack{};  // from which slots point

  void SetUp() override {
    detail::hot_words& hot = all.hot(0);
    hot.self = &hot;
    godwit::context::use_hot_words(&hot);
    counts.init(here.words->stats, nullptr);
    deque.init(&hot, here.words,
               reinterpret_cast<spawn_slot*>(here.memory->common() + here.memory->where().slots),
               godwit::base::turn_of, []() noexcept {});
    deque.sentinel().sp = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size());
    hot.in_runtime = 1;
  }
  void TearDown() override { godwit::context::use_hot_words(nullptr); }

  /// As fork_call does it.
  void spawn() {
    detail::hot_words& hot = all.hot(0);
    const auto depth = static_cast<std::size_t>(hot.bottom - &deque.sentinel());
    *hot.bottom = {};
    hot.bottom->sp = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size() - 2 * depth);
    ++hot.bottom;
  }
};

TEST_F(exposing, gives_each_continuation_a_record) {
  for (int i = 0; i < 4; ++i) spawn();
  spawn_slot* const first = all.hot(0).split;
  it.expose(first + 2, 0x1f80);
  EXPECT_EQ(all.hot(0).split, first + 2);
  EXPECT_EQ(all.words(0).split.load(), reinterpret_cast<std::uint64_t>(first + 2));
  for (spawn_slot* s = first; s < first + 2; ++s) {
    ASSERT_NE(s->record, 0u);
    const record* r = here.at<record>(s->record);
    EXPECT_EQ(s->float_control, 0x1f80u);
    EXPECT_EQ(r->state.load(), state_none);
    EXPECT_EQ(s->bytes_end, s[-1].sp) << "its stack ends where its parent's frames begin";
  }
  EXPECT_EQ(first[2].record, 0u);
  EXPECT_EQ(here.words->stats.exposures, 1u);
  deque.check_invariants();
}

TEST_F(exposing, a_signal_makes_half_public) {
  for (int i = 0; i < 4; ++i) spawn();
  all.hot(0).in_runtime = 0;
  EXPECT_TRUE(it.on_signal(7));
  EXPECT_EQ(all.hot(0).split, &deque.sentinel() + 3);
  EXPECT_EQ(all.hot(0).in_runtime, 0u);
  EXPECT_EQ(here.words->stats.signals, 1u);
  EXPECT_TRUE(it.on_signal(7));
  EXPECT_TRUE(it.on_signal(7));
  EXPECT_FALSE(it.on_signal(7)) << "nothing is left";
  EXPECT_EQ(all.hot(0).poll.load(), 0u);
}

TEST_F(exposing, a_signal_that_comes_amiss_is_put_off_to_the_next_spawn) {
  spawn();
  const auto put_off = [&] {
    all.hot(0).poll.store(0);
    EXPECT_FALSE(it.on_signal(7));
    EXPECT_EQ(all.hot(0).split, &deque.sentinel() + 1) << "nothing became public";
    return all.hot(0).poll.load() == 1;
  };
  EXPECT_TRUE(put_off()) << "in the runtime";
  all.hot(0).in_runtime = 0;
  detail::pending_value value;
  all.hot(0).pending = &value;
  EXPECT_TRUE(put_off()) << "a value is to be encoded";
  all.hot(0).pending = nullptr;
  here.forced = godwit::choice::force_steal::parents;
  EXPECT_TRUE(put_off()) << "steals are forced";
  here.forced = godwit::choice::force_steal::none;
  here.hooks.must_release = []() noexcept { return true; };
  EXPECT_TRUE(put_off()) << "somebody would have to be told of writes";
  here.hooks.must_release = []() noexcept { return false; };
  EXPECT_TRUE(it.on_signal(7));
}

TEST_F(exposing, a_signal_leaves_the_newest_alone_while_there_are_exceptions) {
  spawn();
  all.hot(0).in_runtime = 0;
  try {
    throw 1;
  } catch (int) {
    EXPECT_FALSE(it.on_signal(7)) << "it may have been pushed a moment ago, from the handler";
    EXPECT_EQ(all.hot(0).poll.load(), 1u);
    spawn();
    EXPECT_TRUE(it.on_signal(7)) << "the older one";
    EXPECT_EQ(all.hot(0).split, &deque.sentinel() + 2);
    EXPECT_FALSE(it.on_signal(7));
  }
  EXPECT_TRUE(it.on_signal(7));
}

TEST_F(exposing, encodes_what_lies_in_the_frames_that_may_leave) {
  static std::vector<detail::pending_value*> encoded;
  encoded.clear();
  std::array<detail::pending_value, 4> on_stack;
  detail::pending_value elsewhere;
  const auto address = [](const detail::pending_value& v) { return reinterpret_cast<std::uintptr_t>(&v); };
  here.region_low = address(on_stack[0]);
  here.region_high = address(on_stack[3]) + sizeof on_stack[3];
  for (detail::pending_value* v : {&on_stack[0], &on_stack[1], &on_stack[2], &on_stack[3], &elsewhere}) {
    v->link([](detail::pending_value* p) {
      encoded.push_back(p);
      p->unlink();
    });
  }
  it.encode_pending(address(on_stack[1]), address(on_stack[3]));
  EXPECT_EQ(encoded, (std::vector<detail::pending_value*>{&elsewhere, &on_stack[2], &on_stack[1]}));
  it.encode_pending(here.region_low, here.region_high);
  EXPECT_EQ(encoded.size(), 5u);
  EXPECT_EQ(all.hot(0).pending, nullptr);
}

TEST_F(exposing, encodes_no_value_that_another_one_held) {
  static std::array<detail::pending_value, 3> values;
  static int encoded;
  encoded = 0;
  for (detail::pending_value& v : values)
    v.link([](detail::pending_value*) { ADD_FAILURE() << "it was held"; });
  const auto with_the_one_before = [](detail::pending_value* p) {
    ++encoded;
    p->unlink();
    if (p != &values[0]) p[-1].unlink();
  };
  values[2].encode = values[0].encode = with_the_one_before;
  it.encode_pending(0, 0);
  EXPECT_EQ(encoded, 2);
  EXPECT_EQ(all.hot(0).pending, nullptr);
}

}  // namespace
