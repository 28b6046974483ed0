// cancel: what do scopes and requests to stop cost, and how soon does the last worker hear of one?
//
// Blocks of what is measured and of the plain thing that it is compared with alternate, on one worker, in CPU
// time. The latency needs two: one spawns as fast as it can, the other one cancels.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include "../../common/godwit_run.hpp"
#include "../../common/shared_page.hpp"

namespace {

namespace gw = godwit;

constexpr int most_blocks = 400, depth = 64;

struct error {};  // as small as cancelled

struct board {
  double ask[most_blocks], scope[most_blocks], spawn[most_blocks], spawn_in_scope[most_blocks];
  double plain_throw[most_blocks], stop[most_blocks], chain[most_blocks];
  double latency[most_blocks];
  std::atomic<std::uint64_t> last_begin, spawning;
};

template <class F>
double ns_each(std::uint64_t n, F&& f) {
  const std::uint64_t from = bench::cpu_ns();
  for (std::uint64_t i = 0; i < n; ++i) f();
  return static_cast<double>(bench::cpu_ns() - from) / static_cast<double>(n);
}

[[gnu::noinline]] void nothing() { asm volatile(""); }
[[gnu::noinline]] void throws() { throw error(); }
/// As deep as a spawn that throws, and with something to destroy.
struct guard {
  ~guard() { asm volatile(""); }
};
[[gnu::noinline]] void calls() {
  guard g;
  throws();
}
[[gnu::noinline]] void spawns() {
  gw::spawn([] { nothing(); }).join();
}

/// Threads that wait for each other, the last of which is stopped.
[[gnu::noinline]] int chain(int n, gw::cancel_token all) {
  if (n == 0) {
    all.cancel();
    gw::spawn([] { nothing(); }).join();
    return 0;
  }
  return gw::spawn([=] { return chain(n - 1, all); }).join();
}

void measure(board& b, int block) {
  b.spawn[block] = ns_each(100'000, spawns);
  b.scope[block] = ns_each(20'000, [] { gw::cancel_scope scope; });
  b.plain_throw[block] = ns_each(2'000, [] {
    try {
      calls();
    } catch (const error&) {
    }
  });
  {
    gw::cancel_scope scope;
    b.ask[block] = ns_each(1'000'000, [] {
      bool yes = gw::is_cancelled();
      bench::keep(yes);
    });
    b.spawn_in_scope[block] = ns_each(100'000, spawns);
    scope.cancel();
    b.stop[block] = ns_each(2'000, [] {
      try {
        spawns();
      } catch (const gw::cancelled&) {
      }
    });
  }
  b.chain[block] = ns_each(50,
                           [] {
                             gw::cancel_scope scope;
                             static_cast<void>(scope.run([&] { return chain(depth, scope.token()); }));
                           }) /
                   depth;
}

/// Of a thread that is created before its scope is cancelled.
double not_begun(int blocks) {
  constexpr int threads = 10'000;
  gw::options o;
  o.workers = 1;
  o.substrate = gw::choice::substrate::threads;
  std::vector<double> all;
  for (int i = 0; i < blocks; ++i)
    all.push_back(gw::run<double>(
        [] {
          std::uint64_t from = 0;
          {
            gw::cancel_scope scope;
            for (int t = 0; t < threads; ++t) static_cast<void>(gw::create(nothing));
            scope.cancel();
            from = bench::cpu_ns();
          }
          return static_cast<double>(bench::cpu_ns() - from) / threads;
        },
        o));
  return bench::median(all);
}

/// From the request to the last thread that began, on another worker.
double latency(board* b) {
  b->spawning = 0;
  gw::cancel_scope scope;
  auto other = gw::spawn([b] {
    for (;;) {
      gw::spawn([b] { b->last_begin.store(bench::now_ns(), std::memory_order_relaxed); }).join();
      b->spawning.fetch_add(1, std::memory_order_relaxed);
    }
  });
  const std::uint64_t enough = b->spawning.load() + 1000;
  while (b->spawning.load(std::memory_order_relaxed) < enough) {
  }
  const std::uint64_t from = bench::now_ns();
  scope.cancel();
  try {
    other.join();
  } catch (const gw::cancelled&) {
  }
  const std::uint64_t last = b->last_begin.load();
  return last > from ? static_cast<double>(last - from) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("cancel", "Costs of cancellation, and its latency.", argc, argv);
  int blocks = 100;
  program.option("--blocks", blocks, "Blocks (default 100; with --quick 20)", bench::between(1, most_blocks));
  program.parse();
  if (program.options().quick && !program.given("--blocks")) blocks = 20;
  try {
    bench::shared_page<board> page;
    board* const b = page.get();
    bench::run_godwit(1, [=] {
      for (int i = 0; i < blocks; ++i) measure(*b, i);
      return 0;
    });
    const auto of = [&](const double* all) { return bench::median(std::vector<double>(all, all + blocks)); };
    const double plain = of(b->plain_throw);
    program.figure("ask", "is_cancelled", of(b->ask), "ns", "in a scope");
    program.figure("scope", "a scope begins and ends", of(b->scope), "ns", "");
    program.figure("spawn", "spawn + join", of(b->spawn), "ns", "in no scope");
    program.figure("spawn_in_scope", "spawn + join in a scope", of(b->spawn_in_scope), "ns", "");
    program.figure("plain", "plain throw and catch", plain, "ns", "");
    program.figure("stop", "a spawn that throws cancelled, of a plain throw and catch", of(b->stop) / plain,
                   "x", "");
    program.figure("not_begun", "a created thread that does not begin", not_begun(blocks), "ns",
                   "substrate threads: until the end of the scope / 10,000 threads");
    program.figure("unwinding", "unwinding, of a plain throw and catch", of(b->chain) / plain, "x",
                   "64 threads that wait for each other, each one's share / a plain throw and catch");
    if (program.most_workers() >= 2) {
      bench::run_godwit(2, [=] {
        for (int i = 0; i < blocks; ++i) b->latency[i] = latency(b);
        return 0;
      });
      program.figure("latency", "request to the last begin", of(b->latency) / 1000, "us",
                     "median; one worker cancels, the other one spawns");
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cancel: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
