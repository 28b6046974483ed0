// pfor: the synthetic benchmarks PFor and RecPFor under the papers' policies.
//
// Sizes: figure 6 of "Distributed continuation stealing is more scalable than you might think" doubles N up
// to 4096 * 2^9 iterations a loop and node (PFor) and 2^22 on 16 nodes (RecPFor), of 36 cores each: 58,254
// and 7,282 iterations a core, 2.9 s and 8.1 s of compute() there. --scale S divides what a core gets; a
// worker counts as a core.
// Document: docs/performance.md. Test: bench/CMakeLists.txt (bench.pfor).

#include <cmath>
#include <cstdio>

#include "../common/godwit_run.hpp"
#include "../common/joins.hpp"
#include "pfor.hpp"

namespace {

using namespace pfor;

constexpr double largest_pfor = 4096.0 * 512 / 36;  ///< iterations of a loop, per core
constexpr double largest_recpfor = 4.0 * 1024 * 1024 / 576;

struct settings {
  std::vector<std::string> kinds = {"pfor", "recpfor"};
  std::vector<double> scales;
  std::uint32_t n = 0, k = 5;
  double us = 10;
};

std::uint32_t size_of(kind what, unsigned workers, double scale) {
  if (what == kind::loops)
    return static_cast<std::uint32_t>(std::max(1.0, std::round(largest_pfor * workers / scale)));
  const double n = std::max(1.0, largest_recpfor * workers / scale);
  return std::uint32_t{1} << std::lround(std::log2(n));
}

/// One size on one number of workers: the serial code and all policies.
void compare(bench::program& program, const settings& s, problem p, unsigned workers, double scale) {
  if (s.n == 0) p.n = size_of(p.what, workers, scale);
  const std::uint64_t right = expected(p);
  const double work = static_cast<double>(iterations(p)) * s.us * 1e-6;
  const std::string name = p.what == kind::loops ? "PFor" : "RecPFor";
  std::vector<bench::variant> variants;
  variants.push_back({"serial", 0, [=] {
                        auto [got, one] = bench::run_plain([=] { return calls(p); });
                        one.correct = got == right;
                        return one;
                      }});
  for (const auto& policy : program.options().policies)
    variants.push_back({policy, workers,
                        [=, threads = threads_under(policy)] {
                          auto [got, one] = bench::run_godwit(
                              workers, [=] { return threads(p); }, policy);
                          one.correct = got == right;
                          return one;
                        },
                        false, policy});
  const auto all = program.measure(variants);
  const std::string title = name + ", N = " + bench::grouped(p.n) + ", " + std::to_string(workers) +
                            (workers == 1 ? " worker" : " workers");
  char text[160];
  std::snprintf(text, sizeof text, ": %s x %g us = %.3f s, ideally %.3f s",
                bench::grouped(iterations(p)).c_str(), s.us, work, work / workers);
  program.show(title + text,
               {{"kind", name},
                {"n", p.n},
                {"k", p.k},
                {"us", s.us},
                {"scale", s.n == 0 ? bench::ordered_json(scale) : bench::ordered_json()},
                {"workers", workers},
                {"t1_s", work},
                {"ideal_s", work / workers}},
               all);
  const auto efficiency = [&](const bench::series& one) { return work / workers / one.median_s; };
  bench::show_joins(program, title, all, efficiency);
  const std::string key = name + ".p" + std::to_string(workers) + ".n" + std::to_string(p.n);
  program.figure(key + ".serial_over_theory", "serial / theory", all.front().median_s / work, "",
                 "median time of the serial code / calls of compute x M");
  if (const auto* one = bench::find(all, "greedy", workers))
    program.figure(key + ".efficiency", "greedy, efficiency", 100 * efficiency(*one), "%",
                   "calls of compute x M / workers / median time");
}

calibration calibrated(bench::program& program, double us) {
  godwit::options o;
  o.workers = 1;
  // In a run, so that all ranks of an MPI job get the same number.
  const auto c = godwit::run<calibration>([us] { return calibrate(us); }, o);
  std::fprintf(program.out(),
               "compute(%g us): %s rounds of 8 x %s; in a long run %.3f us of CPU time each "
               "(%+.1f %%), %.3f us of wall time\n",
               us, bench::grouped(c.rounds).c_str(), compute_kind(), c.cpu_us, 100 * (c.cpu_us / us - 1),
               c.wall_us);
  program.json()["calibration"] = {{"kind", compute_kind()},
                                   {"rounds", c.rounds},
                                   {"asked_us", us},
                                   {"cpu_us", c.cpu_us},
                                   {"wall_us", c.wall_us}};
  if (std::abs(c.cpu_us / us - 1) > 0.05 || std::abs(c.wall_us / us - 1) > 0.05)
    std::fprintf(program.out(), "  more than 5 %% off: efficiencies over theory mean little in this run\n");
  return c;
}

void add_flags(bench::program& program, settings& s) {
  program.add_policies(bench::paper_policies());
  program.option("--kind", s.kinds, "pfor, recpfor or both", bench::one_of({"pfor", "recpfor"}));
  program.option(
      "--scale", s.scales,
      "Divide the papers' largest size per core by these (default: pfor 2, recpfor 4; with --quick 32 "
      "and 64)",
      bench::between(0.01, 1e5));
  program.option("-n", s.n, "Iterations of a loop, whatever the number of workers (default: by --scale)",
                 bench::between(1, 1 << 30));
  program.option("-k", s.k, "Loops one after the other", bench::between(1, 1000));
  program.option("--us", s.us, "What an iteration takes, in microseconds", bench::between(0.1, 1e5));
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("pfor", "Parallel loops of compute(10 us): PFor and RecPFor under several policies.",
                         argc, argv);
  add_flags(program, s);
  program.parse();
  const bool recursive = std::find(s.kinds.begin(), s.kinds.end(), "recpfor") != s.kinds.end();
  if (recursive && (s.n & (s.n - 1)) != 0)
    bench::usage_error("pfor: -n " + std::to_string(s.n) +
                       ": recpfor halves it again and again: give a power of two");
  if (s.n != 0 && !s.scales.empty()) bench::usage_error("pfor: give either -n or --scale");
  try {
    const auto c = calibrated(program, s.us);
    for (const auto& k : s.kinds) {
      const kind what = k == "pfor" ? kind::loops : kind::recursive;
      std::vector<double> scales = s.scales;
      if (scales.empty()) scales = {(what == kind::loops ? 2.0 : 4.0) * (program.options().quick ? 16 : 1)};
      if (s.n != 0) scales = {1};
      for (const unsigned w : program.workers())
        for (const double scale : scales) compare(program, s, {what, s.n, s.k, c.rounds}, w, scale);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pfor: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
