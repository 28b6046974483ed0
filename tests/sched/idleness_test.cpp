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
  EXPECT_EQ(all.node().idle.load(), 0u);
}

TEST_F(idle, not_with_letters_or_ready_threads) {
  b.mail.send(
      worker_no{0}, b.records.make(), [](const void*) {}, "", 1);
  a.idle.become_idle();
  EXPECT_FALSE(a.idle.is_idle());
  a.mail.take([](ref) {});
  ready_queue own(all.memory(), all.words(0), all.here(0).holder());
  image* im = all.new_image(0);
  own.push(im, all.ref_of(im), false);
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
  EXPECT_EQ(static_cast<std::int64_t>(all.node().idle.load()), 0) << "one idle, one letter";
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
  EXPECT_EQ(all.node().left_idleness.load(), 1u) << "ID5";
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

/// IN6, LATE: who gets a thread soon has neither announced its host nor given back units.
TEST(idle_hosts, are_announced_a_while_after_their_last_thread) {
  host all{1, 2};
  worker_of_test a{all, 0};
  all.here(0).opts.spin_us = 1'000'000;
  all.node().units = 5;  // which it had subtracted
  all.job().idle_nodes = ~std::uint64_t{4};
  a.idle.become_idle();
  EXPECT_TRUE(a.idle.is_idle());
  EXPECT_EQ(all.node().announced.load(), 0u);
  a.idle.become_running();
  EXPECT_EQ(all.node().units.load(), 5u);
  a.idle.become_idle();
  while (all.node().announced.load() == 0) a.idle.wait_for_work();
  EXPECT_EQ(all.node().units.load(), 0u);
  EXPECT_EQ(all.job().idle_nodes.load(), 1u) << "itself; what it had left is back";
}

/// ID5: whoever has read the word when all hosts were idle sees whether that is still so.
TEST(idle_hosts, that_leave_idleness_change_the_word_for_good) {
  host all{1, 2};
  worker_of_test a{all, 0};
  all.here(0).opts.spin_us = 1'000'000;
  a.idle.become_idle();
  while (all.node().announced.load() == 0) a.idle.wait_for_work();
  const std::uint64_t before = all.job().idle_nodes.load();
  EXPECT_EQ(hosts_in(before), 1);
  a.idle.become_running();
  EXPECT_EQ(hosts_in(all.job().idle_nodes.load()), 0);
  a.idle.become_idle();
  while (all.node().announced.load() == 0) a.idle.wait_for_work();
  EXPECT_EQ(hosts_in(all.job().idle_nodes.load()), 1);
  EXPECT_NE(all.job().idle_nodes.load(), before);
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
