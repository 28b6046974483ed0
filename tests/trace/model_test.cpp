// Tests of the model: scenarios written by hand, and simulated runs of which any beginning may be missing.
// test: timeout=120
#include "trace/model.hpp"

#include "trace/events_by_hand.hpp"
#include "trace/merge.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

namespace {

using namespace godwit::trace;
using by_hand::fields;
using by_hand::history;
using by_hand::make;

struct recorder final : sink {
  struct count {
    counter which;
    std::uint64_t time_ns;
    std::uint32_t value;
  };
  struct point {
    instant i;
    std::vector<std::uint64_t> flows;
  };
  void on(const worker_slice& s) override { slices.push_back(s); }
  void on(const thread_slice& s) override { threads.push_back(s); }
  void on(const instant& i) override { points.push_back({i, {i.flows.begin(), i.flows.end()}}); }
  void on(counter c, std::uint64_t t, std::uint32_t v) override { counts.push_back({c, t, v}); }

  std::vector<worker_slice> of(std::uint32_t w, activity a) const {
    std::vector<worker_slice> out;
    for (const auto& s : slices)
      if (s.worker == w && s.what == a) out.push_back(s);
    std::stable_sort(out.begin(), out.end(), [](auto& x, auto& y) { return x.begin_ns < y.begin_ns; });
    return out;
  }
  std::vector<thread_slice> of_thread(std::uint32_t n) const {
    std::vector<thread_slice> out;
    for (const auto& s : threads)
      if (s.thread == n) out.push_back(s);
    return out;
  }
  std::vector<point> marks(mark m) const {
    std::vector<point> out;
    for (const auto& p : points)
      if (p.i.what == m) out.push_back(p);
    return out;
  }
  std::vector<std::uint32_t> values(counter c) const {
    std::vector<std::uint32_t> out;
    for (const auto& n : counts)
      if (n.which == c) out.push_back(n.value);
    return out;
  }

  std::vector<worker_slice> slices;
  std::vector<thread_slice> threads;
  std::vector<point> points;
  std::vector<count> counts;
};

event_source listed(const std::vector<event>& events) {
  return [&events, next = std::size_t{0}](event* to, std::size_t most) mutable {
    const std::size_t n = std::min(most, events.size() - next);
    std::copy_n(events.begin() + static_cast<std::ptrdiff_t>(next), n, to);
    next += n;
    return n;
  };
}

std::vector<std::uint64_t> play(const history& h, sink& out, std::vector<std::uint64_t> initial = {}) {
  std::vector<event_source> sources;
  std::uint64_t end = 0;
  for (const auto& w : h) {
    sources.push_back(listed(w));
    if (!w.empty()) end = std::max(end, w.back().time_ns);
  }
  merger m(std::move(sources), 16);
  model mod(static_cast<std::uint32_t>(h.size()), out, std::move(initial));
  std::uint32_t w = 0;
  for (event e; m.next(w, e);) mod.event(w, e);
  mod.finish(end + 1000);
  return mod.initial();
}

constexpr std::uint64_t root = 128, child = 256;

TEST(model, what_the_operating_system_kept_is_a_mark) {
  recorder r;
  const auto aside = static_cast<std::uint16_t>(system_kind::aside);
  play({{make(kind::start, 100, {.a = root}), make(kind::system, 900, {.a = 800, .b = 300, .detail = aside}),
         make(kind::end, 900, {.a = root})}},
       r);
  const auto kept = r.marks(mark::kept);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].i.time_ns, 900u);
  EXPECT_EQ(kept[0].i.ns, 300u);
  EXPECT_EQ(kept[0].i.how, system_kind::aside);
  EXPECT_EQ(r.of(0, activity::thread).size(), 1u) << "the thread's slice is one";
}

TEST(model, a_thread_that_stays_is_a_mark_with_its_place) {
  recorder r;
  play({{make(kind::stay, 100, {.a = root}), make(kind::callers, 100, {.a = 77}),
         make(kind::resume, 150, {.a = root, .duration_ns = 60, .other = 0}),
         make(kind::end, 200, {.a = root})}},
       r);
  ASSERT_EQ(r.points.size(), 1u);
  const instant& i = r.points[0].i;
  EXPECT_EQ(i.what, mark::stayed);
  EXPECT_EQ(i.time_ns, 100u);
  EXPECT_NE(i.place, 0u);
  const auto runs = r.of(0, activity::thread);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].thread, i.thread);
  EXPECT_EQ(runs[0].place, 0u) << "where it stayed is not where it waits";
}

TEST(Model, AWaitForALockHasAKindAPlaceAndAnArrowFromWhoWokeIt) {
  recorder r;
  model m(2, r);
  m.event(0, make(kind::start, 0, {.a = 8}));
  m.event(1, make(kind::start, 5, {.a = 16}));
  m.event(1, make(kind::suspend, 10, {.a = 16}));
  m.event(1, make(kind::waits, 10, {.a = 0x77}));
  m.event(1, make(kind::callers, 10, {.a = 0x100, .b = 0x200}));
  m.event(1, make(kind::callers, 10, {.a = 0x300}));
  m.event(0, make(kind::suspend, 40, {.a = 24, .detail = 1}));
  m.event(0, make(kind::place, 40, {.a = 0x88, .other = 4}));
  m.event(0, make(kind::wake, 50, {.a = 16}));
  m.event(0, make(kind::callers, 50, {.a = 0x400}));
  m.event(1, make(kind::resume, 60, {.a = 16, .other = 0}));
  m.event(1, make(kind::end, 80, {.a = 16}));
  m.event(0, make(kind::end, 90, {.a = 8}));
  m.finish(100);
  const auto own = r.of_thread(2);
  ASSERT_EQ(own.size(), 4u);
  EXPECT_EQ(own[1].what, state::waiting);
  EXPECT_EQ(own[1].begin_ns, 10u);
  EXPECT_EQ(own[1].end_ns, 50u);
  EXPECT_EQ(own[1].waits_for, 0x77u);
  EXPECT_EQ(m.where(own[1].place).callers, (std::array<std::uint64_t, 6>{0x100, 0x200, 0x300, 0, 0, 0}));
  EXPECT_EQ(own[2].what, state::ready);
  const auto other = r.of_thread(3);
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(m.where(other[0].place).line, 4u) << "where it woke another is not where it waits";
  const auto wakes = r.marks(mark::wakes);
  ASSERT_EQ(wakes.size(), 1u);
  EXPECT_EQ(wakes[0].i.worker, 0u);
  ASSERT_EQ(wakes[0].flows.size(), 1u);
  EXPECT_EQ(r.of(1, activity::thread).back().flow, wakes[0].flows[0]) << "the arrow ends where it goes on";
}

TEST(model, a_steal_and_a_join) {
  recorder r;
  play({{make(kind::start, 100, {.a = root}), make(kind::expose, 150, {.bytes = 1, .detail = 1}),
         make(kind::end, 900, {.a = child, .detail = 1}),
         make(kind::resume, 950, {.a = root, .b = child, .duration_ns = 20, .bytes = 77, .other = 1}),
         make(kind::end, 2000, {.a = root})},
        {make(kind::sleep, 180, {.duration_ns = 50}), make(kind::idle, 299, {.duration_ns = 199}),
         make(kind::steal, 300, {.a = root, .b = child, .duration_ns = 120, .bytes = 333, .other = 0}),
         make(kind::suspend, 500, {.a = root, .b = child, .bytes = 444}),
         make(kind::place, 501, {.a = 1, .b = 2, .other = 42}),
         make(kind::idle, 1900, {.duration_ns = 1400, .detail = 1})}},
       r);

  const auto zero = r.of(0, activity::thread);
  ASSERT_EQ(zero.size(), 3u);
  EXPECT_EQ(zero[0].thread, 1u);
  EXPECT_EQ(zero[0].begin_ns, 100u);
  EXPECT_EQ(zero[0].end_ns, 300u) << "until it was stolen";
  EXPECT_EQ(zero[0].why, kind::steal);
  EXPECT_EQ(zero[1].thread, 2u) << "the child goes on";
  EXPECT_EQ(zero[1].end_ns, 900u);
  EXPECT_EQ(zero[2].thread, 1u);
  EXPECT_EQ(zero[2].how, kind::resume);
  EXPECT_EQ(zero[2].begin_ns, 950u);
  EXPECT_EQ(zero[2].end_ns, 2000u);
  EXPECT_EQ(zero[2].why, kind::end);

  const auto one = r.of(1, activity::thread);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].begin_ns, 300u);
  EXPECT_EQ(one[0].end_ns, 500u);
  EXPECT_EQ(one[0].bytes, 333u);
  EXPECT_EQ(one[0].copied_out, 444u);
  EXPECT_EQ(one[0].from, 0u);
  EXPECT_EQ(one[0].latency_ns, 120u);
  EXPECT_NE(one[0].place, 0u) << "the place that follows the suspension";

  const auto idle = r.of(1, activity::idle);
  ASSERT_EQ(idle.size(), 2u);
  EXPECT_EQ(idle[0].detail, static_cast<std::uint16_t>(idle_cause::no_work));
  EXPECT_EQ(idle[1].detail, static_cast<std::uint16_t>(idle_cause::join));
  EXPECT_EQ(r.of(1, activity::sleep).size(), 1u);
  EXPECT_EQ(r.of(1, activity::sleep)[0].begin_ns, 130u);
  ASSERT_EQ(r.of(1, activity::getting).size(), 1u);
  EXPECT_EQ(r.of(1, activity::getting)[0].begin_ns, 180u);

  const auto t = r.of_thread(1);
  ASSERT_EQ(t.size(), 5u);
  const state states[] = {state::running, state::running, state::waiting, state::ready, state::running};
  const std::uint64_t ends[] = {300, 500, 900, 950, 2000};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(t[i].what, states[i]) << i;
    EXPECT_EQ(t[i].end_ns, ends[i]) << i;
    if (i != 0) {
      EXPECT_EQ(t[i].begin_ns, t[i - 1].end_ns);
    }
  }
  EXPECT_EQ(t[0].worker, 0u);
  EXPECT_EQ(t[1].worker, 1u);
  EXPECT_NE(t[2].place, 0u);

  const auto stolen = r.marks(mark::stolen);
  ASSERT_EQ(stolen.size(), 1u);
  EXPECT_EQ(stolen[0].i.worker, 0u);
  EXPECT_EQ(stolen[0].i.other, 1u);
  ASSERT_EQ(stolen[0].flows.size(), 1u);
  EXPECT_EQ(stolen[0].flows[0], one[0].flow);
  const auto done = r.marks(mark::done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].i.time_ns, 900u);
  ASSERT_EQ(done[0].flows.size(), 1u);
  EXPECT_EQ(done[0].flows[0], zero[2].flow);
  ASSERT_EQ(r.marks(mark::exposed).size(), 1u);
  EXPECT_TRUE(r.marks(mark::exposed)[0].i.by_signal);

  EXPECT_EQ(r.values(counter::busy_workers), (std::vector<std::uint32_t>{1, 2, 1, 0, 1, 0}));
  EXPECT_EQ(r.values(counter::ready_joins), (std::vector<std::uint32_t>{1, 0}));
}

TEST(model, a_steal_written_down_after_the_victim_noticed) {
  recorder r;
  play({{make(kind::start, 100, {.a = root}), make(kind::end, 290, {.a = child}),
         make(kind::idle, 800, {.duration_ns = 500})},
        {make(kind::steal, 300, {.a = root, .b = child, .duration_ns = 150, .other = 0}),
         make(kind::end, 700, {.a = root})}},
       r);
  const auto zero = r.of(0, activity::thread);
  ASSERT_EQ(zero.size(), 1u);
  EXPECT_EQ(zero[0].end_ns, 290u) << "and the child does not come back to life at 300";
  EXPECT_EQ(r.of(0, activity::idle)[0].begin_ns, 300u);
  EXPECT_EQ(r.of(1, activity::thread)[0].thread, 1u);
  EXPECT_EQ(r.values(counter::busy_workers), (std::vector<std::uint32_t>{1, 0, 1, 0}));
}

TEST(model, two_steals_from_one_victim_written_down_in_the_wrong_order) {
  constexpr std::uint64_t grandchild = 384;
  recorder r;
  play({{make(kind::start, 100, {.a = root}), make(kind::end, 900, {.a = grandchild})},
        {make(kind::steal, 310, {.a = root, .b = child, .duration_ns = 50, .other = 0})},
        {make(kind::steal, 300, {.a = child, .b = grandchild, .duration_ns = 10, .other = 0})}},
       r);
  const auto zero = r.of(0, activity::thread);
  ASSERT_GE(zero.size(), 2u);
  EXPECT_EQ(zero.front().record, root);
  EXPECT_EQ(zero.back().record, grandchild);
  EXPECT_EQ(zero.back().end_ns, 900u);
}

TEST(model, a_cancelled_suspension_leaves_no_trace) {
  recorder r;
  play({{make(kind::start, 100, {.a = root}), make(kind::suspend, 200, {.a = root, .b = child}),
         make(kind::place, 200, {.a = 1, .b = 2, .other = 3}),
         make(kind::message, 208, {.duration_ns = 3}),  // served while it asked whether to wait
         make(kind::cancel, 210, {.a = root}), make(kind::suspend, 220, {.a = child, .b = 99, .detail = 1}),
         make(kind::cancel, 230, {.a = child}), make(kind::end, 300, {.a = root})}},
       r);
  const auto slices = r.of(0, activity::thread);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].begin_ns, 100u);
  EXPECT_EQ(slices[0].end_ns, 300u);
  ASSERT_EQ(r.threads.size(), 1u);
  EXPECT_EQ(r.threads[0].end_ns, 300u);
  EXPECT_TRUE(r.marks(mark::suspended).empty());
}

TEST(model, a_suspension_cancelled_before_its_steal_was_written_down) {
  recorder r;
  model m(2, r);
  m.event(0, make(kind::start, 100, {.a = root}));
  m.event(0, make(kind::suspend, 200, {.a = child, .b = 99}));  // worker 1 has the root thread already
  m.event(0, make(kind::place, 200, {.a = 1, .b = 2, .other = 3}));
  m.event(0, make(kind::cancel, 210, {.a = child}));
  m.event(1, make(kind::steal, 220, {.a = root, .b = child, .duration_ns = 30, .other = 0}));
  m.event(1, make(kind::end, 300, {.a = root}));
  m.event(0, make(kind::end, 400, {.a = child}));
  m.finish(400);
  const auto zero = r.of(0, activity::thread), one = r.of(1, activity::thread);
  ASSERT_EQ(zero.size(), 2u);
  EXPECT_EQ(zero[0].record, root);
  EXPECT_EQ(zero[0].end_ns, 200u) << "it is not put back";
  EXPECT_EQ(zero[1].record, child);
  EXPECT_EQ(zero[1].begin_ns, 210u);
  EXPECT_EQ(zero[1].end_ns, 400u);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].record, root);
}

TEST(model, run_to_completion_puts_tasks_on_top_of_joins) {
  for (const bool says_that_it_waits : {false, true}) {
    recorder r;
    history h = {{make(kind::start, 100, {.a = root})}};
    auto& e = h[0];
    if (says_that_it_waits) e.push_back(make(kind::suspend, 200, {.a = root, .b = 999, .detail = 2}));
    e.push_back(make(kind::idle, 240, {.duration_ns = 30, .detail = 1}));
    e.push_back(make(kind::task, 250, {.a = child, .other = 0, .detail = 1}));
    e.push_back(make(kind::end, 400, {.a = child}));
    if (says_that_it_waits) e.push_back(make(kind::resume, 500, {.a = root, .b = 999, .other = 0}));
    e.push_back(make(kind::end, 600, {.a = root}));
    play(h, r);
    const auto zero = r.of(0, activity::thread);
    ASSERT_EQ(zero.size(), 2u);
    EXPECT_EQ(zero[0].begin_ns, 100u);
    EXPECT_EQ(zero[0].end_ns, 600u);
    EXPECT_EQ(zero[1].begin_ns, 250u);
    EXPECT_EQ(zero[1].end_ns, 400u);
    EXPECT_EQ(r.of(0, activity::idle)[0].begin_ns, 210u);
    if (!says_that_it_waits) continue;
    ASSERT_EQ(r.of(0, activity::below).size(), 1u);
    EXPECT_EQ(r.of(0, activity::below)[0].begin_ns, 200u);
    EXPECT_EQ(r.of(0, activity::below)[0].end_ns, 500u);
    EXPECT_EQ(r.values(counter::busy_workers), (std::vector<std::uint32_t>{1, 0, 1, 0, 1, 0}));
    EXPECT_EQ(r.of_thread(1).size(), 3u);
  }
}

TEST(model, several_waiters_of_one_record_each_get_a_flow) {
  recorder r;
  play({{make(kind::start, 100, {.a = root}), make(kind::suspend, 200, {.a = root, .b = 999}),
         make(kind::resume, 400, {.a = root, .b = 999, .other = 1})},
        {make(kind::steal, 150, {.a = child, .b = 0, .duration_ns = 5, .other = 2}),
         make(kind::suspend, 250, {.a = child, .b = 999}), make(kind::complete, 300, {.a = 999}),
         make(kind::resume, 500, {.a = child, .b = 999, .other = 1})},
        {}},
       r);
  ASSERT_EQ(r.marks(mark::done).size(), 1u);
  const auto flows = r.marks(mark::done)[0].flows;
  ASSERT_EQ(flows.size(), 2u);
  const std::set<std::uint64_t> expected(flows.begin(), flows.end());
  const std::set<std::uint64_t> found = {r.of(0, activity::thread)[1].flow,
                                         r.of(1, activity::thread)[1].flow};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(r.values(counter::ready_joins), (std::vector<std::uint32_t>{1, 2, 1, 0}));
}

TEST(model, global_memory_lies_inside_the_thread) {
  recorder r;
  const auto evict = static_cast<std::uint16_t>(godwit::trace::global_access::evict);
  play({{make(kind::start, 100, {.a = root}), make(kind::global, 300, {.duration_ns = 150, .bytes = 16384}),
         make(kind::global, 500, {.duration_ns = 20, .bytes = 64, .detail = 1}),
         make(kind::global, 510, {.duration_ns = 40, .bytes = 16384, .detail = evict}),
         make(kind::end, 900, {.a = root})}},
       r);
  const auto moved = r.of(0, activity::global);
  ASSERT_EQ(moved.size(), 3u);
  EXPECT_EQ(moved[0].begin_ns, 150u);
  EXPECT_EQ(moved[0].end_ns, 300u);
  EXPECT_EQ(moved[0].bytes, 16384u);
  EXPECT_EQ(moved[0].detail, 0u);
  EXPECT_EQ(moved[1].detail, evict);
  EXPECT_EQ(moved[1].begin_ns, 470u) << "around its write-back";
  EXPECT_EQ(moved[2].detail, 1u);
  EXPECT_EQ(moved[2].begin_ns, 480u);
  const auto runs = r.of(0, activity::thread);
  ASSERT_EQ(runs.size(), 1u) << "the thread goes on meanwhile";
  EXPECT_EQ(runs[0].end_ns, 900u);
}

TEST(model, moves_of_memory_lie_inside_the_thread) {
  recorder r;
  const auto b = [](std::uint64_t part, std::uint32_t worker) {
    return godwit::trace::part_and_worker(part, worker);
  };
  const auto busy = static_cast<std::uint16_t>(part_result::busy);
  constexpr std::uint64_t memory = 0x5000, none = godwit::trace::no_worker;
  play({{make(kind::start, 100, {.a = root}),
         make(kind::parts, 150, {.a = memory, .b = b(0, 1), .bytes = 4096, .other = 8}),
         make(kind::part, 290, {.a = memory, .b = b(7, 0), .duration_ns = 80, .bytes = 4096, .other = 1}),
         make(kind::part, 295, {.a = memory, .b = b(6, 0), .duration_ns = 90, .other = 1, .detail = busy}),
         make(kind::moves, 300, {.a = memory, .b = b(6, 0), .duration_ns = 100, .bytes = 4096, .other = 1}),
         make(kind::part_wait, 500, {.a = memory + 8, .duration_ns = 50}),
         make(kind::heat, 590, {.a = memory, .b = b(5, 1), .bytes = 7, .other = 9}),
         make(kind::parts, 600, {.a = memory, .b = b(0, none)}), make(kind::end, 900, {.a = root})}},
       r);
  const auto moves = r.of(0, activity::moves);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].begin_ns, 200u);
  EXPECT_EQ(moves[0].end_ns, 300u);
  EXPECT_EQ(moves[0].address, memory);
  EXPECT_EQ(moves[0].part, 6u);
  EXPECT_EQ(moves[0].to, 0u);
  EXPECT_EQ(moves[0].count, 1u);
  EXPECT_EQ(moves[0].bytes, 4096u);
  const auto waits = r.of(0, activity::part_wait);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].begin_ns, 450u);
  EXPECT_EQ(waits[0].address, memory + 8);
  const auto parts = r.marks(mark::part);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].i.part, 7u);
  EXPECT_EQ(parts[0].i.other, 1u);
  EXPECT_EQ(parts[0].i.to, 0u);
  EXPECT_EQ(parts[0].i.took_ns, 80u);
  EXPECT_EQ(parts[0].i.result, part_result::came);
  EXPECT_EQ(parts[1].i.result, part_result::busy);
  ASSERT_EQ(r.marks(mark::allocated).size(), 1u);
  EXPECT_EQ(r.marks(mark::allocated)[0].i.count, 8u);
  EXPECT_EQ(r.marks(mark::allocated)[0].i.to, 1u);
  ASSERT_EQ(r.marks(mark::used).size(), 1u);
  EXPECT_EQ(r.marks(mark::used)[0].i.part, 5u);
  EXPECT_EQ(r.marks(mark::used)[0].i.bytes, 7u);
  EXPECT_EQ(r.marks(mark::used)[0].i.count, 9u);
  EXPECT_EQ(r.marks(mark::used)[0].i.to, 1u);
  ASSERT_EQ(r.marks(mark::freed).size(), 1u);
  EXPECT_EQ(r.marks(mark::freed)[0].i.to, nobody);
  EXPECT_EQ(r.of(0, activity::thread).size(), 1u) << "the thread goes on meanwhile";
}

TEST(model, what_ran_when_the_events_begin_is_known_in_the_second_pass) {
  const history h = {{make(kind::expose, 100, {.bytes = 1}), make(kind::end, 300, {.a = root})},
                     {make(kind::idle, 150, {.duration_ns = 10}),
                      make(kind::steal, 200, {.a = child, .b = 512, .duration_ns = 5, .other = 2})},
                     {make(kind::message, 50, {.duration_ns = 5}), make(kind::end, 400, {.a = 512})}};
  recorder first, second;
  const auto initial = play(h, first);
  EXPECT_EQ(initial, (std::vector<std::uint64_t>{root, 0, child}));
  play(h, second, initial);
  const auto zero = second.of(0, activity::thread);
  ASSERT_EQ(zero.size(), 1u);
  EXPECT_EQ(zero[0].begin_ns, 100u);
  EXPECT_EQ(zero[0].end_ns, 300u);
  EXPECT_EQ(zero[0].how, kind::count_) << "began before";
  const auto two = second.of(2, activity::thread);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].record, child);
  EXPECT_EQ(two[1].record, 512u);
}

// ---- any beginning may be missing
// ---------------------------------------------------------------------------

/// As Perfetto puts slices together: ends have no names. Returns the deepest nesting, -1 if an end has no
/// begin.
int replay(const std::vector<worker_slice>& slices, std::uint32_t worker) {
  struct edge {
    std::uint64_t time;
    int what;
  };
  std::vector<edge> edges;
  for (const auto& s : slices)
    if (s.worker == worker) {
      edges.push_back({s.begin_ns, 1});
      edges.push_back({s.end_ns, -1});
    }
  std::stable_sort(edges.begin(), edges.end(), [](const edge& a, const edge& b) { return a.time < b.time; });
  int depth = 0, deepest = 0;
  for (const edge& e : edges) {
    depth += e.what;
    if (depth < 0) return -1;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

void check_invariants(const recorder& r, std::uint32_t workers) {
  for (std::uint32_t w = 0; w < workers; ++w) {
    std::uint64_t last = 0;
    for (const auto& s : r.of(w, activity::thread)) {
      ASSERT_LE(s.begin_ns, s.end_ns);
      ASSERT_GE(s.begin_ns, last) << "threads of worker " << w << " overlap";
      last = s.end_ns;
    }
    ASSERT_GE(replay(r.slices, w), 0);
    ASSERT_LE(replay(r.slices, w), 3);
  }
  std::map<std::uint32_t, std::uint64_t> last;
  for (const auto& s : r.threads) {
    ASSERT_LE(s.begin_ns, s.end_ns);
    ASSERT_GE(s.begin_ns, last[s.thread]) << "states of thread " << s.thread << " overlap";
    last[s.thread] = s.end_ns;
    ASSERT_NE(s.what, state::none);
  }
  for (const auto& c : r.counts) ASSERT_LE(c.value, c.which == counter::busy_workers ? workers : 1u << 20);
  ASSERT_EQ(r.counts.empty() ? 0 : r.values(counter::busy_workers).back(), 0u);
  std::set<std::uint64_t> begun;
  for (const auto& p : r.points)
    for (const std::uint64_t f : p.flows) ASSERT_TRUE(begun.insert(f).second) << "two begins of one flow";
  std::set<std::uint64_t> ended;
  for (const auto& s : r.slices)
    if (s.flow != 0) {
      ASSERT_TRUE(ended.insert(s.flow).second) << "two ends of one flow";
    }
}

TEST(model, simulated_runs) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto workers = static_cast<std::uint32_t>(2 + seed % 7);
    const history h = by_hand::simulation(workers, seed).run(2000);
    recorder r;
    play(h, r, std::vector<std::uint64_t>(workers));
    check_invariants(r, workers);
    EXPECT_GT(r.marks(mark::stolen).size(), 20u);
    if (HasFatalFailure()) return;
  }
}

TEST(model, simulated_runs_of_which_each_worker_lost_its_beginning) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto workers = static_cast<std::uint32_t>(2 + seed % 5);
    history h = by_hand::simulation(workers, seed).run(1500);
    godwit::base::small_random random(seed);
    for (auto& w : h)
      w.erase(w.begin(),
              w.begin() + static_cast<std::ptrdiff_t>(random.below(static_cast<std::uint32_t>(w.size()))));
    recorder first, second;
    const auto initial = play(h, first);
    check_invariants(first, workers);
    play(h, second, initial);
    check_invariants(second, workers);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
