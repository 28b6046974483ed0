// trace_sample [EVENTS [lost]] FILE: writes the trace of a simulated run, for perfetto_check.py and for a look at
// ui.perfetto.dev. lost: every worker has lost the first half of its events.
#include "trace/events_by_hand.hpp"
#include "trace/trace_file.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  using namespace godwit::trace;
  constexpr std::uint32_t workers = 6;
  const auto steps = static_cast<std::size_t>(argc > 2 ? std::atoll(argv[1]) : 5000);
  const by_hand::history h = by_hand::simulation(workers, 42).run(steps);
  const auto start = std::chrono::steady_clock::now();
  trace_file file(argv[argc - 1]);
  file.begin(workers);
  std::vector<std::string> names;
  std::size_t total = 0;
  for (std::uint32_t w = 0; w < workers; ++w) {
    const std::size_t lost = argc > 3 ? h[w].size() / 2 : 0;
    names.push_back("worker " + std::to_string(w));
    file.dropped(w, lost);
    file.append(w, h[w].data() + lost, h[w].size() - lost);
    total += h[w].size() - lost;
  }
  const auto info = [&](const summary& s) {
    std::string dropped, events;
    for (std::uint32_t w = 0; w < workers; ++w) {
      dropped += (w != 0 ? "," : "") + std::to_string(s.dropped_of[w]);
      events += (w != 0 ? "," : "") + std::to_string(s.events_of[w]);
    }
    return "{\"godwit\":\"sample\",\"program\":\"trace_sample\",\"arguments\":[],\"workers\":" +
           std::to_string(workers) + ",\"hosts\":[],\"options\":{},\"clock\":\"\",\"stats\":{},\"events\":[" + events +
           "],\"dropped\":[" + dropped + "]}";
  };
  const auto text = [](std::uint64_t address) { return std::string(address == 0x1000 ? "some/file.cpp" : "function"); };
  const summary& s = file.finish(names, info, text);
  std::printf("%zu events, %u threads (%u without a track), %.2f s\n", total, s.threads, s.threads_left_out,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return file.problem().empty() ? 0 : 1;
}
