// global_gups: random updates of a global table, by values, by atomics and in batches.

#include <bit>
#include <cstdio>
#include <map>

#include "../../common/godwit_run.hpp"
#include "../sample_of.hpp"
#include "gups.hpp"

namespace {

using namespace gups;

/// None may be lost in one thread or by atomics; else HPCC's bound, of the words that there are.
bool right(const settings& s, const outcome& o, bool may_lose) {
  return o.wrong <= (may_lose ? s.words / 100 : 0);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  std::vector<std::string> wanted = {"values", "atomics", "batches"};
  bench::program program("global_gups", "Random updates of a table in global memory.", argc, argv);
  program.option("--size", s.words, "Words in the table, a power of two (default 2^20)");
  program.option("--updates", s.updates, "Updates (default: four per word; with --quick one)");
  program.option("--grain", s.grain, "Updates in a leaf (default: a 32nd of a worker's, at most 64 K)");
  program.option("--ways", wanted, "Some of values,atomics,batches (default all)",
                 bench::one_of({"values", "atomics", "batches"}));
  bool movable = false;
  program.flag("--movable", movable, "Each also in memory that may move");
  program.parse();
  if (s.words == 0) s.words = 1 << 20;
  if (!std::has_single_bit(s.words)) bench::usage_error("global_gups: --size must be a power of two");
  if (s.updates == 0) s.updates = (program.options().quick ? 1 : 4) * s.words;
  if (s.grain == 0)
    s.grain = std::clamp<std::uint64_t>(s.updates / program.most_workers() / 32, most_batch, 64 << 10);
  // So that words that come twice among all updates on their way stay well below HPCC's bound.
  s.batch = std::clamp<std::uint64_t>(s.words / 8192 / program.most_workers(), 1, most_batch);
  try {
    std::map<std::pair<std::string, unsigned>, std::vector<outcome>> all;
    std::vector<bench::variant> variants;
    variants.push_back({"serial", 0, [&] {
                          const auto [o, whole] = bench::run_plain([&] { return serial(s); });
                          all[{"serial", 0}].push_back(o);
                          return parts::only(o.updates, whole, right(s, o, false));
                        }});
    const auto add = [&](way how, unsigned w, bool moves) {
      const std::string name = name_of(how) + std::string(moves ? ", movable" : "");
      variants.push_back({name, w, [&, how, w, moves, name] {
                            settings of = s;
                            of.movable = moves;
                            const auto [o, whole] = bench::run_godwit(w, [of, how] { return ours(of, how); });
                            all[{name, w}].push_back(o);
                            const bool alone = w == 1 && how == way::values;
                            return parts::only(o.updates, whole, right(s, o, how != way::atomics && !alone));
                          }});
    };
    for (const unsigned w : program.workers())
      for (const way how : ways) {
        const char* const keys[] = {"values", "atomics", "batches"};
        if (std::find(wanted.begin(), wanted.end(), keys[static_cast<int>(how)]) == wanted.end()) continue;
        add(how, w, false);
        if (movable) add(how, w, true);
      }
    const auto measured = program.measure(variants);
    if (godwit::is_first_process()) {
      program.show(bench::grouped(s.updates) + " updates of " + bench::grouped(s.words) + " words",
                   {{"words", s.words}, {"updates", s.updates}, {"grain", s.grain}, {"batch", s.batch}},
                   measured);
      for (const auto& one : measured) {
        std::vector<double> wrong;
        for (const auto& o : all[{one.name, one.workers}]) wrong.push_back(static_cast<double>(o.wrong));
        const std::string key = one.name + ".p" + std::to_string(one.workers);
        const std::string what =
            one.name + (one.workers == 0 ? "" : ", " + std::to_string(one.workers) + " workers");
        program.figure(key + ".mups", what, static_cast<double>(s.updates) / one.median_s * 1e-6,
                       "M updates/s",
                       "updates / median time; wrong words, at most: " +
                           bench::grouped(static_cast<std::uint64_t>(bench::quantile(wrong, 1))));
        if (const bench::series* alone = bench::find(measured, one.name, 1);
            one.workers > 1 && alone != nullptr)
          program.figure(key + ".speed_up", what + ": time on 1 worker / time",
                         bench::paired_ratio(alone, &one), "x", "median over the rounds");
        if (one.name.ends_with(", movable")) {
          const std::string fixed = one.name.substr(0, one.name.size() - std::string(", movable").size());
          program.figure(key + ".over_fixed", what + ": time / of memory that stays",
                         bench::paired_ratio(&one, bench::find(measured, fixed, one.workers)), "x",
                         "median over the rounds");
        }
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_gups: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
