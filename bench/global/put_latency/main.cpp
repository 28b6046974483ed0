// global_put_latency: a put of 8 bytes to movable memory, by what is known of who has it.
//
// One worker puts; on one host only into its own memory. Where memory of other hosts is put to
// (GODWIT_HOSTS=ranks mpirun -n 3, or scripts/hosts --hosts 3): into parts whose owner is known, whose owner
// has just given them away, and of whose owner nothing is known. Messages and look-ups of each case are
// counted and must be what they should be; times are shown. With --godwit-directory=relay, xdp or ovs nobody
// but the switch knows anything (docs/switch.md). Source: Active global address space (network-managed),
// section 6.1. Document: docs/moving.md. Test: bench/CMakeLists.txt (bench.global_put_latency).

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "../../common/godwit_run.hpp"
#include "../host_list.hpp"

namespace {

namespace gw = godwit;
using parts::host_list;
using words = gw::global_ptr<std::uint64_t>;

constexpr std::uint64_t page = 4096, page_words = page / 8;

enum kind : int { local, cached, forwarded, via_home, missed, kinds };
constexpr std::array<const char*, kinds> names = {"own memory", "owner known", "owner gave it away: sent on",
                                                  "nothing known: by its home",
                                                  "nothing known, table of one translation: by its home"};
constexpr std::array<const char*, kinds> routed_names = {
    "own memory", "another host's: routed by the switch", "has just moved: routed by the switch",
    "never used before: routed by the switch", "never used, table of one translation: routed by the switch"};
constexpr std::array<const char*, kinds> keys = {"local", "cached", "forwarded", "via_home", "missed"};

struct settings {
  std::uint64_t puts = 0;   ///< where a part can be used again
  std::uint64_t pages = 0;  ///< parts; where it cannot, a put each
};

/// What worker 0 is to have counted: with what it needed in order to know.
struct counts {
  std::uint64_t puts = 0, translations = 0, hits = 0, stale = 0, misses = 0, evictions = 0, forwards = 0;
  bool operator==(const counts&) const = default;
  std::string text() const {
    return std::to_string(puts) + " requests, " + std::to_string(translations) + " translations, " +
           std::to_string(hits) + " hits, " + std::to_string(stale) + " stale, " + std::to_string(misses) +
           " misses, " + std::to_string(evictions) + " evictions, sent on " + std::to_string(forwards);
  }
};

struct outcome {
  std::uint32_t hosts = 0;
  double ns = 0;  ///< of a put
  std::uint64_t puts = 0, wrong = 0;
};

std::uint32_t hosts_needed(kind k) { return k == local ? 1 : k == cached ? 2 : 3; }

words part_of(words p, std::uint64_t i) { return p + static_cast<std::ptrdiff_t>(i * page_words); }

/// On worker 0: @p n puts, into the parts in turn. Nanoseconds.
double put_all(words p, std::uint64_t pages, std::uint64_t n, std::uint64_t plus) {
  const std::uint64_t start = bench::now_ns();
  for (std::uint64_t i = 0; i < n; ++i) gw::put(part_of(p, i % pages), i + plus);
  return static_cast<double>(bench::now_ns() - start) / static_cast<double>(n);
}

/// On the worker that has them: how many are not what put_all made of them.
std::uint64_t count_wrong(words p, std::uint64_t pages, std::uint64_t n, std::uint64_t plus) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < pages; ++i) {
    const std::uint64_t last = n <= pages ? i : i + (n - 1 - i) / pages * pages;
    wrong += gw::get(part_of(p, i)) != last + plus;
  }
  return wrong;
}

outcome run_case(kind k, const settings& s) {
  const host_list hosts = parts::find_hosts();
  outcome o{hosts.count, 0, 0, 0};
  if (hosts.count < hosts_needed(k)) return o;
  const bool elsewhere = hosts.count > 2 && k != local;
  const std::uint32_t home = k == local ? 0 : hosts.first[1];
  std::uint32_t owner = home;
  const std::uint64_t pages = s.pages;
  const words p = gw::allocate<std::uint64_t>(pages * page_words, gw::distribution::at(home).movable(page));
  const auto give = [&](std::uint32_t to) {
    owner = to;
    if (gw::move(p, pages * page_words, to).join() != gw::move_result::moved)
      throw std::runtime_error("the parts did not move");
  };
  if (elsewhere) give(hosts.first[2]);
  if (elsewhere && k != via_home && k != missed)
    parts::on_worker(0, [=] { return put_all(p, pages, pages, 0); });
  if (k == forwarded) give(hosts.first[hosts.count > 3 ? 3 : 1]);
  const std::uint64_t n = o.puts = k == local || k == cached ? s.puts : pages;
  o.ns = parts::on_worker(0, [=] { return put_all(p, pages, n, 5); });
  o.wrong = parts::on_worker(owner, [=] { return count_wrong(p, pages, n, 5); });
  gw::deallocate(p, pages * page_words);
  return o;
}

/// The parts' first puts, which learn who has them, and the others. @p has_switch: nobody translates.
counts expected(kind k, const outcome& o, std::uint64_t pages, bool has_switch) {
  if (has_switch) {
    const bool before = o.hosts > 2 && (k == cached || k == forwarded);
    return {k == local ? 0 : o.puts + (before ? pages : 0), 0, 0, 0, 0, 0, 0};
  }
  const bool learns = o.hosts > 2 && (k == cached || k == forwarded);
  const counts first = learns ? counts{pages, pages, 0, pages, 0, 0, pages} : counts{};
  counts c = first;
  if (k == local) return c;
  c.puts += o.puts;
  c.translations += o.puts;
  if (k == cached) {
    c.hits += o.puts;
    return c;
  }
  c.forwards += o.puts;
  (k == missed ? c.misses : c.stale) += o.puts;
  if (k == missed) c.evictions = o.puts - 1;
  return c;
}

counts counted() {
  const gw::worker_stats& w = gw::last_run_stats().front();
  return {w.far_puts,           w.translations,          w.translation_hits, w.translation_stale,
          w.translation_misses, w.translation_evictions, w.forwards};
}

void show(bench::program& program, kind k, const outcome& o, std::uint64_t pages, bool has_switch,
          bench::ordered_json& rows) {
  const char* const name = (has_switch ? routed_names : names)[k];
  if (o.hosts < hosts_needed(k)) {
    std::fprintf(program.out(), "  %-56s needs %u hosts\n", name, hosts_needed(k));
    return;
  }
  const counts found = counted(), right = expected(k, o, pages, has_switch);
  if (found != right)
    program.wrong(std::string(name) + ": counted " + found.text() + "; right are " + right.text());
  if (o.wrong != 0) program.wrong(std::string(name) + ": " + std::to_string(o.wrong) + " wrong words");
  const bool learns = right.puts > o.puts && k != local;
  const std::uint64_t learned = learns ? pages : 0;
  const auto each = [&](std::uint64_t n) { return static_cast<double>(n) / static_cast<double>(o.puts); };
  const double messages = each(2 * (found.puts - learned) + found.forwards - (has_switch ? 0 : learned));
  const double looks = each(found.translations - (has_switch ? 0 : learned));
  std::fprintf(program.out(), "  %-56s %10.1f %10.3f %10.3f\n", name, o.ns, messages, looks);
  rows.push_back(
      {{"what", name}, {"key", keys[k]}, {"ns", o.ns}, {"messages", messages}, {"look_ups", looks}});
  program.figure(std::string(keys[k]) + ".ns", std::string("put of 8 bytes, ") + name, o.ns, "ns",
                 "mean of " + bench::grouped(o.puts));
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("global_put_latency", "A put to movable memory, by what is known of its owner.",
                         argc, argv);
  program.option("-n", s.puts, "Puts whose owner is known (default 100,000; with --quick 2,000)");
  program.option("--pages", s.pages, "Parts, one put each else (default 10,000; with --quick 500)");
  program.parse();
  const bool quick = program.options().quick;
  if (s.puts == 0) s.puts = quick ? 2'000 : 100'000;
  if (s.pages == 0) s.pages = quick ? 500 : 10'000;
  try {
    bench::ordered_json rows = bench::ordered_json::array();
    std::fprintf(program.out(), "%-58s %10s %10s %10s\n", "A put of 8 bytes", "ns", "messages", "look-ups");
    const auto directory = gw::resolve_options().directory;
    const bool has_switch =
        directory != gw::choice::directory::software && directory != gw::choice::directory::datagrams;
    for (int i = 0; i < kinds; ++i) {
      const auto k = static_cast<kind>(i);
      gw::options o;
      o.workers = program.most_workers();
      if (k == missed) o.translations = 1;
      const outcome found = gw::run<outcome>([k, s] { return run_case(k, s); }, o);
      if (gw::is_first_process()) show(program, k, found, s.pages, has_switch, rows);
    }
    program.json()["measurements"].push_back({{"title", "Puts"}, {"rows", rows}});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_put_latency: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
