// How many spawns there were, estimated: of those that nobody steals a trace has samples only.
//
// A sample stands for the time since the one before it on its worker. Called by: walker.hpp, read by
// verdict.cpp. Document: docs/report.md. Test: tests/report/spawns_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace godwit::report {

struct analysis;

struct spawn_estimate {
  double spawns = 0;                ///< in the time in which workers had threads
  std::uint64_t seen = 0;           ///< of these, in samples
  std::uint32_t most = 0xffffffff;  ///< most of them are there; index into analysis::names
};

class spawn_samples {
 public:
  explicit spawn_samples(std::uint32_t workers) : workers_(workers) {}

  /// Before @p at, worker @p w spawned @p count threads in @p ns, the last one where @p name says.
  void add(std::uint32_t w, std::uint64_t at, std::uint64_t ns, std::uint32_t count, std::uint32_t name);
  /// By what the workers were busy in all.
  spawn_estimate estimate(const analysis& a) const;

 private:
  struct worker {
    std::uint64_t last = 0;  ///< the time of the last sample
    double stands_for_ns = 0;
    std::map<std::uint32_t, double> spawns;  ///< in that time, by name
  };
  std::vector<worker> workers_;
  std::uint64_t seen_ = 0;
};

}  // namespace godwit::report
