// What bench::add_library_peer makes of a peer that is right, that does not end, that is wrong, and that
// crashes. A program of its own: each peer runs in a child of it. Document: bench/common/harness.hpp.
#include "../../bench/common/godwit_run.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main() {
  const char* arguments[] = {
      "library_peers", "--workers",    "1",  "--reps", "2", "--peer-reps", "2", "--peers",
      "tbb",           "--peer-limit", "10", nullptr};
  bench::program program("library_peers", "Peers in processes of their own.", 11,
                         const_cast<char**>(arguments));
  program.parse();
  std::vector<bench::variant> variants;
  variants.push_back({"plain", 0, [] { return bench::run_plain([] { return true; }).second; }});
  bench::add_library_peer(variants, program, "tbb", [](unsigned workers) { return workers == 1; });
  bench::add_library_peer(variants, program, "tbb", [](unsigned) -> bool {
    for (;;) pause();
  });
  bench::add_library_peer(variants, program, "tbb", [](unsigned) { return false; });
  bench::add_library_peer(variants, program, "tbb", [](unsigned) -> bool { std::abort(); });
  const auto all = program.measure(variants);
  program.show("peers", {}, all);
  int status = 0;
  const auto expect = [&](bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "library_peers: not so: %s\n", what);
    status = 1;
  };
  expect(all.size() == 5, "five variants");
  expect(all[1].samples.size() == 2 && all[1].samples[0].correct && all[1].samples[0].seconds > 0,
         "the right one has times");
  for (const int i : {2, 3, 4}) expect(all[i].samples.empty(), "who fails has no times");
  const auto shown = program.json()["measurements"][0]["variants"][2];
  expect(shown["status"] == "gave up after 10 s" && !shown.contains("seconds"), "it is said");
  for (const int i : {3, 4})
    expect(program.json()["measurements"][0]["variants"][i]["status"] == "gave up: wrong result, or crashed",
           "wrong or crashed: that is said");
  expect(program.finish() == 0, "what another library does is no failure of the program");
  return status;
}
