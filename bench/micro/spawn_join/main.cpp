// spawn_join: what do spawn and join cost over a plain call, nobody stealing?
//
// One worker. Blocks of plain calls and of spawn + join of the same functions alternate inside one root
// thread; every block of ours is compared with the block of plain calls just before it.

#include <cstdio>

#include "../../common/godwit_run.hpp"
#include "../../common/shared_page.hpp"
#include "../../fib/fib.hpp"
#include "plain.hpp"

namespace {

using namespace spawn_join;

constexpr int most_blocks = 4096;
constexpr int fib_n = 22;

enum form : int { f_void, f_invoke, f_word, f_block, f_short, f_long, f_fib, f_fib_invoke, forms };
constexpr const char* form_names[forms] = {"no result",       "no result, invoke", "8-byte result",
                                           "64-byte result",  "string of 8",       "string of 40",
                                           "fib, spawn+join", "fib, invoke"};

struct interval {
  double ns, ticks;
};
struct board {
  interval plain[forms][most_blocks];
  interval ours[forms][most_blocks];
};

// A plain loop and a godwit loop per form; each does n operations.
[[gnu::noinline]] void plain_loop(form f, std::uint64_t n) {
  switch (f) {
    case f_void:
    case f_invoke:
      for (std::uint64_t i = 0; i < n; ++i) nothing(i);
      break;
    case f_word:
      for (std::uint64_t i = 0; i < n; ++i) {
        auto r = word(i);
        bench::keep(r);
      }
      break;
    case f_block:
      for (std::uint64_t i = 0; i < n; ++i) {
        auto r = block(i);
        bench::keep(r);
      }
      break;
    case f_short:
      for (std::uint64_t i = 0; i < n; ++i) {
        auto r = short_text(i);
        bench::keep(r);
      }
      break;
    case f_long:
      for (std::uint64_t i = 0; i < n; ++i) {
        auto r = long_text(i);
        bench::keep(r);
      }
      break;
    case f_fib:
    case f_fib_invoke: {
      auto r = fib::calls(fib_n);
      bench::keep(r);
      break;
    }
    default:
      break;
  }
}

// One function per form: spawns must not share a frame with other forms' futures.
[[gnu::noinline]] void ours_void(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) godwit::spawn([i] { nothing(i); }).join();
}
[[gnu::noinline]] void ours_invoke(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) godwit::invoke([i] { nothing(i); }, [] {});
}
[[gnu::noinline]] void ours_word(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    auto r = godwit::spawn([i] { return word(i); }).join();
    bench::keep(r);
  }
}
[[gnu::noinline]] void ours_block(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    auto r = godwit::spawn([i] { return block(i); }).join();
    bench::keep(r);
  }
}
[[gnu::noinline]] void ours_short(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    auto r = godwit::spawn([i] { return short_text(i); }).join();
    bench::keep(r);
  }
}
[[gnu::noinline]] void ours_long(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    auto r = godwit::spawn([i] { return long_text(i); }).join();
    bench::keep(r);
  }
}

void ours_loop(form f, std::uint64_t n) {
  switch (f) {
    case f_void:
      return ours_void(n);
    case f_invoke:
      return ours_invoke(n);
    case f_word:
      return ours_word(n);
    case f_block:
      return ours_block(n);
    case f_short:
      return ours_short(n);
    case f_long:
      return ours_long(n);
    case f_fib: {
      auto r = fib::spawn_join(fib_n);
      bench::keep(r);
      return;
    }
    case f_fib_invoke: {
      auto r = fib::invoke(fib_n);
      bench::keep(r);
      return;
    }
    default:
      return;
  }
}

template <class F>
interval time_each(double operations, const F& loop) {
  const std::uint64_t n0 = bench::now_ns(), t0 = bench::ticks_ordered();
  loop();
  const std::uint64_t t1 = bench::ticks_ordered(), n1 = bench::now_ns();
  return {static_cast<double>(n1 - n0) / operations, static_cast<double>(t1 - t0) / operations};
}

void measure(board* b, int blocks, std::uint64_t n) {
  for (int k = 0; k < blocks; ++k) {
    for (int i = 0; i < forms; ++i) {
      const form f = static_cast<form>(i);
      const double operations = static_cast<double>(f >= f_fib ? fib::spawns(fib_n) : n);
      b->plain[i][k] = time_each(operations, [=] { plain_loop(f, n); });
      b->ours[i][k] = time_each(operations, [=] { ours_loop(f, n); });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("spawn_join", "Spawn + join over a plain call, one worker.", argc, argv);
  std::uint64_t n = 20000;
  int blocks = 300;
  program.option("--blocks", blocks, "Blocks per form and repetition", bench::between(1, most_blocks));
  program.option("-n", n, "Operations per block", bench::between(1, 100000000));
  program.parse();
  if (program.options().quick && !program.given("--blocks")) blocks = 50;
  try {
    std::vector<double> plain_ns[forms], ours_ns[forms], over_ns[forms], over_ticks[forms];
    bench::shared_page<board> page;
    board* const b = page.get();
    for (int rep = 0; rep < program.options().reps; ++rep) {
      bench::run_godwit(1, [=] {
        measure(b, blocks, n);
        return 0;
      });
      for (int f = 0; f < forms; ++f)
        for (int k = 0; k < blocks; ++k) {
          plain_ns[f].push_back(b->plain[f][k].ns);
          ours_ns[f].push_back(b->ours[f][k].ns);
          over_ns[f].push_back(b->ours[f][k].ns - b->plain[f][k].ns);
          over_ticks[f].push_back(b->ours[f][k].ticks - b->plain[f][k].ticks);
        }
    }
    std::FILE* const to = program.out();
    std::fprintf(to, "Spawn + join that is not stolen, one worker; per operation\n");
    std::fprintf(to, "  %-18s %9s %9s %9s %9s %9s %11s\n", "form", "plain ns", "ours ns", "over ns", "p10",
                 "p90", "over ticks");
    bench::ordered_json rows = bench::ordered_json::array();
    for (int f = 0; f < forms; ++f) {
      const double over = bench::median(over_ns[f]);
      std::fprintf(to, "  %-18s %9.2f %9.2f %9.2f %9.2f %9.2f %11.2f\n", form_names[f],
                   bench::median(plain_ns[f]), bench::median(ours_ns[f]), over,
                   bench::quantile(over_ns[f], 0.1), bench::quantile(over_ns[f], 0.9),
                   bench::median(over_ticks[f]));
      rows.push_back({{"form", form_names[f]},
                      {"plain_ns", bench::median(plain_ns[f])},
                      {"ours_ns", bench::median(ours_ns[f])},
                      {"over_ns", over},
                      {"over_ns_p10", bench::quantile(over_ns[f], 0.1)},
                      {"over_ns_p90", bench::quantile(over_ns[f], 0.9)},
                      {"over_ticks", bench::median(over_ticks[f])}});
      program.json()["figures"][std::string(form_names[f])] = {
          {"what", std::string("spawn + join over a plain call: ") + form_names[f]},
          {"value", over},
          {"unit", "ns"},
          {"definition", "median over the blocks of (godwit - plain calls just before) / operations"}};
    }
    std::fprintf(
        to,
        "  over: median over %zu blocks of (ours - the plain block just before it); ticks: constant-rate "
        "counter, %.2f per ns\n  fib: the difference to plain calls per spawn of fib(%d)\n",
        over_ns[0].size(), bench::ticks_per_ns(), fib_n);
    program.json()["measurements"].push_back({{"title", "spawn + join over a plain call"}, {"rows", rows}});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "spawn_join: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
