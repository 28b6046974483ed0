// Ask the kernel for short turns on the CPU while this object lives: then it lets us in when we wake beside a
// computing worker, instead of at the end of that worker's turn, milliseconds later.
//
// For companions (run_mpi.cpp). Linux 6.12 and newer; older ones refuse or ignore it,
// and prefer sleepers anyway. It is a hint: nothing depends on it but time.
#pragma once

#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

namespace godwit::runtime {

class short_turns {
 public:
  short_turns() noexcept { set(100'000); }
  ~short_turns() { set(0); }
  short_turns(const short_turns&) = delete;
  short_turns& operator=(const short_turns&) = delete;

 private:
  struct attributes {  // struct sched_attr, first version
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  };
  static void set(std::uint64_t slice_ns) noexcept {
    attributes a{};
    if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0u) != 0 || a.policy != 0) return;  // SCHED_OTHER only
    a.size = sizeof a;
    a.runtime = slice_ns;
    syscall(SYS_sched_setattr, 0, &a, 0u);
  }
};

}  // namespace godwit::runtime
