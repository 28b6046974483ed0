// A worker's life. Order matters: the worker first leaves the inherited stack, then makes it read-only.
#include "runtime/worker_process.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/environment.hpp"
#include "context/context.hpp"
#include "runtime/exception.hpp"
#include "runtime/faults.hpp"

extern "C" [[gnu::weak]] void __gcov_dump();

namespace godwit::runtime {

namespace {

launch* what_ = nullptr;
transport::worker_no me_{};

void tell_supervisor(const char* text) noexcept {
  sched::run_words& run = sched::this_worker.run();
  std::uint64_t expected = 0;
  if (!run.failed.compare_exchange_strong(expected, 1)) return;  // the first one wins
  std::strncpy(run.message, text, sizeof run.message - 1);
  run.failed.store(2, std::memory_order_release);
}

void exit_worker() noexcept {
  sched::this_worker.finish_stats();
#ifndef NDEBUG
  sched::this_worker.check_invariants();
#endif
  flush_output();
  if (__gcov_dump != nullptr) __gcov_dump();
  _exit(0);
}

void unseen_error(const detail::payload& error) noexcept {
  try {
    reader r(error.data, error.size);
    detail::throw_encoded(r);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "godwit: an exception left a thread that nobody joins: %s\n", e.what());
    return;
  } catch (...) {
  }
  std::fprintf(stderr, "godwit: an exception left a thread that nobody joins (not a std::exception)\n");
}

/// The root thread.
void root_entry(void*) {
  const detail::ref record = sched::this_worker.run().root_record.load(std::memory_order_relaxed);
  {
    writer w;
    auto kind = detail::outcome::value;
    try {
      (*what_->root)(w);
    } catch (...) {
      kind = detail::outcome::error;
      w = writer();
      detail::encode_current_exception(w);
    }
    sched::this_worker.publish(record, kind, w.data(), w.size());
  }
  sched::this_worker.end_of_root_thread();
}

void bind_to_cpu(const std::vector<int>& cpus, std::uint32_t worker) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpus[worker % cpus.size()], &set);
  sched_setaffinity(0, sizeof set, &set);
}

void on_own_stack(void*) {
  launch& what = *what_;
  fault_map map;
  if (what.opts.private_heap) {
    const stack::range mine = stack::own_heap_window(transport::index(me_), what.workers);
    if (mine.high != 0) {
      map.own_window = mine;
      map.window_bytes = mine.high - mine.low;
      map.heap_windows.low = mine.low - map.window_bytes * transport::index(me_);
      map.heap_windows.high = map.heap_windows.low + map.window_bytes * what.workers;
    }
  }
  base::move_environment();
  map.main_stack = what.main_stack;
  bind_to_cpu(what.bind_to, transport::index(me_));
  sched::this_worker.init(what.memory, me_, what.workers, what.cpus, what.opts, what.seed,
                          {exit_worker, unseen_error});
  base::set_fatal_hook(tell_supervisor);
  install_handlers(map);
  stack::protect(what.main_stack);
  sched::this_worker.start(me_ == transport::worker_no{0} ? root_entry : nullptr, nullptr);
}

}  // namespace

void flush_output() noexcept {
  try {
    std::cout.flush();
    std::cerr.flush();
    std::clog.flush();
    std::wcout.flush();
  } catch (...) {  // the stream was told to throw
  }
  std::fflush(nullptr);
}

void worker_main(launch& what, transport::worker_no me) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != what.supervisor) _exit(base::status_failed);  // it died meanwhile
  what_ = &what;
  me_ = me;
  what.memory.adopt(me, &godwit_hot_);
  std::byte* low = nullptr;
  std::byte* high = stack::map_private(stack::scheduler_stack_bytes, &low);
  context::sanitizer_on_stack(low, stack::scheduler_stack_bytes);
  godwit_ctx_start(high, on_own_stack, nullptr);
  __builtin_unreachable();
}

}  // namespace godwit::runtime
