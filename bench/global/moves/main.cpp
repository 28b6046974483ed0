// global_moves: what it costs that memory may move, what a move costs, and updates while blocks move.
//
// Accesses: one thread; blocks of the same operation on memory that stays and on memory that may move
// alternate. Moves: of blocks that the last worker has, to this worker. Where the last worker is on another
// host (bench/global_hosts.py), that is another host's memory. Updates: all workers add to random words of a
// few pages while a thread moves these; every word is then compared with what the additions make.
// Document: docs/results/README.md. Test: bench/CMakeLists.txt (bench.global_moves).

#include <array>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "../../common/godwit_run.hpp"
#include "../parts.hpp"

namespace {

namespace gw = godwit;
constexpr std::uint64_t page = 4096, page_words = page / 8;

struct settings {
  std::uint64_t times = 0;      ///< accesses of a block
  std::uint64_t blocks = 0;     ///< blocks of each kind
  std::uint64_t bulk_mib = 16;  ///< moved at once
  std::uint64_t updates = 0;
  std::uint32_t storms = 0;  ///< with all moves, each with another seed
};

enum op : int { near_get, near_put, far_get, far_put, far_add, far_hit, ops };
constexpr std::array<const char*, ops> op_names = {
    "get of 8 bytes, own memory",        "put of 8 bytes, own memory",
    "get of 8 bytes, the last worker's", "put of 8 bytes, the last worker's",
    "fetch-add, the last worker's",      "checkout + checkin of 4 KiB read before, the last worker's",
};

struct costs {
  double ns[ops][2] = {};  ///< of memory that stays, that may move
  double ratio[ops] = {};
  double move_ns = 0, empty_ns = 0;  ///< of one page; of one that is there already
  double bulk_per_s = 0;             ///< pages, in one move
  double bulk_mb_s = 0, get_mb_s = 0;
  bool far = false;
};

using words = gw::global_ptr<std::uint64_t>;

double once(op what, words own, words other, std::uint64_t n) {
  std::uint64_t sum = 0;
  const std::uint64_t start = bench::now_ns();
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i * 5 % page_words);
    switch (what) {
      case near_get:
        sum += gw::get(own + at);
        break;
      case near_put:
        gw::put(own + at, i);
        break;
      case far_get:
        sum += gw::get(other + at);
        break;
      case far_put:
        gw::put(other + at, i);
        break;
      case far_add:
        sum += gw::atomic_fetch_add(other + at, i, std::memory_order_relaxed);
        break;
      default:
        sum += gw::checkout(other, page_words, gw::access::read)[static_cast<std::size_t>(at)];
        break;
    }
  }
  const double ns = static_cast<double>(bench::now_ns() - start) / static_cast<double>(n);
  asm volatile("" ::"r"(sum));
  return ns;
}

/// In a run. Spawns nothing while vectors live.
void measure_accesses(const settings& s, costs& c) {
  const std::uint32_t last = gw::worker_count() - 1, me = gw::worker_id();
  words own[2], other[2];
  for (int m = 0; m < 2; ++m) {
    const auto at = [m](std::uint32_t w) {
      gw::distribution d = gw::distribution::at(w);
      if (m == 1) d.movable(page);
      const words p = gw::allocate<std::uint64_t>(page_words, d, page);
      for (std::uint64_t i = 0; i < page_words; ++i) gw::put(p + static_cast<std::ptrdiff_t>(i), i);
      return p;
    };
    own[m] = at(me);
    other[m] = at(last);
  }
  c.far = gw::try_local(other[0], 1) == nullptr;
  for (int o = 0; o < ops; ++o) {
    const bool messages = c.far && o >= far_get && o != far_hit;
    const std::uint64_t n = messages ? std::max<std::uint64_t>(s.times / 100, 10) : s.times;
    std::vector<double> ns[2], ratios;
    for (std::uint64_t b = 0; b < s.blocks; ++b) {
      double t[2];
      for (int m = 0; m < 2; ++m) t[m] = once(static_cast<op>(o), own[m], other[m], n);
      for (int m = 0; m < 2; ++m) ns[m].push_back(t[m]);
      ratios.push_back(t[1] / t[0]);
    }
    for (int m = 0; m < 2; ++m) c.ns[o][m] = parts::median_of(ns[m]);
    c.ratio[o] = parts::median_of(ratios);
  }
  for (int m = 0; m < 2; ++m) {
    gw::deallocate(own[m], page_words);
    gw::deallocate(other[m], page_words);
  }
}

words movable_of_last(std::uint64_t bytes, std::uint64_t part) {
  const words p = gw::allocate<std::uint64_t>(
      bytes / 8, gw::distribution::at(gw::worker_count() - 1).movable(part), page);
  for (std::uint64_t i = 0; i < bytes / 8; i += page_words) gw::put(p + static_cast<std::ptrdiff_t>(i), i);
  return p;
}
void check_moved(words p, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes / 8; i += page_words)
    if (gw::get(p + static_cast<std::ptrdiff_t>(i)) != i)
      throw std::runtime_error("a word was not what it was before the move");
}

/// What the system takes for 64 KiB of shared memory, whoever moves them. ns.
struct page_costs {
  double fresh = 0, there = 0, given = 0, given_by_units = 0;
};
page_costs measure_pages() {
  constexpr std::size_t part = 64 << 10, unit = 16 << 10, parts_of_it = 64;
  const int fd = memfd_create("global_moves", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, part * parts_of_it) != 0) return {};
  void* const all = mmap(nullptr, part * parts_of_it, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (all == MAP_FAILED) return {};
  const std::vector<std::byte> from(part, std::byte{1});
  const auto of_each = [&](std::size_t bytes, auto&& f) {
    const std::uint64_t start = bench::now_ns();
    for (std::size_t at = 0; at < part * parts_of_it; at += bytes) f(static_cast<std::byte*>(all) + at);
    return static_cast<double>(bench::now_ns() - start) / parts_of_it;
  };
  const auto copy = [&](std::byte* to) { std::memcpy(to, from.data(), part); };
  const auto give = [](std::size_t bytes) {
    return [bytes](std::byte* at) { static_cast<void>(madvise(at, bytes, MADV_REMOVE)); };
  };
  std::vector<double> fresh, there, given, by_units;
  for (int round = 0; round < 5; ++round) {
    fresh.push_back(of_each(part, copy));
    there.push_back(of_each(part, copy));
    given.push_back(of_each(part, give(part)));
    of_each(part, copy);
    by_units.push_back(of_each(unit, give(unit)));
  }
  munmap(all, part * parts_of_it);
  return {parts::median_of(fresh), parts::median_of(there), parts::median_of(given),
          parts::median_of(by_units)};
}
void show_pages(bench::program& program, const page_costs& p) {
  if (p.fresh == 0) return;
  std::fprintf(
      program.out(),
      "The system, us for 64 KiB: copied to pages that are not there %.1f, that are %.1f; given back "
      "%.1f, by 16 KiB %.1f\n",
      p.fresh * 1e-3, p.there * 1e-3, p.given * 1e-3, p.given_by_units * 1e-3);
  program.figure("pages.fresh", "64 KiB copied to pages that are not there", p.fresh * 1e-3, "us", "median");
  program.figure("pages.there", "the same to pages that are", p.there * 1e-3, "us", "median");
  program.figure("pages.given", "64 KiB of pages given back", p.given * 1e-3, "us", "median");
  program.figure("pages.given.by_units", "the same by 16 KiB", p.given_by_units * 1e-3, "us", "median");
}

/// In a run, by one thread: pages one by one, then many at once.
void measure_moves(const settings& s, costs& c) {
  const std::uint32_t me = gw::worker_id();
  constexpr std::uint64_t together = 10;
  const std::uint64_t pages = s.blocks * together;
  std::vector<double> single, there, bulk, rate, gets;
  const words p = movable_of_last(pages * page, page);
  for (std::uint64_t b = 0; b < pages; b += together)
    for (auto* const to : {&single, &there}) {
      const std::uint64_t start = bench::now_ns();
      for (std::uint64_t i = b; i < b + together; ++i)
        gw::move(p + static_cast<std::ptrdiff_t>(i * page_words), me).join();
      to->push_back(static_cast<double>(bench::now_ns() - start) / together);
    }
  check_moved(p, pages * page);
  gw::deallocate(p, pages * page_words);
  const std::uint64_t bytes = s.bulk_mib << 20;
  std::vector<std::uint64_t> here(bytes / 8);
  for (std::uint64_t b = 0; b < std::max<std::uint64_t>(s.blocks / 5, 3); ++b) {
    for (const std::uint64_t part : {page, 16 * page}) {
      const words q = movable_of_last(bytes, part);
      const double took = parts::measured_plain([&] { gw::move(q, bytes / 8, me).join(); }).seconds;
      if (part == page)
        bulk.push_back(static_cast<double>(bytes / page) / took);
      else
        rate.push_back(static_cast<double>(bytes) * 1e-6 / took);
      check_moved(q, bytes);
      gw::deallocate(q, bytes / 8);
    }
    const words q =
        gw::allocate<std::uint64_t>(bytes / 8, gw::distribution::at(gw::worker_count() - 1), page);
    gw::put(q, here.data(), here.size());
    gets.push_back(static_cast<double>(bytes) * 1e-6 /
                   parts::measured_plain([&] { gw::get(q, here.data(), here.size()); }).seconds);
    gw::deallocate(q, bytes / 8);
  }
  c.move_ns = parts::median_of(single);
  c.empty_ns = parts::median_of(there);
  c.bulk_per_s = parts::median_of(bulk);
  c.bulk_mb_s = parts::median_of(rate);
  c.get_mb_s = parts::median_of(gets);
}

/// A thread that goes to the last worker's memory and back, beside gets from there. Plain bytes: nothing else
/// may lie in the frames of a thread that goes.
struct trips {
  static constexpr std::uint64_t most = 64;
  std::array<double, most> get_ns{}, go_ns{}, spawn_ns{};  ///< each
  std::uint64_t blocks = 0, stayed = 0;
};

[[gnu::noinline]] std::uint64_t go_there_and_back(words own, words other, std::uint64_t n) {
  std::uint64_t stayed = 0;
  for (std::uint64_t i = 0; i < n; ++i) stayed += (gw::go_to(other) ? 0 : 1) + (gw::go_to(own) ? 0 : 1);
  return stayed;
}

/// A thread that spawns the next one at the other place, so often. Nobody joins: who did would follow.
struct bouncing {
  words here, there;
  std::uint64_t left;
  gw::global_latch done;
  void operator()() const {
    if (left == 0) return done.count_down();
    static_cast<void>(gw::spawn_at(there, bouncing{there, here, left - 1, done}));
  }
};
[[gnu::noinline]] void spawn_there_and_back(words own, words other, std::uint64_t n) {
  const gw::owned<gw::global_latch> done(1);
  static_cast<void>(gw::spawn_at(other, bouncing{other, own, 2 * n - 1, done.get()}));
  done->wait();
  gw::go_to(own);
}

/// In a run of its own.
trips measure_trips(std::uint64_t blocks, std::uint64_t n) {
  trips t;
  const auto at = [](std::uint32_t w) {
    return gw::allocate<std::uint64_t>(page_words, gw::distribution::at(w).movable(page), page);
  };
  const words own = at(gw::worker_id()), other = at(gw::worker_count() - 1);
  gw::put(own, 1);
  gw::put(other, 1);
  t.blocks = std::min(blocks, trips::most);
  for (std::uint64_t b = 0; b < t.blocks; ++b) {
    const auto each = [n](std::uint64_t start) {
      return static_cast<double>(bench::now_ns() - start) / static_cast<double>(n);
    };
    std::uint64_t start = bench::now_ns();
    for (std::uint64_t i = 0; i < n; ++i) static_cast<void>(gw::get(other));
    t.get_ns[b] = each(start);
    start = bench::now_ns();
    t.stayed += go_there_and_back(own, other, n);
    t.go_ns[b] = each(start) / 2;
    start = bench::now_ns();
    spawn_there_and_back(own, other, n);
    t.spawn_ns[b] = each(start) / 2;
  }
  gw::deallocate(own, page_words);
  gw::deallocate(other, page_words);
  return t;
}

/// Updates of random words of some pages, beside moves of these.
struct storm {
  std::uint64_t updates = 0, moves = 0, seed = 0;
  static constexpr std::uint64_t pages = 4, adders = 4;

  std::uint64_t word_of(std::uint64_t i) const noexcept {
    return parts::scrambled(i, seed) % (pages * page_words);
  }
};
struct storm_outcome {
  double seconds = 0, move_seconds = 0;  ///< the updates; the moves
  std::uint64_t wrong = 0, moved = 0;
};

void add_all(words p, const storm& s, std::uint64_t adder) {
  for (std::uint64_t i = adder; i < s.updates; i += storm::adders)
    gw::atomic_fetch_add(p + static_cast<std::ptrdiff_t>(s.word_of(i)), i + 1, std::memory_order_relaxed);
}

struct moves_done {
  std::uint64_t moved, ns;
};
moves_done move_all(words p, const storm& s) {
  const std::uint64_t start = bench::now_ns();
  std::uint64_t moved = 0;
  for (std::uint64_t i = 0; i < s.moves; ++i) {
    const std::uint64_t die = parts::scrambled(i, s.seed + 1);
    const auto at = p + static_cast<std::ptrdiff_t>(die % storm::pages * page_words);
    moved += gw::move(at, static_cast<std::uint32_t>(die / 64 % gw::worker_count())).join() ==
             gw::move_result::moved;
  }
  return {moved, bench::now_ns() - start};
}

storm_outcome run_storm(const storm& s) {
  const auto p =
      gw::allocate<std::uint64_t>(storm::pages * page_words, gw::distribution::cyclic(page).movable(page));
  for (std::uint64_t i = 0; i < storm::pages * page_words; ++i)
    gw::put(p + static_cast<std::ptrdiff_t>(i), 0);
  storm_outcome o;
  const std::uint64_t start = bench::now_ns();
  auto mover = gw::spawn([=] { return move_all(p, s); });
  std::array<gw::future<void>, storm::adders> adders;
  for (std::uint64_t a = 0; a < storm::adders; ++a) adders[a] = gw::spawn([=] { add_all(p, s, a); });
  for (auto& f : adders) f.join();
  o.seconds = static_cast<double>(bench::now_ns() - start) * 1e-9;
  const moves_done m = mover.join();
  o.move_seconds = static_cast<double>(m.ns) * 1e-9;
  o.moved = m.moved;
  std::vector<std::uint64_t> expected(storm::pages * page_words), found(expected.size());
  for (std::uint64_t i = 0; i < s.updates; ++i) expected[s.word_of(i)] += i + 1;
  gw::get(p, found.data(), found.size());
  for (std::size_t i = 0; i < found.size(); ++i) o.wrong += found[i] != expected[i];
  gw::deallocate(p, storm::pages * page_words);
  return o;
}

/// One more each time, by a factor of ten.
std::vector<std::uint64_t> sweep(std::uint64_t most) {
  std::vector<std::uint64_t> all{0};
  for (std::uint64_t m = 10; m < most; m *= 10) all.push_back(m);
  if (most != 0) all.push_back(most);
  return all;
}

template <class F>
auto in_a_run(unsigned workers, F f) {
  gw::options o;
  o.workers = workers;
  return gw::run<decltype(f())>(f, o);
}

void show_costs(bench::program& program, const costs& c) {
  std::fprintf(program.out(), "Accesses, ns, medians: the last worker is %s\n  %-60s %10s %10s %7s\n",
               c.far ? "on another host" : "on this host", "", "stays", "may move", "ratio");
  bench::ordered_json rows = bench::ordered_json::array();
  for (int o = 0; o < ops; ++o) {
    std::fprintf(program.out(), "  %-60s %10.1f %10.1f %7.3f\n", op_names[o], c.ns[o][0], c.ns[o][1],
                 c.ratio[o]);
    rows.push_back({{"what", op_names[o]},
                    {"stays_ns", c.ns[o][0]},
                    {"may_move_ns", c.ns[o][1]},
                    {"ratio", c.ratio[o]}});
  }
  program.json()["far"] = c.far;
  program.json()["measurements"].push_back({{"title", "Accesses"}, {"rows", rows}});
  constexpr const char* keys[ops] = {"near_get", "near_put", "far_get", "far_put", "far_add", "far_hit"};
  for (int o = 0; o < ops; ++o)
    program.figure(std::string(keys[o]) + ".ratio", op_names[o], c.ratio[o], "x",
                   "median over the blocks of memory that may move / memory that stays, in the same round");
  program.figure("near_get.more", "get of own memory, more if it may move",
                 c.ns[near_get][1] - c.ns[near_get][0], "ns", "difference of the medians");
  program.figure("move.one", "move of a page to this worker", c.move_ns * 1e-3, "us", "median");
  program.figure("move.one.gets", "the same in gets of 8 bytes from there", c.move_ns / c.ns[far_get][1], "x",
                 "quotient of the medians");
  program.figure("move.none", "move of a page that is there", c.empty_ns, "ns", "median");
  program.figure("move.bulk", "pages moved at once", c.bulk_per_s, "pages/s", "median");
  program.figure("move.bulk.mb_s", "parts of 64 KiB moved at once", c.bulk_mb_s, "MB/s", "median");
  program.figure("get.mb_s", "the same bytes by get", c.get_mb_s, "MB/s", "median");
}

void show_trips(bench::program& program, const trips& t, std::uint64_t each) {
  std::vector<double> goes, spawns;
  for (std::uint64_t b = 0; b < t.blocks; ++b) {
    goes.push_back(t.go_ns[b] / t.get_ns[b]);
    spawns.push_back(t.spawn_ns[b] / t.get_ns[b]);
  }
  const auto median = [&](const std::array<double, trips::most>& all) {
    return parts::median_of(
        std::vector<double>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(t.blocks)));
  };
  const double get = median(t.get_ns), go = median(t.go_ns), spawn = median(t.spawn_ns);
  std::fprintf(program.out(),
               "Threads to the last worker's memory, us, medians: get %.2f, spawn_at %.2f, "
               "go_to %.2f (%llu of %llu stayed)\n",
               get * 1e-3, spawn * 1e-3, go * 1e-3, static_cast<unsigned long long>(t.stayed),
               static_cast<unsigned long long>(2 * each * t.blocks));
  const char* how = "median over the rounds of the quotient within each";
  program.figure("go_to", "go_to with one to two KiB of stack, one way", go * 1e-3, "us",
                 "median of there and back, halved");
  program.figure("spawn_at", "spawn_at, from its call to that of the thread that it made", spawn * 1e-3, "us",
                 "median of chains there and back, each hop");
  program.figure("spawn_at.gets", "the same in gets of 8 bytes from there", parts::median_of(spawns), "x",
                 how);
  program.figure("go_to.gets", "the same in gets of 8 bytes from there", parts::median_of(goes), "x", how);
}

/// False: something was lost.
bool show_storms(bench::program& program, unsigned workers, const settings& s, std::uint64_t most_moves) {
  std::fprintf(program.out(),
               "%s updates of %d pages by %u workers, beside moves\n"
               "  %10s %10s %12s %12s %12s %12s %12s\n",
               bench::grouped(s.updates).c_str(), static_cast<int>(storm::pages), workers, "moves", "moved",
               "updates s", "us per move", "looked up", "sent on", "wrong words");
  bench::ordered_json rows = bench::ordered_json::array();
  bool right = true;
  const auto show = [&](const storm& what) {
    const storm_outcome o = in_a_run(workers, [what] { return run_storm(what); });
    right = right && o.wrong == 0;
    if (!godwit::is_first_process()) return;
    const double each = what.moves == 0 ? 0 : o.move_seconds * 1e6 / static_cast<double>(what.moves);
    std::uint64_t looked_up = 0, sent_on = 0;
    for (const gw::worker_stats& w : gw::last_run_stats()) {
      looked_up += w.translations;
      sent_on += w.forwards;
    }
    std::fprintf(program.out(), "  %10llu %10llu %12.4f %12.1f %12llu %12llu %12llu\n",
                 static_cast<unsigned long long>(what.moves), static_cast<unsigned long long>(o.moved),
                 o.seconds, each, static_cast<unsigned long long>(looked_up),
                 static_cast<unsigned long long>(sent_on), static_cast<unsigned long long>(o.wrong));
    rows.push_back({{"moves", what.moves},
                    {"updates", what.updates},
                    {"moved", o.moved},
                    {"updates_s", o.seconds},
                    {"us_per_move", each},
                    {"looked_up", looked_up},
                    {"sent_on", sent_on},
                    {"wrong", o.wrong}});
  };
  for (const std::uint64_t m : sweep(most_moves)) show({s.updates, m, 1});
  for (std::uint32_t k = 0; k < s.storms; ++k) show({s.updates, most_moves, 2 + k});
  if (godwit::is_first_process())
    program.json()["measurements"].push_back({{"title", "Updates beside moves"}, {"rows", rows}});
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  std::uint64_t moves = 1000;
  bench::program program("global_moves", "Memory that may move: accesses, moves, updates beside moves.", argc,
                         argv);
  program.option("-n", s.times, "Accesses in a block (default 100,000; with --quick 10,000)");
  program.option("--blocks", s.blocks, "Blocks of each kind (default 25; with --quick 7)");
  program.option("--size", s.bulk_mib, "MiB moved at once (default 16)");
  program.option("--updates", s.updates, "Updates beside moves (default 1,000,000; with --quick 20,000)");
  program.option("--moves", moves, "Moves beside updates: 0, 10 ... so many (default 1000)");
  program.option("--storms", s.storms,
                 "So many times more with all moves, each with another seed (default 0)");
  program.parse();
  const bool quick = program.options().quick;
  if (s.times == 0) s.times = quick ? 10'000 : 100'000;
  if (s.blocks == 0) s.blocks = quick ? 7 : 25;
  if (s.updates == 0) s.updates = quick ? 20'000 : 1'000'000;
  const unsigned w = program.most_workers();
  try {
    const costs c = in_a_run(w, [s] {
      costs found;
      measure_accesses(s, found);
      measure_moves(s, found);
      return found;
    });
    if (godwit::is_first_process()) {
      show_costs(program, c);
      show_pages(program, measure_pages());
    }
    const std::uint64_t trips_each = std::max<std::uint64_t>(s.times / 100, 10);
    const trips t = in_a_run(w, [s, trips_each] { return measure_trips(s.blocks, trips_each); });
    if (godwit::is_first_process()) show_trips(program, t, trips_each);
    if (!show_storms(program, w, s, moves)) throw std::runtime_error("updates were lost, or made twice");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_moves: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
