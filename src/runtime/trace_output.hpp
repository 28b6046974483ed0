// What a run leaves behind for people: the trace file, the table of counters, their JSON. Made in every
// supervising process of a run, before its workers.
//
// The rings are shared memory of this process and its workers, so that what a worker wrote is there whatever
// becomes of it. Files are opened first, so that a name that cannot be written is an error of the options,
// before anything runs. Called by: run_steps.cpp. Document: docs/tracing.md. Tests:
// tests/api/trace_test.cpp, tests/trace/.
#pragma once

#include "runtime/stats_output.hpp"
#include "trace/ring.hpp"
#include "trace/trace_file.hpp"
#include "transport/shm/pages.hpp"
#include "transport/shm/segment.hpp"

#include <godwit/options.hpp>

#include <cstdint>
#include <optional>

namespace godwit::runtime {

/// The workers that are traced: some of all, evenly spread. The same in all ranks.
class trace_sample {
 public:
  trace_sample(const options& opts, std::uint32_t workers) noexcept;
  std::uint32_t count() const noexcept { return count_; }
  /// So many of them have lower numbers than worker @p w.
  std::uint32_t before(std::uint32_t w) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{w} * count_ + workers_ - 1) / workers_);
  }
  bool any(transport::shm::near_range of) const noexcept {
    return before(of.first) != before(of.first + of.count);
  }
  bool holds(std::uint32_t w) const noexcept { return any({w, 1}); }

 private:
  std::uint32_t workers_, count_;
};

/// The rings of the workers that this process forks and that are traced. None unless the run is.
class trace_rings {
 public:
  /// @p workers: of the run. Throws std::runtime_error. Memory is used as events come.
  trace_rings(const options& opts, transport::shm::near_range own, std::uint32_t workers);
  const trace_sample& sample() const noexcept { return sample_; }
  /// Null: it is not traced, or not ours.
  trace::ring_memory* of(transport::worker_no w) const noexcept;
  /// Nothing more is written into them: their workers go on.
  void close() const noexcept;
  /// Into the counters of @p w: events written and dropped.
  void count(transport::worker_no w, worker_stats& stats) const noexcept;

 private:
  transport::shm::near_range own_;
  trace_sample sample_;
  std::size_t bytes_each_ = 0;
  transport::shm::shared_pages pages_;
};

class run_outputs {
 public:
  /// Open the files that @p opts name. Throws std::invalid_argument: one line.
  explicit run_outputs(const options& opts);
  void begin(std::uint32_t workers) {
    if (trace_) trace_->begin(workers);
  }

  /// See trace/out_file.hpp. begin may follow once more.
  void pause();
  void resume();

  trace::trace_file* trace() noexcept { return trace_ ? &*trace_ : nullptr; }
  /// Append the events of the workers @p own.
  void add(const trace_rings& rings, transport::shm::near_range own);
  /// Write everything. @p facts are those of the whole run. Prints lines; does not throw.
  void write(const run_facts& facts) noexcept;

 private:
  void write_stats(const run_facts& facts);
  void write_trace(const run_facts& facts);

  std::optional<trace::trace_file> trace_;
  std::optional<trace::out_file> stats_json_;
};

}  // namespace godwit::runtime
