// global_translations: directories of a bounded size beside the flat one, and tables that workers share.
//
// Updates: worker 0 adds to random words of 4,096 pages of 512 words, all of them other hosts', by get and
// put; with a table of 256 to 2,048 translations, random or least recently used first out, and with the flat
// one. With three hosts and more the pages have left their homes, so that a miss costs a message. Look-ups:
// worker 0 looks up who has random pages, beside other workers of its host that do the same, in tables of
// each worker's own and of all under one lock or many. What is counted must be what it should be, and the
// words too; times are shown. Needs several hosts (GODWIT_HOSTS=ranks mpirun, or scripts/hosts). Source:
// Active global address space (network-managed), section 6.7. Document: docs/moving.md. Test:
// bench/CMakeLists.txt (bench.global_translations).

#include <array>
#include <bitset>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "../../common/godwit_run.hpp"
#include "../host_list.hpp"
#include "../parts.hpp"

namespace {

namespace gw = godwit;
using parts::host_list;
using words = gw::global_ptr<std::uint64_t>;
using gw::choice::translations_lock;
using gw::choice::translations_replace;

constexpr std::uint64_t page = 4096, page_words = page / 8, pages = 4096, table_words = pages * page_words;
constexpr std::uint64_t first_seed = 1;

words word_of(words t, std::uint64_t i) { return t + static_cast<std::ptrdiff_t>(i); }
std::uint64_t index_of(std::uint64_t update) { return parts::scrambled(update, first_seed) % table_words; }

struct settings {
  std::uint64_t updates = 0;
  std::uint64_t look_ups = 0;
  std::vector<std::uint64_t> entries;
  unsigned workers = 1;
};

gw::worker_stats sum_of_stats() {
  gw::worker_stats all{};
  for (const gw::worker_stats& w : gw::last_run_stats()) {
    all.translations += w.translations;
    all.translation_hits += w.translation_hits;
    all.translation_misses += w.translation_misses;
    all.translation_evictions += w.translation_evictions;
    all.translation_stale += w.translation_stale;
  }
  return all;
}

// ---------------------------------------------------------------- updates

struct outcome {
  std::uint32_t hosts = 0;
  double seconds = 0;
  std::uint64_t wrong = 0;
};

/// The pages of host @p h, as far as they are its own by allocation; the first host has none.
struct share {
  std::uint64_t low, high;
  static share of(const host_list& hosts, std::uint32_t h) {
    const std::uint64_t others = hosts.count - 1;
    return {(h - 1) * pages / others, h * pages / others};
  }
};

double update_all(words t, std::uint64_t updates) {
  for (std::uint64_t i = 0; i < pages; ++i) static_cast<void>(gw::get(word_of(t, i * page_words)));
  const std::uint64_t start = bench::now_ns();
  for (std::uint64_t i = 0; i < updates; ++i) {
    const words p = word_of(t, index_of(i));
    gw::put(p, gw::get(p) + i + 1);
  }
  return static_cast<double>(bench::now_ns() - start) * 1e-9;
}

void fill(words t, const share& s) {
  for (std::uint64_t i = s.low; i < s.high; ++i) {
    const auto x = gw::checkout(word_of(t, i * page_words), page_words, gw::access::write);
    for (std::uint64_t k = 0; k < page_words; ++k) x[k] = i;
  }
}
std::uint64_t count_wrong(words t, const share& s, std::uint64_t updates) {
  std::vector<std::uint64_t> right((s.high - s.low) * page_words);
  const std::uint64_t low = s.low * page_words;
  for (std::uint64_t i = 0; i < right.size(); ++i) right[i] = s.low + i / page_words;
  for (std::uint64_t i = 0; i < updates; ++i)
    if (const std::uint64_t at = index_of(i) - low; at < right.size()) right[at] += i + 1;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = s.low; i < s.high; ++i) {
    const auto x = gw::checkout(word_of(t, i * page_words), page_words, gw::access::read);
    for (std::uint64_t k = 0; k < page_words; ++k) wrong += x[k] != right[i * page_words - low + k];
  }
  return wrong;
}

outcome run_updates(std::uint64_t updates) {
  const host_list hosts = parts::find_hosts();
  outcome o{hosts.count, 0, 0};
  if (hosts.count < 2) return o;
  const auto home = [&hosts](std::uint64_t block, std::uint64_t, std::uint32_t) {
    std::uint32_t h = 1;
    while (block >= share::of(hosts, h).high) ++h;
    return hosts.first[h];
  };
  const words t = gw::allocate<std::uint64_t>(table_words, gw::distribution::user(page, home).movable(page));
  std::uint32_t owners[host_list::most] = {};
  for (std::uint32_t h = 1; h < hosts.count; ++h) {
    const share s = share::of(hosts, h);
    owners[h] = hosts.first[h];
    if (hosts.count < 3) continue;
    owners[h] = hosts.first[h + 1 < hosts.count ? h + 1 : 1];
    gw::move(word_of(t, s.low * page_words), (s.high - s.low) * page_words, owners[h]).join();
  }
  for (std::uint32_t h = 1; h < hosts.count; ++h)
    parts::on_worker(owners[h], [t, s = share::of(hosts, h)] {
      fill(t, s);
      return 0;
    });
  o.seconds = parts::on_worker(0, [=] { return update_all(t, updates); });
  for (std::uint32_t h = 1; h < hosts.count; ++h)
    o.wrong +=
        parts::on_worker(owners[h], [=, s = share::of(hosts, h)] { return count_wrong(t, s, updates); });
  gw::deallocate(t, table_words);
  return o;
}

struct directory_kind {
  std::uint64_t entries;  ///< 0: flat
  translations_replace replace;
  std::string name() const {
    return entries == 0
               ? "flat"
               : std::to_string(entries) + (replace == translations_replace::lru ? ", lru" : ", random");
  }
};

/// Empty: what was counted is right. Each page is looked up once to begin with, and found twice, or missed
/// once, by each update.
std::string misfit(const directory_kind& kind, const outcome& o, std::uint64_t updates) {
  const gw::worker_stats& w = gw::last_run_stats().front();
  const auto is = [](const char* what, std::uint64_t found, std::uint64_t right) {
    return found == right
               ? std::string()
               : std::string(what) + " " + std::to_string(found) + ", not " + std::to_string(right) + "; ";
  };
  const bool flat = kind.entries == 0, moved = o.hosts > 2;
  const std::uint64_t first = flat ? 0 : pages, again = w.translation_misses - first;
  const std::uint64_t stale = flat && moved ? pages : 0;
  std::string why = is("look-ups", w.translations, pages + 2 * updates) + is("puts", w.far_puts, updates) +
                    is("hits", w.translation_hits, w.translations - w.translation_misses - stale) +
                    is("stale", w.translation_stale, stale) +
                    is("sent on", w.forwards, moved ? w.translation_misses + stale : 0);
  if (flat) return why + is("misses", w.translation_misses, 0) + is("evictions", w.translation_evictions, 0);
  why += is("evictions", w.translation_evictions, w.translation_misses - kind.entries);
  const double rate = 1 - static_cast<double>(again) / static_cast<double>(updates);
  const double right = static_cast<double>(kind.entries) / pages;
  if (std::abs(rate - right) > 0.02)
    why += "hit rate of gets " + std::to_string(rate) + ", not " + std::to_string(right);
  return why;
}

void show_updates(bench::program& program, const settings& s) {
  std::vector<directory_kind> all_kinds{{0, translations_replace::lru}};
  for (const std::uint64_t n : s.entries)
    for (const auto r : {translations_replace::random, translations_replace::lru})
      all_kinds.push_back({n, r});
  std::fprintf(program.out(),
               "%s updates of 2^21 words in pages of 512, all of them other hosts'\n  %-16s %10s %10s %10s "
               "%10s %10s\n",
               bench::grouped(s.updates).c_str(), "translations", "us", "hit rate", "misses", "evictions",
               "sent on");
  bench::ordered_json rows = bench::ordered_json::array();
  double flat = 0;
  for (const directory_kind& kind : all_kinds) {
    gw::options o;
    o.workers = s.workers;
    o.translations = kind.entries;
    o.translations_replace = kind.replace;
    const outcome found = gw::run<outcome>([n = s.updates] { return run_updates(n); }, o);
    if (found.hosts < 2) {  // in all processes alike: runs are collective
      if (gw::is_first_process()) std::fprintf(program.out(), "  needs several hosts\n");
      return;
    }
    if (!gw::is_first_process()) continue;
    const gw::worker_stats w = gw::last_run_stats().front();
    if (const std::string why = misfit(kind, found, s.updates); !why.empty())
      program.wrong(kind.name() + ": " + why);
    if (found.wrong != 0) program.wrong(kind.name() + ": " + std::to_string(found.wrong) + " wrong words");
    const double us = found.seconds * 1e6 / static_cast<double>(s.updates);
    const std::uint64_t again = w.translation_misses - (kind.entries == 0 ? 0 : pages);
    const double rate = 1 - static_cast<double>(again) / static_cast<double>(s.updates);
    if (kind.entries == 0) flat = us;
    std::fprintf(program.out(), "  %-16s %10.2f %10.4f %10llu %10llu %10llu\n", kind.name().c_str(), us, rate,
                 static_cast<unsigned long long>(w.translation_misses),
                 static_cast<unsigned long long>(w.translation_evictions),
                 static_cast<unsigned long long>(w.forwards));
    program.figure("updates." + kind.name(), "update, translations: " + kind.name(), us, "us",
                   "mean of " + bench::grouped(s.updates));
    program.figure("hit_rate." + kind.name(), "hit rate, translations: " + kind.name(), rate, "", "counted");
    rows.push_back({{"translations", kind.name()},
                    {"entries", kind.entries},
                    {"us", us},
                    {"hit_rate", rate},
                    {"misses", w.translation_misses},
                    {"evictions", w.translation_evictions},
                    {"sent_on", w.forwards},
                    {"over_flat", us / flat}});
  }
  program.json()["measurements"].push_back({{"title", "Updates"}, {"rows", rows}});
}

// ---------------------------------------------------------------- look-ups

struct looked {
  std::uint32_t hosts = 0;
  double ns = 0;                ///< a look-up of worker 0's
  std::uint64_t beside = 0;     ///< workers that did so meanwhile
  std::uint64_t different = 0;  ///< pages that each of these looked up, their sum
};

/// As many look-ups as said; how many different pages they were about.
std::uint64_t look_up(words t, std::uint64_t n, std::uint64_t seed) {
  std::bitset<pages> seen;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = parts::scrambled(i, seed) % pages;
    seen[at] = true;
    sum += gw::likely_owner_of(word_of(t, at * page_words));
  }
  asm volatile("" ::"r"(sum));
  return seen.count();
}

constexpr std::uint64_t patience_ns = 200'000'000;

/// The others wait for worker 0, but not for ever: one of them may be who has not told it yet.
looked run_look_ups(std::uint64_t n, std::uint32_t most_beside, bool movable) {
  const host_list hosts = parts::find_hosts();
  looked o{hosts.count, 0, 0, 0};
  if (hosts.count < 2) return o;
  gw::distribution d = gw::distribution::at(hosts.first[1]);
  const words t = gw::allocate<std::uint64_t>(table_words, movable ? d.movable(page) : d, page);
  const auto shared =
      gw::allocate<std::uint64_t>(4, gw::distribution::at(0));  // begun, beside, different, ns
  for (int i = 0; i < 4; ++i) gw::put(shared + i, 0);
  parts::on_worker(0, [=] {
    for (std::uint64_t i = 0; i < pages; ++i)
      static_cast<void>(gw::likely_owner_of(word_of(t, i * page_words)));
    return 0;
  });
  gw::on_each_worker([=] {
    const std::uint32_t me = gw::worker_id();
    if (me > most_beside || gw::try_local(shared, 1) == nullptr) return;
    if (me == 0) {
      gw::atomic_store(shared, std::uint64_t{1});
    } else {
      const std::uint64_t since = bench::now_ns();
      while (gw::atomic_load(shared) == 0 && bench::now_ns() - since < patience_ns) std::this_thread::yield();
    }
    const std::uint64_t start = bench::now_ns();
    const std::uint64_t different = look_up(t, n, 2 + me);
    if (me == 0) {
      gw::put(shared + 3, bench::now_ns() - start);
    } else {
      gw::atomic_fetch_add(shared + 1, std::uint64_t{1});
      gw::atomic_fetch_add(shared + 2, different);
    }
  });
  o.beside = gw::get(shared + 1);
  o.different = gw::get(shared + 2);
  o.ns = static_cast<double>(gw::get(shared + 3)) / static_cast<double>(n);
  gw::deallocate(shared, 4);
  gw::deallocate(t, table_words);
  return o;
}

struct table_kind {
  const char* name;
  bool movable;
  std::uint64_t entries;
  translations_lock lock;
};

std::string misfit(const table_kind& kind, const looked& o, std::uint64_t n) {
  const gw::worker_stats all = sum_of_stats();
  const std::uint64_t look_ups = kind.movable ? pages + (1 + o.beside) * n : 0;
  const std::uint64_t misses = kind.entries == 0                      ? 0
                               : kind.lock == translations_lock::none ? pages + o.different
                                                                      : pages;
  if (all.translations == look_ups && all.translation_misses == misses && all.translation_evictions == 0 &&
      all.translation_hits == look_ups - misses)
    return "";
  return std::to_string(all.translations) + " look-ups, " + std::to_string(all.translation_misses) +
         " misses, " + std::to_string(all.translation_evictions) + " evictions; right are " +
         std::to_string(look_ups) + ", " + std::to_string(misses) + ", 0";
}

bench::ordered_json show_look_ups(bench::program& program, const settings& s) {
  constexpr std::array<table_kind, 5> tables = {{{"memory that stays", false, 0, translations_lock::none},
                                                 {"flat", true, 0, translations_lock::none},
                                                 {"each its own", true, pages, translations_lock::none},
                                                 {"one lock", true, pages, translations_lock::single_lock},
                                                 {"concurrent", true, pages, translations_lock::concurrent}}};
  std::fprintf(
      program.out(),
      "%s look-ups of the owner of a page, by worker 0 beside others of its host\n  %-20s %10s %10s\n",
      bench::grouped(s.look_ups).c_str(), "table", "beside", "ns");
  bench::ordered_json rows = bench::ordered_json::array();
  for (const std::uint32_t beside : {0u, 1u, 2u, 4u, 6u})
    for (const table_kind& kind : tables) {
      gw::options o;
      o.workers = s.workers;
      o.translations = kind.entries;
      o.translations_lock = kind.lock;
      const looked found = gw::run<looked>(
          [n = s.look_ups, beside, movable = kind.movable] { return run_look_ups(n, beside, movable); }, o);
      if (found.hosts < 2 || found.beside < beside) {  // the host has no more workers
        if (gw::is_first_process() && found.hosts < 2) std::fprintf(program.out(), "  needs several hosts\n");
        return rows;
      }
      if (!gw::is_first_process()) continue;
      if (const std::string why = misfit(kind, found, s.look_ups); !why.empty())
        program.wrong(std::string(kind.name) + ", " + std::to_string(beside) + " beside: " + why);
      std::fprintf(program.out(), "  %-20s %10u %10.1f\n", kind.name, beside, found.ns);
      program.figure("look_up." + std::string(kind.name) + "." + std::to_string(beside),
                     std::string("look-up, ") + kind.name + ", " + std::to_string(beside) + " beside",
                     found.ns, "ns", "mean of " + bench::grouped(s.look_ups));
      rows.push_back({{"table", kind.name}, {"beside", beside}, {"ns", found.ns}});
    }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("global_translations", "Bounded directories of movable memory, and shared ones.",
                         argc, argv);
  program.option("--updates", s.updates, "Updates (default 262,144; with --quick 4,096)");
  program.option("--entries", s.entries,
                 "Sizes of tables (default 256,512,1024,2048; with --quick 256,1024)");
  program.option("--look-ups", s.look_ups, "Look-ups (default 1,000,000; with --quick 50,000)");
  program.parse();
  const bool quick = program.options().quick;
  if (s.updates == 0) s.updates = quick ? 4'096 : 262'144;
  if (s.look_ups == 0) s.look_ups = quick ? 50'000 : 1'000'000;
  if (s.entries.empty())
    s.entries =
        quick ? std::vector<std::uint64_t>{256, 1024} : std::vector<std::uint64_t>{256, 512, 1024, 2048};
  s.workers = program.most_workers();
  try {
    show_updates(program, s);
    const bench::ordered_json rows = show_look_ups(program, s);
    program.json()["measurements"].push_back({{"title", "Look-ups"}, {"rows", rows}});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_translations: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
