// See ordinary_memory.hpp.
#include "ordinary_memory.hpp"

#include <cstdio>

#include "godwit_run.hpp"

namespace bench {

namespace {

std::vector<variant> variants_of(const program& p, const computation& c) {
  const auto fresh = [&c](auto&& timed) {
    c.prepare();
    sample one = timed();
    one.correct = c.is_right();
    return one;
  };
  std::vector<variant> all;
  all.push_back({"serial", 0, [&c, fresh] {
                   return fresh([&] { return run_plain([&] { return c.calls(), 0; }).second; });
                 }});
  for (const unsigned w : p.workers())
    all.push_back({"godwit", w, [&c, fresh, w] {
                     return fresh([work = &c.godwit, w] {
                       return run_godwit(
                                  w, [work] { return (*work)(), 0; }, "greedy", "threads")
                           .second;
                     });
                   }});
  const auto peer = [fresh](const std::function<void(unsigned)>& work) {
    return [fresh, &work](unsigned w) {
      return fresh([&] { return run_plain([&] { return work(w), 0; }).second; });
    };
  };
  add_timed_peer(all, p, "tbb", BENCH_HAS_TBB, peer(c.tbb));
  add_timed_peer(all, p, "openmp", BENCH_HAS_OPENMP, peer(c.openmp));
  for (const auto& l : c.libraries)
    add_library_peer(
        all, p, l.name, [&l](unsigned w) { return l.compute(w), true; }, c.prepare, c.is_right);
  const unsigned most = p.most_workers();
  all.push_back({"std::thread", most, [&c, fresh, most] {
                   return fresh([&] { return run_plain([&] { return c.std_threads(most), 0; }).second; });
                 }});
  return all;
}

void compare(program& p, const computation& c, std::size_t n) {
  const auto all = p.measure(variants_of(p, c));
  p.show(c.title, {{"n", n}}, all);
  const std::string key = "n" + std::to_string(n);
  if (const auto* one = find(all, "godwit", 1))
    p.figure(key + ".t1_over_serial", "1 worker / serial", one->over_reference, "", "median over the rounds");
  const unsigned most = p.most_workers();
  if (const auto* many = find(all, "godwit", most); many != nullptr && most > 1)
    p.figure(key + ".speed_up", std::to_string(most) + " workers", 1 / many->over_reference, "x serial",
             "inverse of the median over the rounds of godwit's time / serial time");
}

}  // namespace

int compare_on_ordinary_memory(program& p, const std::string& name, const std::string& sizes_are,
                               std::vector<std::size_t> usual, std::vector<std::size_t> quick,
                               const std::function<computation(std::size_t)>& of) {
  std::vector<std::size_t> sizes;
  p.option("-n", sizes, sizes_are);
  p.parse();
  if (sizes.empty()) sizes = p.options().quick ? std::move(quick) : std::move(usual);
  try {
    for (const std::size_t n : sizes) {
      const computation c = of(n);
      compare(p, c, n);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), e.what());
    return 1;
  }
  return p.finish();
}

}  // namespace bench
