// Whose the program's own names are when threads leave, are left behind and come back.
// test: once
#include "trace/open_names.hpp"

#include "trace/events_by_hand.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::trace;
using by_hand::fields;
using by_hand::make;

constexpr std::uint64_t root = 0x100, child = 0x200, record = 0x300;
constexpr std::uint64_t solve = 1, leaf = 2;         // texts
constexpr std::uint64_t outer = 0x10, inner = 0x20;  // scopes
constexpr std::uint16_t level = 65'535;              // the next one is 0

struct names : open_names {
  names() : open_names(3) {}
  void operator()(std::uint32_t w, kind k, const fields& f) { event(w, make(k, 1, f)); }
};

/// The root thread says solve, its child leaf; then worker 1 takes the root thread.
names stolen() {
  names n;
  n(0, kind::start, {.a = root});
  n(0, kind::name, {.a = solve, .b = outer, .detail = level});
  n(0, kind::name, {.a = leaf, .b = inner, .detail = 0});
  EXPECT_EQ(n.of(0), leaf);
  n(1, kind::steal, {.a = root, .b = child, .other = 0, .detail = level});
  return n;
}

TEST(OpenNames, AThiefTakesThoseOfTheThreadOnly) {
  names n = stolen();
  EXPECT_EQ(n.of(1), solve);
  EXPECT_EQ(n.of(0), leaf);
  n(0, kind::name_ends, {.b = inner});
  EXPECT_EQ(n.of(0), solve) << "inherited";
  n(1, kind::name_ends, {.b = outer});
  EXPECT_EQ(n.of(1), 0u);
  EXPECT_EQ(n.of(0), solve) << "to its end";
  n(0, kind::start, {.a = record});
  EXPECT_EQ(n.of(0), 0u);
}

TEST(OpenNames, WhoSuspendsTakesThemAlong) {
  names n = stolen();
  n(1, kind::suspend, {.a = root, .b = child});
  EXPECT_EQ(n.of(1), 0u);
  n(0, kind::resume, {.a = root, .b = child});
  EXPECT_EQ(n.of(0), solve);
  n(0, kind::name_ends, {.b = outer});
  EXPECT_EQ(n.of(0), 0u);
}

TEST(OpenNames, AParentThatGoesOnKeepsItsOwn) {
  names n;
  n(0, kind::start, {.a = root});
  n(0, kind::name, {.a = solve, .b = outer, .detail = level});
  n(0, kind::name, {.a = leaf, .b = inner, .detail = 0});
  n(0, kind::suspend, {.a = child, .b = record, .other = 0, .detail = 1});
  EXPECT_EQ(n.of(0), solve);
  n(1, kind::resume, {.a = child, .b = record});
  EXPECT_EQ(n.of(1), leaf);
  n(1, kind::name_ends, {.b = inner});
  EXPECT_EQ(n.of(1), solve) << "inherited";
}

TEST(OpenNames, AParentThatLeavesItsChildTakesItsOwn) {
  names n;
  n(0, kind::start, {.a = root});
  n(0, kind::name, {.a = solve, .b = outer, .detail = level});
  n(0, kind::name, {.a = leaf, .b = inner, .detail = 0});
  n(0, kind::suspend, {.a = root, .other = level, .detail = 4});
  n(0, kind::task, {.a = child, .other = 0, .detail = 2});
  EXPECT_EQ(n.of(0), leaf);
  n(1, kind::resume, {.a = root});
  EXPECT_EQ(n.of(1), solve);
  n(0, kind::name_ends, {.b = inner});
  EXPECT_EQ(n.of(0), solve) << "inherited";
  n(1, kind::name_ends, {.b = outer});
  EXPECT_EQ(n.of(1), 0u);
}

TEST(OpenNames, ACancelledSuspensionChangesNothing) {
  names n = stolen();
  n(0, kind::suspend, {.a = child, .b = record});
  n(0, kind::cancel, {.a = child});
  EXPECT_EQ(n.of(0), leaf);
  n(0, kind::name_ends, {.b = inner});
  EXPECT_EQ(n.of(0), solve);
}

TEST(OpenNames, AThiefThatIsLateTakesNothingOfWhoCameLater) {
  names n;
  n(0, kind::start, {.a = root});
  n(0, kind::name, {.a = solve, .b = outer, .detail = level});
  n(0, kind::end, {.a = child});  // its parent has been taken, and nobody has said so
  EXPECT_EQ(n.of(0), solve);
  n(0, kind::resume, {.a = record});
  EXPECT_EQ(n.of(0), 0u);
  n(0, kind::name, {.a = leaf, .b = inner, .detail = level});
  n(1, kind::steal, {.a = root, .b = child, .other = 0, .detail = level});
  EXPECT_EQ(n.of(1), solve);
  EXPECT_EQ(n.of(0), leaf);
  n(0, kind::name_ends, {.b = inner});
  EXPECT_EQ(n.of(0), 0u);
}

TEST(OpenNames, AChildThatWaitsBeforeTheThiefHasWrittenLeavesItTheParentsNames) {
  names n;
  n(0, kind::start, {.a = root});
  n(0, kind::name, {.a = solve, .b = outer, .detail = level});
  n(0, kind::name, {.a = leaf, .b = inner, .detail = 0});
  n(0, kind::suspend, {.a = child, .b = record, .other = 0});
  n(0, kind::resume, {.a = record});
  n(1, kind::steal, {.a = root, .b = child, .other = 0, .detail = level});
  EXPECT_EQ(n.of(1), solve);
  EXPECT_EQ(n.of(0), 0u);
  n(0, kind::resume, {.a = child, .b = record});
  EXPECT_EQ(n.of(0), leaf);
  n(0, kind::name_ends, {.b = inner});
  EXPECT_EQ(n.of(0), solve) << "inherited";
}

TEST(OpenNames, OfTwoThievesTheSecondMayWriteFirst) {
  constexpr std::uint64_t middle = 0x400, deep = 3, third = 0x30;
  names n;
  n(0, kind::start, {.a = root});
  n(0, kind::name, {.a = solve, .b = outer, .detail = 7});
  n(0, kind::name, {.a = leaf, .b = inner, .detail = 8});
  n(0, kind::name, {.a = deep, .b = third, .detail = 9});
  n(2, kind::steal, {.a = middle, .b = child, .other = 0, .detail = 8});
  EXPECT_EQ(n.of(2), leaf);
  EXPECT_EQ(n.of(0), deep);
  n(1, kind::steal, {.a = root, .b = middle, .other = 0, .detail = 7});
  EXPECT_EQ(n.of(1), solve);
  n(2, kind::name_ends, {.b = inner});
  EXPECT_EQ(n.of(2), solve) << "inherited";
  n(0, kind::name_ends, {.b = third});
  EXPECT_EQ(n.of(0), leaf) << "inherited from the thread in the middle";
  n(1, kind::suspend, {.a = root});
  n(0, kind::end, {.a = child});
  EXPECT_EQ(n.of(0), 0u) << "the child was at the bottom";
}

TEST(OpenNames, WhatRunsOnTopOfAThreadLeavesItItsNames) {
  names n;
  n(0, kind::task, {.a = root});
  n(0, kind::name, {.a = solve, .b = outer, .detail = level});
  n(0, kind::suspend, {.a = root, .b = child, .detail = 2});
  n(0, kind::task, {.a = child, .detail = 1});
  n(0, kind::end, {.a = child});
  n(0, kind::resume, {.a = root, .b = child});
  EXPECT_EQ(n.of(0), solve);
  n(0, kind::end, {.a = root});
  EXPECT_EQ(n.of(0), 0u);
}

}  // namespace
