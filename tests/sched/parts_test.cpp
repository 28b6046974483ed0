// Tests of the small parts of a worker: what it answers to other hosts itself, events from outside, and its
// ancestors' frames.
#include "sched/ancestors.hpp"
#include "sched/inbox.hpp"
#include "sched/outside_events.hpp"

#include "sched/far_calls.hpp"
#include "sched/host.hpp"
#include "sched/ready_queue.hpp"
#include "support/child.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace {

using namespace host_of_tests;
namespace detail = godwit::detail;
using godwit::transport::far::entry;
using godwit::transport::far::op;
using state_of_entry = godwit::transport::far::state;

// ---- the inbox ----

struct inbox : testing::Test {
  host all{2};
  account counts;
  godwit::base::small_random random{1};
  far_inbox it{all.here(1), all.heap_of(1), counts, random};
  std::uint32_t next = 0;

  void SetUp() override { counts.init(all.words(1).stats, nullptr); }
  entry& post(op what) {
    entry& e = all.all_words(1).far.inbox[next++ % godwit::transport::far::inbox_entries];
    e.head = {};
    e.head.what = what;
    e.head.target = worker_no{1};
    e.now = state_of_entry::posted;
    return e;
  }
};

TEST_F(inbox, is_left_alone_where_companions_answer) {
  const entry& e = post(op::fetch_add);
  it.serve();
  EXPECT_EQ(e.now.load(), state_of_entry::posted);
}

TEST_F(inbox, answers_words_and_calls_in_order) {
  all.here(1).shape.serves_itself = true;
  it.init();
  word& cell = all.words(1).mailbox;
  cell = 40;
  entry& add = post(op::fetch_add);
  add.head.address = reinterpret_cast<std::uint64_t>(all.memory(1).common()) +
                     all.memory(1).offset_of(&all.here(1).words->mailbox);
  add.head.a = 2;
  entry& nudge = post(op::cast);
  nudge.head.a = static_cast<std::uint64_t>(call_no::nudge);
  all.all_words(0).far.deaf = 1;  // it sleeps
  const std::uint32_t bell = all.all_words(0).far.bell.load();
  it.serve();
  EXPECT_EQ(add.now.load(), state_of_entry::done);
  EXPECT_EQ(add.head.result, 40u);
  EXPECT_EQ(cell.load(), 42u);
  EXPECT_EQ(nudge.now.load(), state_of_entry::done);
  EXPECT_EQ(all.hot(1).poll.load(), 1u);
  EXPECT_EQ(all.words(1).stats.messages, 2u);
  EXPECT_NE(all.all_words(0).far.bell.load(), bell) << "the companion hears of it";
  for (int round = 0; round < 20; ++round) {  // around the ring
    entry& e = post(op::cast);
    e.head.a = static_cast<std::uint64_t>(call_no::nudge);
    it.serve();
    ASSERT_EQ(e.now.load(), state_of_entry::done);
  }
}

TEST_F(inbox, a_long_answer_lies_in_the_heap_until_it_has_left) {
  all.here(1).shape.serves_itself = true;
  it.init();
  constexpr std::size_t bytes = 10'000;
  auto* im = static_cast<image*>(all.heap_of(1).allocate(object_kind::image, sizeof(image) + bytes));
  im->sp = 64;
  im->bound = false;
  im->low = 4096;
  im->top = im->bytes_end = im->low + bytes;
  im->own_record = 77;
  im->fork = false;
  std::memset(im->bytes(), 9, bytes);
  ready_queue(all.memory(1), all.words(1), all.here(1).holder()).push(im, all.ref_of(im), rank::last);
  entry& e = post(op::call);
  e.head.a = static_cast<std::uint64_t>(call_no::steal);
  it.serve();
  ASSERT_EQ(e.head.result, static_cast<std::uint64_t>(loot_kind::suspended));
  ASSERT_EQ(e.head.more[0], 1u);
  EXPECT_EQ(e.head.bytes, bytes);
  const auto* answer = reinterpret_cast<const std::byte*>(e.head.address);
  EXPECT_EQ(answer[0], std::byte{9});
  EXPECT_EQ(answer[bytes - 1], std::byte{9});
  EXPECT_NE(im->freed.load(), 0u) << "the image has left";
}

// ---- events from outside ----

TEST(events, are_collected_only_if_somebody_waits_and_delivered_once) {
  static int looks, deliveries;
  looks = deliveries = 0;
  host all{1};
  site& here = all.here(0);
  outside_events it(here);
  EXPECT_FALSE(it.collect(0)) << "no source";
  static const detail::event_source source{[](std::int64_t) noexcept { return ++looks == 2; },
                                           []() noexcept { ++deliveries; }, []() noexcept {},
                                           []() noexcept {}};
  here.hooks.events = &source;
  EXPECT_FALSE(it.collect(0));
  EXPECT_EQ(looks, 0) << "nobody waits";
  all.node().outside = 1;
  EXPECT_FALSE(it.collect(0));
  EXPECT_TRUE(it.collect(0));
  EXPECT_TRUE(it.pending());
  EXPECT_TRUE(it.collect(0));
  EXPECT_EQ(looks, 2) << "not before those are delivered";
  it.deliver();
  EXPECT_EQ(deliveries, 1);
  EXPECT_FALSE(it.pending());
}

TEST(events, a_busy_worker_looks_now_and_then) {
  host all{1};
  outside_events it(all.here(0));
  int turns = 1;
  while (!it.is_due()) ++turns;
  EXPECT_EQ(turns, 64);
  EXPECT_TRUE(it.is_due()) << "until it has looked";
}

// ---- frames of ancestors ----

struct frames_beside : testing::Test {
  host all{1};
  site& here = all.here(0);
  deque_owner deque;
  ancestors it{here, deque};
  alignas(64) std::array<std::uintptr_t, 64> stack{};

  std::uintptr_t at(std::size_t word) { return reinterpret_cast<std::uintptr_t>(stack.data() + word); }
  void SetUp() override {
    deque.init(&all.hot(0), here.words,
               reinterpret_cast<spawn_slot*>(here.memory->common() + here.memory->where().slots),
               godwit::base::turn_of, []() noexcept {});
    here.region_low = at(0);
    here.region_high = at(64);
    here.opts.check_frames = true;
  }
  spawn_slot& child_of(std::uintptr_t closure_word) {
    spawn_slot& s = *all.hot(0).bottom++;
    s = {};
    s.sp = at(16);
    s.closure[0] = closure_word;
    return s;
  }
};

TEST_F(frames_beside, go_along_with_a_closure_that_refers_to_them) {
  EXPECT_EQ(it.needed_end(child_of(17), at(32), at(16)), at(32)) << "a number";
  EXPECT_EQ(it.needed_end(child_of(at(20)), at(32), at(16)), at(32)) << "into its own stack";
  EXPECT_EQ(it.needed_end(child_of(at(40)), at(32), at(16)), at(64)) << "into an ancestor's";
  here.opts.check_frames = false;
  EXPECT_EQ(it.needed_end(child_of(at(40)), at(32), at(16)), at(32));
}

TEST_F(frames_beside, a_write_into_the_copy_ends_the_run) {
  spawn_slot& bottom = deque.sentinel();
  bottom.sp = at(16);  // of who was there before
  bottom.record = all.ref_of(all.heap_of(0).allocate(object_kind::record, sizeof(record)));
  here.at<record>(bottom.record)->spawned_at = 0;
  it.came(at(32), at(64));
  EXPECT_EQ(bottom.sp, at(32));
  EXPECT_EQ(bottom.bytes_end, at(64));
  it.check_came(bottom);
  stack[20] = 1;  // its own
  it.check_came(bottom);
  const support::outcome o = support::run_child([&]() -> int {
    stack[40] = 1;
    it.check_came(bottom);
    return 0;
  });
  EXPECT_EQ(o.status, 70) << support::show(o);
  EXPECT_TRUE(o.err_has("the write is lost")) << support::show(o);
  it.came(at(32), at(32));
  stack[40] = 2;
  it.check_came(bottom);  // nothing came along
}

}  // namespace
