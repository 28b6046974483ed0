// global_cilksort: a parallel merge sort on global memory beside the same in one plain thread.

#include <cstdio>
#include <map>

#include "../../common/godwit_run.hpp"
#include "../sample_of.hpp"
#include "cilksort.hpp"

namespace {
namespace gw = godwit;
using namespace cilksort;
}  // namespace

int main(int argc, char** argv) {
  settings s;
  s.sort_leaf = 16 << 10;
  s.merge_leaf = 64 << 10;
  bench::program program("global_cilksort", "Parallel merge sort of random integers in global memory.", argc,
                         argv);
  program.option("--size", s.size, "Integers (default 10 M; with --quick 1 M)");
  program.option("--leaf", s.sort_leaf, "Integers that std::sort sorts", bench::between(4, 1 << 30));
  program.option("--merge-leaf", s.merge_leaf, "Integers that one loop merges", bench::between(4, 1 << 30));
  program.option("--seed", s.seed, "Of the numbers");
  program.add_policies({"greedy"});
  program.parse();
  if (s.size == 0) s.size = program.options().quick ? 1'000'000 : 10'000'000;
  try {
    right.resize(s.size);
    for (std::uint64_t i = 0; i < s.size; ++i) right[i] = element(i, s.seed);
    std::sort(right.begin(), right.end());
    std::map<unsigned, std::vector<outcome>> all;  // of the default policy
    const auto plain_one = [&](const char* name, outcome (*sort)(const settings&)) {
      return bench::variant{name, 0, [=] {
                              const auto [o, whole] = bench::run_plain([&] { return sort(s); });
                              return parts::only(o.second, whole, o.wrong == 0);
                            }};
    };
    std::vector<bench::variant> variants = {plain_one("serial", &serial),
                                            plain_one("std::sort", &by_library)};
    for (const unsigned w : program.workers())
      for (const auto& policy : program.options().policies)
        variants.push_back({bench::under("godwit", policy), w,
                            [&all, s, w, policy, sort = ours_under(policy)] {
                              const auto [o, whole] = bench::run_godwit(
                                  w, [s, sort] { return sort(s); }, policy);
                              if (policy == gw::policies::greedy::name) all[w].push_back(o);
                              return parts::only(o.second, whole, o.wrong == 0);
                            },
                            false, policy});
    const auto measured = program.measure(variants);
    if (godwit::is_first_process()) {
      program.show(
          "Sort of " + bench::grouped(s.size) + " integers, memory used before",
          {{"size", s.size}, {"sort_leaf", s.sort_leaf}, {"merge_leaf", s.merge_leaf}, {"seed", s.seed}},
          measured);
      for (const auto& [w, runs] : all) {
        std::vector<double> first, faults;
        for (const auto& o : runs) {
          first.push_back(o.first.seconds / o.second.seconds);
          faults.push_back(static_cast<double>(o.second.faults));
        }
        const std::string p = "p" + std::to_string(w),
                          on = std::to_string(w) + (w == 1 ? " worker" : " workers");
        program.figure(p + ".first", "first sort / second, " + on, bench::median(first), "",
                       "the first touches one of the arrays; page faults in the second: " +
                           bench::grouped(static_cast<std::uint64_t>(bench::median(faults))));
      }
      const auto *one = bench::find(measured, "godwit", 1),
                 *most = bench::find(measured, "godwit", program.most_workers());
      if (one != nullptr) {
        program.figure("t1_over_serial", "1 worker / serial", one->over_reference, "",
                       "median over the rounds");
        program.figure("t1_over_serial.cpu", "1 worker / serial, CPU time", one->cpu_over_reference, "",
                       "median over the rounds");
      }
      if (one != nullptr && most != nullptr && most != one)
        program.figure("speed_up", "1 worker / all workers", bench::paired_ratio(one, most), "x",
                       "median over the rounds");
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_cilksort: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
