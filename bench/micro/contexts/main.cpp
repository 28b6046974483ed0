// contexts: fib on the variants of the context switch -- assembly, ucontext, setjmp -- over plain calls.
// Source: "A lightweight thread library that implements context switches in assembly on SPARC", figure of
// fib(30) and fib(40) against workers.
//
// A program has one variant, so each is a program of its own beside this one (runner.cpp), started anew for
// every repetition; what is timed is inside. Results: docs/results/README.md; scripts/reproduce --only M5.
// Instructions instead of time: bench/count_instructions.py. --also adds the runner of another build: on
// SPARC, contexts_asm of one with -DGODWIT_SPARC_FLUSH=trap is the paper's trap variant.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "../../common/harness.hpp"
#include "../../fib/fib.hpp"

namespace {

struct context_switch {
  std::string name, program;
};
constexpr int slow_from = 36;  // minutes each, without assembly

std::string folder() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, n > 0 ? static_cast<std::size_t>(n) : 0);
  return self.substr(0, self.find_last_of('/') + 1);
}

bench::sample run(const std::string& program, int n, unsigned workers, const std::string& substrate) {
  const std::string command =
      "'" + program + "' " + std::to_string(n) + " " + std::to_string(workers) + " " + substrate;
  std::FILE* const pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  unsigned long long value = 0, steals = 0, suspends = 0, stack = 0;
  bench::sample s;
  const int fields = std::fscanf(pipe, "%llu %lf %lf %lf %llu %llu %llu", &value, &s.seconds, &s.cpu_seconds,
                                 &s.total_seconds, &steals, &suspends, &stack);
  if (pclose(pipe) != 0 || fields != 7) throw std::runtime_error("failed: " + command);
  s.correct = value == fib::value(n);
  s.scheduled = workers != 0;
  s.counts.steals = steals;
  s.counts.suspends = suspends;
  s.counts.stack_high_bytes = stack;
  return s;
}

void compare(bench::program& program, const std::vector<context_switch>& switches, int n,
             const std::string& substrate) {
  std::vector<bench::variant> variants = {
      {"plain calls", 0, [=] { return run(switches.front().program, n, 0, substrate); }}};
  for (const unsigned w : program.workers())
    for (const auto& how : switches)
      variants.push_back({how.name, w, [=] { return run(how.program, n, w, substrate); },
                          how.name != "asm" && n >= slow_from});
  const auto all = program.measure(variants);
  program.show(
      "fib(" + std::to_string(n) + "), " + substrate + ": " + bench::grouped(fib::spawns(n)) + " spawns",
      {{"n", n}, {"spawns", fib::spawns(n)}, {"substrate", substrate}}, all);
  const std::string prefix = "n" + std::to_string(n) + ".";
  const unsigned first = program.workers().front();
  const auto* ours = bench::find(all, "asm", first);
  for (const auto& [how, path] : switches) {
    const auto* s = bench::find(all, how, first);
    std::vector<double> ns, over;
    for (std::size_t i = 0; i < s->samples.size(); ++i) {
      // the kernel's part included, other programs' not
      const double plain = all.front().samples[i].cpu_seconds;
      ns.push_back((s->samples[i].cpu_seconds - plain) * 1e9 / static_cast<double>(fib::spawns(n)));
      over.push_back((s->samples[i].cpu_seconds - plain) / (ours->samples[i].cpu_seconds - plain));
    }
    program.figure(prefix + how + ".ns", how, bench::median(ns), "ns",
                   "median over the rounds of CPU time of (" + std::to_string(first) +
                       " worker - plain calls) / spawns");
    if (how == "asm") continue;
    program.figure(prefix + how + ".over_asm", how + " over asm", bench::median(over), "x",
                   "median over the rounds of the ratio of CPU times beyond that of the plain calls");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("contexts", "fib(n) on each variant of the context switch, over plain calls.", argc,
                         argv);
  std::vector<int> arguments;
  std::string substrate = "threads";
  program.option("-n", arguments, "Arguments of fib (default 30,40; with --quick 30)", bench::between(2, 60));
  program.option("--substrate", substrate, "Where the workers live", bench::one_of({"threads", "processes"}));
  std::vector<std::string> others;
  program.option("--also", others, "Another build's runner, NAME=PROGRAM: a variant more (default none)");
  program.parse();
  std::vector<context_switch> switches;
  for (const std::string name : {"asm", "ucontext", "setjmp"})
    switches.push_back({name, folder() + "contexts_" + name});
  for (const std::string& text : others) {
    const std::size_t name = text.find('=');
    if (name == 0 || name == std::string::npos)
      bench::usage_error("contexts: --also wants NAME=PROGRAM, not " + text);
    switches.push_back({text.substr(0, name), text.substr(name + 1)});
  }
  if (arguments.empty())
    arguments = program.options().quick ? std::vector<int>{30} : std::vector<int>{30, 40};
  try {
    for (const int n : arguments) compare(program, switches, n, substrate);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "contexts: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
