// global_micro: what single accesses to global memory cost, beside the same on plain memory.
//
// One thread. Blocks of an operation on plain memory and of ours alternate; every block of ours is compared
// with the plain one just before it. The words lie in 16 KiB, so what is measured is instructions, not cache
// misses; every operation's result is used, and the compiler may assume nothing about memory between two of
// them. Where there are more workers, the memory is the last one's: its owner must not matter inside a host.
// Objects are all allocated, then all freed, by each allocator in turn: a million at a time in memory that is
// fresh, where the system's pages cost most of it, then a thousand at a time in memory that was used before.
// Document: docs/results/README.md. Test:
// bench/CMakeLists.txt (bench.global_micro). Spawn and join: bench/micro/spawn_join.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "../../common/allocators.hpp"
#include "../../common/godwit_run.hpp"
#include "../parts.hpp"

namespace {

namespace gw = godwit;

constexpr std::size_t words = 2048;
constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);

enum form : int {
  f_get,
  f_put,
  f_get_page,
  f_put_page,
  f_checkout,
  f_checkout_page,
  f_checkout_begun,
  f_fetch_add,
  forms
};
constexpr struct {
  const char* key;
  const char* what;
  const char* plain;
} texts[forms] = {
    {"get8", "get of 8 bytes", "load"},
    {"put8", "put of 8 bytes", "store"},
    {"get4k", "get of 4 KiB", "memcpy"},
    {"put4k", "put of 4 KiB", "memcpy"},
    {"checkout8", "checkout + checkin, 8 bytes read", "load"},
    {"checkout4k", "checkout + checkin, 4 KiB, one word written", "store"},
    {"checkout_begun8", "checkout_begin + complete + checkin, 8 bytes read", "load"},
    {"fetch_add", "fetch-add of 8 bytes", "std::atomic"},
};

[[gnu::always_inline]] inline void anything_may_change() noexcept { asm volatile("" ::: "memory"); }
std::size_t spot(std::uint64_t i) noexcept { return (i * 5) & (words - 1); }
std::size_t page(std::uint64_t i) noexcept { return i * page_words & (words - 1); }

struct plain_side {
  std::uint64_t* at;      ///< words of them
  std::uint64_t* buffer;  ///< a page
};

// Each does n operations and gives back a number that tells whether they were done.
[[gnu::noinline]] std::uint64_t plain_loop(form f, plain_side m, std::uint64_t n) {
  std::uint64_t sum = 0;
  switch (f) {
    case f_get:
    case f_checkout:
    case f_checkout_begun:
      for (std::uint64_t i = 0; i < n; ++i) {
        sum += m.at[spot(i)];
        anything_may_change();
      }
      return sum;
    case f_put:
      for (std::uint64_t i = 0; i < n; ++i) {
        m.at[spot(i)] = i;
        anything_may_change();
      }
      return m.at[spot(n - 1)];
    case f_checkout_page:
      for (std::uint64_t i = 0; i < n; ++i) {
        m.at[page(i)] = i;
        anything_may_change();
      }
      return m.at[page(n - 1)];
    case f_get_page:
      for (std::uint64_t i = 0; i < n; ++i) {
        std::memcpy(m.buffer, m.at + page(i), 4096);
        anything_may_change();
      }
      return m.buffer[page_words - 1];
    case f_put_page:
      for (std::uint64_t i = 0; i < n; ++i) {
        std::memcpy(m.at + page(i), m.buffer, 4096);
        anything_may_change();
      }
      return m.at[page(n - 1) + page_words - 1];
    case f_fetch_add:
      for (std::uint64_t i = 0; i < n; ++i) std::atomic_ref(m.at[0]).fetch_add(1);
      return m.at[0];
    default:
      return 0;
  }
}

using place = gw::global_ptr<std::uint64_t>;
place word(place p, std::size_t i) { return p + static_cast<std::ptrdiff_t>(i); }

[[gnu::noinline]] std::uint64_t ours_loop(form f, place p, std::uint64_t* buffer, std::uint64_t n) {
  std::uint64_t sum = 0;
  switch (f) {
    case f_get:
      for (std::uint64_t i = 0; i < n; ++i) {
        sum += gw::get(word(p, spot(i)));
        anything_may_change();
      }
      return sum;
    case f_checkout:
      for (std::uint64_t i = 0; i < n; ++i) {
        sum += gw::checkout(word(p, spot(i)), 1, gw::access::read)[0];
        anything_may_change();
      }
      return sum;
    case f_checkout_begun:
      for (std::uint64_t i = 0; i < n; ++i) {
        auto begun = gw::checkout_begin(word(p, spot(i)), 1, gw::access::read);
        sum += begun.complete()[0];
        anything_may_change();
      }
      return sum;
    case f_put:
      for (std::uint64_t i = 0; i < n; ++i) {
        gw::put(word(p, spot(i)), i);
        anything_may_change();
      }
      return gw::get(word(p, spot(n - 1)));
    case f_checkout_page:
      for (std::uint64_t i = 0; i < n; ++i) {
        gw::checkout(word(p, page(i)), page_words, gw::access::read_write)[0] = i;
        anything_may_change();
      }
      return gw::get(word(p, page(n - 1)));
    case f_get_page:
      for (std::uint64_t i = 0; i < n; ++i) {
        gw::get(word(p, page(i)), buffer, page_words);
        anything_may_change();
      }
      return buffer[page_words - 1];
    case f_put_page:
      for (std::uint64_t i = 0; i < n; ++i) {
        gw::put(word(p, page(i)), buffer, page_words);
        anything_may_change();
      }
      return gw::get(word(p, page(n - 1) + page_words - 1));
    case f_fetch_add:
      for (std::uint64_t i = 0; i < n; ++i) gw::atomic_fetch_add(p, std::uint64_t{1});
      return gw::atomic_load(p);
    default:
      return 0;
  }
}

struct object {
  std::uint64_t value[4];
};

// The allocators: each makes an object with the value i in all places, and takes it back.
struct ours_objects {
  using pointer = gw::global_ptr<object>;
  static pointer make(std::uint64_t i) { return gw::global_new<object>(object{{i, i, i, i}}); }
  static object value(pointer p) { return gw::get(p); }
  static void release(pointer p) { gw::global_delete(p); }
};
template <class Allocator>
struct plain_objects {
  using pointer = object*;
  static pointer make(std::uint64_t i) {
    auto* const p = static_cast<object*>(Allocator::allocate(sizeof(object)));
    *p = {{i, i, i, i}};
    return p;
  }
  static object value(pointer p) { return *p; }
  static void release(pointer p) { Allocator::release(p); }
};
template <class F>
double ns_each(std::uint64_t n, const F& f) {
  const std::uint64_t t0 = bench::ticks_ordered();
  f();
  return static_cast<double>(bench::ticks_ordered() - t0) / bench::ticks_per_ns() / static_cast<double>(n);
}

struct object_times {
  double made = 0, released = 0;
};
/// Both halves of the life of @p n objects; throws if one was overwritten.
template <class Objects>
[[gnu::noinline]] object_times live(std::vector<typename Objects::pointer>& all, std::uint64_t n) {
  object_times t;
  std::uint64_t wrong = 0;
  t.made = ns_each(n, [&] {
    for (std::uint64_t i = 0; i < n; ++i) all[i] = Objects::make(i);
  });
  t.released = ns_each(n, [&] {
    for (std::uint64_t i = 0; i < n; ++i) {
      wrong += Objects::value(all[i]).value[3] != i;
      Objects::release(all[i]);
    }
  });
  if (wrong != 0) throw std::runtime_error(std::to_string(wrong) + " objects were overwritten");
  return t;
}

enum allocators : int { a_ours, a_malloc, a_glibc, a_mimalloc, allocator_count };
constexpr const char* allocator_names[] = {"ours", "malloc", "glibc", "mimalloc"};
constexpr std::uint64_t few_objects = 1000;
constexpr int few_rounds = 200;

/// For each allocator: made and released, fresh; made and released, used before (the median of its rounds).
void measure_objects(std::uint64_t n, std::vector<double>& out) {
  object_times (*const fresh[])(std::uint64_t) = {
      [](std::uint64_t count) {
        std::vector<gw::global_ptr<object>> all(count);
        return live<ours_objects>(all, count);
      },
      [](std::uint64_t count) {
        std::vector<object*> all(count);
        return live<plain_objects<bench::program_malloc>>(all, count);
      },
      [](std::uint64_t count) {
        std::vector<object*> all(count);
        return live<plain_objects<bench::glibc_malloc>>(all, count);
      },
      [](std::uint64_t count) {
        if (bench::mimalloc::allocate == nullptr) return object_times{};
        std::vector<object*> all(count);
        return live<plain_objects<bench::mimalloc>>(all, count);
      }};
  std::vector<double> made[allocator_count], released[allocator_count];
  for (const auto& of : fresh) {
    const object_times t = of(n);
    out.insert(out.end(), {t.made, t.released});
  }
  for (int round = 0; round < few_rounds; ++round)
    for (int a = 0; a < allocator_count; ++a) {
      const object_times t = fresh[a](few_objects);
      made[a].push_back(t.made);
      released[a].push_back(t.released);
    }
  for (int a = 0; a < allocator_count; ++a)
    out.insert(out.end(), {bench::median(made[a]), bench::median(released[a])});
}

struct settings {
  std::uint64_t n = 0, blocks = 0, objects = 0;
};

/// In a run: plain and ours in ns per operation, block after block, form by form; then the objects' times;
/// then whether the memory is another host's. Spawns nothing, so the vectors stay where they are.
std::vector<double> measure(const settings& s) {
  const place p = gw::allocate<std::uint64_t>(words, gw::distribution::at(gw::worker_count() - 1), 4096);
  const bool far = gw::try_local(p, words) == nullptr;
  const std::uint64_t n = far ? std::max<std::uint64_t>(s.n / 1000, 8) : s.n;
  const auto memory = std::make_unique<std::uint64_t[]>(words + 2 * page_words);
  const auto aligned = (reinterpret_cast<std::uintptr_t>(memory.get()) + 4095) / 4096 * 4096;
  const plain_side plain{reinterpret_cast<std::uint64_t*>(aligned),
                         reinterpret_cast<std::uint64_t*>(aligned) + words};
  std::vector<double> out;
  std::uint64_t added = 0;
  for (std::uint64_t i = 0; i < words; ++i) plain.at[i] = i;
  gw::put(p, plain.at, words);
  for (std::uint64_t b = 0; b < s.blocks; ++b)
    for (int i = 0; i < forms; ++i) {
      const form f = static_cast<form>(i);
      std::uint64_t x = 0, y = 0;
      out.push_back(ns_each(n, [&] { x = plain_loop(f, plain, n); }));
      out.push_back(ns_each(n, [&] { y = ours_loop(f, p, plain.buffer, n); }));
      if (f == f_fetch_add) added += n;
      if (x != y)
        throw std::runtime_error(std::string(texts[i].what) + ": " + std::to_string(y) + " instead of " +
                                 std::to_string(x));
    }
  std::vector<std::uint64_t> all(words);
  gw::get(p, all.data(), words);
  if (std::memcmp(all.data(), plain.at, words * sizeof(std::uint64_t)) != 0)
    throw std::runtime_error("global memory holds other words than plain memory after the same operations");
  if (added == 0) throw std::runtime_error("nothing was added");
  gw::deallocate(p, words);
  measure_objects(s.objects, out);
  out.push_back(far);
  return out;
}

void one_worker_count(bench::program& program, const settings& s, unsigned w) {
  std::vector<double> plain[forms], ours[forms], over[forms], ratio[forms];
  std::vector<double> objects[2][allocator_count][2];  // fresh or used; whose; made, released
  bool far = false;
  for (int rep = 0; rep < program.options().reps; ++rep) {
    gw::options o;
    o.workers = w;
    const std::vector<double> t = gw::run<std::vector<double>>([s] { return measure(s); }, o);
    std::size_t at = 0;
    for (std::uint64_t b = 0; b < s.blocks; ++b)
      for (int f = 0; f < forms; ++f, at += 2) {
        plain[f].push_back(t[at]);
        ours[f].push_back(t[at + 1]);
        over[f].push_back(t[at + 1] - t[at]);
        ratio[f].push_back(t[at + 1] / t[at]);
      }
    for (auto& state : objects)
      for (auto& of : state)
        for (auto& half : of) half.push_back(t[at++]);
    far = t[at] != 0;
  }
  if (!gw::is_first_process()) return;
  std::FILE* const to = program.out();
  const std::string of = far      ? "another host's memory"
                         : w == 1 ? "the worker's own memory"
                                  : "another worker's memory";
  std::fprintf(to, "%u worker%s, %s; ns per operation\n", w, w == 1 ? "" : "s", of.c_str());
  std::fprintf(to, "  %-44s %9s %9s %9s %9s %9s %9s\n", "operation", "plain", "ours", "p10", "p90", "over",
               "ours/plain");
  bench::ordered_json rows = bench::ordered_json::array();
  const std::string key = far ? "far." : w == 1 ? "own." : "other.";
  const auto row = [&](const std::string& name, const std::string& plain_name, const std::vector<double>& a,
                       const std::vector<double>& b, double o, double r) {
    const std::string label = name + " / " + plain_name;
    std::fprintf(to, "  %-44s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", label.c_str(), bench::median(a),
                 bench::median(b), bench::quantile(b, 0.1), bench::quantile(b, 0.9), o, r);
    rows.push_back({{"operation", name},
                    {"beside", plain_name},
                    {"plain_ns", bench::median(a)},
                    {"ours_ns", bench::median(b)},
                    {"ours_ns_p10", bench::quantile(b, 0.1)},
                    {"ours_ns_p90", bench::quantile(b, 0.9)},
                    {"over_ns", o},
                    {"over_plain", r}});
  };
  for (int f = 0; f < forms; ++f)
    row(texts[f].what, texts[f].plain, plain[f], ours[f], bench::median(over[f]), bench::median(ratio[f]));
  const char* const halves[] = {"global_new", "global_delete"};
  const char* const states[] = {"fresh memory", "used memory"};
  for (int used = 0; used < 2; ++used)
    for (int half = 0; half < 2; ++half)
      for (int a = a_malloc; a < allocator_count; ++a) {
        const std::vector<double>& theirs = objects[used][a][half];
        const std::vector<double>& mine = objects[used][a_ours][half];
        if (bench::median(theirs) == 0) continue;  // it is not installed
        std::vector<double> by, more;
        for (std::size_t i = 0; i < mine.size(); ++i) {
          by.push_back(mine[i] / theirs[i]);
          more.push_back(mine[i] - theirs[i]);
        }
        row(std::string(halves[half]) + ", 32 bytes, " + states[used], allocator_names[a], theirs, mine,
            bench::median(more), bench::median(by));
        program.figure(
            key + halves[half] + (used != 0 ? ".used" : ".fresh") + ".over_" + allocator_names[a],
            std::string(halves[half]) + " of 32 bytes / " + allocator_names[a] + ", " + states[used],
            bench::median(by), "", "median over the repetitions of ours / theirs in the same one");
      }
  program.json()["measurements"].push_back(
      {{"title", std::to_string(w) + " workers, " + of}, {"rows", rows}});
  for (int f = 0; f < forms; ++f) {
    program.figure(key + texts[f].key, std::string(texts[f].what) + ", " + of, bench::median(ours[f]), "ns",
                   "median over the blocks of time / operations, the operation's own loop included");
    if (f == f_get_page || f == f_put_page)
      program.figure(key + texts[f].key + ".over_memcpy", std::string(texts[f].what) + " / memcpy, " + of,
                     bench::median(ratio[f]), "",
                     "median over the blocks of ours / memcpy of the same bytes just before it");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("global_micro", "Single accesses to global memory beside plain memory.", argc, argv);
  settings s{10000, 300, 1'000'000};
  program.option("--size", s.objects, "Small objects to allocate and free", bench::between(1, 1 << 28));
  program.option("-n", s.n, "Operations per block", bench::between(1, 100000000));
  program.option("--blocks", s.blocks, "Blocks per operation and repetition", bench::between(1, 100000));
  program.parse();
  bench::mimalloc::load();
  if (program.options().quick && !program.given("--blocks")) s.blocks = 50;
  try {
    for (const unsigned w : program.workers()) one_worker_count(program, s, w);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_micro: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
