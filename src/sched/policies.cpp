// Workers of the policy that a run has. See policies.hpp.
#include "sched/policies.hpp"

#include <algorithm>

#include "sched/child.hpp"
#include "sched/continuation.hpp"

namespace godwit::sched {

namespace {

constexpr std::size_t room_bytes = std::ranges::max(of_each_row(policy_rows{}, [](auto row) {
  if constexpr (policy_table[row].steals_children)
    return sizeof(child_worker<children<row>>);
  else
    return std::max({sizeof(continuation_worker<on<continuations<row>, on_processes>>),
                     sizeof(continuation_worker<on<continuations<row>, on_threads>>),
                     sizeof(continuation_worker<on<continuations<row>, on_sim>>)});
}));

// The worker of a process: at the same address in all of them, so that threads that migrate can go on with
// what they know.
alignas(64) std::byte room_[room_bytes];

}  // namespace

worker& make_worker(const options& opts, const job_shape& job) noexcept {
  const std::size_t row = detail::policy_row(opts);
  const worker_makers& make =
      (policy_table[row].steals_children ? child_makers() : continuation_makers())[row];
  worker* w = nullptr;
  if (job.in_process) {
    void* room = ::operator new (room_bytes, std::align_val_t{64});
    w = job.takes_turns ? make.on_sim(room) : make.on_threads(room);
  } else {
    w = make.on_processes(room_);
  }
  detail::hot().owner = w;
  return *w;
}

void end_worker() noexcept {
  worker& w = this_worker();
  detail::hot().owner = nullptr;
  w.~worker();
  ::operator delete (static_cast<void*>(&w), std::align_val_t{64});
}

}  // namespace godwit::sched
