// global_amr: adaptive mesh refinement on movable global memory, against a serial one, with moves and
// without.
//
// What does not depend on the machine is judged: cells that differ from the serial form (none), mass, how
// even the load is, and how many reads of others' ghost cells the moves save. Times are only reported.

#include <algorithm>
#include <cstdio>

#include "../../common/godwit_run.hpp"
#include "amr.hpp"

namespace {

using namespace amr;

constexpr double most_mass_error = 1e-12, most_load = 1.2, least_saved = 5;
/// A worker with fewer has mostly grids at the edge of what it has, and moves save less.
constexpr double grids_to_judge = 50;

/// What the runs on so many workers found: without moves, with moves.
struct pair {
  unsigned workers;
  outcome of[2];
  std::uint64_t far_reads[2] = {};  ///< gets from other hosts

  double per_step(const settings& s, int moves) const {
    return static_cast<double>(of[moves].foreign) / s.steps;
  }
  double saved() const { return static_cast<double>(of[0].foreign) / static_cast<double>(of[1].foreign); }
  double far_saved() const { return static_cast<double>(far_reads[0]) / static_cast<double>(far_reads[1]); }
};

bool right_mass(const outcome& o) { return o.mass_error <= most_mass_error; }

bool right_run(const outcome& o, const outcome& plain) {
  return o.wrong == 0 && o.failures == 0 && right_mass(o) && o.most_load <= most_load &&
         o.updates == plain.updates && o.refined == plain.refined && o.coarsened == plain.coarsened;
}

bench::variant variant_of(const settings& s, pair& p, int moves, const outcome& plain) {
  settings now = s;
  now.moves = moves != 0;
  return {moves != 0 ? "godwit, moves" : "godwit", p.workers, [now, &p, moves, &plain] {
            auto [o, whole] = bench::run_godwit(p.workers, [now] { return ours(now); });
            whole.seconds = o.seconds;
            whole.correct = right_run(o, plain);
            p.of[moves] = o;
            p.far_reads[moves] = 0;
            for (const auto& w : godwit::last_run_stats()) p.far_reads[moves] += w.far_gets;
            return whole;
          }};
}

void show(bench::program& program, const settings& s, const outcome& plain, const std::vector<pair>& pairs) {
  std::fprintf(
      program.out(),
      "The mesh: %llu grids in the end, %llu divided, %llu times four came together; mass off by %.1e\n"
      "  %7s %6s %8s %8s %12s %14s %16s %6s\n",
      static_cast<unsigned long long>(plain.grids), static_cast<unsigned long long>(plain.refined),
      static_cast<unsigned long long>(plain.coarsened), plain.mass_error, "workers", "moves", "moved", "load",
      "mass off by", "others' ghosts", "far reads a step", "wrong");
  bench::ordered_json rows = bench::ordered_json::array();
  for (const pair& p : pairs)
    for (int moves = 0; moves < 2; ++moves) {
      const outcome& o = p.of[moves];
      const double far = static_cast<double>(p.far_reads[moves]) / s.steps;
      std::fprintf(program.out(), "  %7u %6s %8llu %8.3f %12.1e %14.1f %16.1f %6llu\n", p.workers,
                   moves != 0 ? "yes" : "no", static_cast<unsigned long long>(o.moved), o.most_load,
                   o.mass_error, p.per_step(s, moves), far, static_cast<unsigned long long>(o.wrong));
      rows.push_back({{"workers", p.workers},
                      {"moves", moves != 0 ? "with" : "without"},
                      {"moved", o.moved},
                      {"load", o.most_load},
                      {"mass_error", o.mass_error},
                      {"others_ghosts_a_step", p.per_step(s, moves)},
                      {"far_reads_a_step", far},
                      {"wrong", o.wrong}});
    }
  program.json()["measurements"].push_back({{"title", "Ghost cells"}, {"rows", rows}});
}

/// What moves save, of the reads of others' ghost cells and of those of other hosts.
void judge(bench::program& program, const settings& s, const pair& p) {
  if (p.workers < 2) return;
  const std::string key = "p" + std::to_string(p.workers), on = std::to_string(p.workers) + " workers";
  const std::string limit = "; " + bench::grouped(static_cast<std::uint64_t>(least_saved)) +
                            " asked where a worker has " +
                            bench::grouped(static_cast<std::uint64_t>(grids_to_judge)) + " grids";
  program.figure(key + ".saved", "reads of others' ghost cells, without moves / with, " + on, p.saved(), "x",
                 "counted" + limit);
  const bool far = p.far_reads[0] != 0;
  if (far)
    program.figure(key + ".far_saved", "gets from other hosts, the same", p.far_saved(), "x",
                   "counted, all of the run" + limit);
  const bool enough = static_cast<double>(p.of[0].updates) / s.steps / p.workers >= grids_to_judge;
  if (enough && (p.saved() < least_saved || (far && p.far_saved() < least_saved)))
    program.wrong("moves save too few reads of others' ghost cells on " + on);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("global_amr", "Adaptive mesh refinement on movable global memory.", argc, argv);
  program.option("--levels", s.levels, "Levels of the mesh (default 4)", bench::between(0, most_levels));
  program.option("--steps", s.steps, "Steps (default 200; with --quick 80)", bench::between(0, 1 << 20));
  program.option("--every", s.every, "Steps between two changes of the mesh", bench::between(1, 1 << 20));
  program.parse();
  if (s.levels == 0) s.levels = 4;
  if (s.steps == 0) s.steps = program.options().quick ? 80 : 200;
  try {
    const outcome plain = serial(s);  // leaves its result in `right`
    std::vector<pair> pairs;
    for (const unsigned w : program.workers()) pairs.push_back({w, {}});
    std::vector<bench::variant> variants = {{"serial", 0, [&] {
                                               auto [o, whole] = bench::run_plain([&] { return serial(s); });
                                               whole.seconds = o.seconds;
                                               whole.correct = right_mass(o);
                                               return whole;
                                             }}};
    for (pair& p : pairs)
      for (int moves = 0; moves < 2; ++moves) variants.push_back(variant_of(s, p, moves, plain));
    const auto measured = program.measure(variants);
    if (godwit::is_first_process()) {
      program.show("AMR, " + std::to_string(s.levels) + " levels, " +
                       bench::grouped(static_cast<std::uint64_t>(s.steps)) + " steps",
                   {{"levels", s.levels}, {"steps", s.steps}, {"every", s.every}}, measured);
      show(program, s, plain, pairs);
      double mass_error = plain.mass_error, load = 0;
      for (const pair& p : pairs)
        for (const outcome& o : p.of) {
          mass_error = std::max(mass_error, o.mass_error);
          load = std::max(load, o.most_load);
        }
      program.figure("mass_error", "mass off by", mass_error, "",
                     "over the mass, the most in any run; 1e-12 allowed");
      program.figure("load", "load", load, "",
                     "the most grids of a worker over the mean, likewise; 1.2 allowed");
      for (const pair& p : pairs) judge(program, s, p);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_amr: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
