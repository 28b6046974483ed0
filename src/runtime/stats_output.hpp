// Counters of a run as text: the table of GODWIT_STATS=1 and the JSON of GODWIT_STATS_JSON=FILE.
//
// Called by: run_steps.cpp (through run_outputs). Document: docs/tracing.md, which explains every row.
// Tests: tests/trace/stats_test.cpp, tests/api/trace_test.cpp.
#pragma once

#include <godwit/options.hpp>
#include <godwit/runtime.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gas/heat.hpp"
#include "runtime/sim_result.hpp"

namespace godwit::base {
class json_writer;
}

namespace godwit::runtime {

struct host_facts {
  std::string name;
  std::uint32_t first_worker = 0;
  std::uint32_t workers = 0;
};

/// What is known about a run when it is over.
struct run_facts {
  options opts;
  std::string program;
  std::vector<std::string> arguments;
  std::vector<host_facts> hosts;
  std::vector<worker_stats> stats;
  std::uint32_t spares = 0;  ///< spare workers behind those, in the trace alone
  gas::heat_sums heat;       ///< with one host empty
  std::optional<sim_result> sim;
  double wall_seconds = 0;
  unsigned cpus = 0;  ///< that the run may use, on all hosts
  int status = 0;
  std::string message;  ///< why it failed
};

/// program and arguments of this process, as it was started.
void name_program(run_facts& facts);

struct counter_field {
  std::string_view name;
  std::uint64_t worker_stats::*field;
  bool maximum;  ///< of all workers, the largest counts; else the sum
};
/// All counters but the histogram far_steal_times.
std::span<const counter_field> counter_fields() noexcept;
worker_stats total_of(const std::vector<worker_stats>& all) noexcept;

/// Lines to print, each beginning with "godwit: ".
std::string stats_table(const run_facts& facts);
/// An object, without a line end.
std::string stats_json(const run_facts& facts);
/// The fields that say what was run, into an object that is open.
void put_run(base::json_writer& json, const run_facts& facts);

}  // namespace godwit::runtime
