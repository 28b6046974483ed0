// Tests of join records: results that fit and such that do not, consumers that come and go, and objects that
// another worker gives back.
#include "sched/records.hpp"

#include "sched/far_calls.hpp"
#include "sched/host.hpp"
#include "sched/others.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace {

using namespace host_of_tests;
using godwit::detail::outcome;

struct join : testing::Test {
  host all{2};
  join_records mine{all.here(0), all.heap_of(0)};
  join_records theirs{all.here(1), all.heap_of(1)};

  record& at(ref r) { return *all.memory().at<record>(r); }
  std::size_t used() { return all.heap_of(0).used_bytes(); }
  std::size_t used_after_collection() {
    all.heap_of(0).collect();
    return used();
  }
};

TEST_F(join, a_result_comes_as_it_was_whatever_its_size) {
  for (const std::size_t bytes : {0, 1, 40, 41, 1000, 100'000}) {
    std::vector<unsigned char> sent(bytes);
    std::iota(sent.begin(), sent.end(), static_cast<unsigned char>(7));
    const ref r = mine.make();
    EXPECT_FALSE(mine.is_complete(r));
    theirs.publish(r, outcome::value, sent.data(), bytes);
    EXPECT_FALSE(mine.is_complete(r)) << "a result alone completes nothing";
    EXPECT_EQ(theirs.exchange_state(r, state_done), state_none);
    ASSERT_TRUE(mine.is_complete(r));
    const godwit::detail::payload p = mine.payload_of(r);
    EXPECT_EQ(p.kind, outcome::value);
    ASSERT_EQ(p.size, bytes);
    EXPECT_TRUE(bytes == 0 || std::memcmp(p.data, sent.data(), bytes) == 0);
    mine.release(r);
  }
  EXPECT_EQ(used(), 0u);
  all.heap_of(1).collect();
  EXPECT_EQ(all.heap_of(1).used_bytes(), 0u) << "results lie with who made them, until the record goes";
}

/// The record is complete, and holds @p result.
void answer_read(far_words::entry& e, const result_words& result) {
  ASSERT_EQ(e.head.a, call_no::read_record);
  e.head.result = 1;
  e.head.info = sizeof result + (result.object != 0 ? result.bytes : 0);
  std::memcpy(e.data, &result, sizeof result);
}

TEST(join_elsewhere, who_has_read_that_nothing_is_left_tells_it_later) {
  host all{1, 3};
  join_records mine{all.here(0), all.heap_of(0)};
  others rest{all};
  const ref r = godwit::transport::make_ref(worker_no{1}, 64);
  result_words result{};
  std::vector<far_words::op> releases;
  rest.answer = [&](far_words::entry& e) {
    if (e.head.a == call_no::release || e.head.a == call_no::release_read)
      return releases.push_back(e.head.what);
    answer_read(e, result);
  };
  result.bytes = 8;
  ASSERT_TRUE(mine.fetch(r));
  mine.release(r);
  EXPECT_EQ(rest.asked, 1);
  mine.send_releases();
  while (rest.asked < 2) std::this_thread::yield();
  mine.release(r);  // of another future: what the record says now has not been read
  result.object = godwit::transport::make_ref(worker_no{2}, 128);
  result.bytes = 48;
  ASSERT_TRUE(mine.fetch(r));
  mine.release(r);
  // Nor is it what was read for a thread that has left, or before one came: others may have freed it.
  result = {};
  ASSERT_TRUE(mine.fetch(r));
  mine.thread_leaves();
  mine.release(r);
  ASSERT_TRUE(mine.fetch(r));
  mine.thread_came();
  mine.release(r);
  using far_words::op;
  EXPECT_EQ(releases, (std::vector{op::cast, op::call, op::call, op::call, op::call}));
}

TEST(join_elsewhere, who_completes_a_record_knows_the_result_it_published_for_it_and_no_other) {
  host all{1, 3};
  join_records mine{all.here(0), all.heap_of(0)};
  others rest{all};
  const ref r = godwit::transport::make_ref(worker_no{1}, 64);
  constexpr std::uint64_t ours = 7, theirs = 99;
  int reads = 0;
  rest.answer = [&](far_words::entry& e) {
    if (e.head.what != far_words::op::call) return;  // the result, the exchange
    ASSERT_EQ(e.head.a, call_no::read_record);
    ++reads;
    result_words there{};
    there.bytes = sizeof theirs;
    std::memcpy(there.small, &theirs, sizeof theirs);
    e.head.result = 1;
    e.head.info = sizeof there;
    std::memcpy(e.data, &there, sizeof there);
  };
  const auto publish = [&] { mine.publish(r, outcome::value, &ours, sizeof ours); };
  const auto complete = [&] { static_cast<void>(mine.exchange_state(r, state_done)); };
  const auto read = [&] {
    std::uint64_t value = 0;
    std::memcpy(&value, mine.payload_of(r).data, sizeof value);
    return value;
  };
  const auto read_by_waiter = [&] {
    mine.will_be_read(r);
    return read();
  };
  publish(), complete();
  EXPECT_EQ(read_by_waiter(), ours);
  EXPECT_EQ(reads, 0) << "nobody was asked";
  EXPECT_EQ(read(), theirs) << "and again: perhaps it is another record by now";
  publish(), complete();  // nobody waited
  complete();             // the next record at its place, whose result another worker published
  EXPECT_EQ(read_by_waiter(), theirs);
  publish(), mine.thread_leaves(), complete();  // the thread left, and another one completes here
  EXPECT_EQ(read_by_waiter(), theirs);
  EXPECT_EQ(reads, 3);
}

// Between two other hosts requests have no order.
TEST(join_elsewhere, a_part_that_failed_has_its_link_before_it_is_in_the_list) {
  host all{1, 3};
  join_records mine{all.here(0), all.heap_of(0)};
  others rest{all};
  const auto at = [](std::uint32_t worker, std::uint64_t offset) {
    return godwit::transport::make_ref(worker_no{worker}, offset);
  };
  const ref part = at(1, 64), tally = at(2, 64), earlier = at(2, 256), faster = at(2, 512);
  using far_words::op;
  std::vector<std::pair<op, std::uint32_t>> asked;
  std::vector<ref> links;
  int tries = 0;
  rest.answer = [&](far_words::entry& e) {
    if (e.head.what == op::call) {
      ASSERT_EQ(e.head.a, call_no::read_record);
      result_words result{};
      result.kind = outcome::error;
      e.head.result = 1;
      e.head.info = sizeof result;
      return static_cast<void>(std::memcpy(e.data, &result, sizeof result));
    }
    asked.emplace_back(e.head.what, index(e.head.target));
    if (e.head.what == op::put) std::memcpy(&links.emplace_back(), e.data, sizeof(ref));
    if (e.head.what == op::load) e.head.result = earlier;
    if (e.head.what == op::compare_exchange) e.head.result = tries++ == 0 ? faster : e.head.a;
  };
  mine.end_part(part, tally);
  EXPECT_EQ(asked, (std::vector<std::pair<op, std::uint32_t>>{{op::load, 2},
                                                              {op::put, 1},
                                                              {op::fence, 1},
                                                              {op::compare_exchange, 2},
                                                              {op::put, 1},
                                                              {op::fence, 1},
                                                              {op::compare_exchange, 2}}));
  EXPECT_EQ(links, (std::vector{earlier, faster}));
}

TEST_F(join, the_last_consumer_frees) {
  const int seven = 7;
  const ref r = mine.make_completed(outcome::value, &seven, sizeof seven);
  theirs.retain(r);
  mine.release(r);
  EXPECT_NE(used(), 0u);
  theirs.release(r);
  EXPECT_NE(used(), 0u) << "another worker only marks it";
  EXPECT_EQ(used_after_collection(), 0u);
}

TEST_F(join, who_is_second_frees_what_nobody_asks_for) {
  const ref r = mine.make();
  mine.detach(r);
  EXPECT_EQ(at(r).state.load(), state_detached);
  EXPECT_EQ(theirs.exchange_state(r, state_done), state_detached);
  theirs.free_completed(r);
  EXPECT_EQ(used_after_collection(), 0u);

  const ref done = mine.make_completed(outcome::value, nullptr, 0);
  mine.detach(done);
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(host::unseen_errors, 0);
  mine.detach(mine.make_completed(outcome::error, "what", 5));
  EXPECT_EQ(host::unseen_errors, 1);
}

TEST_F(join, an_error_moves_to_the_record_of_a_parent_that_left) {
  const ref parent = mine.make();
  theirs.publish_error(parent, theirs.make_completed(outcome::error, "what", 5));
  const godwit::detail::payload p = (mine.exchange_state(parent, state_done), mine.payload_of(parent));
  EXPECT_EQ(p.kind, outcome::error);
  EXPECT_STREQ(reinterpret_cast<const char*>(p.data), "what");
  EXPECT_EQ(all.heap_of(1).used_bytes(), 0u);
}

TEST_F(join, boxed_results_are_destroyed_with_their_record_once) {
  static int destroyed;
  destroyed = 0;
  int object = 0;
  const godwit::detail::boxed box{&object, [](void*) noexcept { ++destroyed; }};
  const ref kept = mine.make_completed_boxed(outcome::error, box);
  const ref parent = mine.make();
  mine.publish_error(parent, kept);
  EXPECT_EQ(destroyed, 0) << "it has a new owner";
  mine.exchange_state(parent, state_done);
  mine.release(parent);
  EXPECT_EQ(destroyed, 1);
}

/// @p bytes of a value, and behind them a function that counts and does what it has to.
join_records* dropper;
int dropped;
std::vector<std::byte> owning_result(std::size_t bytes) {
  std::vector<std::byte> result(bytes, std::byte{7});
  godwit::detail::drop_function* const drop = [](ref r, const godwit::detail::payload& p) noexcept {
    EXPECT_TRUE(p.size == sizeof drop || p.data[0] == std::byte{7});
    dropper->free_taken(r);
    ++dropped;
  };
  const auto* const word = reinterpret_cast<const std::byte*>(&drop);
  result.insert(result.end(), word, word + sizeof drop);
  return result;
}

TEST_F(join, what_a_result_owns_is_dropped_once_unless_it_was_taken) {
  using godwit::detail::owning;
  for (const std::size_t size : {0, 32, 33, 5000}) {
    const std::vector<std::byte> result = owning_result(size);
    const auto completed = [&](join_records& by) {
      const ref r = mine.make();
      by.publish(r, outcome::value, result.data(), result.size(), owning::values);
      by.exchange_state(r, state_done);
      return r;
    };
    dropped = 0;
    dropper = &mine;
    for (join_records* by : {&mine, &theirs}) {
      const ref shared = completed(*by);
      theirs.retain(shared);
      mine.release(shared);
      EXPECT_EQ(std::exchange(dropped, 0), 0) << "somebody may read it";
      dropper = &theirs;
      theirs.release(shared);
      EXPECT_EQ(std::exchange(dropped, 0), 1);
      dropper = &mine;
      mine.detach(completed(*by));
      EXPECT_EQ(std::exchange(dropped, 0), 1);
      mine.free_taken(completed(*by));
      EXPECT_EQ(std::exchange(dropped, 0), 0);
    }
    const ref running = mine.make();
    mine.detach(running);
    theirs.publish(running, outcome::value, result.data(), result.size(), owning::values);
    theirs.exchange_state(running, state_done);
    dropper = &theirs;
    theirs.free_unseen(running);
    EXPECT_EQ(std::exchange(dropped, 0), 1);
    const ref failed = mine.make();
    mine.publish(failed, outcome::value, result.data(), result.size(), owning::values);
    dropper = &mine;
    mine.drop_value(failed);
    EXPECT_EQ(std::exchange(dropped, 0), 1);
    mine.exchange_state(failed, state_done);
    mine.release(failed);
    EXPECT_EQ(dropped, 0) << "there is no value any more";
    all.heap_of(1).collect();
    EXPECT_EQ(used_after_collection() + all.heap_of(1).used_bytes(), 0u);
  }
}

TEST(join_elsewhere, who_has_taken_a_value_says_so_and_asks_for_nothing_back) {
  using godwit::detail::owning;
  host all{1, 3};
  join_records mine{all.here(0), all.heap_of(0)};
  others rest{all};
  const ref r = godwit::transport::make_ref(worker_no{1}, 64);
  result_words result{};
  result.owns = owning::values;
  std::vector<std::pair<far_words::op, std::uint64_t>> releases;
  rest.answer = [&](far_words::entry& e) {
    if (e.head.a == call_no::release || e.head.a == call_no::release_read)
      return static_cast<void>(releases.emplace_back(e.head.what, e.head.more[0]));
    answer_read(e, result);
  };
  result.bytes = 16;
  ASSERT_TRUE(mine.fetch(r));
  mine.free_taken(r);
  mine.send_releases();
  while (rest.asked < 2) std::this_thread::yield();
  ASSERT_TRUE(mine.fetch(r));
  mine.release(r);
  result.object = godwit::transport::make_ref(worker_no{1}, 128);
  result.bytes = 48;
  ASSERT_TRUE(mine.fetch(r));
  mine.free_taken(r);
  using far_words::op;
  EXPECT_EQ(releases, (std::vector<std::pair<op, std::uint64_t>>{
                          {op::cast, 0}, {op::call, 0}, {op::call, release_as::taken}}));
}

TEST_F(join, the_short_way_takes_only_what_is_done_alone_and_empty) {
  const ref r = mine.make();
  EXPECT_FALSE(mine.take_finished(r));
  mine.exchange_state(r, state_done);
  mine.retain(r);
  EXPECT_FALSE(mine.take_finished(r));
  mine.release(r);
  EXPECT_TRUE(mine.take_finished(r));
  EXPECT_EQ(used(), 0u);
  EXPECT_FALSE(mine.take_finished(mine.make_completed(outcome::value, "x", 1)));
  EXPECT_FALSE(mine.take_finished(mine.make_completed(outcome::error, nullptr, 0)));
}

TEST_F(join, with_a_queue_others_link_what_they_give_back) {
  all.heap_of(0).use_queue(&all.words(0).free_lock, &all.words(0).free_head);
  all.heap_of(1).use_queue(&all.words(1).free_lock, &all.words(1).free_head);
  std::vector<ref> made;
  for (int i = 0; i < 5; ++i) made.push_back(mine.make());
  for (const ref r : made) theirs.free(r);
  EXPECT_EQ(all.words(0).free_head.load(), made.back());
  EXPECT_EQ(all.words(0).free_lock.load(), 0u);
  EXPECT_EQ(used_after_collection(), 0u);
}

TEST_F(join, a_tally_gives_what_is_above_it_to_the_last_part) {
  const ref above = mine.make(), tally = mine.make_tally(3, above);
  EXPECT_EQ(theirs.count_off(tally), 0u);
  EXPECT_EQ(mine.count_off(tally), 0u);
  EXPECT_EQ(theirs.count_off(tally), above);
  mine.free(above);
  mine.free(tally);
  const ref short_one = mine.make_tally(1, 64);
  EXPECT_EQ(mine.count_off(short_one), 64u);
  mine.free(short_one);
  EXPECT_EQ(used_after_collection(), 0u);
}

TEST_F(join, a_thread_that_is_detached_into_a_tally_is_out_until_it_ends) {
  const ref tally = mine.make_tally();
  EXPECT_FALSE(mine.await_last(tally, 64)) << "none is out";
  const ref runs = mine.make(), ended = mine.make();
  mine.count_part(runs, tally);
  EXPECT_TRUE(mine.detach_into(runs, tally));
  theirs.put_span(ended, 1000);
  mine.count_part(ended, tally);
  theirs.put_span(ended, 2000);
  EXPECT_EQ(mine.exchange_state(ended, state_done), state_none);
  EXPECT_FALSE(mine.detach_into(ended, tally)) << "and is still to be counted off";
  EXPECT_EQ(at(tally).span_ns, 0u) << "whose chains are not asked for";
  EXPECT_EQ(mine.look_at_failed(runs).number, 0u);
  EXPECT_EQ(mine.look_at_failed(ended).number, 1u) << "who ends before it is detached keeps its number";
  mine.end_part(ended, tally);
  EXPECT_EQ(mine.count_off(tally), 0u);
  EXPECT_TRUE(mine.await_last(tally, 64));
  const std::uint64_t state = theirs.exchange_state(runs, state_done);
  EXPECT_TRUE(is_detached(state));
  EXPECT_FALSE(is_image(state));
  EXPECT_EQ(tally_in(state), tally);
  theirs.end_part(runs, tally);
  EXPECT_EQ(theirs.count_off(tally), 64u);
  EXPECT_FALSE(mine.await_last(tally, 64)) << "it can be used again";
  mine.free(tally);
  EXPECT_EQ(used_after_collection(), 0u) << "records of parts are gone";
}

TEST_F(join, parts_that_failed_are_kept_by_their_tally) {
  const ref tally = mine.make_tally();
  EXPECT_EQ(mine.take_failed(tally), 0u);
  const ref first = mine.make_completed(outcome::error, "first", 6);
  const ref second = theirs.make_completed(outcome::error, "second", 7);
  mine.end_part(first, tally);
  theirs.end_part(second, tally);
  EXPECT_EQ(mine.take_failed(tally), second);
  EXPECT_EQ(mine.look_at_failed(second).next, first);
  EXPECT_EQ(mine.look_at_failed(first).next, 0u);
  EXPECT_STREQ(reinterpret_cast<const char*>(mine.payload_of(second).data), "second");
  EXPECT_EQ(mine.take_failed(tally), 0u) << "they are the taker's";
  mine.release(first);
  mine.release(second);
  mine.free(tally);
  EXPECT_EQ(used_after_collection(), 0u);
  EXPECT_EQ(host::unseen_errors, 0);
}

TEST_F(join, waiters_hang_in_a_list_by_their_images) {
  const ref r = mine.make();
  image* first = all.new_image(0);
  image* second = all.new_image(1);
  first->next = state_none;
  at(r).state = all.ref_of(first);
  second->next = at(r).state;
  at(r).state = all.ref_of(second);
  EXPECT_EQ(mine.exchange_state(r, state_done), all.ref_of(second));
  EXPECT_EQ(second->next, all.ref_of(first));
}

}  // namespace
