// Tests of the thief that looks at other hosts: whom it asks, how long it waits after looks in vain, what it
// remembers. The other hosts are a thread here that answers by a script. With real ones: tests/mpi/.
// test: timeout=60
#include "sched/far_thief.hpp"

#include "sched/host.hpp"
#include "sched/others.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace {

using namespace host_of_tests;
struct thief : testing::Test {
  host all{2, 4};  // of this host 0 and 1; 2, 3 and 4 are hosts of their own
  site& here = all.here(0);
  account counts;
  godwit::base::small_random random{7};
  far_thief it{here, counts, random};
  others rest{all};

  void SetUp() override { counts.init(here.words->stats, nullptr); }
  void until_next_look() const {
    while (godwit::base::fast_ns() < it.next_look_ns()) std::this_thread::yield();
  }
};

TEST_F(thief, looks_in_vain_come_in_pairs_with_longer_and_longer_pauses) {
  std::array<worker_no, 14> victim;
  rest.answer = [&](far_words::entry& e) { victim.at(static_cast<std::size_t>(rest.asked)) = e.head.target; };
  for (std::uint32_t i = 0; i < 12; ++i) {
    until_next_look();
    const std::uint64_t before = godwit::base::fast_ns();
    EXPECT_EQ(it.look().kind, loot_kind::nothing);
    const std::uint64_t after = godwit::base::fast_ns();
    // the second of a pair: from somewhere between before and after on
    const std::uint64_t pause =
        i % 2 == 0 ? 20'000 : std::min<std::uint64_t>(20'000u << (i + 1) / 2, 2'000'000);
    EXPECT_GE(it.next_look_ns(), before + pause) << i;
    EXPECT_LE(it.next_look_ns(), after + pause) << i;
  }
  ASSERT_EQ(rest.asked, 12);
  for (std::size_t i = 0; i < 12; i += 2)
    EXPECT_EQ(victim[i], victim[i + 1]) << "it was asked to make work public";
  EXPECT_EQ(here.words->stats.far_failed, 12u);
  const std::uint64_t next = it.next_look_ns();
  EXPECT_EQ(it.look().kind, loot_kind::nothing);
  const int asked = rest.asked;
  if (godwit::base::fast_ns() < next) {
    EXPECT_EQ(asked, 12) << "not before the pause is over";
  }
  it.thread_came();
  static_cast<void>(it.look());
  EXPECT_EQ(rest.asked, asked + 1);
}

TEST_F(thief, no_second_look_follows_where_all_are_idle) {
  std::vector<worker_no> victim;
  rest.answer = [&](far_words::entry& e) {
    victim.push_back(e.head.target);
    e.head.result = e.head.a == call_no::look ? static_cast<std::uint64_t>(sight::all_idle)
                                              : static_cast<std::uint64_t>(loot_kind::all_idle);
  };
  for (std::uint32_t i = 0; i < 12; ++i) {
    until_next_look();
    const std::uint64_t before = godwit::base::fast_ns();
    if (i % 2 == 0)
      EXPECT_EQ(it.look().kind, loot_kind::all_idle);
    else
      EXPECT_FALSE(it.sees_work(0));
    EXPECT_GE(it.next_look_ns(), before + std::min<std::uint64_t>(40'000u << i, 2'000'000)) << i;
  }
  EXPECT_EQ(std::set(victim.begin(), victim.end()).size(), 3u);
  bool pairs = true;
  for (std::size_t i = 0; i < victim.size(); i += 2) pairs = pairs && victim[i] == victim[i + 1];
  EXPECT_FALSE(pairs) << "one in 3^6";

  rest.answer = [&](far_words::entry& e) { victim.push_back(e.head.target); };
  it.thread_came();
  EXPECT_EQ(it.look().kind, loot_kind::nothing);
  rest.answer = [&](far_words::entry& e) {
    victim.push_back(e.head.target);
    e.head.result = static_cast<std::uint64_t>(loot_kind::all_idle);
  };
  until_next_look();
  const std::uint64_t before = godwit::base::fast_ns();
  EXPECT_EQ(it.look().kind, loot_kind::all_idle) << "they have become idle between the two";
  EXPECT_EQ(victim[12], victim[13]);
  EXPECT_GE(it.next_look_ns(), before + 40'000) << "it counts as one look";
  EXPECT_LE(it.next_look_ns(), godwit::base::fast_ns() + 40'000);
}

TEST_F(thief, who_starts_looks_at_the_host_above) {
  const std::array<godwit::transport::shm::near_range, 4> hosts{{{4, 1}, {2, 1}, {3, 1}, {0, 2}}};
  here.shape.hosts = hosts.data();
  here.shape.my_host = 3;
  std::vector<worker_no> victim;
  rest.answer = [&](far_words::entry& e) {
    victim.push_back(e.head.target);
    e.head.result = static_cast<std::uint64_t>(loot_kind::all_idle);
  };
  EXPECT_EQ(it.look().kind, loot_kind::all_idle);
  EXPECT_EQ(victim, std::vector{worker_no{4}});
  victim.clear();
  for (int i = 0; i < 30; ++i) {
    it.thread_came();
    static_cast<void>(it.look());
  }
  EXPECT_EQ(std::set(victim.begin(), victim.end()).size(), 3u) << "later looks are at any host";
  victim.clear();
  for (int i = 0; i < 30; ++i) {
    far_thief other{here, counts, random};
    other.thread_came();
    static_cast<void>(other.look());
  }
  EXPECT_EQ(std::set(victim.begin(), victim.end()).size(), 3u) << "who had a thread before does not start";
}

TEST_F(thief, one_of_a_host_looks_at_a_time) {
  here.node->looks_far = 1;
  for (std::uint64_t pause = 10'000; pause <= 80'000; pause *= 2) {
    until_next_look();
    const std::uint64_t before = godwit::base::fast_ns();
    if (pause == 20'000)
      EXPECT_FALSE(it.sees_work(0));
    else
      EXPECT_EQ(it.look().kind, loot_kind::nothing);
    EXPECT_GE(it.next_look_ns(), before + pause);
    EXPECT_LE(it.next_look_ns(), godwit::base::fast_ns() + pause);
  }
  EXPECT_EQ(rest.asked, 0);
  here.node->looks_far = 0;
  until_next_look();
  rest.answer = [&](far_words::entry&) { EXPECT_EQ(here.node->looks_far, 1u); };
  EXPECT_EQ(it.look().kind, loot_kind::nothing);
  EXPECT_EQ(rest.asked, 1);
  EXPECT_EQ(here.node->looks_far, 0u) << "the next one's turn";
}

TEST_F(thief, an_idle_worker_looks_and_the_running_one_takes_there) {
  worker_no seen{};
  std::uint64_t scope = 0;
  rest.answer = [&](far_words::entry& e) {
    EXPECT_EQ(e.head.a, static_cast<std::uint64_t>(call_no::look));
    seen = e.head.target;
    scope = e.head.b;
    e.head.result = static_cast<std::uint64_t>(sight::work);
  };
  EXPECT_TRUE(it.sees_work(0));
  EXPECT_EQ(scope, call_scope::whole_host);
  EXPECT_EQ(it.next_look_ns(), 0u);

  alignas(64) static std::byte stack[256];
  here.region_low = reinterpret_cast<std::uintptr_t>(stack);
  here.region_high = here.region_low + sizeof stack;
  rest.answer = [&](far_words::entry& e) {
    EXPECT_EQ(e.head.a, static_cast<std::uint64_t>(call_no::steal));
    EXPECT_EQ(e.head.target, seen);
    loot got{};
    got.low = here.region_low + 64;
    got.top = got.bytes_end = here.region_high;
    got.own_record = 77;
    e.head.result = static_cast<std::uint64_t>(loot_kind::suspended);
    e.head.info = sizeof got;
    std::memcpy(e.data, &got, sizeof got);
    std::memset(e.data + sizeof got, 5, 192);
  };
  const far_catch got = it.look();
  EXPECT_EQ(got.kind, loot_kind::suspended);
  EXPECT_EQ(got.victim, seen);
  EXPECT_EQ(got.got.own_record, 77u);
  EXPECT_EQ(stack[63], std::byte{0});
  EXPECT_EQ(stack[64], std::byte{5}) << "the bytes are in place";
  EXPECT_EQ(stack[255], std::byte{5});
  EXPECT_EQ(here.words->stats.resumes, 1u);
  EXPECT_EQ(here.words->stats.stolen_bytes, 192u);
  EXPECT_EQ(here.words->stats.far_steals, 1u);
}

TEST_F(thief, who_has_waited_for_long_is_urgent) {
  std::uint64_t scope = 0;
  rest.answer = [&](far_words::entry& e) { scope = e.head.b; };
  here.opts.expose_signal = true;
  EXPECT_FALSE(it.sees_work(0)) << "it is not known since when";
  EXPECT_EQ(scope & call_scope::urgent, 0u);
  it.thread_came();
  EXPECT_FALSE(it.sees_work(godwit::base::fast_ns() - 1'000'000));
  EXPECT_EQ(scope & call_scope::urgent, call_scope::urgent);
}

TEST_F(thief, uniform_asks_anybody_at_once_and_that_one_only) {
  std::set<std::uint32_t> asked;
  here.uniform = true;
  rest.answer = [&](far_words::entry& e) {
    asked.insert(godwit::transport::index(e.head.target));
    EXPECT_EQ(e.head.b & call_scope::whole_host, 0u);
  };
  for (int i = 0; i < 60; ++i) EXPECT_EQ(it.look().kind, loot_kind::nothing);
  EXPECT_EQ(rest.asked, 60) << "nobody pauses";
  EXPECT_EQ(asked, (std::set<std::uint32_t>{2, 3, 4}));
}

TEST_F(thief, uniform_takes_where_it_has_seen_work_and_then_asks_anybody) {
  here.uniform = true;
  for (int i = 0; i < 20; ++i) {
    worker_no seen{};
    rest.answer = [&](far_words::entry& e) {
      seen = e.head.target;
      e.head.result = static_cast<std::uint64_t>(sight::work);
    };
    EXPECT_FALSE(it.has_seen_work());
    EXPECT_TRUE(it.sees_work(0));
    EXPECT_TRUE(it.has_seen_work());
    rest.answer = [&](far_words::entry& e) { EXPECT_EQ(e.head.target, seen); };
    EXPECT_EQ(it.look().kind, loot_kind::nothing);
  }
}

}  // namespace
