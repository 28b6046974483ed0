// nqueens: all solutions of the n queens problem, a task per safe place.

#include <cstdio>

#include "../common/godwit_run.hpp"
#include "nqueens.hpp"

namespace {

/// Itoyori's form of the problem (bench/itoyori.py): more work for each place, nothing decided before the
/// spawn.
void compare_by_pairs(bench::program& program, int n) {
  const std::uint64_t expected = nqueens::solutions[static_cast<std::size_t>(n)];
  std::vector<bench::variant> variants = {{"serial", 0, [=] {
                                             auto [got, one] =
                                                 bench::run_plain([=] { return nqueens::calls_by_pairs(n); });
                                             one.correct = got == expected;
                                             return one;
                                           }}};
  for (const unsigned w : program.workers())
    variants.push_back({"godwit", w, [=] {
                          auto [got, one] = bench::run_godwit(w, [=] { return nqueens::by_pairs(n); });
                          one.correct = got == expected;
                          return one;
                        }});
  program.show("nqueens(" + std::to_string(n) + ") by pairs", {{"n", n}, {"solutions", expected}},
               program.measure(variants));
}

void compare(bench::program& program, int n) {
  const std::uint64_t expected = nqueens::solutions[static_cast<std::size_t>(n)];
  std::vector<bench::variant> variants;
  variants.push_back({"serial", 0, [=] {
                        auto [got, one] = bench::run_plain([=] { return nqueens::calls(n); });
                        one.correct = got == expected;
                        return one;
                      }});
  for (const unsigned w : program.workers())
    for (const auto& policy : program.options().policies)
      variants.push_back({bench::under("godwit", policy), w,
                          [=, count = nqueens::spawn_join_under(policy)] {
                            auto [got, one] = bench::run_godwit(
                                w, [=] { return count(n); }, policy);
                            one.correct = got == expected;
                            return one;
                          },
                          false, policy});
  bench::add_peer(variants, program, "tbb", BENCH_HAS_TBB,
                  [=](unsigned w) { return nqueens::tbb(n, w) == expected; });
  bench::add_peer(variants, program, "openmp", BENCH_HAS_OPENMP,
                  [=](unsigned w) { return nqueens::openmp(n, w) == expected; });
  for (const auto& l : nqueens::libraries())
    bench::add_library_peer(variants, program, l.name, [=](unsigned w) { return l.count(n, w) == expected; });
  const auto all = program.measure(variants);
  program.show("nqueens(" + std::to_string(n) + "): " + bench::grouped(expected) + " solutions",
               {{"n", n}, {"solutions", expected}}, all);
  const std::string key = "n" + std::to_string(n);
  if (const auto* one = bench::find(all, "godwit", 1)) {
    program.figure(key + ".t1_over_serial", "1 worker / serial", one->over_reference, "",
                   "median over the rounds");
    program.figure(key + ".t1_over_serial_cpu", "the same in CPU time", one->cpu_over_reference, "",
                   "median over the rounds");
  }
  const unsigned most = program.most_workers();
  if (const auto* many = bench::find(all, "godwit", most); many != nullptr && most > 1) {
    program.figure(key + ".speed_up", std::to_string(most) + " workers", 1 / many->over_reference, "x serial",
                   "inverse of the median over the rounds of godwit's time / serial time");
    program.figure(key + ".stack_high_bytes", "stack region touched",
                   static_cast<double>(many->counts.stack_high_bytes), "bytes",
                   "whole pages, the most of any worker in any round");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("nqueens", "All solutions of the n queens problem, a task per safe place.", argc,
                         argv);
  std::vector<int> sizes;
  program.option("-n", sizes, "Board sizes (default 12,13; with --quick 11)",
                 bench::between(1, nqueens::most));
  bool pairs = false;
  program.flag("--pairs", pairs, "In the form of Itoyori's example, and nothing else");
  program.add_policies({"greedy"});
  program.parse();
  if (sizes.empty()) sizes = program.options().quick ? std::vector<int>{11} : std::vector<int>{12, 13};
  try {
    for (const int n : sizes) pairs ? compare_by_pairs(program, n) : compare(program, n);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nqueens: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
