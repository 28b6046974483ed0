// reducer: what does an update cost, and what does it cost that somebody tracks?
//
// Updates: one worker, blocks of updates, and of plain additions to a variable in memory. Tracking: a loop
// whose continuation leaves at every spawn, with a reducer and without. A sum over the leaves of a tree of
// threads, by a reducer and by the threads' results; the same with TBB, where it is installed.
#include <godwit/godwit.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "../common/clock.hpp"
#include "tbb.hpp"

namespace {

namespace gw = godwit;
constexpr int blocks = 15, updates = 4'000'000, leaves_log2 = 21;

template <class F>
double ns_each(double operations, const F& f) {
  const std::uint64_t before = bench::now_ns();
  f();
  return static_cast<double>(bench::now_ns() - before) / operations;
}
double median(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + static_cast<long>(all.size() / 2));
  return all[all.size() / 2];
}
/// Of blocks in one thread of a run with one worker.
template <class F>
double in_run(double operations, const F& f, gw::options o = {}) {
  o.workers = std::max(o.workers, 1u);
  return gw::run<double>(
      [&] {
        double ns[blocks];
        for (double& each : ns) each = ns_each(operations, f);
        return median({ns, ns + blocks});
      },
      o);
}

long by_results(int depth) {
  if (depth == 0) return 1;
  auto x = gw::spawn([depth] { return by_results(depth - 1); });
  const long y = by_results(depth - 1);
  return x.join() + y;
}
void by_reducer(const gw::reducer<long>& r, int depth) {
  if (depth == 0) return static_cast<void>(++*r);
  auto x = gw::spawn([&r, depth] { by_reducer(r, depth - 1); });
  by_reducer(r, depth - 1);
  x.join();
}

template <class T>
double update_ns() {
  return in_run(updates, [] {
    gw::reducer<T> r;
    for (int i = 0; i < updates; ++i) *r += static_cast<T>(i);
    auto all = r.get();
    bench::keep(all);
  });
}

constexpr int steals = 20'000;
double loop_ns(bool tracked, std::uint64_t& bytes) {
  gw::options o;
  o.workers = 1;
  o.force_steal = gw::choice::force_steal::parents;
  const double ns = in_run(
      steals,
      [tracked] {
        std::unique_ptr<gw::reducer<long>> r;
        if (tracked) r = std::make_unique<gw::reducer<long>>();
        for (int i = 0; i < steals; ++i)
          gw::spawn([r = r.get()] {
            if (r != nullptr) ++**r;
          }).join();
      },
      o);
  bytes = gw::last_run_stats().front().heap_high_bytes;
  return ns;
}

}  // namespace

int main() {
  static volatile long plain = 0;
  std::printf("plain addition, in memory        %6.2f ns\n", in_run(updates, [] {
                for (int i = 0; i < updates; ++i) plain = plain + i;
              }));
  std::printf("update of a reducer<long>        %6.2f ns\n", update_ns<long>());
  std::printf("update of a reducer<double>      %6.2f ns (exact)\n", update_ns<double>());
  std::uint64_t untracked_bytes = 0, tracked_bytes = 0;
  const double untracked = loop_ns(false, untracked_bytes), tracked = loop_ns(true, tracked_bytes);
  std::printf("a continuation leaves, untracked %6.0f ns, heap at most %llu KiB\n", untracked,
              static_cast<unsigned long long>(untracked_bytes >> 10));
  std::printf("the same, tracked, with an update %5.0f ns, heap at most %llu KiB\n", tracked,
              static_cast<unsigned long long>(tracked_bytes >> 10));
  constexpr double leaves = 1 << leaves_log2;
  for (const std::uint32_t workers : {1u, 2u}) {
    gw::options o;
    o.workers = workers;
    std::printf("%u worker%s: a leaf by results %5.2f ns", workers, workers == 1 ? "" : "s",
                in_run(
                    leaves,
                    [] {
                      auto all = by_results(leaves_log2);
                      bench::keep(all);
                    },
                    o));
    std::printf(", by a reducer %5.2f ns", in_run(
                                               leaves,
                                               [] {
                                                 gw::reducer<long> r;
                                                 by_reducer(r, leaves_log2);
                                                 auto all = r.take();
                                                 bench::keep(all);
                                               },
                                               o));
    std::printf("\n");
  }
  for (const int threads : {1, 2})  // last: its threads stay
    if (const double ns = reducer_bench::tbb_leaf_ns(leaves_log2, threads); ns > 0)
      std::printf("%d thread%s: a leaf by TBB's enumerable_thread_specific %5.2f ns\n", threads,
                  threads == 1 ? "" : "s", ns);
}
