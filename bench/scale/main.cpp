// scale: the papers' programs at the papers' sizes, in the simulator. See scale.hpp.
//
//   build/release/bench/scale uts --tree T1XXL --node-ns 819 --godwit-sim-machine=wisteria
//       --godwit-workers=110592 --godwit-sim-hosts=2304
//
// Prints the work, how long it took in virtual time, and whether the result was right.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>
#include <string>

#include "../common/clock.hpp"
#include "../lcs/lcs.hpp"
#include "../pfor/pfor.hpp"
#include "scale.hpp"

namespace {

struct outcome {
  std::uint64_t work_ns;  ///< of one worker, T1
  std::uint64_t time_ns;
  bool right;
};

std::uint64_t clock_ns() { return godwit::detail::simulated ? godwit::sim::now_ns() : bench::now_ns(); }

/// @p f in virtual time, if it is simulated.
template <class F>
outcome timed(F f) {
  const std::uint64_t from = clock_ns();
  outcome o = f();
  o.time_ns = clock_ns() - from;
  return o;
}

struct settings {
  std::uint32_t n = 4096, k = 5, c = 512;
  double us = 10;
  std::string tree = "T1L", hash = "law";
  int depth = 20, grain = 2;
  double node_ns = 819;
  bool real = false;
};

outcome run_loops(pfor::kind what, const settings& s, const std::string& policy, const godwit::options& o) {
  const pfor::problem p{what, s.n, s.k, static_cast<std::uint64_t>(std::llround(s.us * 1e3))};
  return godwit::run<outcome>(
      [p, threads = pfor::threads_under(policy), right = pfor::expected(p)] {
        return timed([&] { return outcome{pfor::iterations(p) * p.rounds, 0, threads(p) == right}; });
      },
      o);
}

outcome run_lcs(const settings& s, const std::string& policy, const godwit::options& o) {
  lcs::the_problem.n = s.n;
  lcs::the_problem.c = s.c;
  scale::block_ns = static_cast<std::uint64_t>(std::llround(s.us * 1e3));
  const auto futures = lcs::futures_under(policy);
  if (futures == nullptr) throw std::invalid_argument("scale: policy " + policy + " has no futures");
  return godwit::run<outcome>(
      [futures, blocks = s.n / s.c] {
        return timed([&] {
          return outcome{std::uint64_t{blocks} * blocks * scale::block_ns, 0, futures() == 2 * blocks - 1};
        });
      },
      o);
}

outcome run_uts(const settings& s, const std::string& policy, const godwit::options& o) {
  const uts::named_tree* named = uts::find_named(s.tree);
  if (named == nullptr || named->p.type != uts::tree_type::geometric ||
      named->p.shape != uts::shape_function::fixed)
    throw std::invalid_argument("scale: --tree " + s.tree + ": none of T1, T1L, T1XL, T1XXL, T1WL");
  uts::parameters p = named->p;
  scale::the_search = {s.hash == "law" ? scale::hash::law : scale::hash::sha,
                       static_cast<std::uint32_t>(s.grain), s.node_ns};
  const bool law = scale::the_search.how == scale::hash::law;
  if (law) p.seed = scale::seed_near(p, static_cast<double>(named->published.nodes));
  uts::the_tree = uts::tree(p);
  uts::totals found;
  const outcome got = godwit::run<outcome>(
      [search = scale::search_under(policy), law, named] {
        return timed([&] {
          const uts::totals t = search();
          std::printf("%s: %llu nodes, %llu leaves\n", named->name, static_cast<unsigned long long>(t.nodes),
                      static_cast<unsigned long long>(t.leaves));
          const double size = static_cast<double>(t.nodes) / static_cast<double>(named->published.nodes);
          return outcome{scale::all_ns(t.nodes, scale::the_search.node_ns), 0,
                         law ? size > 0.9 && size < 1.1 : uts::matches(*named, t)};
        });
      },
      o);
  return got;
}

outcome run_btc(const settings& s, const std::string& policy, const godwit::options& o) {
  const scale::tasks t{s.depth, s.grain, s.node_ns};
  return godwit::run<outcome>(
      [t, threads = scale::tasks_under(policy)] {
        return timed([&] {
          const std::uint64_t all = (std::uint64_t{2} << t.depth) - 1;
          return outcome{scale::all_ns(all, t.task_ns), 0, threads(t) == all};
        });
      },
      o);
}

}  // namespace

int main(int argc, char** argv) {
  godwit::take_options(argc, argv);
  settings s;
  CLI::App app("The papers' programs in the simulator: what threads compute is charged.");
  app.require_subcommand(1);
  app.add_flag("--real", s.real, "Compute, on the substrate that the options say; UTS with --hash sha");
  app.footer("--godwit-help lists the options of the runtime; --godwit-policy chooses the policy.");
  std::function<outcome(const std::string&, const godwit::options&)> run;
  const auto add = [&](const char* name, const char* what, auto f) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->callback([&run, &s, f] {
      run = [&s, f](const std::string& policy, const godwit::options& o) { return f(s, policy, o); };
    });
    return sub;
  };
  const CLI::Range positive(1, 1 << 30);
  for (const auto what : {pfor::kind::loops, pfor::kind::recursive}) {
    const bool loops = what == pfor::kind::loops;
    CLI::App* sub = add(loops ? "pfor" : "recpfor", loops ? "K parallel loops" : "the same in a recursion",
                        [what](const settings& with, const std::string& policy, const godwit::options& o) {
                          return run_loops(what, with, policy, o);
                        });
    sub->add_option("-n", s.n, "Iterations of a loop")->check(positive)->capture_default_str();
    sub->add_option("-k", s.k, "Loops")->check(positive)->capture_default_str();
    sub->add_option("--us", s.us, "Of an iteration")->check(CLI::Range(0.001, 1e6))->capture_default_str();
  }
  CLI::App* lcs_run = add("lcs", "longest common subsequence by futures", run_lcs);
  lcs_run->add_option("-n", s.n, "Length of both strings: -c times a power of two")->check(positive);
  lcs_run->add_option("-c", s.c, "Side of a block")->check(positive)->capture_default_str();
  lcs_run->add_option("--us", s.us, "Of a block")->check(CLI::Range(0.001, 1e6))->capture_default_str();
  CLI::App* uts_run = add("uts", "unbalanced tree search", run_uts);
  uts_run->add_option("--tree", s.tree, "T1, T1L, T1XL, T1XXL, T1WL")->capture_default_str();
  uts_run->add_option("--hash", s.hash, "sha: the published tree; law: one of its size, faster")
      ->check(CLI::IsMember({"law", "sha"}))
      ->capture_default_str();
  CLI::App* btc_run = add("btc", "binary task creation", run_btc);
  btc_run->add_option("--depth", s.depth, "Of the tree")->check(CLI::Range(1, 60))->capture_default_str();
  for (CLI::App* sub : {uts_run, btc_run}) {
    sub->add_option("--grain", s.grain, "Levels at the bottom that are one thread")
        ->check(CLI::Range(0, 40))
        ->capture_default_str();
    sub->add_option("--node-ns", s.node_ns, "Of a node or task")
        ->check(CLI::Range(0.001, 1e9))
        ->capture_default_str();
  }
  CLI11_PARSE(app, argc, argv);
  try {
    godwit::options o = godwit::resolve_options();
    if (!s.real) o.substrate = godwit::choice::substrate::sim;
    const bool law_of_uts = app.got_subcommand("uts") && s.hash == "law";
    if (s.real && (app.got_subcommand("lcs") || law_of_uts))
      throw std::invalid_argument("scale: --real is not for lcs, and for uts with --hash sha only");
    const std::string policy(name_of(o.policy));
    const outcome got = run(policy, o);
    const double workers = static_cast<double>(godwit::last_run_stats().size());
    if (!godwit::is_first_process()) return got.right ? 0 : 1;
    std::printf("%s: work %.6f s, time %.6f s, efficiency %.2f %%, result %s\n",
                app.get_subcommands().front()->get_name().c_str(), static_cast<double>(got.work_ns) * 1e-9,
                static_cast<double>(got.time_ns) * 1e-9,
                100 * static_cast<double>(got.work_ns) / workers / static_cast<double>(got.time_ns),
                got.right ? "right" : "WRONG");
    return got.right ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
