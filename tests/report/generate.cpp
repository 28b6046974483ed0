// Writes a trace file of a simulated run: report_generate FILE [workers [events [key=value...]]]
//
// Keys: grain, latency (ns), serial (part), hosts, seed, policy=stalling, moves=N (of parts of each of two
// movable allocations), dropped=N (the first events of every worker), spares=N (of the workers, the last).
#include "trace_builder.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void drop(report_test::trace_builder& t, std::size_t n) {
  for (std::size_t w = 0; w < t.events.size(); ++w) {
    auto& list = t.events[w];
    const std::size_t gone = std::min(n, list.size());
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(gone));
    t.info["dropped"][w] = gone;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "report_generate FILE [workers [events [key=value...]]]\n");
    return 2;
  }
  report_test::schedule s;
  std::size_t dropped = 0;
  std::uint32_t spares = 0;
  std::uint64_t moves = 0;  // of each of two allocations
  if (argc > 2) s.workers = static_cast<std::uint32_t>(std::atoi(argv[2]));
  if (argc > 3) s.events = static_cast<std::uint64_t>(std::atof(argv[3]));
  for (int i = 4; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto is = [&](const char* key) { return arg.rfind(std::string(key) + "=", 0) == 0; };
    const std::string value = arg.substr(arg.find('=') + 1);
    if (is("grain"))
      s.grain_ns = std::atof(value.c_str());
    else if (is("latency"))
      s.latency_ns = std::atof(value.c_str());
    else if (is("serial"))
      s.serial = std::atof(value.c_str());
    else if (is("hosts"))
      s.hosts = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    else if (is("seed"))
      s.seed = static_cast<std::uint64_t>(std::atoll(value.c_str()));
    else if (is("policy"))
      s.greedy = value != "stalling";
    else if (is("moves"))
      moves = static_cast<std::uint64_t>(std::atoll(value.c_str()));
    else if (is("spares"))
      spares = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    else if (is("dropped"))
      dropped = static_cast<std::size_t>(std::atoll(value.c_str()));
    else {
      std::fprintf(stderr, "report_generate: what is %s?\n", arg.c_str());
      return 2;
    }
  }
  report_test::trace_builder t = report_test::simulate(s);
  if (moves > 0) report_test::add_moves(t, moves, s.seed);
  if (dropped > 0) drop(t, dropped);
  if (spares > 0) {
    t.info["workers"] = s.workers - spares;
    t.info["spares"] = spares;
  }
  t.write(argv[1]);
  std::printf("%s: %llu events of %u workers\n", argv[1], static_cast<unsigned long long>(t.event_count()),
              s.workers);
  return 0;
}
