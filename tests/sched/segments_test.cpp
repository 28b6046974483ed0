// Tests of segments: whatever is stolen, suspended and ended when, what their views hold is in serial order,
// and no more of them are kept than the order needs.
#include "sched/segments.hpp"

#include "sched/host.hpp"

#include <godwit/reducer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace host_of_tests;
using text = godwit::detail::views<std::string, godwit::op::append>;
using number = godwit::detail::views<long, godwit::op::sum>;

std::vector<ref> told;  // segments of other hosts that have ended

struct segments_of : testing::Test {
  host all{2, 2};
  join_records records_of[2]{{all.here(0), all.heap_of(0)}, {all.here(1), all.heap_of(1)}};
  segments of[2]{{all.here(0), all.heap_of(0), records_of[0], [](ref s) { told.push_back(s); }},
                 {all.here(1), all.heap_of(1), records_of[1], [](ref s) { told.push_back(s); }}};
  void SetUp() override { told.clear(); }

  template <class T>
  T& view_in(ref s, std::uint64_t reducer, const godwit::detail::view_type& type, int worker = 0) {
    ref v = of[worker].find(s, reducer);
    if (v == 0) of[worker].add(s, v = of[worker].make_view(reducer, type));
    return *static_cast<T*>(value_of(of[worker].view_at(v)));
  }
  void write(ref s, const std::string& what, int worker = 0) {
    view_in<std::string>(s, 1, text::type, worker) += what;
  }
  std::string written() {
    std::string found;
    of[0].lock_merges();
    for (const auto& i : of[0].take(1, segments::wanted::values)) {
      view& v = of[0].view_at(i.view);
      found += *static_cast<std::string*>(value_of(v));
      text::reset(value_of(v));
      if (i.owned) of[0].free_view(i.view);
    }
    of[0].unlock_merges();
    return found;
  }
  void drop(std::uint64_t reducer) {
    of[0].lock_merges();
    for (const auto& i : of[0].take(reducer, segments::wanted::end)) of[0].free_view(i.view);
    of[0].unlock_merges();
  }
  int length() {
    int n = 0;
    for (ref s = of[0].list().first(); s != 0; s = of[0].list().at(s).behind) ++n;
    return n;
  }
  std::size_t used() {
    for (int w = 0; w < 2; ++w) all.heap_of(static_cast<std::uint32_t>(w)).collect();
    return all.heap_of(0).used_bytes() + all.heap_of(1).used_bytes();
  }
};

TEST_F(segments_of, the_newest_continuation_that_left_is_the_nearest) {
  const ref s = of[0].begin_list(0);
  write(s, "a");
  const ref oldest = of[1].make_behind(s), newer = of[1].make_behind(s);
  write(oldest, "d");
  write(newer, "c");
  write(s, "b");
  EXPECT_EQ(written(), "abcd");
  EXPECT_EQ(written(), "") << "it has been taken";
  write(newer, "e");
  for (const ref each : {s, oldest, newer}) of[0].end(each);
  EXPECT_EQ(written(), "e") << "and went on";
  EXPECT_EQ(length(), 0);
  EXPECT_EQ(used(), 0u);
}

TEST_F(segments_of, the_child_that_begins_later_comes_first) {
  ref s = of[0].begin_list(0);
  const ref first = of[0].make_first(s);  // nothing has been written: the running one stays what it is
  write(s, "b");
  const ref before = s, second = of[0].make_first(s);
  EXPECT_NE(s, before);
  of[0].end(before);
  write(s, "d");
  write(second, "c");
  write(first, "a");
  EXPECT_EQ(written(), "abcd");
}

TEST_F(segments_of, a_loop_whose_continuations_are_stolen_keeps_few) {
  ref s = of[0].begin_list(0);
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    const ref rest = of[i % 2].make_behind(s);
    const std::string digit(1, static_cast<char>('0' + i % 10));
    write(s, digit, i % 2);
    expected += digit;
    of[i % 2].end(s);
    s = rest;
    ASSERT_LE(length(), 3);
  }
  EXPECT_EQ(written(), expected);
  drop(1);
  of[0].end(s);
  EXPECT_EQ(used(), 0u);
}

/// What a scheduler can do, at random, beside a plain list of strings.
TEST_F(segments_of, any_schedule_is_in_serial_order) {
  struct piece {
    ref segment;
    std::string text;
    bool runs = true;
  };
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    std::vector<piece> pieces{{of[0].begin_list(0), "", true}};
    std::size_t running = 1;
    for (int step = 0; step < 400; ++step) {
      std::vector<std::size_t> those;
      for (std::size_t i = 0; i < pieces.size(); ++i)
        if (pieces[i].runs) those.push_back(i);
      const std::size_t i = those[random() % those.size()];
      piece& p = pieces[i];
      const int worker = static_cast<int>(random() % 2);
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          const std::string c(1 + random() % 30, static_cast<char>('a' + random() % 26));
          write(p.segment, c, worker);
          ++view_in<long>(p.segment, 2, number::type, worker);
          p.text += c;
          break;
        }
        case 3:
        case 4:
          if (running < 20) {
            ++running;
            pieces.insert(pieces.begin() + static_cast<long>(i) + 1,
                          {of[worker].make_behind(p.segment), "", true});
          }
          break;
        case 5: {
          if (running == 20) break;
          ++running;
          const ref before = p.segment, child = of[worker].make_first(p.segment);
          if (p.segment == before) {
            pieces.insert(pieces.begin() + static_cast<long>(i), {child, "", true});
          } else {
            const ref rest = std::exchange(p.segment, before);
            p.runs = false;
            of[worker].end(before);
            pieces.insert(pieces.begin() + static_cast<long>(i) + 1, {{child, "", true}, {rest, "", true}});
          }
          break;
        }
        default:
          if (running == 1) break;
          --running;
          p.runs = false;
          of[worker].end(p.segment);
      }
      ASSERT_LE(length(), static_cast<int>(2 * running + 2)) << "beside each other none that have ended";
    }
    std::string expected;
    for (const piece& p : pieces) expected += p.text;
    ASSERT_EQ(written(), expected) << "seed " << seed;
    for (const piece& p : pieces)
      if (p.runs) of[0].end(p.segment);
    long updates = 0;
    of[0].lock_merges();
    for (const auto& item : of[0].take(2, segments::wanted::end)) {
      updates += *static_cast<long*>(value_of(of[0].view_at(item.view)));
      of[0].free_view(item.view);
    }
    of[0].unlock_merges();
    EXPECT_GT(updates, 0);
    drop(1);
    EXPECT_EQ(length(), 0);
    ASSERT_EQ(used(), 0u);
  }
}

TEST_F(segments_of, of_another_host_is_told_when_all_that_went_on_with_it_is_gone) {
  const ref theirs = godwit::transport::make_ref(worker_no{2}, 640);
  const ref here = of[0].begin_list(0), s = of[0].arrive(theirs);
  ASSERT_NE(s, theirs);
  EXPECT_EQ(of[0].arrive(s), s);
  const ref stolen = of[1].make_behind(s);
  write(stolen, "x");
  of[0].end(s);
  of[1].end(stolen);
  EXPECT_TRUE(told.empty()) << "there is still a view";
  const auto found = of[0].take(1, segments::wanted::positions);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].origin, 0u);
  EXPECT_EQ(found[1].segment, here);
  EXPECT_EQ(found[2].origin, theirs);
  EXPECT_EQ(found[3].segment, stolen);
  EXPECT_NE(found[3].view, 0u);
  EXPECT_TRUE(told.empty()) << "it stays where it is";
  drop(1);
  EXPECT_EQ(told, std::vector{theirs});
  of[0].end(here);
  EXPECT_EQ(used(), 0u);
}

}  // namespace
