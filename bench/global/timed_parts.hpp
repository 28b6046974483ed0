// What the programs on global memory share: parallel blocks, and runs of several timed parts.
//
// A run builds something, then computes with it once or twice; every part has a time, and a table, of its
// own. All parts of a variant are timed in the same run, so a graph is built once per repetition and not once
// per figure. Used by graph, spmv, utsmem, nbody. Test: bench.global_*, mpi.global_* (bench/CMakeLists.txt,
// tests/bench).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <godwit/godwit.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../common/godwit_run.hpp"
#include "loops.hpp"

namespace bench {

/// CPU time of all workers so far; outside a run, of this process.
inline std::uint64_t all_cpu_ns() {
  if (godwit::worker_count() <= 1) return cpu_ns();
  const auto sum = godwit::global_new<std::uint64_t>(0u);
  godwit::on_each_worker([=] { godwit::atomic_fetch_add(sum, cpu_ns()); });
  const std::uint64_t total = godwit::atomic_load(sum);
  godwit::global_delete(sum);
  return total;
}

/// The times of the N parts of one run. Plain, so that it can leave the run.
template <std::size_t N>
struct parts {
  std::array<std::uint64_t, N> ns{};
  std::array<std::uint64_t, N> cpu_ns{};  ///< of all workers; those without work look for some
  bool correct = true;

  /// Take the time of f as part @p i.
  template <class F>
  auto time(std::size_t i, F f) {
    const std::uint64_t cpu_start = all_cpu_ns(), start = now_ns();
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      f();
      stop(i, start, cpu_start);
    } else {
      auto value = f();
      stop(i, start, cpu_start);
      return value;
    }
  }

 private:
  void stop(std::size_t i, std::uint64_t start, std::uint64_t cpu_start) {
    ns[i] += now_ns() - start;
    cpu_ns[i] += all_cpu_ns() - cpu_start;
  }
};

/// One way to do all parts.
template <std::size_t N>
struct way {
  std::string name;
  unsigned workers = 0;  ///< 0: a plain program
  std::function<std::pair<parts<N>, sample>()> run;
};

/// The plain program, and godwit on every number of workers that the program is to run with.
template <std::size_t N, class Serial, class Ours>
std::vector<way<N>> ways_of(const program& p, Serial serial, Ours ours) {
  std::vector<way<N>> ways;
  ways.push_back({"serial", 0, [=] { return run_plain(serial); }});
  for (const unsigned w : p.workers()) ways.push_back({"godwit", w, [=] { return run_godwit(w, ours); }});
  return ways;
}

/// Run all ways, interleaved, and give back a series per part and way.
template <std::size_t N>
std::array<std::vector<series>, N> measure_parts(program& p, const std::vector<way<N>>& ways) {
  // The harness knows variants with one time: the first part's really run, those of the others repeat what
  // was taken then.
  std::vector<std::vector<std::pair<parts<N>, sample>>> taken(ways.size());
  std::array<std::vector<series>, N> all;
  for (std::size_t part = 0; part < N; ++part) {
    std::vector<variant> variants;
    for (std::size_t w = 0; w < ways.size(); ++w)
      variants.push_back({ways[w].name, ways[w].workers, [&, w, part, round = std::size_t{0}]() mutable {
                            if (part == 0) taken[w].push_back(ways[w].run());
                            const auto& [times, whole] = taken[w][round++];
                            sample s = whole;
                            s.seconds = static_cast<double>(times.ns[part]) * 1e-9;
                            s.cpu_seconds = static_cast<double>(times.cpu_ns[part]) * 1e-9;
                            s.correct = part != 0 || times.correct;
                            return s;
                          }});
    all[part] = p.measure(variants);
  }
  return all;
}

/// 1 worker and the most workers against the serial program.
inline void show_ratios(program& p, const std::string& key, const std::string& what,
                        const std::vector<series>& all) {
  if (const auto* one = find(all, "godwit", 1)) {
    p.figure(key + ".t1_over_serial", what + ", 1 worker / serial", one->over_reference, "",
             "median over the rounds of godwit's time on 1 worker / serial time");
    p.figure(key + ".t1_over_serial_cpu", what + ", the same in CPU time", one->cpu_over_reference, "",
             "median over the rounds");
  }
  const unsigned most = p.most_workers();
  if (const auto* many = find(all, "godwit", most); many != nullptr && most > 1) {
    p.figure(key + ".speed_up", what + ", " + std::to_string(most) + " workers", 1 / many->over_reference,
             "x serial", "inverse of the median over the rounds of godwit's time / serial time");
    p.figure(key + ".speed_up_cpu", what + ", the same by CPU time", most / many->cpu_over_reference,
             "x serial",
             "workers / median over the rounds of the CPU time of all workers / serial CPU time: what a "
             "machine that is not "
             "busy would give, if all workers were always at work");
  }
}

}  // namespace bench
