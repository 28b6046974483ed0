// global_heat: Jacobi's iteration on a global grid beside plain code in one thread and in several.

#include <cstdio>

#include "../../common/godwit_run.hpp"
#include "../sample_of.hpp"
#include "heat.hpp"

namespace {
using namespace heat;
}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("global_heat", "Jacobi's iteration on a grid in global memory.", argc, argv);
  program.option("--size", s.side, "Points along a side (default 2048; with --quick 512)",
                 bench::between(3, 1 << 16));
  program.option("--steps", s.steps, "Steps (default 200; with --quick 50)", bench::between(2, 1 << 20));
  program.option("--rows", s.rows, "Rows in a leaf (default: a 16th of a worker's)");
  bool anywhere = false;
  program.flag("--anywhere", anywhere, "Do not prefer the half of the rows that is the worker's own");
  program.parse();
  s.near = !anywhere;
  if (s.side == 0) s.side = program.options().quick ? 512 : 2048;
  if (s.steps == 0) s.steps = program.options().quick ? 50 : 200;
  if (s.rows == 0) s.rows = std::max<std::uint64_t>(s.side / program.most_workers() / 16, 1);
  try {
    plain(s, 1);  // leaves its result in `right`
    const auto plain_one = [&](const std::string& name, unsigned threads) {
      return bench::variant{name, 0, [=] {
                              const auto [o, whole] = bench::run_plain([&] { return plain(s, threads); });
                              return parts::only(o.steps, whole, o.wrong == 0);
                            }};
    };
    std::vector<double> first;
    std::vector<bench::variant> variants = {plain_one("serial", 1)};
    for (const unsigned w : program.workers()) {
      if (w > 1) variants.push_back(plain_one(std::to_string(w) + " threads", w));
      variants.push_back({"godwit", w, [&first, s, w] {
                            const auto [o, whole] = bench::run_godwit(w, [s] { return ours(s); });
                            if (w > 1) first.push_back(o.first.seconds / (o.steps.seconds / (s.steps - 1)));
                            return parts::only(o.steps, whole, o.wrong == 0);
                          }});
    }
    const auto measured = program.measure(variants);
    if (godwit::is_first_process()) {
      program.show("Heat on " + bench::grouped(s.side) + " x " + bench::grouped(s.side) + " points, " +
                       std::to_string(s.steps - 1) + " steps after the first",
                   {{"side", s.side}, {"steps", s.steps}, {"rows", s.rows}, {"near", s.near}}, measured);
      const unsigned w = program.most_workers();
      const auto *one = bench::find(measured, "godwit", 1), *most = bench::find(measured, "godwit", w);
      const std::string on = std::to_string(w) + " workers";
      if (one != nullptr) {
        program.figure("t1_over_serial", "1 worker / serial", one->over_reference, "",
                       "median over the rounds");
        program.figure("t1_over_serial.cpu", "1 worker / serial, CPU time", one->cpu_over_reference, "",
                       "median over the rounds");
      }
      if (most != nullptr && w > 1) {
        const auto* threads = bench::find(measured, on.substr(0, on.find(' ')) + " threads", 0);
        program.figure("speed_up", "serial / " + on, 1 / most->over_reference, "x", "median over the rounds");
        program.figure("over_threads", on + " / plain threads", bench::paired_ratio(most, threads), "",
                       "median over the rounds");
        if (threads != nullptr)
          program.figure("threads_speed_up", "serial / plain threads", 1 / threads->over_reference, "x",
                         "median over the rounds");
        program.figure("first", "first step / another, " + on, bench::median(first), "",
                       "the first meets pages that others touched");
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_heat: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
