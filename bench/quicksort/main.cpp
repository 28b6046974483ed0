// quicksort: ordinary memory, a task per part of more than 512 elements.
#include <memory>

#include "../common/ordinary_memory.hpp"
#include "quicksort.hpp"

namespace {

bench::computation of(std::size_t n) {
  const auto original = std::make_shared<const std::vector<std::uint32_t>>(quicksort::input(n));
  const auto v = std::make_shared<std::vector<std::uint32_t>>(n);
  const auto all = [v](auto&& sort) { sort(v->data(), v->data() + v->size()); };
  const auto on = [all](void (*sort)(std::uint32_t*, std::uint32_t*, unsigned)) {
    return [all, sort](unsigned w) { all([=](std::uint32_t* a, std::uint32_t* b) { sort(a, b, w); }); };
  };
  std::vector<bench::computation::library> libraries;
  for (const auto& l : quicksort::libraries()) libraries.push_back({l.name, on(l.sort)});
  return {.title = "quicksort of " + bench::grouped(n) + " integers",
          .prepare = [=] { *v = *original; },
          .is_right = [=] { return quicksort::is_right(*v); },
          .calls = [=] { all(quicksort::calls); },
          .godwit = [=] { all(quicksort::godwit); },
          .tbb = on(quicksort::tbb),
          .openmp = on(quicksort::openmp),
          .std_threads = on(quicksort::std_threads),
          .libraries = libraries};
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("quicksort", "Quicksort on ordinary memory, substrate threads.", argc, argv);
  return bench::compare_on_ordinary_memory(program, "quicksort",
                                           "Elements (default 2000000,10000000; with --quick 200000)",
                                           {2'000'000, 10'000'000}, {200'000}, of);
}
