// What the model says pieces of threads are called: by spawns, by waits, by the program itself.
// test: once
#include "trace/model.hpp"

#include "trace/events_by_hand.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace godwit::trace;
using by_hand::make;

struct slices final : sink {
  void on(const worker_slice& s) override { all.push_back(s); }
  void on(const thread_slice&) override {}
  void on(const instant&) override {}
  void on(counter, std::uint64_t, std::uint32_t) override {}
  std::vector<worker_slice> of(std::uint32_t w, activity a) const {
    std::vector<worker_slice> found;
    for (const worker_slice& s : all)
      if (s.worker == w && s.what == a) found.push_back(s);
    return found;
  }
  std::vector<worker_slice> all;
};

constexpr std::uint64_t root = 0x100, child = 0x200, text = 7, scope = 0x10;

TEST(ModelNames, ASpawnNamesWhatCameBeforeAndBothThatFollow) {
  slices s;
  model m(2, s);
  m.event(0, make(kind::start, 100, {.a = root}));
  m.event(1, make(kind::steal, 200, {.a = root, .b = child, .duration_ns = 10, .other = 0}));
  m.event(1, make(kind::callers, 201, {.a = 77}));
  m.event(0, make(kind::end, 300, {.a = child}));
  m.event(1, make(kind::end, 300, {.a = root}));
  m.finish(300);
  const auto before = s.of(0, activity::thread), thief = s.of(1, activity::thread);
  ASSERT_EQ(before.size(), 2u);
  ASSERT_EQ(thief.size(), 1u);
  EXPECT_EQ(m.where(before[0].place).callers[0], 77u) << "where it came to";
  EXPECT_EQ(before[0].began, 0u);
  EXPECT_EQ(m.where(before[1].began).callers[0], 77u);
  EXPECT_EQ(m.where(thief[0].began).callers[0], 77u);
}

TEST(ModelNames, AWaitNamesWhatFollowsItAndAnAccessNothing) {
  slices s;
  model m(1, s);
  m.event(0, make(kind::start, 100, {.a = root}));
  m.event(0, make(kind::suspend, 200, {.a = root, .b = child}));
  m.event(0, make(kind::place, 200, {.a = 1, .b = 2, .other = 42}));
  m.event(0, make(kind::resume, 300, {.a = root, .b = child, .other = 0}));
  m.event(0, make(kind::access, 310, {.duration_ns = 5, .bytes = 8}));
  m.event(0, make(kind::callers, 310, {.a = 77}));
  m.event(0, make(kind::end, 400, {.a = root}));
  m.finish(400);
  const auto runs = s.of(0, activity::thread);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(m.where(runs[1].began).line, 42u);
}

TEST(ModelNames, TheProgramsOwnLieInsideTheThread) {
  slices s;
  model m(2, s);
  m.event(0, make(kind::start, 100, {.a = root}));
  m.event(0, make(kind::name, 120, {.a = text, .b = scope, .detail = 5}));
  m.event(1, make(kind::steal, 200, {.a = root, .b = child, .other = 0, .detail = 5}));
  m.event(1, make(kind::name_ends, 250, {.b = scope}));
  m.event(0, make(kind::end, 300, {.a = child}));
  m.event(1, make(kind::end, 400, {.a = root}));
  m.finish(400);
  const auto left = s.of(0, activity::named), thief = s.of(1, activity::named);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].address, text);
  EXPECT_EQ(left[0].begin_ns, 120u);
  EXPECT_EQ(left[0].end_ns, 300u) << "the child inherits it";
  ASSERT_EQ(thief.size(), 1u);
  EXPECT_EQ(thief[0].begin_ns, 201u);
  EXPECT_EQ(thief[0].end_ns, 250u);
}

TEST(ModelNames, WhatIsOpenWhereTheEventsEndEndsThere) {
  slices s;
  model m(1, s);
  m.event(0, make(kind::start, 100, {.a = root}));
  m.event(0, make(kind::name, 120, {.a = text, .b = scope, .detail = 5}));
  m.finish(300);
  const auto open = s.of(0, activity::named);
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].begin_ns, 120u);
  EXPECT_EQ(open[0].end_ns, 300u);
}

}  // namespace
