// fib: the cost of spawn + join in a recursion that does nothing else.

#include <cstdio>

#include "../common/godwit_run.hpp"
#include "fib.hpp"

namespace {

bench::variant plain(const char* name, std::uint64_t (*f)(int), int n) {
  return {name, 0, [=] {
            auto [got, one] = bench::run_plain([=] { return f(n); });
            one.correct = got == fib::value(n);
            return one;
          }};
}

bench::variant ours(const char* form, std::uint64_t (*f)(int), int n, unsigned workers,
                    const std::string& policy) {
  return {bench::under(form, policy), workers,
          [=] {
            auto [got, one] = bench::run_godwit(
                workers, [=] { return f(n); }, policy);
            one.correct = got == fib::value(n);
            return one;
          },
          false, policy};
}

void figures(bench::program& program, const std::vector<bench::series>& all, int n) {
  const auto spawns = static_cast<double>(fib::spawns(n));
  const std::string prefix = "n" + std::to_string(n) + ".";
  std::vector<std::string> forms = {"invoke"};
  for (const auto& policy : program.options().policies) forms.push_back(bench::under("spawn+join", policy));
  for (const std::string& form : forms) {
    const auto* one = bench::find(all, form, 1);
    if (one == nullptr) continue;
    std::vector<double> ns;
    for (std::size_t i = 0; i < one->samples.size(); ++i)
      ns.push_back((one->samples[i].seconds - all.front().samples[i].seconds) * 1e9 / spawns);
    const double each = bench::median(ns);
    program.figure(
        prefix + form + ".ns", form, each, "ns",
        "median over the rounds of (1 worker - serial) / " + bench::grouped(fib::spawns(n)) + " spawns");
    program.figure(prefix + form + ".ticks", form,
                   each * program.json()["machine"]["counter_ticks_per_ns"].get<double>(), "ticks",
                   "the same in ticks of the constant-rate counter");
    program.figure(prefix + form + ".t1_over_serial", form + ", 1 worker / serial", one->over_reference, "",
                   "median over the rounds");
    const unsigned most = program.most_workers();
    if (const auto* many = bench::find(all, form, most); many != nullptr && most > 1)
      program.figure(prefix + form + ".speed_up", form + ", " + std::to_string(most) + " workers",
                     bench::paired_ratio(one, many), "x",
                     "median over the rounds of time on 1 worker / time on " + std::to_string(most));
  }
}

void compare(bench::program& program, int n) {
  std::vector<bench::variant> variants = {plain("serial", fib::calls, n),
                                          plain("serial, inlined", fib::inlined, n)};
  for (const unsigned w : program.workers()) {
    for (const auto& policy : program.options().policies) {
      variants.push_back(ours("spawn+join", fib::spawn_join_under(policy), n, w, policy));
      if (policy == godwit::policies::greedy::name)  // invoke is a free function: the default policy's
        variants.push_back(ours("invoke", fib::invoke, n, w, policy));
    }
  }
  if (n <= 36) {  // minutes otherwise
    bench::add_peer(variants, program, "tbb", BENCH_HAS_TBB,
                    [n](unsigned w) { return fib::tbb(n, w) == fib::value(n); });
    bench::add_peer(variants, program, "openmp", BENCH_HAS_OPENMP,
                    [n](unsigned w) { return fib::openmp(n, w) == fib::value(n); });
    for (const auto& l : fib::libraries())
      bench::add_library_peer(variants, program, l.name,
                              [n, l](unsigned w) { return l.fib(n, w) == fib::value(n); });
  }
  const auto all = program.measure(variants);
  program.show("fib(" + std::to_string(n) + "): " + bench::grouped(fib::nodes(n)) + " nodes, " +
                   bench::grouped(fib::spawns(n)) + " spawns",
               {{"n", n}, {"nodes", fib::nodes(n)}, {"spawns", fib::spawns(n)}}, all);
  figures(program, all, n);
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("fib", "fib(n) without a cutoff: the cost of spawn + join over plain calls.", argc,
                         argv);
  std::vector<int> arguments;
  program.option("-n", arguments, "Arguments of fib (default 35,40; with --quick 35); peers run up to 36",
                 bench::between(2, 60));
  program.add_policies({"greedy"});
  program.parse();
  if (arguments.empty())
    arguments = program.options().quick ? std::vector<int>{35} : std::vector<int>{35, 40};
  try {
    for (const int n : arguments) compare(program, n);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fib: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
