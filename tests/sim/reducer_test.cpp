// Tests of reducers in the simulator: on one host under every policy, and on several, where values are merged
// from all of them.
// test: timeout=300 once
#include "api/reducer_programs.hpp"
#include "sim/simulated_runs.hpp"
#include "support/child.hpp"

#include <chrono>
#include <stdexcept>
#include <string>

struct note {
  long count = 0;
  std::string text;
  static inline int written_until_refused = -1;  ///< -1: never
};
template <>
struct godwit::codec<note> {
  static void write(writer& w, const note& n) {
    if (note::written_until_refused-- == 0) throw std::runtime_error("not now");
    w.put(n.count);
  }
  static note read(reader& r) { return {r.get<long>(), {}}; }
};
struct adds_notes {
  static note identity() { return {}; }
  static void reduce(note& left, note&& right) { left.count += right.count; }
};

namespace {

using namespace reducer_programs;

/// Values are collected from several hosts only if each has a heap.
#define NEEDS_HEAPS_OF_HOSTS()                                                 \
  if (!gw::run<bool>([] { return gw::detail::host_heap(); },                   \
                     simulated_runs::on_hosts(2, 2, gw::choice::way::server))) \
  GTEST_SKIP() << "hosts have no heap"

TEST(sim_reducer, under_every_policy) {
  expect_serial_results_everywhere([](gw::options& o) {
    o.substrate = gw::choice::substrate::sim;
    o.quiet = true;
  });
}

TEST(sim_reducer, on_several_hosts) {
  NEEDS_HEAPS_OF_HOSTS();
  std::uint64_t row = 0, moved = 0;
  for (const auto way :
       {gw::choice::way::server, gw::choice::way::assist, gw::choice::way::am, gw::choice::way::rma})
    for (const std::uint32_t hosts : {2u, 3u})
      for (const char* force : {"none", "parents", "children", "random"}) {
        gw::options o = support::schedule(2 * hosts, force, 0, support::base_seed() + row++);
        o.substrate = gw::choice::substrate::sim;
        o.sim_machine = "example";
        o.sim_hosts = hosts;
        o.sim_seed = o.seed;
        o.way = way;
        o.quiet = true;
        SCOPED_TRACE(std::to_string(hosts) + " hosts, way " + name_of(way) + ' ' + support::describe(o));
        expect_serial_results<gw::policies::greedy>(o);
        if (HasFailure()) return;
        for (const gw::worker_stats& w : gw::last_run_stats()) moved += w.far_steals;
      }
  EXPECT_GT(moved, 0u) << "threads have gone to other hosts";
}

gw::reducer<long> counted;
void count(int low, int high) {
  if (high - low == 1) {
    work(2000);
    *counted += 1;
    return;
  }
  const int middle = (low + high) / 2;
  auto f = gw::spawn([=] { count(low, middle); });
  count(middle, high);
  f.join();
}

TEST(sim_reducer, loses_nothing_when_who_asks_is_cancelled) {
  NEEDS_HEAPS_OF_HOSTS();
  EXPECT_EQ(gw::run<long>(
                [] {
                  long lost = 0, so_far = 0;
                  for (int i = 0; i < 60; ++i) {
                    count(0, 64);
                    so_far += 64;
                    static_cast<void>(gw::with_deadline(std::chrono::nanoseconds(i * 300 + 1),
                                                        [] { return counted.get(); }));
                    lost += counted.get() != so_far;
                  }
                  return lost;
                },
                simulated_runs::on_hosts(4, 2, gw::choice::way::server)),
            0);
}

TEST(sim_reducer, is_refused_where_threads_would_leave_what_they_collect) {
  const auto r = support::run_child([] {
    gw::options o = simulated_runs::on_hosts(4, 2, gw::choice::way::server);
    o.heap = gw::choice::heap::separate;
    return gw::run(o, [] { count(0, 64), counted.get(); });
  });
  EXPECT_TRUE(r.err_has("use --godwit-heap=shared")) << support::show(r);
}

// A codec that throws, once.
gw::reducer<note, adds_notes> notes;
void take_notes(int low, int high) {
  if (high - low == 1) {
    work(2000);
    notes->count += 1;
    return;
  }
  const int middle = (low + high) / 2;
  auto f = gw::spawn([=] { take_notes(low, middle); });
  take_notes(middle, high);
  f.join();
}

TEST(sim_reducer, can_be_asked_again_when_a_codec_has_thrown) {
  NEEDS_HEAPS_OF_HOSTS();
  EXPECT_EQ(gw::run<long>(
                [] {
                  take_notes(0, 64);
                  // The first that is written, and one when other hosts have written theirs.
                  for (const int until : {0, 1, 2}) {
                    note::written_until_refused = until;
                    try {
                      static_cast<void>(notes.get());
                    } catch (const std::runtime_error&) {
                      continue;
                    }
                    return -1L;  // not refused
                  }
                  note::written_until_refused = -1;
                  return notes.get().count;
                },
                simulated_runs::on_hosts(8, 4, gw::choice::way::server)),
            64);
}

}  // namespace
