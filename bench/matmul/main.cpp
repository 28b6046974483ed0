// matmul: cache-oblivious multiplication of matrices in ordinary memory, a task per half of the result.
#include <memory>

#include "../common/ordinary_memory.hpp"
#include "matmul.hpp"

namespace {

bench::computation of(std::size_t n) {
  const auto all = std::make_shared<matmul::matrices>(n);
  const auto on = [all](void (*multiply)(const matmul::part&, unsigned)) {
    return [all, multiply](unsigned w) { multiply(all->whole(), w); };
  };
  std::vector<bench::computation::library> libraries;
  for (const auto& l : matmul::libraries()) libraries.push_back({l.name, on(l.multiply)});
  return {.title = "matrix multiplication, " + std::to_string(n) + " x " + std::to_string(n),
          .prepare = [=] { all->clear(); },
          .is_right = [=] { return all->is_right(); },
          .calls = [=] { matmul::calls(all->whole()); },
          .godwit = [=] { matmul::godwit(all->whole()); },
          .tbb = on(matmul::tbb),
          .openmp = on(matmul::openmp),
          .std_threads = on(matmul::std_threads),
          .libraries = libraries};
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("matmul", "Cache-oblivious matrix multiplication, substrate threads.", argc, argv);
  return bench::compare_on_ordinary_memory(
      program, "matmul", "Rows and columns (default 1000; with --quick 300)", {1000}, {300}, of);
}
