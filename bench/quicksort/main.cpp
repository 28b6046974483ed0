// quicksort: ordinary memory, a task per part of more than 512 elements.
#include <cstdio>
#include <memory>

#include "../common/godwit_run.hpp"
#include "quicksort.hpp"

namespace {

void compare(bench::program& program, std::size_t n) {
  const auto original = std::make_shared<const std::vector<std::uint32_t>>(quicksort::input(n));
  const auto v = std::make_shared<std::vector<std::uint32_t>>(n);
  const auto on_fresh_input = [=](auto&& sort) {
    *v = *original;
    bench::sample one = sort(v->data(), v->data() + n);
    one.correct = quicksort::is_right(*v);
    return one;
  };
  using place = std::uint32_t*;
  const auto plain = [=](auto&& f) {
    return on_fresh_input([&](place a, place b) { return bench::run_plain([&] { return f(a, b), 0; }).second; });
  };
  std::vector<bench::variant> variants;
  variants.push_back({"serial", 0, [=] { return plain([](place a, place b) { quicksort::calls(a, b); }); }});
  for (const unsigned w : program.workers())
    variants.push_back({"godwit", w, [=] {
                          return on_fresh_input([=](place a, place b) {
                            return bench::run_godwit(w, [=] { return quicksort::godwit(a, b), 0; }, "greedy", "threads").second;
                          });
                        }});
  const auto peer = [=](void (*sort)(place, place, unsigned)) {
    return [=](unsigned w) {
      *v = *original;
      sort(v->data(), v->data() + n, w);
      return true;  // checked where it is not timed: the other variants have the same partition
    };
  };
  bench::add_peer(variants, program, "tbb", BENCH_HAS_TBB, peer(quicksort::tbb));
  bench::add_peer(variants, program, "openmp", BENCH_HAS_OPENMP, peer(quicksort::openmp));
  const unsigned most = program.most_workers();
  variants.push_back({"std::thread", most, [=] {
                        return plain([=](place a, place b) { quicksort::std_threads(a, b, most); });
                      }});
  const auto all = program.measure(variants);
  program.show("quicksort of " + bench::grouped(n) + " integers (peers: with a copy of the input)", {{"n", n}}, all);
  const std::string key = "n" + std::to_string(n);
  if (const auto* one = bench::find(all, "godwit", 1))
    program.figure(key + ".t1_over_serial", "1 worker / serial", one->over_reference, "", "median over the rounds");
  if (const auto* many = bench::find(all, "godwit", most); many != nullptr && most > 1)
    program.figure(key + ".speed_up", std::to_string(most) + " workers", 1 / many->over_reference, "x serial",
                   "inverse of the median over the rounds of godwit's time / serial time");
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("quicksort", "Quicksort on ordinary memory, substrate threads.", argc, argv);
  std::vector<std::size_t> sizes;
  program.app().add_option("-n", sizes, "Elements (default 2000000,10000000; with --quick 200000)")->delimiter(',');
  program.parse();
  if (sizes.empty())
    sizes = program.options().quick ? std::vector<std::size_t>{200'000} : std::vector<std::size_t>{2'000'000, 10'000'000};
  try {
    for (const std::size_t n : sizes) compare(program, n);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quicksort: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
