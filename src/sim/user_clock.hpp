// What says how long user code takes where the program does not (sim_clock): the clock of this machine, or
// the instructions that the code retires. Made by runtime/run_sim.cpp. Document: docs/scale.md, Time.
// Test: tests/sim/user_clock_test.cpp.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace godwit::sim {

/// Of the OS thread that simulates.
class user_clock {
 public:
  user_clock() = default;
  user_clock(const user_clock&) = delete;
  user_clock& operator=(const user_clock&) = delete;
  virtual ~user_clock() = default;
  /// Nanoseconds since some moment.
  virtual std::uint64_t ns() noexcept = 0;
};

class machine_clock final : public user_clock {
 public:
  std::uint64_t ns() noexcept override { return base::system_ns(); }
};

/// Something that the kernel counts about the calling OS thread in user mode: perf_event_open(2).
class perf_counter {
 public:
  /// @p type, @p what: perf_event_attr's type and config. Throws std::system_error if the machine has no such
  /// counter, or if this process may not have it.
  perf_counter(std::uint32_t type, std::uint64_t what);
  ~perf_counter();
  perf_counter(const perf_counter&) = delete;
  perf_counter& operator=(const perf_counter&) = delete;
  /// How many so far. Cost: a system call. Ends the process with a message if others have taken the counter.
  std::uint64_t read() const noexcept;

 private:
  int fd_ = -1;
};

/// Retired instructions. Throws as perf_counter does.
std::unique_ptr<perf_counter> instructions();

/// @p counter, of which @p per_ns count as a nanosecond.
class counting_clock final : public user_clock {
 public:
  counting_clock(std::unique_ptr<perf_counter> counter, double per_ns)
      : counter_(std::move(counter)), ns_each_(1 / per_ns) {}
  std::uint64_t ns() noexcept override {
    return static_cast<std::uint64_t>(static_cast<double>(counter_->read()) * ns_each_);
  }

 private:
  const std::unique_ptr<perf_counter> counter_;
  const double ns_each_;
};

}  // namespace godwit::sim
