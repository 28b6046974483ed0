// The functions that threads want called in their rank's own process (godwit/on_rank.hpp), as the process
// that supervises workers sees them: it looks into the words of its first worker, and calls on an OS thread.
// Document: docs/cluster.md. Tests: tests/global/on_rank_test.cpp, tests/mpi/calls_check.cpp.
#pragma once

#include <godwit/detail/rank_call.hpp>

#include "transport/shm/segment.hpp"

#include <memory>
#include <thread>

namespace godwit::runtime {

class rank_calls {
 public:
  /// In the words of the @p first worker of the rank, in @p memory.
  rank_calls(const transport::shm::segment& memory, transport::worker_no first) noexcept
      : memory_(memory), first_(first) {}
  /// The run may have failed, and what was called may wait for ever: then it is left to itself.
  ~rank_calls();
  rank_calls(const rank_calls&) = delete;
  rank_calls& operator=(const rank_calls&) = delete;

  /// Begin what is asked for. Often; costs one load.
  void look();
  /// Begin it in this process, whose threads the workers are.
  static void begin_here(const transport::shm::segment& memory, transport::worker_no first);

 private:
  struct one;
  const transport::shm::segment& memory_;
  const transport::worker_no first_;
  std::shared_ptr<one> call_;
  std::thread called_;
};

}  // namespace godwit::runtime
