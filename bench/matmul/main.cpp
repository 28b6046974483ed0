// matmul: cache-oblivious multiplication of matrices in ordinary memory, a task per half of the result.
#include <cstdio>
#include <memory>

#include "../common/godwit_run.hpp"
#include "matmul.hpp"

namespace {

void compare(bench::program& program, std::size_t n) {
  const auto all_of = std::make_shared<matmul::matrices>(n);
  const auto fresh = [=](auto&& multiply) {
    all_of->clear();
    bench::sample one = multiply(all_of->whole());
    one.correct = all_of->is_right();
    return one;
  };
  const auto plain = [=](auto&& f) {
    return fresh([&](const matmul::part& p) { return bench::run_plain([&] { return f(p), 0; }).second; });
  };
  std::vector<bench::variant> variants;
  variants.push_back({"serial", 0, [=] { return plain([](const matmul::part& p) { matmul::calls(p); }); }});
  for (const unsigned w : program.workers())
    variants.push_back({"godwit", w, [=] {
                          return fresh([=](const matmul::part& p) {
                            return bench::run_godwit(w, [=] { return matmul::godwit(p), 0; }, "greedy", "threads").second;
                          });
                        }});
  const auto peer = [=](void (*multiply)(const matmul::part&, unsigned)) {
    return [=](unsigned w) {
      all_of->clear();
      multiply(all_of->whole(), w);
      return all_of->is_right();
    };
  };
  bench::add_peer(variants, program, "tbb", BENCH_HAS_TBB, peer(matmul::tbb));
  bench::add_peer(variants, program, "openmp", BENCH_HAS_OPENMP, peer(matmul::openmp));
  const unsigned most = program.most_workers();
  variants.push_back({"std::thread", most, [=] {
                        return plain([=](const matmul::part& p) { matmul::std_threads(p, most); });
                      }});
  const auto all = program.measure(variants);
  program.show("matrix multiplication, " + std::to_string(n) + " x " + std::to_string(n), {{"n", n}}, all);
  const std::string key = "n" + std::to_string(n);
  if (const auto* one = bench::find(all, "godwit", 1))
    program.figure(key + ".t1_over_serial", "1 worker / serial", one->over_reference, "", "median over the rounds");
  if (const auto* many = bench::find(all, "godwit", most); many != nullptr && most > 1)
    program.figure(key + ".speed_up", std::to_string(most) + " workers", 1 / many->over_reference, "x serial",
                   "inverse of the median over the rounds of godwit's time / serial time");
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("matmul", "Cache-oblivious matrix multiplication, substrate threads.", argc, argv);
  std::vector<std::size_t> sizes;
  program.app().add_option("-n", sizes, "Rows and columns (default 1000; with --quick 300)")->delimiter(',');
  program.parse();
  if (sizes.empty()) sizes = {program.options().quick ? std::size_t{300} : std::size_t{1000}};
  try {
    for (const std::size_t n : sizes) compare(program, n);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "matmul: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
