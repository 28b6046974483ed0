// heap: malloc and free as threads use them, in the heap that worker processes share, beside glibc's and
// mimalloc on substrate threads, where all workers have one heap as well; what a program does with it; what
// it costs that main's objects stay, and that who names a heap stays on its host.
//
// Nanoseconds for one malloc and one free together, of a block that is touched; the mean over the
// workers, medians over the rounds, ratios inside a round. Documents: docs/heap.md, docs/kept.md. Test:
// bench/CMakeLists.txt (bench.heap).
#include "owned.hpp"
#include "patterns.hpp"
#include "trees.hpp"

#include "../common/allocators.hpp"
#include "../common/godwit_run.hpp"

#include "sched/frames.hpp"

#include <godwit/godwit.hpp>

#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using namespace heap_bench;

/// Mean of the workers, in nanoseconds.
template <class Allocator>
double run(pattern p, unsigned workers, int rounds, gw::choice::substrate where) {
  bench::shared_page<board> page;
  board* const b = page.get();
  gw::options o;
  o.workers = workers;
  o.substrate = where;
  if (where == gw::choice::substrate::processes) o.heap = gw::choice::heap::shared;
  gw::run<int>(
      [=] {
        gw::on_each_worker([=] { one_worker<Allocator>(*b, p, gw::worker_id(), workers, rounds); });
        free_rest<Allocator>(*b);
        return 0;
      },
      o);
  double sum = 0;
  for (unsigned w = 0; w < workers; ++w) sum += b->ns[w];
  return sum / workers;
}

/// Rounds: serial, on each number of workers, as many serial ones at once.
void show_trees(bench::program& program) {
  const unsigned depth = program.options().quick ? 10 : 16;
  bench::ordered_json rows = bench::ordered_json::array();
  std::vector<std::vector<double>> s(program.workers().size()), speedup = s, machine = s;
  for (int rep = 0; rep < program.options().reps; ++rep) {
    const grown serial = grow_timed<false>(depth);
    for (std::size_t i = 0; i < program.workers().size(); ++i) {
      gw::options o;
      o.workers = program.workers()[i];
      o.substrate = gw::choice::substrate::processes;
      const grown g = gw::run<grown>([=] { return grow_timed<true>(depth); }, o);
      if (g.sum != serial.sum) throw std::runtime_error("the tree's maps are wrong");
      s[i].push_back(g.s), speedup[i].push_back(serial.s / g.s);
      machine[i].push_back(serial.s / trees_at_once(depth, o.workers) * o.workers);
    }
  }
  for (std::size_t i = 0; i < program.workers().size(); ++i) {
    const unsigned w = program.workers()[i];
    std::fprintf(program.out(),
                 "  a map a node, handed up, %3u workers  %9.4f s, %.2f x serial; so many serial ones at "
                 "once: %.2f x\n",
                 w, bench::median(s[i]), bench::median(speedup[i]), bench::median(machine[i]));
    rows.push_back({{"workers", w},
                    {"s", bench::median(s[i])},
                    {"speed-up over serial", bench::median(speedup[i])},
                    {"serial ones at once", bench::median(machine[i])}});
  }
  program.json()["measurements"].push_back(
      {{"title", "A tree: each node fills a std::map and hands it to its parent"}, {"rows", rows}});
}

void show_results(bench::program& program) {
  const int times = program.options().quick ? 100'000 : 2'000'000;
  bench::ordered_json rows = bench::ordered_json::array();
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{40}}) {
    std::vector<double> plain, spawned, over;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      gw::options o;
      o.workers = 1;
      o.substrate = gw::choice::substrate::processes;
      const called c = gw::run<called>([=] { return call_and_spawn(bytes, times); }, o);
      plain.push_back(c.plain_ns), spawned.push_back(c.spawned_ns), over.push_back(c.spawned_ns - c.plain_ns);
    }
    std::fprintf(program.out(), "  a std::string of %2zu bytes: a call %6.2f ns, a thread %6.2f, %.2f more\n",
                 bytes, bench::median(plain), bench::median(spawned), bench::median(over));
    rows.push_back({{"bytes", bytes},
                    {"call, ns", bench::median(plain)},
                    {"thread, ns", bench::median(spawned)},
                    {"more, ns", bench::median(over)}});
  }
  program.json()["measurements"].push_back(
      {{"title", "A result that is a std::string, unstolen"}, {"rows", rows}});
}

void show_owned(bench::program& program) {
  const bool quick = program.options().quick;
  const std::size_t mib = quick ? 64 : 1024, objects = quick ? 100'000 : 10'000'000;
  const std::string of_objects = std::to_string(objects) + " objects";
  std::vector<double> first, empty, memory, owned, fresh, more;
  for (int rep = 0; rep < program.options().reps; ++rep) {
    const search_times nothing = search_with(0, 0);
    first.push_back(nothing.first_ms), empty.push_back(nothing.later_ms);
    memory.push_back(search_with(mib << 20, 0).later_ms);
    owned.push_back(search_with(0, objects).later_ms);
  }
  bench::ordered_json rows = bench::ordered_json::array();
  const auto say = [&](const std::string& what, const std::vector<double>& ms) {
    std::fprintf(program.out(), "  main has %-24s to find what it owns: %9.3f ms of CPU time\n", what.c_str(),
                 bench::median(ms));
    rows.push_back({{"main has", what}, {"CPU ms", bench::median(ms)}});
  };
  say("nothing, the first time", first);
  say("nothing", empty);
  say(std::to_string(mib) + " MiB", memory);
  say(of_objects, owned);
  program.json()["measurements"].push_back(
      {{"title", "What main owns by counting: the search, when a run begins"}, {"rows", rows}});

  for (int rep = 0; rep < program.options().reps; ++rep) {
    const made_and_dropped m = make_and_drop(quick ? 100'000 : 5'000'000);
    fresh.push_back(m.of_threads_ns), more.push_back(m.of_main_ns - m.of_threads_ns);
  }
  std::fprintf(
      program.out(),
      "  a shared_ptr made and dropped in a worker: %.2f ns, %.2f more if main has one of the class\n",
      bench::median(fresh), bench::median(more));
  program.json()["measurements"].push_back(
      {{"title", "A std::shared_ptr made and dropped in a worker"},
       {"rows",
        {{{"CPU ns", bench::median(fresh)},
          {"more if main has one of the class, ns", bench::median(more)}}}}});
}

/// What is done before a thread goes to another host, beside the copy that is made of it anyway.
void show_leaving(bench::program& program) {
  bench::ordered_json rows = bench::ordered_json::array();
  for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{4} << 10, std::size_t{16} << 10}) {
    const std::vector<std::uint64_t> stack(bytes / sizeof(std::uint64_t), 0x7ffc'1234'5678);
    std::vector<std::uint64_t> copy(stack.size());
    const auto low = reinterpret_cast<std::uintptr_t>(stack.data());
    const godwit::stack::range heaps{0x2000'0000'0000, 0x2200'0000'0000};
    const int times = static_cast<int>((program.options().quick ? 10'000'000 : 500'000'000) / bytes);
    std::vector<double> searched, copied;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      const auto each = [&](auto&& f) {
        const std::uint64_t before = bench::cpu_ns();
        for (int i = 0; i < times; ++i) f();
        return static_cast<double>(bench::cpu_ns() - before) / times;
      };
      bool any = false;
      searched.push_back(each([&] { any |= godwit::sched::names(low, low + bytes, heaps); }));
      if (any) throw std::runtime_error("the search finds what is not there");
      copied.push_back(each([&] {
        std::memcpy(copy.data(), stack.data(), bytes);
        asm volatile("" : : "r"(copy.data()) : "memory");
      }));
    }
    std::fprintf(program.out(),
                 "  %5zu bytes of stack: searched for names of the heap %8.1f ns, copied %8.1f\n", bytes,
                 bench::median(searched), bench::median(copied));
    rows.push_back({{"bytes", bytes},
                    {"searched, CPU ns", bench::median(searched)},
                    {"copied, CPU ns", bench::median(copied)}});
  }
  program.json()["measurements"].push_back(
      {{"title", "A stack that leaves its host: the search for names of the heap"}, {"rows", rows}});
}

struct allocator {
  const char* name;
  std::function<double(pattern, unsigned, int)> run;
};

}  // namespace

int main(int argc, char** argv) {
  int rounds = 0;
  bench::program program("heap", "malloc and free in threads: the shared heap, glibc's, mimalloc.", argc,
                         argv);
  program.option("--rounds", rounds,
                 "Times a thousand operations of each worker (default 2000; with --quick 200)",
                 bench::between(1, 1'000'000));
  program.parse();
  if (rounds == 0) rounds = program.options().quick ? 200 : 2000;
  using gw::choice::substrate;
  std::vector<allocator> all = {
      {"shared heap", [](pattern p, unsigned w,
                         int n) { return run<bench::program_malloc>(p, w, n, substrate::processes); }},
      {"glibc",
       [](pattern p, unsigned w, int n) { return run<bench::glibc_malloc>(p, w, n, substrate::threads); }},
  };
  if (bench::mimalloc::load())
    all.push_back({"mimalloc", [](pattern p, unsigned w, int n) {
                     return run<bench::mimalloc>(p, w, n, substrate::threads);
                   }});
  try {
    show_owned(program);  // while nothing else has been in this process
    bench::ordered_json rows = bench::ordered_json::array();
    std::fprintf(program.out(), "malloc and free of one block, ns\n  %-42s %7s", "pattern", "workers");
    for (const allocator& a : all) std::fprintf(program.out(), " %12s", a.name);
    std::fprintf(program.out(), "   ratios\n");
    for (int p = 0; p < patterns; ++p)
      for (const unsigned w : program.workers()) {
        if (w > most_workers || (p == handed_on && w < 2)) continue;
        std::vector<std::vector<double>> ns(all.size()), ratio(all.size());
        for (int rep = 0; rep < program.options().reps; ++rep)
          for (std::size_t a = 0; a < all.size(); ++a) {
            ns[a].push_back(all[a].run(static_cast<pattern>(p), w, rounds));
            ratio[a].push_back(ns[0].back() / ns[a].back());
          }
        bench::ordered_json row = {{"pattern", pattern_names[p]}, {"workers", w}};
        std::fprintf(program.out(), "  %-42s %7u", pattern_names[p], w);
        for (std::size_t a = 0; a < all.size(); ++a) {
          std::fprintf(program.out(), " %12.2f", bench::median(ns[a]));
          row[all[a].name] = bench::median(ns[a]);
        }
        std::fprintf(program.out(), "  ");
        for (std::size_t a = 1; a < all.size(); ++a) {
          std::fprintf(program.out(), " %.2f", bench::median(ratio[a]));
          row[std::string("over ") + all[a].name] = bench::median(ratio[a]);
        }
        std::fprintf(program.out(), "\n");
        rows.push_back(row);
      }
    program.json()["measurements"].push_back({{"title", "malloc and free, ns"}, {"rows", rows}});
    const auto pages = [&](gw::choice::heap heap) {
      gw::options o;
      o.workers = 1;
      o.substrate = substrate::processes;
      o.heap = heap;
      const std::size_t bytes = std::size_t{1} << (program.options().quick ? 26 : 30);
      return gw::run<touched>([=] { return touch(bytes); }, o);
    };
    std::vector<double> touch_s, walk_s, touch_over, walk_over;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      const touched alone = pages(gw::choice::heap::separate), all = pages(gw::choice::heap::shared);
      touch_s.push_back(all.touch_s), touch_over.push_back(all.touch_s / alone.touch_s);
      walk_s.push_back(all.walk_s), walk_over.push_back(all.walk_s / alone.walk_s);
    }
    bench::ordered_json memory = bench::ordered_json::array();
    const auto say = [&](const char* what, const std::vector<double>& s, const std::vector<double>& over) {
      std::fprintf(program.out(), "  %-42s %9.4f s, %.2f x private memory\n", what, bench::median(s),
                   bench::median(over));
      memory.push_back({{"what", what}, {"s", bench::median(s)}, {"over private", bench::median(over)}});
    };
    const std::string size = program.options().quick ? "64 MiB" : "1 GiB";
    say(("first touch of " + size).c_str(), touch_s, touch_over);
    say(("walk of a list of " + size).c_str(), walk_s, walk_over);
    program.json()["measurements"].push_back({{"title", "Pages"}, {"rows", memory}});
    show_trees(program);
    show_results(program);
    show_leaving(program);
    program.json()["definitions"]["ratio"] =
        "the shared heap's time over the other's, median over the rounds";
    program.json()["definitions"]["serial ones at once"] =
        "how many times faster than one serial run after the other as many as there are workers are at once, "
        "each in a process of its own: what the machine has for this program";
  } catch (const std::exception& e) {
    std::fprintf(stderr, "heap: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
