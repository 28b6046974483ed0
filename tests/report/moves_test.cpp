// Who had which part when: the analysis of moves, on events made by hand, and the map that is made of it.
#include "analysis.hpp"
#include "page.hpp"
#include "summary.hpp"
#include "trace_builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace {

using namespace godwit::report;
using godwit::trace::no_worker;
using godwit::trace::part_result;
using report_test::trace_builder;

constexpr std::uint64_t here = 0x1000'0000, there = 0x2000'0000;

struct analysed {
  std::string file;
  recording r;
  analysis a;
  explicit analysed(const trace_builder& t)
      : file(t.bytes()), r(parse(std::as_bytes(std::span(file)), "test")), a(analyze(r)) {}
  const moves_analysis& moves() const { return a.moves; }
  std::string page() const {
    std::ostringstream out;
    write_page(out, r, &a, "run.pftrace", {});
    return out.str();
  }
};

/// Three workers; four parts, two each of workers 0 and 1. Times from 1000.
trace_builder some_moves() {
  trace_builder t(3);
  t.start(0, 1000, 7);
  t.parts(0, 1000, here, 0, 2, 0, 4096);
  t.parts(0, 1000, here, 2, 2, 1, 4096);
  t.part(2, 1200, here, 0, 0, 2, part_result::came, 4096);
  t.part(2, 1210, here, 3, 1, 2, part_result::came, 4096);
  t.moves(2, 1220, here, 2, 90);
  t.part(1, 1400, here, 2, 1, 0, part_result::given);
  t.part(1, 1500, here, 3, 2, 1, part_result::busy);
  t.part(1, 1510, here, 3, 2, 1, part_result::no_room);
  t.part_wait(0, 1600, here, 50);
  t.part_wait(0, 1700, here, 30);
  t.part(2, 1800, here, 0, 2, 1, part_result::given);
  t.end(0, 2000, 7);
  return t;
}

TEST(Moves, AreCountedWhereTheyWereDone) {
  const analysed x(some_moves());
  const auto& w = x.moves().by_worker;
  ASSERT_EQ(w.size(), 3u);
  EXPECT_EQ(w[2].came, 2u);
  EXPECT_EQ(w[2].given, 1u);
  EXPECT_EQ(w[2].bytes, 8192u);
  EXPECT_EQ(w[2].ns, 90u);
  EXPECT_EQ(w[1].given, 1u);
  EXPECT_EQ(w[1].busy, 1u);
  EXPECT_EQ(w[1].no_room, 1u);
  EXPECT_EQ(w[0].waits, 2u);
  EXPECT_EQ(w[0].wait_ns, 80u);
  EXPECT_EQ(x.moves().total().came, 2u);
  ASSERT_EQ(x.moves().memory.size(), 1u);
  const movable_memory& m = x.moves().memory[0];
  EXPECT_EQ(m.address, here);
  EXPECT_EQ(m.parts, 4u);
  EXPECT_EQ(m.part_bytes, 4096u);
  EXPECT_EQ(m.bytes, 8192u);
  EXPECT_EQ(m.changes.size(), 4u) << "what stayed is no change";
}

/// Owner of each column, and moves.
std::vector<std::int64_t> owners_of(const owner_map& m, std::size_t row) {
  std::vector<std::int64_t> list;
  for (const auto& run : m.rows.at(row).runs)
    list.insert(list.end(), run.columns, run.owner == owner_unknown ? -1 : std::int64_t{run.owner});
  return list;
}
using line = std::vector<std::int64_t>;

TEST(Moves, TheMapSaysWhoHadWhatWhen) {
  const analysed x(some_moves());
  const owner_map m = map_of(x.moves().memory[0], 0, x.a.end, 96, 10);  // columns of 100 ns
  ASSERT_EQ(m.rows.size(), 4u);
  EXPECT_EQ(m.group, 1u);
  EXPECT_EQ(owners_of(m, 0), (line{0, 0, 2, 2, 2, 2, 2, 2, 1, 1}));
  EXPECT_EQ(owners_of(m, 1), (line{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(owners_of(m, 2), (line{1, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(owners_of(m, 3), (line{1, 1, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(m.rows[0].moves, (std::map<std::uint32_t, std::uint32_t>{{2, 1}, {8, 1}}));
  EXPECT_TRUE(m.rows[1].moves.empty());
}

TEST(Moves, OfPartOfTheTime) {
  const analysed x(some_moves());
  const owner_map m = map_of(x.moves().memory[0], 300, 500, 96, 2);
  EXPECT_EQ(m.from, 300u);
  EXPECT_EQ(m.to, 500u);
  EXPECT_EQ(owners_of(m, 0), (line{2, 2})) << "what was before is known";
  EXPECT_EQ(owners_of(m, 2), (line{1, 0}));
  EXPECT_TRUE(m.rows[0].moves.empty());
}

TEST(Moves, ManyPartsAreShownInGroups) {
  const analysed x(some_moves());
  const owner_map m = map_of(x.moves().memory[0], 0, x.a.end, 2, 10);
  EXPECT_EQ(m.group, 2u);
  ASSERT_EQ(m.rows.size(), 2u);
  // Parts 0 and 1: both worker 0's, then one of them is 2's, then 1's: the one before stays.
  EXPECT_EQ(owners_of(m, 0), (line{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(owners_of(m, 1), (line{1, 1, 1, 1, 0, 0, 0, 0, 0, 0})) << "one each: the first, or who was";
  EXPECT_EQ(m.rows[0].moves, (std::map<std::uint32_t, std::uint32_t>{{2, 1}, {8, 1}}));
}

TEST(Moves, WhatWasNotRecordedFollowsFromWhereItCameFrom) {
  trace_builder t(2);
  t.start(0, 1000, 7);
  t.part(1, 1500, here, 1, 0, 1);
  t.end(0, 2000, 7);
  const analysed x(t);
  ASSERT_EQ(x.moves().memory.size(), 1u);
  EXPECT_EQ(x.moves().memory[0].part_bytes, 0u);
  const owner_map m = map_of(x.moves().memory[0], 0, x.a.end, 96, 2);
  EXPECT_EQ(m.from, 500u) << "from where it is known of";
  ASSERT_EQ(m.rows.size(), 2u);
  EXPECT_EQ(owners_of(m, 0), (line{-1, -1}));
  EXPECT_EQ(owners_of(m, 1), (line{1, 1}));
}

TEST(Moves, AnAddressThatIsUsedAgainIsOtherMemory) {
  trace_builder t(2);
  t.start(0, 1000, 7);
  t.parts(0, 1000, here, 0, 1, 0);
  t.part(1, 1100, here, 0, 0, 1);
  t.parts(0, 1200, here, 0, 0, no_worker);  // freed
  t.parts(0, 1300, here, 0, 2, 1);
  t.part(0, 1400, here, 0, 1, 0);
  t.part(0, 1410, here, 1, 1, 0);
  t.parts(0, 1450, there, 0, 9, 1);  // never moves
  t.end(0, 2000, 7);
  const analysed x(t);
  ASSERT_EQ(x.moves().memory.size(), 2u);
  EXPECT_EQ(x.moves().memory[0].changes.size(), 2u) << "most moves first";
  EXPECT_EQ(x.moves().memory[0].parts, 2u);
  EXPECT_EQ(x.moves().memory[0].begin, 300u);
  EXPECT_EQ(x.moves().memory[1].parts, 1u);
  EXPECT_EQ(x.moves().memory[1].end, 200u);
}

TEST(Moves, NumbersThatCannotBeAreNotBelieved) {
  trace_builder t(2);
  t.start(0, 1000, 7);
  t.parts(0, 1000, here, 1ull << 39, 5, 0);
  t.part(1, 1100, here, 1ull << 39, 0, 1);
  t.part(1, 1100, here, 0, 0, 1, static_cast<part_result>(77));
  t.end(0, 2000, 7);
  const analysed x(t);
  EXPECT_EQ(x.moves().by_worker[1].came, 1u);
  for (const movable_memory& m : x.moves().memory) EXPECT_LT(m.parts, 10u);
}

TEST(Moves, TheBusiestPartsComeFirst) {
  const analysed x(some_moves());
  const auto list = busiest_parts(x.moves().memory[0], 2);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].part, 0u);
  EXPECT_EQ(list[0].moves, 2u);
  EXPECT_EQ(list[0].owners, 3u);
  EXPECT_EQ(list[0].last_owner, 1u);
  EXPECT_EQ(list[1].part, 2u) << "of equals the first";
}

/// @p far accesses by worker 1's host to a part that worker 0 has, and 10 by that.
trace_builder uses(std::uint32_t far) {
  trace_builder t(2);
  t.start(0, 1000, 7);
  t.parts(0, 1000, here, 0, 4, 0, 4096);
  t.heat(0, 1900, here, 1, 10, 3, 1);
  t.heat(0, 1900, here, 2, 10, far, 1);
  t.heat(0, 1900, here, 3, 4, 0, no_worker);
  t.heat(0, 1900, here, 1ull << 39, 4, 0, no_worker);  // no such part
  t.parts(0, 1910, here, 0, 0, no_worker);
  t.end(0, 2000, 7);
  return t;
}

TEST(Moves, WhoUsedWhatDidNotMove) {
  const analysed x(uses(2000));
  ASSERT_EQ(x.moves().memory.size(), 1u);
  EXPECT_EQ(x.moves().near_uses(), 24u);
  EXPECT_EQ(x.moves().far_uses(), 2003u);
  const auto list = most_used_parts(x.moves().memory[0], 2);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].part, 2u);
  EXPECT_EQ(list[0].by, 1u);
  EXPECT_EQ(list[1].part, 1u);
  EXPECT_NE(x.page().find("\"used\":[[2,10,2000,1],[1,10,3,1],[3,4,0,-1]]"), std::string::npos) << x.page();
  const auto hint = [](const analysed& a) {
    const auto all = explain(figures_of(a.r, &a.a), a.r, &a.a);
    return std::any_of(all.begin(), all.end(), [](const finding& f) {
      return f.title == "Movable memory was used 2,003 times by other hosts, 24 times by those that had it";
    });
  };
  EXPECT_TRUE(hint(x));
  EXPECT_FALSE(hint(analysed(uses(40))));
}

TEST(Moves, ThePageHasThemIfThereAreSome) {
  EXPECT_NE(analysed(some_moves()).page().find("\"moves\":{\"allocations\":1"), std::string::npos);
  trace_builder none(1);
  none.start(0, 0, 7);
  none.parts(0, 1, here, 0, 3, 0);
  none.end(0, 10, 7);
  EXPECT_NE(analysed(none).page().find("\"moves\":null"), std::string::npos);
}

/// The rings have lost where it was allocated.
TEST(Moves, MemoryOfWhichOnlyUsesOrRefusalsAreKnown) {
  trace_builder t(2);
  t.start(0, 1000, 7);
  t.heat(0, 1900, here, 1, 10, 3, 1);
  t.part(1, 1500, there, 2, 0, 1, part_result::busy);
  t.end(0, 2000, 7);
  const analysed x(t);
  ASSERT_EQ(x.moves().memory.size(), 2u);
  for (const movable_memory& m : x.moves().memory) {
    EXPECT_EQ(m.parts, m.address == here ? 2u : 3u);
    EXPECT_EQ(map_of(m, 0, x.a.end, 96, 2).rows.size(), m.parts);
  }
  trace_builder beyond(1);  // a part that cannot be: nothing is known of how many there are
  beyond.start(0, 1000, 7);
  beyond.part(0, 1500, there, 1ull << 39, 0, 1, part_result::busy);
  beyond.end(0, 2000, 7);
  EXPECT_NE(analysed(beyond).page().find("\"parts\":0"), std::string::npos);
}

TEST(Moves, ThatTakeMuchTimeAreACause) {
  const auto about_moves = [](std::uint32_t ns) {
    trace_builder t(2);
    t.start(0, 1000, 7);
    t.parts(0, 1000, here, 0, 1, 1);
    t.part(0, 900'000, here, 0, 1, 0);
    t.moves(0, 900'000, here, 1, ns);
    t.end(0, 1'001'000, 7);
    t.idle(1, 1'001'000, 1'000'000, godwit::trace::idle_cause::no_work);
    const analysed x(t);
    const auto list = explain(figures_of(x.r, &x.a), x.r, &x.a);
    return std::any_of(list.begin(), list.end(),
                       [](const finding& f) { return f.title.find("Moves of memory") != std::string::npos; });
  };
  EXPECT_TRUE(about_moves(500'000));
  EXPECT_FALSE(about_moves(1'000));
}

}  // namespace
