// Tests of letters between workers of a host: they arrive as they were sent, once, and count until they are
// answered.
// Not under TSan: a letter's head is copied whole, with the links of its owner's list, which nobody else
// reads.
// test: timeout=60
#include "sched/mailbox.hpp"

#include "sched/host.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

using namespace host_of_tests;

std::vector<int> got;
void take_down(const void* closure) { got.push_back(*static_cast<const int*>(closure)); }

struct worker_of_test {
  join_records records;
  mailbox mail;
  worker_of_test(host& all, std::uint32_t w)
      : records(all.here(w), all.heap_of(w)), mail(all.here(w), all.heap_of(w), records) {}
};

struct letters : testing::Test {
  host all{3};
  worker_of_test a{all, 0}, b{all, 1}, c{all, 2};
  void SetUp() override { got.clear(); }
};

TEST_F(letters, are_carried_out_by_whom_they_are_for) {
  const ref done = a.records.make();
  int words = 5;
  EXPECT_TRUE(b.mail.empty());
  EXPECT_TRUE(a.mail.send(worker_no{1}, done, take_down, &words, sizeof words));
  words = 0;
  EXPECT_FALSE(b.mail.empty());
  EXPECT_TRUE(c.mail.empty());
  EXPECT_EQ(all.hot(1).poll.load(), 1u) << "a busy worker looks at its next spawn";
  EXPECT_EQ(idle_in(all.node().idle), -1) << "ID2: counts like a running worker";
  ref answered = 0;
  b.mail.take([&](ref r) {
    EXPECT_EQ(got, std::vector<int>{5}) << "carried out first";
    EXPECT_EQ(idle_in(all.node().idle), -1) << "ID2: until it has been answered";
    answered = r;
  });
  EXPECT_EQ(answered, done);
  EXPECT_EQ(idle_in(all.node().idle), 0);
  EXPECT_TRUE(b.mail.empty());
  all.heap_of(0).collect();
  a.records.free(done);
  EXPECT_EQ(all.heap_of(0).used_bytes(), 0u) << "the letter is given back to its sender";
}

TEST_F(letters, several_at_a_time) {
  for (int i = 0; i < 3; ++i) {
    const int other = 10 + i;
    a.mail.send(worker_no{2}, a.records.make(), take_down, &i, sizeof i);
    b.mail.send(worker_no{2}, b.records.make(), take_down, &other, sizeof other);
  }
  int answers = 0;
  c.mail.take([&](ref) { ++answers; });
  EXPECT_EQ(answers, 6);
  EXPECT_EQ(got, (std::vector<int>{12, 2, 11, 1, 10, 0})) << "the newest first";
  EXPECT_EQ(idle_in(all.node().idle), 0);
}

TEST_F(letters, one_that_is_posted_later_by_somebody_who_is_no_worker) {
  const ref letter = b.mail.write_for_later([](const void*) { got.push_back(7); });
  EXPECT_EQ(idle_in(all.node().idle), -1) << "ID2: the run goes on";
  EXPECT_TRUE(b.mail.empty());
  int word = 5;
  a.mail.send(worker_no{1}, 0, take_down, &word, sizeof word);
  all.hot(1).poll.store(0);
  all.node().sleepers.store(1);
  const std::uint32_t before = all.node().wake.load();
  std::thread([&] {
    mailbox::post(all.memory(2), all.here(0).words, all.node(), worker_no{1}, letter);
  }).join();
  EXPECT_EQ(all.hot(1).poll.load(), 1u) << "a busy worker looks at its next spawn";
  EXPECT_NE(all.node().wake.load(), before) << "and one that sleeps at once";
  b.mail.take([](ref) { ADD_FAILURE() << "nobody waits for a record of these"; });
  EXPECT_EQ(got, (std::vector<int>{7, 5})) << "the newest first";
  EXPECT_EQ(idle_in(all.node().idle), 0);
  all.heap_of(0).collect();
  EXPECT_EQ(all.heap_of(1).used_bytes(), 0u);
}

TEST_F(letters, from_several_senders_while_they_are_taken) {
  static std::atomic<int> sum;
  sum = 0;
  constexpr int each = 500;
  std::atomic<int> answers{0}, senders{2};
  const auto send_all = [&](worker_of_test& from) {
    for (int i = 1; i <= each; ++i)
      from.mail.send(
          worker_no{2}, from.records.make(), [](const void* n) { sum += *static_cast<const int*>(n); }, &i,
          sizeof i);
    --senders;
  };
  std::thread first([&] { send_all(a); }), second([&] { send_all(b); });
  while (senders != 0 || !c.mail.empty()) c.mail.take([&](ref) { ++answers; });
  first.join();
  second.join();
  c.mail.take([&](ref) { ++answers; });
  EXPECT_EQ(answers, 2 * each);
  EXPECT_EQ(sum, each * (each + 1));
  EXPECT_EQ(idle_in(all.node().idle), 0);
}

}  // namespace
