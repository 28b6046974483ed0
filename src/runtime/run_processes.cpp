// run on the substrate processes: the workers are forked from the calling process, which supervises them.
//
// It sleeps until a worker ends, a signal arrives or a tick is due. Any worker that ends before the run is
// over ends the run: all others are killed, the reason is told once. The shared memory has no name and the
// workers die with the supervisor (parent-death signal), so nothing stays behind. Tests: tests/api, above
// all run_test.cpp, fault_test.cpp and death_test.cpp.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "runtime/libraries.hpp"
#include "runtime/rank_calls.hpp"
#include "runtime/run_common.hpp"
#include "runtime/stuck.hpp"

namespace godwit::runtime {

namespace {

/// Workers that wait for ever where the scheduler does not see it: why the run cannot end, or nothing.
/// @p ticks: a function is called here now and then.
std::string look_for_stuck(stuck_watch& watch, const family& workers, const launch& what, bool ticks) {
  const transport::shm::segment& memory = what.memory;
  const sched::word& idle = host_words(memory).idle;
  const std::uint64_t idle_before = idle.load(std::memory_order_seq_cst);
  std::vector<stuck_watch::wait> waits, in_heap;
  bool somebody_runs = ticks || !stuck_watch::nobody_else(getpid(), 1, false);
  const auto heap = reinterpret_cast<std::uintptr_t>(what.heap != nullptr ? what.heap->base() : nullptr);
  workers.each([&](std::uint32_t worker, pid_t pid) {
    stuck_watch::wait w{};
    const bool waits_so = stuck_watch::waits(pid, worker, w) && stuck_watch::nobody_else(pid, 1, false);
    if (waits_so && !w.shared)
      waits.push_back(w);
    else if (waits_so && what.heap != nullptr && w.word - heap < what.heap->bytes())
      in_heap.push_back(w);
    else if (words_of(memory, transport::worker_no{worker}).worker.asleep.load(std::memory_order_relaxed) ==
                 0 ||
             !stuck_watch::nobody_else(pid, 1, false))
      somebody_runs = true;
  });
  if (!somebody_runs && stuck_watch::at_once(in_heap) && idle.load(std::memory_order_seq_cst) == idle_before)
    waits.insert(waits.end(), in_heap.begin(), in_heap.end());
  if (!watch.seen(waits)) return "";
  const stuck_watch::wait& w = waits[0];
  const auto& l = memory.where();
  const std::uint64_t offset = w.sp - reinterpret_cast<std::uintptr_t>(memory.common());
  const bool readable = offset >= l.stack && offset < l.stack + l.stack_bytes;
  const auto* sp = reinterpret_cast<const std::uint64_t*>(w.sp);
  return describe_stuck(w, readable ? memory.at(transport::worker_no{w.worker}, sp) : nullptr,
                        readable ? l.stack + l.stack_bytes - offset : 0);
}

/// Of a worker of a small program that has not done anything, its page tables and the system's structures
/// among it; twice that is usual.
constexpr std::uint64_t least_memory = 128 << 10;

class processes final : public substrate {
 public:
  void plan(run_state& r) override {
    r.plan_one_host(r.what.opts.workers != 0 ? r.what.opts.workers : r.what.cpus);
  }

  void memory(run_state& r) override {
    refuse_too_many(r.own.count, least_memory, "processes",
                    ", or --godwit-substrate=threads (GODWIT_SUBSTRATE), where each takes less");
    stop_.emplace();
    r.what.memory.create(r.own.count, plan_segment(r.what.opts, r.own.count));
    complete_memory(r);
    make_heap(r);
  }

  void start(run_state& r) override {
    end_threads_of_libraries();
    warn_of_threads();
    started_ = true;
    if (std::string problem = fork_workers(r.what, r.own, workers_.emplace()); !problem.empty())
      r.fail(base::status_failed, std::move(problem));
  }

  void supervise(run_state& r) override {
    auto next_tick = base::now_ns();
    stuck_watch stuck(r.own.count);
    rank_calls calls(r.what.memory, transport::worker_no{r.own.first});
    while (workers_->alive() != 0 && !r.failed()) {
      const int tick_ms = tick(next_tick);
      workers_->sleep(stop_->fd(), stuck.sleep_ms(tick_ms));
      calls.look();
      if (stuck.due())
        if (std::string why = look_for_stuck(stuck, *workers_, r.what, tick_ms >= 0); !why.empty()) {
          r.fail(base::status_failed, std::move(why));
          break;
        }
      if (verdict v = look_at(*workers_, *stop_, r.what.memory); v.status != 0)
        r.fail(v.status, std::move(v.message));
    }
    workers_->kill_all();
    in_order_ = !r.failed();
  }

  void end(run_state& r) noexcept override {
    workers_.reset();
    end_heap(r, !started_ || in_order_);
  }

 private:
  std::optional<interrupt_guard> stop_;
  std::optional<family> workers_;
  bool started_ = false, in_order_ = false;
};

}  // namespace

std::unique_ptr<substrate> make_processes(const options&) { return std::make_unique<processes>(); }

}  // namespace godwit::runtime
