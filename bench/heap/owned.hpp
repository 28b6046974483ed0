// What it costs that objects which main owns by counting stay (docs/kept.md): to find them when a run begins,
// and in workers. CPU times: nobody waits.
#pragma once

#include "../common/clock.hpp"
#include "../common/shared_page.hpp"

#include "heap/kept.hpp"

#include <godwit/godwit.hpp>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace heap_bench {

struct search_times {
  double first_ms, later_ms;
};
/// The search in a process that has @p bytes of written memory and @p objects more than this one.
inline search_times search_with(std::size_t bytes, std::size_t objects) {
  bench::shared_page<search_times> page;
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<std::uint64_t> memory(bytes / sizeof(std::uint64_t), 7);
    std::vector<std::shared_ptr<long>> owned(objects);
    for (auto& each : owned) each = std::make_shared<long>(7);
    const auto search_ms = [] {
      const std::uint64_t begin = bench::cpu_ns();
      if (const std::string problem = godwit::heap::find_kept(); !problem.empty())
        throw std::runtime_error(problem);
      return static_cast<double>(bench::cpu_ns() - begin) * 1e-6;
    };
    page.get()->first_ms = search_ms();
    page.get()->later_ms = search_ms();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the search for what main owns failed");
  return *page.get();
}

/// A class of which main has an object, and one of which it has none.
struct of_main {
  long v;
};
struct of_threads {
  long v;
};
template <class T>
[[gnu::noinline]] double make_and_drop_ns(int times) {
  const std::uint64_t begin = bench::cpu_ns();
  for (int i = 0; i < times; ++i) {
    const auto one = std::make_shared<T>(T{i});
    bench::keep(one->v);
  }
  return static_cast<double>(bench::cpu_ns() - begin) / times;
}
struct made_and_dropped {
  double of_threads_ns, of_main_ns;
};
inline made_and_dropped make_and_drop(int times) {
  const auto held = std::make_shared<of_main>(of_main{7});
  godwit::options o;
  o.workers = 1;
  o.substrate = godwit::choice::substrate::processes;
  return godwit::run<made_and_dropped>(
      [times] {
        return made_and_dropped{make_and_drop_ns<of_threads>(times), make_and_drop_ns<of_main>(times)};
      },
      o);
}

}  // namespace heap_bench
