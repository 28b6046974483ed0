// global_stream: the sum of a global array and STREAM's kernels, beside plain code in one thread and in
// several.

#include <cstdio>
#include <map>

#include "../../common/godwit_run.hpp"
#include "../sample_of.hpp"
#include "stream.hpp"

namespace {

using namespace stream;

struct run_key {
  std::string name;
  unsigned workers;
  auto operator<=>(const run_key&) const = default;
};
using collection = std::map<run_key, std::vector<outcome>>;

bool right(const settings& s, const outcome& o) { return o.total == right_total(s.size) && o.bad == 0; }

/// The variants; what they measured goes to @p to.
std::vector<bench::variant> variants_for(const bench::program& program, const settings& s, collection& to) {
  std::vector<bench::variant> variants;
  const auto plain_one = [&](const std::string& name, unsigned threads) {
    variants.push_back({name, 0, [=, &to] {
                          const auto [o, whole] = bench::run_plain([&] { return plain(s, threads); });
                          to[{name, threads}].push_back(o);
                          return parts::only(o.of[k_sum].median(), whole, right(s, o));
                        }});
  };
  plain_one("serial", 1);
  for (const unsigned w : program.workers()) {
    if (w > 1) plain_one(std::to_string(w) + " threads", w);
    variants.push_back({"godwit", w, [=, &to] {
                          const auto [o, whole] = bench::run_godwit(w, [=] { return ours(s); });
                          to[{"godwit", w}].push_back(o);
                          return parts::only(o.of[k_sum].median(), whole, right(s, o));
                        }});
  }
  return variants;
}

/// Median over the rounds of a figure of a run.
template <class F>
double over_rounds(const std::vector<outcome>& runs, const F& figure) {
  std::vector<double> values;
  for (const auto& o : runs) values.push_back(figure(o));
  return bench::median(values);
}

double ratio(const std::vector<outcome>& plain, const std::vector<outcome>& ours, int k) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(plain.size(), ours.size()); ++i)
    values.push_back(plain[i].of[k].median().seconds / ours[i].of[k].median().seconds);
  return bench::median(values);
}

/// Of the fastest passes of all: what is left when others use the CPUs as well.
double best_ratio(const std::vector<outcome>& plain, const std::vector<outcome>& ours, int k) {
  const auto best = [k](const std::vector<outcome>& runs) {
    double least = 1e300;
    for (const auto& o : runs)
      for (int i = 0; i < o.of[k].count; ++i) least = std::min(least, o.of[k].of[i].seconds);
    return least;
  };
  return best(plain) / best(ours);
}

void show_kernels(bench::program& program, const settings& s, const collection& all) {
  std::FILE* const to = program.out();
  bench::ordered_json rows = bench::ordered_json::array();
  std::fprintf(
      to, "  GB/s in passes after the first (medians); faults: page faults in a pass over the sum's array\n");
  std::fprintf(to, "  %-12s %7s", "variant", "workers");
  for (const char* name : names) std::fprintf(to, " %9s", name);
  std::fprintf(to, " %9s %9s %11s\n", "fill s", "faults", "fill faults");
  for (const auto& [key, runs] : all) {
    bench::ordered_json row = {{"variant", key.name}, {"workers", key.workers}};
    std::fprintf(to, "  %-12s %7u", key.name.c_str(), key.workers);
    for (int k = 0; k < kernels; ++k) {
      const double elements = static_cast<double>(k == k_sum ? s.size : s.stream_size);
      const double rate = over_rounds(
          runs, [&](const outcome& o) { return 8e-9 * words[k] * elements / o.of[k].median().seconds; });
      std::fprintf(to, " %9.2f", rate);
      row[names[k]] = rate;
    }
    const double fill = over_rounds(runs, [](const outcome& o) { return o.first.seconds; });
    const double faults =
        over_rounds(runs, [](const outcome& o) { return static_cast<double>(o.of[k_sum].median().faults); });
    const double fill_faults =
        over_rounds(runs, [](const outcome& o) { return static_cast<double>(o.first.faults); });
    std::fprintf(to, " %9.3f %9.0f %11.0f\n", fill, faults, fill_faults);
    row["fill_s"] = fill;
    row["faults"] = faults;
    row["fill_faults"] = fill_faults;
    rows.push_back(row);
  }
  program.json()["measurements"].push_back({{"title", "Bandwidth, GB/s"}, {"rows", rows}});
  for (const unsigned w : program.workers()) {
    const auto plain = all.find({w == 1 ? "serial" : std::to_string(w) + " threads", w}),
               ours = all.find({"godwit", w});
    if (plain == all.end() || ours == all.end()) continue;
    for (int k = 0; k < kernels; ++k) {
      const std::string key = std::string(names[k]) + ".p" + std::to_string(w);
      const std::string what =
          std::string(names[k]) + ", " + std::to_string(w) + (w == 1 ? " worker" : " workers");
      program.figure(key + ".of_plain", what + ": speed / plain code's",
                     100 * ratio(plain->second, ours->second, k), "%",
                     "median over the rounds of time of plain threads / ours, passes after the first");
      program.figure(key + ".best_of_plain", what + ": the same of the fastest passes",
                     100 * best_ratio(plain->second, ours->second, k), "%",
                     "fastest pass of plain threads / fastest of ours");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("global_stream", "Sum of a global array, and STREAM's kernels.", argc, argv);
  program.option("--size", s.size, "Doubles to sum up (default 100 M; with --quick 10 M)");
  program.option("--stream-size", s.stream_size,
                 "Doubles in each of STREAM's three arrays (default a fifth of --size)");
  program.option("--grain", s.grain,
                 "Doubles in a leaf (default: a hundredth of what a worker has, 32 K to 1 M)");
  program.option("--passes", s.times, "Passes after the first, in every repetition",
                 bench::between(1, parts::most_passes));
  bool far = false;
  program.flag("--anywhere", far, "Do not prefer the half of a range that is the worker's own");
  program.parse();
  s.near = !far;
  if (s.size == 0) s.size = program.options().quick ? 10'000'000 : 100'000'000;
  if (s.stream_size == 0) s.stream_size = std::max<std::uint64_t>(s.size / 5, 1);
  if (s.grain == 0)
    s.grain = std::clamp<std::uint64_t>(s.size / program.most_workers() / 100, 32 << 10, 1 << 20);
  try {
    collection all;
    const auto measured = program.measure(variants_for(program, s, all));
    if (godwit::is_first_process()) {
      program.show("Sum of " + bench::grouped(s.size) + " doubles, one pass after the first",
                   {{"size", s.size}, {"stream_size", s.stream_size}, {"grain", s.grain}, {"near", s.near}},
                   measured);
      show_kernels(program, s, all);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_stream: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
