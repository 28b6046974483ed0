// npb: the NAS Parallel Benchmarks on global memory beside the same programs in plain memory, in one thread
// and in several, and beside the public C++ version where a folder has it built.

#include <algorithm>
#include <cstdio>

#include "../common/godwit_run.hpp"
#include "../global/sample_of.hpp"
#include "npb.hpp"
#include "public.hpp"

namespace {

const npb::benchmark* const all[] = {&npb::ep, &npb::is, &npb::cg, &npb::mg, &npb::ft};

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const npb::benchmark* b : all) names.push_back(b->name);
  return names;
}

std::vector<bench::variant> variants(const bench::program& program, const npb::benchmark& b, char size_class,
                                     const std::string& folder) {
  const auto plain = [&b, size_class](const std::string& name, unsigned threads) {
    return bench::variant{name, 0, [&b, size_class, threads] {
                            const auto [o, whole] =
                                bench::run_plain([&] { return b.plain(size_class, threads); });
                            return parts::only(o.timed, whole, o.verified);
                          }};
  };
  std::vector<bench::variant> to = {plain("serial", 1)};
  if (!folder.empty())
    to.push_back({"NPB-CPP", 0, [=, name = b.name] { return npb::run_public(folder, name, size_class); }});
  for (const unsigned w : program.workers()) {
    if (w > 1) to.push_back(plain(std::to_string(w) + " threads", w));
    to.push_back({"godwit", w, [&b, size_class, w] {
                    const auto [o, whole] =
                        bench::run_godwit(w, [ours = b.ours, size_class] { return ours(size_class); });
                    return parts::only(o.timed, whole, o.verified);
                  }});
  }
  return to;
}

void figures(bench::program& program, const std::string& name, const std::vector<bench::series>& measured) {
  const unsigned w = program.most_workers();
  const std::string on = std::to_string(w) + " workers";
  const auto *serial = bench::find(measured, "serial", 0), *theirs = bench::find(measured, "NPB-CPP", 0),
             *one = bench::find(measured, "godwit", 1), *most = bench::find(measured, "godwit", w),
             *threads = bench::find(measured, std::to_string(w) + " threads", 0);
  const auto ratio = [&](const std::string& key, const std::string& what, const bench::series* a,
                         const bench::series* b, const char* unit) {
    if (a != nullptr && b != nullptr && a != b)
      program.figure(name + "." + key, name + ", " + what, bench::paired_ratio(a, b), unit,
                     "median over the rounds");
  };
  ratio("t1_over_serial", "1 worker / serial", one, serial, "");
  ratio("t1_over_public", "1 worker / NPB-CPP", one, theirs, "");
  ratio("speed_up", "1 worker / " + on, one, most, "x");
  ratio("threads_speed_up", "serial / plain threads", serial, threads, "x");
  ratio("over_threads", on + " / plain threads", most, threads, "");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names = all_names();
  std::string size_class, folder;
  bench::program program("npb", "NAS Parallel Benchmarks on global memory.", argc, argv);
  program.option("--benchmarks", names, "Which", bench::one_of(all_names()));
  program.option("--class", size_class, "Size (default A; with --quick W)", bench::one_of({"S", "W", "A"}));
  program.option("--npb-cpp", folder, "Folder with programs of NPB-CPP, built: ep.A and so on");
  program.parse();
  if (size_class.empty()) size_class = program.options().quick ? "W" : "A";
  try {
    for (const npb::benchmark* b : all) {
      if (std::find(names.begin(), names.end(), b->name) == names.end()) continue;
      b->prepare(size_class[0]);
      const auto measured = program.measure(variants(program, *b, size_class[0], folder));
      if (!godwit::is_first_process()) continue;
      program.show(b->name + " class " + size_class, {{"benchmark", b->name}, {"class", size_class}},
                   measured);
      figures(program, b->name, measured);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "npb: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
