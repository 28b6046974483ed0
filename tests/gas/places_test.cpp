// test: tsan
// Places by themselves (docs/protocols/move.md, States and Requests): who is let in when, what a mover is
// told, whose word counts. Several OS threads: what is done under a use is over when the place is frozen.
#include "gas/places.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using godwit::gas::heat_then;
using godwit::gas::host_words;
using godwit::gas::in;
using godwit::gas::is_here;
using godwit::gas::only;
using godwit::gas::ownership;
using godwit::gas::place_state;
using godwit::gas::place_words;
using godwit::gas::still_here;
using a_place = godwit::gas::place;
using closing = a_place::closing;

constexpr std::uint32_t home = 3;

TEST(Places, BeforeTheFirstMoveTheHomeHasIt) {
  place_words words{};
  EXPECT_EQ(a_place(words, true).state(), place_state::owned);
  EXPECT_EQ(a_place(words, false).state(), place_state::elsewhere);
  EXPECT_EQ(a_place(words, true).owner(home).worker, home);
  EXPECT_EQ(a_place(words, true).owner(home).version, 0u);
}

TEST(Places, UsesAreCountedIfTheStateAllowsThem) {
  place_words words{};
  const a_place here(words, true);
  EXPECT_EQ(here.use(is_here), place_state::owned);
  EXPECT_EQ(here.uses(), 1u);
  const a_place there(words, false);  // the same words seen by a host that is not the home
  EXPECT_FALSE(in(there.use(is_here), is_here));
  EXPECT_EQ(here.uses(), 1u);
  here.end_use();
  EXPECT_EQ(here.uses(), 0u);
}

TEST(Places, ClosesForOneMoverWhenNobodyUsesIt) {
  place_words words{};
  const a_place p(words, true);
  p.use(is_here);
  EXPECT_EQ(p.close(8), closing::in_use);
  EXPECT_EQ(p.close(9), closing::refused) << "it is closing for 8";
  EXPECT_FALSE(in(p.use(is_here), is_here)) << "who holds nothing waits";
  EXPECT_TRUE(in(p.use(still_here), still_here)) << "who holds something is let in";
  p.end_use();
  EXPECT_EQ(p.close(8), closing::in_use);
  p.end_use();
  EXPECT_EQ(p.close(8), closing::done);
  EXPECT_EQ(p.state(), place_state::frozen);
  EXPECT_FALSE(in(p.use(still_here), still_here));
  EXPECT_EQ(p.close(8), closing::refused) << "a close carried out twice freezes nothing";
}

TEST(Places, OnlyWhoClosesItReopensIt) {
  place_words words{};
  const a_place p(words, true);
  p.use(is_here);
  EXPECT_EQ(p.close(8), closing::in_use);
  p.reopen(9);
  EXPECT_EQ(p.state(), place_state::closing);
  p.reopen(8);
  EXPECT_EQ(p.state(), place_state::owned);
  EXPECT_EQ(p.uses(), 1u);
  p.end_use();
  EXPECT_EQ(p.close(9), closing::done);
  p.reopen(9);
  EXPECT_EQ(p.state(), place_state::frozen) << "MV7: there is no way back";
}

TEST(Places, FreshOnesAreUsedButNotClosed) {
  place_words words{};
  const a_place p(words, false);
  EXPECT_TRUE(p.change(only(place_state::elsewhere), place_state::wanted));
  EXPECT_FALSE(p.change(only(place_state::elsewhere), place_state::wanted)) << "MV5: one puller";
  EXPECT_TRUE(p.change(only(place_state::wanted), place_state::arriving));
  EXPECT_FALSE(in(p.use(still_here), still_here));
  EXPECT_TRUE(p.change(only(place_state::arriving), place_state::fresh));
  EXPECT_TRUE(in(p.use(is_here), is_here));
  p.end_use();
  EXPECT_EQ(p.close(8), closing::refused) << "MV9: the home does not know yet";
}

TEST(Places, NewerWordIsBelieved) {
  place_words words{};
  const a_place p(words, false);
  p.learn({2, 5});
  p.learn({1, 6});
  EXPECT_EQ(p.owner(home).worker, 5u);
  p.learn({2, 7});
  EXPECT_EQ(p.owner(home).worker, 5u) << "MV1: a version belongs to one owner";
  EXPECT_EQ(p.give_to(9, home), 5u);
  EXPECT_EQ(p.owner(home).version, 3u);
  EXPECT_EQ(p.give_to(9, home), 9u) << "it has it";
}

TEST(Places, WhatIsDoneUnderAUseIsOverWhenItIsFrozen) {
  constexpr std::uint32_t users = 3, rounds = 300;
  place_words words{};
  std::atomic<bool> stop{false};
  std::array<std::uint64_t, users> done{};  // not atomic: the uses order them (and TSan sees it)
  std::vector<std::thread> all;
  for (std::uint32_t u = 0; u < users; ++u)
    all.emplace_back([&, u] {
      const a_place p(words, true);
      while (!stop.load(std::memory_order_relaxed)) {
        if (!in(p.use(is_here), is_here)) {
          std::this_thread::yield();
          continue;
        }
        ++done[u];
        p.end_use();
      }
    });
  std::uint64_t sum = 0;
  for (std::uint32_t mover = 1; mover <= rounds; ++mover) {
    const a_place p(words, true);
    while (p.close(mover) != closing::done) std::this_thread::yield();
    std::array<std::uint64_t, users> seen = done;
    std::this_thread::yield();
    EXPECT_EQ(done, seen) << "MV3: nobody touches it while it is frozen";
    std::uint64_t now = 0;
    for (const std::uint64_t d : seen) now += d;
    EXPECT_GE(now, sum);
    sum = now;
    EXPECT_TRUE(p.change(only(place_state::frozen), place_state::owned));
  }
  stop.store(true, std::memory_order_relaxed);
  for (auto& t : all) t.join();
  EXPECT_EQ(a_place(words, true).uses(), 0u);
}

TEST(Heat, IsCountedByWhoAsks) {
  place_words words{};
  host_words host{};
  const a_place p(words, true);
  for (int i = 0; i < 5; ++i) p.count_near();
  for (int i = 0; i < 3; ++i) p.count_far(7);
  const auto seen = p.look(heat_then::stays, host);
  EXPECT_EQ(seen.place.what, godwit::gas::place_says::done);
  EXPECT_EQ(seen.near, 5u);
  EXPECT_EQ(seen.far, 3u);
  EXPECT_EQ(seen.other, 8u);
  EXPECT_EQ(seen.lead, 3u);
  EXPECT_EQ(p.uses(), 0u);
}

TEST(Heat, WhoComesMostIsFoundAmongMany) {
  place_words words{};
  host_words host{};
  const a_place p(words, true);
  for (std::uint32_t i = 0; i < 1000; ++i) p.count_far(i % 5 < 3 ? 42 : i % 11);  // 600 of 1000 and some
  const auto seen = p.look(heat_then::stays, host);
  EXPECT_EQ(seen.far, 1000u);
  EXPECT_EQ(seen.other, 43u);
  EXPECT_GE(seen.lead, 200u) << "its 600 against 400 others at worst";
  EXPECT_LE(seen.lead, 600u) << "at least so many are its";
}

TEST(Heat, IsHalvedAndForgotten) {
  place_words words{};
  host_words host{};
  const a_place p(words, true);
  for (int i = 0; i < 9; ++i) p.count_near();
  p.count_far(1);
  EXPECT_EQ(p.look(heat_then::is_halved, host).near, 9u);
  EXPECT_EQ(p.look(heat_then::stays, host).near, 4u);
  EXPECT_EQ(p.look(heat_then::stays, host).far, 0u);
  EXPECT_EQ(host.near_uses.load(), 5u) << "what is not counted at the part any more";
  EXPECT_EQ(host.far_uses.load(), 1u);
  p.forget_heat(heat_then::goes, host);
  EXPECT_EQ(p.look(heat_then::stays, host).near, 0u);
  EXPECT_EQ(p.look(heat_then::stays, host).other, 0u);
  EXPECT_EQ(host.near_uses.load(), 9u) << "each access once";
  EXPECT_EQ(host.far_uses.load(), 1u);
}

// HPX-5 4.1.0 keeps its counts in memory that the first access frees, and each further one again.
TEST(HpxFaults, CountsSurviveFurtherAccesses) {
  place_words words{};
  host_words host{};
  const a_place p(words, true);
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    p.count_far(3);
    EXPECT_EQ(p.look(heat_then::stays, host).far, i);
    EXPECT_EQ(p.look(heat_then::stays, host).lead, i);
  }
  words.near.store(~0u, std::memory_order_relaxed);
  p.count_near();
  EXPECT_EQ(p.look(heat_then::stays, host).near, ~0u) << "full is full: it does not begin again";
}

TEST(Heat, OfAPlaceThatIsElsewhereSaysWhere) {
  place_words words{};
  host_words host{};
  const a_place p(words, false);
  p.learn({4, 9});
  const auto seen = p.look(heat_then::stays, host);
  EXPECT_EQ(seen.place.what, godwit::gas::place_says::elsewhere);
  EXPECT_EQ(godwit::gas::ownership::from(seen.place.owner, home).worker, 9u);
  EXPECT_EQ(p.uses(), 0u);
}

}  // namespace
