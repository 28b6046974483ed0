// lcs: longest common subsequence with futures under several policies, beside the bounds of greedy
// scheduling.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../common/godwit_run.hpp"
#include "../common/joins.hpp"
#include "lcs.hpp"

namespace {

using namespace lcs;

struct settings {
  std::uint32_t n = 0, c = 512;
  std::uint64_t seed = 1;
};

/// What a greedy scheduler without overhead can take, from the time of a block.
struct bounds {
  double block_s, work_s, span_s, lower_s, upper_s;
};

bounds bounds_of(const problem& p, double serial_s, unsigned workers) {
  const double side = p.n / p.c;
  bounds b{};
  b.block_s = serial_s / (side * side);
  b.work_s = serial_s;
  b.span_s = (2 * side - 1) * b.block_s;
  b.lower_s = std::max(b.work_s / workers, b.span_s);
  b.upper_s = b.work_s / workers + b.span_s;
  return b;
}

std::vector<bench::variant> variants_for(const bench::program& program, std::uint32_t right,
                                         unsigned workers) {
  std::vector<bench::variant> variants;
  variants.push_back({"serial", 0, [=] {
                        auto [got, one] = bench::run_plain([] { return by_blocks(the_problem); });
                        one.correct = got == right;
                        return one;
                      }});
  for (const auto& policy : program.options().policies) {
    const auto solve = futures_under(policy);
    if (solve == nullptr) continue;  // said below the table
    variants.push_back({policy, workers,
                        [=] {
                          auto [got, one] = bench::run_godwit(
                              workers, [=] { return solve(); }, policy);
                          one.correct = got == right;
                          return one;
                        },
                        false, policy});
  }
  return variants;
}

void show_bounds(bench::program& program, const std::string& title, const bounds& b,
                 const std::vector<bench::series>& all, unsigned workers) {
  std::FILE* const to = program.out();
  std::fprintf(
      to,
      "  bounds: Tc = %.3f ms, T1 = %.4f s, Tinf = %.4f s; max(T1/P, Tinf) = %.4f s, T1/P + Tinf = %.4f s\n",
      b.block_s * 1e3, b.work_s, b.span_s, b.lower_s, b.upper_s);
  bench::ordered_json rows = bench::ordered_json::array();
  for (const auto& s : all) {
    if (s.workers == 0 || s.samples.empty()) continue;
    // 1 inside the range, else how far outside.
    const double off = s.median_s > b.upper_s   ? s.median_s / b.upper_s
                       : s.median_s < b.lower_s ? s.median_s / b.lower_s
                                                : 1;
    std::fprintf(
        to, "    %-12s %.4f s: %s\n", s.name.c_str(), s.median_s,
        off == 1 ? "inside"
                 : (std::to_string(off).substr(0, 5) + " x the " + (off > 1 ? "upper" : "lower") + " bound")
                       .c_str());
    rows.push_back({{"policy", s.policy},
                    {"workers", workers},
                    {"seconds", s.median_s},
                    {"t1_s", b.work_s},
                    {"tinf_s", b.span_s},
                    {"tc_ms", b.block_s * 1e3},
                    {"lower_s", b.lower_s},
                    {"upper_s", b.upper_s},
                    {"over_range", off}});
  }
  for (const auto& policy : program.options().policies)
    if (futures_under(policy) == nullptr)
      std::fprintf(to, "    %-12s not possible: its threads can wait for their own children only\n",
                   policy.c_str());
  program.json()["measurements"].push_back({{"title", title + ": bounds"}, {"rows", rows}});
}

void compare(bench::program& program, const settings& s, std::uint32_t right, unsigned workers) {
  const auto all = program.measure(variants_for(program, right, workers));
  const std::string title = "LCS of 2 x " + bench::grouped(s.n) + " bytes, C = " + std::to_string(s.c) +
                            ", " + std::to_string(workers) + (workers == 1 ? " worker" : " workers");
  program.show(title, {{"n", s.n}, {"c", s.c}, {"seed", s.seed}, {"length", right}, {"workers", workers}},
               all);
  const bounds b = bounds_of(the_problem, all.front().median_s, workers);
  bench::show_joins(program, title, all, [&](const bench::series& one) { return b.lower_s / one.median_s; });
  std::fprintf(program.out(), "  efficiency: the lower bound / time\n");
  show_bounds(program, title, b, all, workers);
  const std::string key = "p" + std::to_string(workers);
  if (const auto* one = bench::find(all, "greedy", workers))
    program.figure(key + ".greedy_over_upper", "greedy / (T1/P + Tinf)", one->median_s / b.upper_s, "",
                   "median time / bound from the median serial time");
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("lcs", "Longest common subsequence of random bytes, with futures.", argc, argv);
  program.add_policies(bench::paper_policies());
  program.option("-n", s.n,
                 "Length of both strings, C times a power of two (default 65536; with --quick 8192)",
                 bench::between(1, 1 << 26));
  program.option("-c,--cutoff", s.c, "C: side of the blocks", bench::between(1, 1 << 20));
  program.option("--seed", s.seed, "Of the strings");
  program.parse();
  if (s.n == 0) s.n = std::max(s.c, program.options().quick ? 8192u : 65536u);
  const std::uint32_t side = s.n / s.c;
  if (side * s.c != s.n || (side & (side - 1)) != 0)
    bench::usage_error("lcs: -n " + std::to_string(s.n) + " is not " + std::to_string(s.c) +
                       " (the cutoff) times a power of two");
  try {
    the_problem = random_problem(s.n, s.c, s.seed);
    const std::uint32_t right = by_rows(the_problem);
    for (const unsigned w : program.workers()) compare(program, s, right, w);
    std::fprintf(program.out(), "  length %s, the same by the plain recurrence\n",
                 bench::grouped(right).c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lcs: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
