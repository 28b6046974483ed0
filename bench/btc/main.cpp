// btc: binary task creation, BTC(depth, iter).

#include <cstdio>

#include "../common/godwit_run.hpp"
#include "btc.hpp"

namespace {

void compare(bench::program& program, int depth, int iter) {
  const std::uint64_t expected = btc::tasks(depth, iter);
  std::vector<bench::variant> variants;
  variants.push_back({"serial", 0, [=] {
                        auto [got, one] = bench::run_plain([=] { return btc::calls(depth, iter); });
                        one.correct = got == expected;
                        return one;
                      }});
  for (const unsigned w : program.workers())
    for (const auto& policy : program.options().policies)
      variants.push_back({bench::under("godwit", policy), w,
                          [=, tree = btc::spawn_join_under(policy)] {
                            auto [got, one] = bench::run_godwit(
                                w, [=] { return tree(depth, iter); }, policy);
                            one.correct = got == expected;
                            return one;
                          },
                          false, policy});
  bench::add_peer(variants, program, "tbb", BENCH_HAS_TBB,
                  [=](unsigned w) { return btc::tbb(depth, iter, w) == expected; });
  bench::add_peer(variants, program, "openmp", BENCH_HAS_OPENMP,
                  [=](unsigned w) { return btc::openmp(depth, iter, w) == expected; });
  for (const auto& l : btc::libraries())
    bench::add_library_peer(variants, program, l.name,
                            [=](unsigned w) { return l.run(depth, iter, w) == expected; });
  const auto all = program.measure(variants);
  const std::string name = "BTC(" + std::to_string(depth) + ", " + std::to_string(iter) + ")";
  program.show(name + ": " + bench::grouped(expected) + " tasks",
               {{"depth", depth}, {"iter", iter}, {"tasks", expected}}, all);
  const std::string key = "iter" + std::to_string(iter);
  if (const auto* one = bench::find(all, "godwit", 1)) {
    std::vector<double> ns;
    for (std::size_t i = 0; i < one->samples.size(); ++i)
      ns.push_back((one->samples[i].seconds - all.front().samples[i].seconds) * 1e9 /
                   static_cast<double>(expected - 1));
    program.figure(key + ".ns_per_task", "a task", bench::median(ns), "ns",
                   "median over the rounds of (1 worker - serial) / tasks");
    const unsigned most = program.most_workers();
    if (const auto* many = bench::find(all, "godwit", most); many != nullptr && most > 1) {
      program.figure(key + ".speed_up", std::to_string(most) + " workers", bench::paired_ratio(one, many),
                     "x", "median over the rounds of time on 1 worker / time on " + std::to_string(most));
      program.figure(key + ".stack_high_bytes", "stack region touched",
                     static_cast<double>(many->counts.stack_high_bytes), "bytes",
                     "whole pages, the most of any worker in any round");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("btc", "BTC(depth, iter): every task creates two children, iter times in sequence.",
                         argc, argv);
  int depth = 0, iter = 0;
  program.option("--depth", depth, "Depth of the tree (default: 24 for iter 1, 12 for iter 2)",
                 bench::between(1, 60));
  program.option("--iter", iter, "Rounds of every task (default: 1 and 2, one after the other)",
                 bench::between(1, 8));
  program.add_policies({"greedy"});
  program.parse();
  const bool quick = program.options().quick;
  try {
    for (const int i : iter == 0 ? std::vector<int>{1, 2} : std::vector<int>{iter})
      compare(program, depth != 0 ? depth : (quick ? 20 : 24) / i, i);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "btc: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
