// uts: Unbalanced Tree Search. Compares serial, godwit, TBB, OpenMP and libraries of threads; with --main,
// one search with a live display: the job that scripts/run runs.

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "../common/copies.hpp"
#include "../common/godwit_run.hpp"
#include "../common/shared_page.hpp"
#include "searches.hpp"

namespace {

using namespace uts;

struct settings {
  std::vector<std::string> names;
  parameters p;
  int type = static_cast<int>(p.type), shape = static_cast<int>(p.shape);  // -t, -a
  bool own_tree = false;
  bool main_job = false;
  std::string sha = "portable";
  std::string threads = "inner";

  bool ni() const { return sha == "ni"; }
  uts::threads which() const { return threads == "inner" ? uts::threads::inner : uts::threads::every; }
};

std::string known_names() {
  std::string all;
  for (const auto& t : named_trees()) all += (all.empty() ? "" : " ") + std::string(t.name);
  return all;
}

void add_flags(bench::program& program, settings& s) {
  program.option("--tree", s.names,
                 "Published trees to search (default T1,T1L,T3L; with --quick T1): " + known_names());
  program.flag("--main", s.main_job,
               "One search with a live display (T1L; with --quick T1) on all usable CPUs");
  program.option("--sha", s.sha, "SHA-1 code: portable, or ni (SHA instructions of x86-64)",
                 bench::one_of({"portable", "ni"}));
  program.option("--threads", s.threads,
                 "Which children become threads: inner (those with children), or every",
                 bench::one_of({"every", "inner"}));
  program.group("A tree of your own");
  program.option("-t", s.type, "Type: 0 binomial, 1 geometric, 2 hybrid, 3 balanced (default 1)",
                 bench::one_of({"BIN", "GEO", "HYBRID", "BALANCED"}));
  program.option("-a", s.shape, "Shape function: 0 linear, 1 expdec, 2 cyclic, 3 fixed (default 0)",
                 bench::one_of({"LINEAR", "EXPDEC", "CYCLIC", "FIXED"}));
  program.option("-b", s.p.branching, "Branching factor of the root", bench::between(1e-3, 1e6));
  program.option("-d", s.p.depth, "Depth (gen_mx) of the shape functions", bench::between(1, 1 << 20));
  program.option("-r", s.p.seed, "Random number seed of the root",
                 bench::between(0, std::numeric_limits<int>::max()));
  program.option("-q", s.p.nonleaf_probability, "Binomial: probability of having children",
                 bench::between(0, 1));
  program.option("-m", s.p.nonleaf_children, "Binomial: number of children then",
                 bench::between(0, max_children));
  program.option("-f", s.p.shift, "Hybrid: geometric above this fraction of the depth", bench::between(0, 1));
  program.option("-g", s.p.granularity, "Digests computed per child", bench::between(1, 1 << 30));
}

/// What to search: the named trees, or the one that the flags describe.
std::vector<named_tree> chosen_trees(const bench::program& program, const settings& s) {
  std::vector<named_tree> trees;
  for (const auto& name : s.names) {
    const named_tree* t = find_named(name);
    if (t == nullptr) bench::usage_error("uts: no tree is called " + name + "; there are " + known_names());
    trees.push_back(*t);
  }
  if (s.own_tree) {
    const named_tree* known = find_named(s.p);
    trees.push_back(
        {known != nullptr ? known->name : "own", s.p, known != nullptr ? known->published : totals{}});
  }
  if (trees.empty()) {
    if (program.options().quick)
      trees = {*find_named("T1")};
    else if (s.main_job)
      trees = {*find_named("T1L")};
    else
      trees = {*find_named("T1"), *find_named("T1L"), *find_named("T3L")};
  }
  for (auto& t : trees) t.p.granularity = s.p.granularity;
  return trees;
}

std::string title_of(const named_tree& t) {
  return "UTS " + std::string(t.name) + " (" + t.p.describe() + ": " + t.p.flags() + ")";
}

std::string verdict(const named_tree& t, const totals& got) {
  if (t.published.nodes == 0) return "no published values to compare with";
  if (matches(t, got)) return "matches the published values";
  return "DIFFERS from the published " + bench::grouped(t.published.nodes) + " nodes, depth " +
         std::to_string(t.published.depth) + ", " + bench::grouped(t.published.leaves) + " leaves";
}

std::string in_words(const totals& t) {
  return bench::grouped(t.nodes) + " nodes, depth " + std::to_string(t.depth) + ", " +
         bench::grouped(t.leaves) + " leaves";
}

totals serial_on_big_stack(const settings& s, bench::sample& timing) {
  totals got;
  bench::on_big_stack([&] {
    const auto [value, one] = bench::run_plain([&] { return search_plain(s.which(), s.ni()); });
    got = value;
    timing = one;
  });
  return got;
}

constexpr const char* at_once = "serial, a copy a worker";

void compare(bench::program& program, const settings& s, const named_tree& t) {
  the_tree = tree(t.p);
  totals expected = t.published;
  totals first;
  const auto check = [&](const totals& got) {
    if (first.nodes == 0) first = got;
    return got == first && (expected.nodes == 0 || matches(t, got));
  };
  const auto serial = [&] {
    bench::sample one;
    const totals got = serial_on_big_stack(s, one);
    one.correct = check(got);
    return one;
  };
  std::vector<bench::variant> variants = {{"serial", 0, serial}};
  const unsigned most = program.most_workers();
  if (most > 1) variants.push_back({at_once, 0, [=] { return bench::copies_at_once(most, serial); }});
  for (const unsigned w : program.workers())
    for (const auto& policy : program.options().policies)
      variants.push_back({bench::under("godwit", policy), w,
                          [&, w, policy, search = search_under(policy, s.ni(), false)] {
                            const uts::threads which = s.which();
                            auto [got, one] = bench::run_godwit(
                                w, [=] { return search(which); }, policy);
                            one.correct = check(got);
                            return one;
                          },
                          false, policy});
  bench::add_peer(variants, program, "tbb", BENCH_HAS_TBB, [&](unsigned w) {
    totals got;
    bench::on_big_stack([&] { got = search_tbb(w, s.which(), s.ni()); });
    return check(got);
  });
  bench::add_peer(variants, program, "openmp", BENCH_HAS_OPENMP, [&](unsigned w) {
    totals got;
    bench::on_big_stack([&] { got = search_openmp(w, s.which(), s.ni()); });
    return check(got);
  });
  for (const auto& l : libraries())
    bench::add_library_peer(variants, program, l.name,
                            [&, l](unsigned w) { return check(l.search(w, s.which(), s.ni())); });
  const auto all = program.measure(variants);
  program.show(title_of(t) + (s.which() == threads::every ? ", a thread per node"
                                                          : ", leaves counted by their parents"),
               {{"tree", t.name}, {"flags", t.p.flags()}, {"threads", s.threads}, {"sha", s.sha}}, all);
  std::fprintf(program.out(), "  %s: %s\n", in_words(first).c_str(), verdict(t, first).c_str());

  const std::string key = t.name;
  const auto nodes = static_cast<double>(first.nodes);
  program.figure(key + ".serial_mnodes_s", "serial", nodes / all.front().median_s * 1e-6, "Mnodes/s",
                 "nodes / median time");
  if (const auto* one = bench::find(all, "godwit", 1)) {
    program.figure(key + ".t1_over_serial", "1 worker / serial", one->over_reference, "",
                   "median over the rounds of godwit's time on 1 worker / serial time");
    program.figure(key + ".t1_over_serial_cpu", "the same in CPU time", one->cpu_over_reference, "",
                   "median over the rounds");
  }
  if (const auto* many = bench::find(all, "godwit", most); many != nullptr && most > 1) {
    program.figure(key + ".speed_up", std::to_string(most) + " workers", 1 / many->over_reference, "x serial",
                   "inverse of the median over the rounds of godwit's time / serial time");
    if (const auto* copies = bench::find(all, at_once, 0))
      program.figure(key + ".of_copies", std::to_string(most) + " workers",
                     bench::paired_ratio(copies, many) / most, "of as many serial copies at once",
                     "median over the rounds of mean time of the copies / time on all workers / workers");
    program.figure(key + ".stack_high_bytes", "stack region touched",
                   static_cast<double>(many->counts.stack_high_bytes), "bytes",
                   "whole pages, the most of any worker in any round");
  }
}

/// One line that rewrites itself while the run is on; nothing where standard error is no terminal.
void start_live_display(std::uint64_t expected_nodes) {
  if (isatty(STDERR_FILENO) == 0) return;
  const std::uint64_t start = bench::now_ns();
  godwit::on_tick(std::chrono::milliseconds(100), [=] {
    std::uint64_t nodes = 0;
    for (const auto& c : live->of_worker) nodes += c.nodes.load(std::memory_order_relaxed);
    const double seconds = static_cast<double>(bench::now_ns() - start) * 1e-9;
    std::string done;
    if (expected_nodes != 0) {
      const double part = std::min(1.0, static_cast<double>(nodes) / static_cast<double>(expected_nodes));
      const int filled = static_cast<int>(part * 30);
      done = "[" + std::string(static_cast<std::size_t>(filled), '#') +
             std::string(static_cast<std::size_t>(30 - filled), '.') + "] ";
    }
    std::fprintf(stderr, "\r\033[K  %s%s nodes, %.1f Mnodes/s", done.c_str(), bench::grouped(nodes).c_str(),
                 static_cast<double>(nodes) / seconds * 1e-6);
  });
}

void main_job(bench::program& program, const settings& s, const named_tree& t) {
  the_tree = tree(t.p);
  std::FILE* const to = program.out();
  const unsigned workers = program.most_workers();
  std::fprintf(to, "%s\n", title_of(t).c_str());
  if (isatty(STDERR_FILENO) != 0) std::fputs("  serial code first ...", stderr);
  bench::sample serial;
  const totals reference = serial_on_big_stack(s, serial);
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);

  bench::shared_page<live_page> page;
  live = page.get();
  start_live_display(reference.nodes);
  const uts::threads which = s.which();
  const auto search = search_under(godwit::policies::greedy::name, s.ni(), true);
  const auto [got, one] = bench::run_godwit(workers, [=] { return search(which); });
  godwit::on_tick(std::chrono::milliseconds(0), {});
  live = nullptr;
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);

  const bool right = got == reference && (t.published.nodes == 0 || matches(t, got));
  const auto mnodes = [nodes = got.nodes](const bench::sample& x) {
    return static_cast<double>(nodes) / x.seconds * 1e-6;
  };
  std::fprintf(to, "  %s: %s\n", in_words(got).c_str(), verdict(t, got).c_str());
  std::fprintf(to, "  serial        %8.3f s  %7.2f Mnodes/s\n", serial.seconds, mnodes(serial));
  std::fprintf(to, "  %u worker%s     %8.3f s  %7.2f Mnodes/s  speed-up %.2f\n", workers,
               workers == 1 ? " " : "s", one.seconds, mnodes(one), serial.seconds / one.seconds);
  std::fprintf(
      to, "  %s steals of %.0f bytes on average, %s suspended joins, %llu KB of stack touched per worker\n",
      bench::grouped(one.counts.steals).c_str(),
      one.counts.steals == 0
          ? 0.0
          : static_cast<double>(one.counts.stolen_bytes) / static_cast<double>(one.counts.steals),
      bench::grouped(one.counts.suspends).c_str(),
      static_cast<unsigned long long>(one.counts.stack_high_bytes / 1024));
  program.json()["main"] = {{"tree", t.name},
                            {"flags", t.p.flags()},
                            {"workers", workers},
                            {"nodes", got.nodes},
                            {"depth", got.depth},
                            {"leaves", got.leaves},
                            {"matches_published", t.published.nodes != 0 && right},
                            {"seconds", one.seconds},
                            {"total_seconds", one.total_seconds},
                            {"serial_seconds", serial.seconds},
                            {"speed_up", serial.seconds / one.seconds},
                            {"mnodes_per_second", mnodes(one)},
                            {"steals", one.counts.steals},
                            {"suspends", one.counts.suspends},
                            {"stack_high_bytes", one.counts.stack_high_bytes}};
  if (!right) program.wrong("wrong result: " + in_words(got) + " (serial code: " + in_words(reference) + ")");
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("uts", "Unbalanced Tree Search: work that nobody can divide in advance.", argc,
                         argv);
  add_flags(program, s);
  program.add_policies({"greedy"});
  program.parse();
  s.p.type = static_cast<tree_type>(s.type);
  s.p.shape = static_cast<shape_function>(s.shape);
  for (const char* flag : {"-t", "-a", "-b", "-d", "-r", "-q", "-m", "-f"})
    if (program.given(flag)) s.own_tree = true;
#if BENCH_HAS_SHA_NI
  if (s.ni() && !sha1_ni::available())
    bench::usage_error("uts: this CPU has no SHA instructions: use --sha portable");
#else
  if (s.ni()) bench::usage_error("uts: --sha ni is for x86-64: use --sha portable");
#endif
  if (s.main_job && program.options().policies != std::vector<std::string>{"greedy"})
    bench::usage_error("uts: --main searches under the default policy: leave out --policies");
  const double expected = s.p.nonleaf_probability * s.p.nonleaf_children;
  if (s.own_tree && expected >= 1 && (s.p.type == tree_type::binomial || s.p.type == tree_type::hybrid))
    bench::usage_error("uts: -q times -m is " + std::to_string(expected) +
                       ": such a tree is infinite; choose less than 1");
  try {
    for (const auto& t : chosen_trees(program, s))
      s.main_job ? main_job(program, s, t) : compare(program, s, t);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "uts: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
