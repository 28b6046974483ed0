// What a simulated run was like: the line that is printed after it, and the object `sim` in the statistics
// (--godwit-stats-json). docs/scale.md. Made by runtime/run_sim.cpp. Test: tests/sim/run_test.cpp.
#pragma once

#include "base/json.hpp"
#include "sim/engine.hpp"
#include "sim/network.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace godwit::runtime {

struct sim_result {
  std::string machine;
  std::uint32_t workers = 0, hosts = 0;
  bool measured = false;  ///< the clock: another run differs
  sim::tally turns;
  std::optional<sim::traffic> net;  ///< several hosts
  /// Several hosts: that starting and ending as many real ranks is estimated to take, beside all this.
  std::uint64_t collectives_ns = 0;
  double here_seconds = 0;  ///< that the simulation took
  std::uint64_t memory_bytes =
      0;  ///< that it took at the most; at its end, if the process had as much before

  /// Of the workers' time, what the program charged. 0: it charged nothing.
  double efficiency() const noexcept;
  /// Of the workers' time, what threads were late: above 0.005 results are not to be trusted.
  double lateness() const noexcept;
  std::string line() const;
  void put(base::json_writer& json) const;

 private:
  double worker_ns() const noexcept;
};

/// Bytes of this process that are in memory.
std::uint64_t resident_bytes();
/// The most that ever were.
std::uint64_t most_resident_bytes();

}  // namespace godwit::runtime
