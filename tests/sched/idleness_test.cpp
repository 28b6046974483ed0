// Tests of idleness, step by step: what keeps a worker from counting as idle, who decides that a run is over,
// and what is said if it must not be. Two workers that sleep and steal: world_test.cpp.
// test: timeout=60
#include "sched/idleness.hpp"

#include "sched/host.hpp"
#include "sched/ready_queue.hpp"
#include "support/child.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace {

using namespace host_of_tests;
using support::run_child;

struct worker_of_test {
  site& here;
  account counts;
  godwit::base::small_random random{1};
  join_records records;
  mailbox mail;
  far_inbox inbox;
  far_thief far;
  outside_events events;
  idleness idle;
  wait_queue waiting;

  worker_of_test(host& all, std::uint32_t w)
      : here(all.here(w)),
        records(here, all.heap_of(w)),
        mail(here, all.heap_of(w), records),
        inbox(here, all.heap_of(w), counts, random),
        far(here, counts, random),
        events(here),
        idle(here, counts, {inbox, mail, events, far, records}) {
    counts.init(here.words->stats, nullptr);
    idle.init();
  }
};

struct idle : testing::Test {
  host all{2};
  worker_of_test a{all, 0}, b{all, 1};
};

TEST_F(idle, counts_and_counts_back) {
  a.idle.become_idle();
  EXPECT_TRUE(a.idle.is_idle());
  EXPECT_EQ(all.node().idle.load(), 1u);
  EXPECT_FALSE(a.idle.sees_work());
  a.idle.become_running();
  EXPECT_FALSE(a.idle.is_idle());
  EXPECT_EQ(idle_in(all.node().idle), 0);
}

TEST_F(idle, not_with_letters_or_ready_threads) {
  b.mail.send(
      worker_no{0}, b.records.make(), [](const void*) {}, "", 1);
  a.idle.become_idle();
  EXPECT_FALSE(a.idle.is_idle());
  a.mail.take([](ref) {});
  ready_queue own(all.memory(), all.words(0), all.here(0).holder());
  image* im = all.new_image(0);
  own.push(im, all.ref_of(im), rank::last);
  a.idle.become_idle();
  EXPECT_FALSE(a.idle.is_idle());
  EXPECT_EQ(own.pop(), all.ref_of(im));
  a.idle.become_idle();
  EXPECT_TRUE(a.idle.is_idle());
}

TEST_F(idle, sees_what_others_have) {
  a.idle.become_idle();
  all.words(1).split = 128;
  all.words(1).top = 64;
  EXPECT_TRUE(a.idle.sees_work()) << "something to steal";
  all.words(1).top = 128;
  EXPECT_FALSE(a.idle.sees_work());
  all.words(1).ready_count = 1;
  EXPECT_TRUE(a.idle.sees_work()) << "a thread that is ready";
  all.words(1).ready_count = 0;
  b.mail.send(
      worker_no{0}, b.records.make(), [](const void*) {}, "", 1);
  EXPECT_TRUE(a.idle.sees_work()) << "a letter";
  EXPECT_EQ(idle_in(all.node().idle), 0) << "one idle, one letter";
}

TEST_F(idle, threads_that_poll_keep_it_from_being_empty) {
  a.idle.poll(a.waiting);
  const ref r = b.records.make();
  image* im = all.new_image(0);
  im->waiting_for = r;
  a.waiting.push(im);
  a.idle.become_idle();
  EXPECT_TRUE(a.idle.is_idle()) << "what it waits for is not there";
  EXPECT_FALSE(a.idle.sees_work());
  b.records.exchange_state(r, state_done);
  EXPECT_TRUE(a.idle.sees_work());
  a.idle.become_running();
  EXPECT_EQ(all.node().idle.load(), left_idleness + 1) << "ID5: one less, and changed for good";
  a.idle.become_idle();
  EXPECT_FALSE(a.idle.is_idle());
}

TEST_F(idle, rounds_in_vain_until_a_thread_comes) {
  int rounds = 1;
  while (!a.idle.end_of_round()) ++rounds;
  EXPECT_EQ(rounds, 256);
  EXPECT_TRUE(a.idle.end_of_round());
  a.idle.thread_came();
  EXPECT_FALSE(a.idle.end_of_round());
}

TEST_F(idle, the_last_one_ends_the_run) {
  const support::outcome o = run_child([&]() -> int {
    all.job().root_done = 1;
    a.idle.become_idle();
    if (all.node().shutdown.load() != 0) return 1;
    b.idle.become_idle();
    return 2;
  });
  EXPECT_EQ(o.status, host::exited) << support::show(o);
}

/// Below host 0 of a run, whose companion nobody is: answers of other hosts are written here.
struct first_of_three : testing::Test {
  host all{2, 3};
  worker_of_test a{all, 0}, b{all, 1};
  first_of_three() {
    site& here = all.here(0);  // questions stay in the ring
    here.net.far().init(*here.memory, here.me, here.far, here.far, nullptr, nullptr, true);
  }
  std::uint64_t wave() { return all.node().wave.load(); }
  void answer(bool unclean = false, std::uint64_t letters = 0) {
    all.node().answers.fetch_add(wave_answer(unclean, letters) - 1);
  }
  /// One wave, to which the others answer so; how it ends.
  waves::outcome all_around(bool unclean = false, std::uint64_t letters = 0) {
    static constexpr auto nothing = [](std::uint64_t) { return true; };
    waves here(all.here(0));
    EXPECT_TRUE(here.try_enter());
    EXPECT_EQ(here.advance(nothing), waves::outcome::under_way) << "the others have been asked";
    answer();
    EXPECT_EQ(here.advance(nothing), waves::outcome::under_way) << "one has answered";
    answer(unclean, letters);
    const waves::outcome end = here.advance(nothing);
    here.leave();
    return end;
  }
};

TEST_F(first_of_three, asks_when_all_its_workers_have_been_idle_for_a_while) {
  all.here(0).opts.spin_us = ~0u;
  a.idle.become_idle();
  EXPECT_EQ(wave(), wave_none);
  const std::uint64_t since = godwit::base::now_ns();
  while (godwit::base::now_ns() - since < 1'000'000) a.idle.wait_for_work();
  EXPECT_EQ(wave(), wave_none) << "one runs";
  b.idle.become_idle();
  while (wave() == wave_none) a.idle.wait_for_work();
  EXPECT_EQ(wave(), wave_passed_on);
  EXPECT_EQ(answers_missing(all.node().answers), 2u);
  EXPECT_EQ(all.node().gate.load(), 0u);
}

TEST_F(first_of_three, decides_after_two_waves_between_which_nobody_has_left) {
  a.idle.become_idle();
  b.idle.become_idle();
  EXPECT_EQ(all_around(), waves::outcome::unclean) << "the first that there is";
  EXPECT_EQ(all_around(), waves::outcome::clean);
  EXPECT_EQ(all_around(true), waves::outcome::unclean) << "elsewhere somebody has";
  EXPECT_EQ(all_around(), waves::outcome::clean);
  b.idle.become_running();
  b.idle.become_idle();
  EXPECT_EQ(all_around(), waves::outcome::unclean) << "here";
}

TEST_F(first_of_three, counts_letters_of_all) {
  a.idle.become_idle();
  b.idle.become_idle();
  all_around();
  EXPECT_EQ(all_around(false, 1), waves::outcome::unclean) << "one is under way";
  all.node().letters = ~std::uint64_t{0};  // it has come here
  EXPECT_EQ(all_around(false, 1), waves::outcome::clean);
}

TEST_F(first_of_three, holds_a_wave_up_while_it_is_busy_or_a_thread_is_ready) {
  waves here(all.here(0));
  a.idle.become_idle();
  b.idle.become_idle();
  all_around();
  ASSERT_TRUE(here.try_enter());
  EXPECT_FALSE(here.try_enter()) << "one at a time";
  here.begin();
  answer();
  answer();
  b.idle.become_running();
  EXPECT_FALSE(here.has_step());
  EXPECT_EQ(here.advance([](std::uint64_t) { return true; }), waves::outcome::under_way);
  b.idle.become_idle();
  EXPECT_TRUE(here.has_step());
  EXPECT_EQ(here.advance([](std::uint64_t) { return true; }), waves::outcome::unclean);
  here.begin();
  answer();
  answer();
  EXPECT_EQ(here.advance([](std::uint64_t) { return false; }), waves::outcome::under_way) << "ID5";
  EXPECT_EQ(here.advance([](std::uint64_t) { return true; }), waves::outcome::clean);
  here.leave();
}

TEST_F(first_of_three, hosts_below_each_other) {
  job_shape tree;
  tree.host_count = 2304;
  for (const std::uint32_t root : {0u, 1000u, 2303u}) {
    std::vector<int> above(tree.host_count);
    for (tree.my_host = 0; tree.my_host < tree.host_count; ++tree.my_host)
      tree.each_host_below(root, [&](std::uint32_t h) {
        ++above[h];
        const std::uint32_t from = tree.my_host;
        if (root == 0) {
          job_shape below = tree;
          below.my_host = h;
          EXPECT_EQ(below.host_above(), from);
        }
      });
    for (std::uint32_t h = 0; h < tree.host_count; ++h) EXPECT_EQ(above[h], h == root ? 0 : 1);
  }
}

/// ID5: several hosts: one look each time, at the one that has not been looked at for longest.
TEST(idle_hosts, look_at_one_waiting_thread_after_the_other) {
  host all{1, 2};
  worker_of_test a{all, 0};
  a.idle.poll(a.waiting);
  std::vector<ref> records;
  for (int i = 0; i < 3; ++i) {
    records.push_back(a.records.make());
    image* im = all.new_image(0);
    im->waiting_for = records.back();
    a.waiting.push(im);
  }
  a.idle.become_idle();  // a look
  EXPECT_TRUE(a.idle.is_idle());
  EXPECT_EQ(a.waiting.front()->waiting_for, records[1]);
  a.records.exchange_state(records[0], state_done);
  a.idle.become_running();
  a.idle.become_idle();
  EXPECT_EQ(a.waiting.front()->waiting_for, records[2]);
  a.idle.become_running();
  a.idle.become_idle();
  EXPECT_TRUE(a.idle.is_idle());
  EXPECT_EQ(a.waiting.front()->waiting_for, records[0]) << "it stays in front until it is taken";
  a.idle.become_running();
  a.idle.become_idle();
  EXPECT_FALSE(a.idle.is_idle());
}

TEST_F(idle, whoever_sees_the_end_goes) {
  const support::outcome o = run_child([&]() -> int {
    all.node().shutdown = 1;
    static_cast<void>(a.idle.sees_work());
    return 1;
  });
  EXPECT_EQ(o.status, host::exited) << support::show(o);
}

TEST_F(idle, a_deadlock_says_who_waits_where) {
  static node_words* node;
  node = &all.node();
  a.here.hooks.exit_worker = []() noexcept {
    std::fputs(node->message, stderr);
    std::exit(host::exited);
  };
  const support::outcome o = run_child([&]() -> int {
    image* im = all.new_image(1);
    im->waiting_for = b.records.make();
    im->low = 0;
    im->top = 96;
    im->where = {"sky.cpp", "look", 17};
    b.idle.become_idle();
    a.idle.become_idle();
    return 1;
  });
  EXPECT_EQ(o.status, host::exited) << support::show(o);
  for (const char* words :
       {"deadlock: all 2 workers are idle", "outstanding joins: 1",
        "thread of 96 B, suspended on worker 1, waits at sky.cpp:17 (look) for record 1:"})
    EXPECT_TRUE(o.err_has(words)) << support::show(o);
}

TEST_F(idle, who_is_last_while_a_polling_thread_is_ready_does_not_decide) {
  a.idle.poll(a.waiting);
  b.idle.poll(b.waiting);
  image* im = all.new_image(1);
  im->waiting_for = a.records.make();
  b.waiting.push(im);
  b.idle.become_idle();
  a.records.exchange_state(im->waiting_for, state_done);
  a.idle.become_idle();  // would end the run
  EXPECT_TRUE(a.idle.is_idle());
  EXPECT_EQ(all.node().shutdown.load(), 0u);
  EXPECT_TRUE(b.idle.sees_work());
}

TEST(spares, rest_until_they_are_called) {
  host all(3, 1, 1);
  worker_of_test spare(all, 2), regular(all, 0);
  EXPECT_TRUE(spare.idle.is_idle()) << "counted from the start";
  EXPECT_FALSE(regular.idle.is_idle());
  EXPECT_TRUE(spare.idle.is_to_rest());
  EXPECT_FALSE(regular.idle.is_to_rest());
  all.node().present = 2;
  EXPECT_EQ(regular.idle.present(), 2u) << "one that has never been up has nothing to take";
  all.node().up = 1;
  EXPECT_FALSE(spare.idle.is_to_rest());
  spare.idle.rest();
  EXPECT_EQ(all.node().resting.load(), 0u);
}

}  // namespace
