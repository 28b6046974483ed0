// task_group: many small threads that are waited for together, added by a loop or by a recursion.

#include <cstdio>

#include "../common/godwit_run.hpp"
#include "task_group.hpp"

namespace {

void compare(bench::program& program, task_group::problem p) {
  const std::uint64_t expected = task_group::calls(p);
  std::vector<bench::variant> variants;
  variants.push_back({"serial", 0, [=] {
                        auto [got, one] = bench::run_plain([=] { return task_group::calls(p); });
                        one.correct = got == expected;
                        return one;
                      }});
  const struct {
    const char* name;
    std::uint64_t (*run)(task_group::problem);
  } ours[] = {{"task_group, loop", task_group::by_loop},
              {"spawn, recursion", task_group::by_recursion},
              {"task_group, recursion", task_group::by_halves},
              {"group, loop", task_group::by_group}};
  for (const unsigned w : program.workers())
    for (const auto& way : ours)
      variants.push_back({way.name, w, [=, run = way.run] {
                            auto [got, one] = bench::run_godwit(w, [=] { return run(p); });
                            one.correct = got == expected;
                            return one;
                          }});
  bench::add_peer(variants, program, "tbb", BENCH_HAS_TBB,
                  [=](unsigned w) { return task_group::tbb(p, w) == expected; });
  bench::add_peer(variants, program, "openmp", BENCH_HAS_OPENMP,
                  [=](unsigned w) { return task_group::openmp(p, w) == expected; });
  const auto all = program.measure(variants);
  const std::string title = bench::grouped(p.members) + " members of " + std::to_string(p.steps) + " steps";
  program.show(title, {{"members", p.members}, {"steps", p.steps}}, all);
  for (const unsigned w : {1u, program.most_workers()}) {
    const auto* loop = bench::find(all, ours[0].name, w);
    const auto* recursion = bench::find(all, ours[1].name, w);
    if (loop == nullptr || recursion == nullptr) continue;
    program.figure("s" + std::to_string(p.steps) + ".loop_over_recursion." + std::to_string(w),
                   "task_group by a loop / spawn by recursion, " + std::to_string(w) + " workers",
                   loop->over_reference / recursion->over_reference, "",
                   "quotient of the medians over the rounds");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("task_group", "Many small threads that are waited for together.", argc, argv);
  std::uint64_t members = 0;
  std::vector<int> steps;
  program.option("-n", members, "Members (default 1000000; with --quick 200000)", bench::between(1, 1e9));
  program.option("--steps", steps, "Work of a member (default 0,100)", bench::between(0, 1e6));
  program.parse();
  if (members == 0) members = program.options().quick ? 200'000 : 1'000'000;
  if (steps.empty()) steps = {0, 100};
  try {
    for (const int s : steps) compare(program, {members, s});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "task_group: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
