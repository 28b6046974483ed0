// fib without a cutoff, on one variant of the context switch: compiled and linked once for each
// (contexts_asm, contexts_ucontext, contexts_setjmp). Run by main.cpp and by bench/count_instructions.py:
//   contexts_VARIANT N WORKERS [SUBSTRATE]     WORKERS 0: plain calls
// prints: value, seconds, CPU seconds, seconds with starting and stopping the workers, steals, suspends,
// stack bytes
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <godwit/godwit.hpp>

#include "../../common/clock.hpp"
#include "../../fib/fib.hpp"

namespace {

// As in fib/ours.cpp.
[[gnu::noinline]] std::uint64_t node(int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  auto first = godwit::spawn([n] { return node(n - 1); });
  const std::uint64_t second = node(n - 2);
  return first.join() + second;
}

struct timed {
  std::uint64_t value, ns, cpu_ns;
};

template <class F>
timed time_of(F&& f, int n) {
  const std::uint64_t start = bench::now_ns(), cpu_start = bench::cpu_ns();
  const std::uint64_t value = f(n);
  return {value, bench::now_ns() - start, bench::cpu_ns() - cpu_start};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s N WORKERS [SUBSTRATE]     WORKERS 0: plain calls\n", argv[0]);
    return 2;
  }
  const int n = std::atoi(argv[1]);
  godwit::options o;
  o.workers = static_cast<unsigned>(std::atoi(argv[2]));
  o.substrate = godwit::choice::named{argc > 3 ? argv[3] : "threads"};
  const std::uint64_t before = bench::now_ns();
  timed t{};
  godwit::worker_stats sum;
  try {
    if (o.workers == 0)
      t = time_of(fib::calls, n);
    else
      t = godwit::run<timed>([n] { return time_of(node, n); }, o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
  const double total = static_cast<double>(bench::now_ns() - before) * 1e-9;
  if (o.workers != 0)
    for (const auto& w : godwit::last_run_stats()) {
      sum.steals += w.steals;
      sum.suspends += w.suspends;
      sum.stack_high_bytes = std::max(sum.stack_high_bytes, w.stack_high_bytes);
    }
  std::printf("%llu %.9f %.9f %.9f %llu %llu %llu\n", static_cast<unsigned long long>(t.value),
              static_cast<double>(t.ns) * 1e-9, static_cast<double>(t.cpu_ns) * 1e-9, total,
              static_cast<unsigned long long>(sum.steals), static_cast<unsigned long long>(sum.suspends),
              static_cast<unsigned long long>(sum.stack_high_bytes));
}
