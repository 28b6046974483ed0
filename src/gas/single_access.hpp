// One access to a single value in memory of another host: timed now and then.
//
// Used by access.cpp; heard by src/runtime/global_path.cpp, which makes events of the trace of it.
// Document: docs/tracing.md. Test: tests/mpi/trace_test.sh.
#pragma once

#include <godwit/runtime.hpp>

#include <cstdint>

#include "base/world.hpp"
#include "gas/reach.hpp"

namespace godwit::gas {

/// Lives as long as the access takes. A clock costs some percent of one: not every one is timed.
class single_access {
 public:
  /// @p before: accesses of this worker so far.
  single_access(const reach& net, std::uint64_t& before, access_event::kind what, std::uint64_t at,
                std::uint32_t owner) noexcept
      : net_(net), event_{what, at, owner, per_sample} {
    if (before++ % per_sample == 0) event_.since_ns = base::fast_ns();
  }
  ~single_access() {
    if (event_.since_ns == 0) return;
    net_.stats().far_single_ns += per_sample * (base::fast_ns() - event_.since_ns);
    event_.frame = this;
    net_.note(event_);
  }
  single_access(const single_access&) = delete;
  single_access& operator=(const single_access&) = delete;

 private:
  static constexpr std::uint32_t per_sample = 8;
  const reach& net_;
  access_event event_;
};

}  // namespace godwit::gas
