// threads: what do threads of one process cost? Create + join of one thread at a time, of 1,000 and of a
// million that live at once; a yield between 2 and between 1,000 threads; handing a turn over; in godwit
// (substrate threads) and, in the same rounds, in other libraries. Of godwit also: a mutex that nobody else
// wants, and the memory of a thread that waits.
//
// A value is (time of all) / (number of operations), in one root thread's time; reported are the median and
// the least of the rounds. Source: "Porting MassiveThreads ...", 4.3, figures 11 and 12. Results:
// docs/results/README.md; scripts/reproduce --only M6.
#include <algorithm>
#include <cstdio>

#include "../../common/harness.hpp"
#include "ours.hpp"

namespace {

struct cost {
  std::string key, what;
  std::size_t live;  ///< threads at a time
  unsigned workers;
  const char* definition;
  std::function<double(const threads::library&)> measure;  ///< negative: the library has no such thing
};

std::vector<cost> costs(std::size_t many, unsigned most_workers) {
  constexpr double none = -1;
  const char* const time = "time of all / number, one root thread creates and joins";
  std::vector<cost> all;
  const auto create_join = [&](const std::string& key, std::size_t live, std::size_t total,
                               unsigned workers) {
    std::string what = "create + join, " + (live == 1 ? "one at a time" : bench::grouped(live) + " live");
    if (workers > 1) what += ", " + std::to_string(workers) + " workers";
    all.push_back({key, what, live, workers, time, [=](const threads::library& l) {
                     return l.create_join && live <= l.most_live
                                ? l.create_join(workers, live, std::max(total / l.slower, live))
                                : none;
                   }});
  };
  create_join("create_join_1", 1, many / 2, 1);
  create_join("create_join_1000", 1000, many, 1);
  const std::string of_all = many == 1'000'000 ? "create_join_1m" : "create_join_many";
  create_join(of_all, many, many, 1);
  if (most_workers >= 2) {
    create_join("create_join_1000_w2", 1000, many, 2);
    create_join(of_all + "_w2", many, many, 2);
  }
  for (const std::size_t threads : {std::size_t{2}, std::size_t{1000}})
    all.push_back({"yield_" + std::to_string(threads), "yield, " + bench::grouped(threads) + " threads",
                   threads, 1, "time / yields", [=](const threads::library& l) {
                     return l.yield && threads <= l.most_live
                                ? l.yield(threads, std::max(many * 4 / l.slower, 4 * threads))
                                : none;
                   }});
  all.push_back(
      {"switch", "switch, 2 threads", 2, 1, "time / turns that two threads hand over by semaphores",
       [=](const threads::library& l) { return l.hand_over ? l.hand_over(many / l.slower) : none; }});
  return all;
}

void compare(bench::program& program, std::size_t many) {
  std::vector<threads::library> libraries = {threads::ours()};
  if (!program.options().wants_peer("none")) libraries.push_back(threads::std_thread());
  std::vector<threads::library> peers = threads::others();
  peers.insert(peers.begin(), {threads::tbb(), threads::openmp()});
  for (threads::library& l : peers)
    if (l.installed && program.options().wants_peer(l.name)) libraries.push_back(std::move(l));
  bench::ordered_json rows = bench::ordered_json::array();
  for (const cost& c : costs(many, program.most_workers())) {
    std::vector<std::vector<double>> values(libraries.size());
    for (int round = 0; round < program.options().reps; ++round)
      for (std::size_t l = 0; l < libraries.size(); ++l)
        if (l == 0 || round < program.options().peer_reps) values[l].push_back(c.measure(libraries[l]));
    for (std::size_t l = 0; l < libraries.size(); ++l) {
      if (values[l].front() < 0) continue;
      const double median = bench::median(values[l]), least = bench::quantile(values[l], 0);
      rows.push_back({{"what", c.what},
                      {"library", libraries[l].name},
                      {"live", c.live},
                      {"workers", c.workers},
                      {"median_ns", median},
                      {"least_ns", least},
                      {"rounds", values[l].size()}});
      if (l == 0)
        program.figure(c.key, c.what, values[l], "ns", c.definition);
      else
        std::fprintf(program.out(), "    %-14s %.3g ns, least %.3g\n", libraries[l].name.c_str(), median,
                     least);
    }
  }
  program.json()["measurements"].push_back(
      {{"title", "Costs by library"}, {"parameters", {{"many", many}}}, {"rows", rows}});
}

void ours_alone(bench::program& program, std::size_t many) {
  const auto measure = [&](const char* key, const char* what, const char* unit, const char* definition,
                           auto&& f) {
    std::vector<double> values;
    for (int round = 0; round < program.options().reps; ++round) values.push_back(f());
    program.figure(key, what, values, unit, definition);
  };
  measure("mutex", "mutex, lock + unlock, alone", "ns", "time / pairs",
          [=] { return threads::mutex_ns(many * 10); });
  measure("created_bytes", "a thread that has not begun", "B", "resident memory",
          [=] { return threads::created_bytes(many); });
  measure("blocked_bytes", "a thread that waits", "B", "resident memory, stack included",
          [=] { return threads::blocked_bytes(many / 10); });
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("threads",
                         "Cost of threads in one process: create and join, yield, switch, mutex, memory.",
                         argc, argv);
  std::size_t many = 0;
  program.option("-n", many, "What \"a million\" is (default 1000000; with --quick 100000)",
                 bench::between(1000, 10'000'000));
  program.parse();
  if (many == 0) many = program.options().quick ? 100'000 : 1'000'000;
  try {
    compare(program, many);
    ours_alone(program, many);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "threads: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
