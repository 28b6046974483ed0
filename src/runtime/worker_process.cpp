// A worker's life. Order matters: the worker first leaves the inherited stack, then makes it read-only.
#include "runtime/worker_process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

#include <godwit/detail/policy_facts.hpp>
#include <godwit/worker_local.hpp>

#include "seams/park.hpp"

#include "base/check.hpp"
#include "base/environment.hpp"
#include "base/rank_output.hpp"
#include "context/context.hpp"
#include "heap/heap.hpp"
#include "heap/kept.hpp"
#include "heap/leaks.hpp"
#include "heap/mains_blocks.hpp"
#include "heap/mains_variables.hpp"
#include "runtime/debugger.hpp"
#include "runtime/exception.hpp"
#include "runtime/faults.hpp"
#include "runtime/forked.hpp"
#include "runtime/libraries.hpp"
#include "runtime/reducers.hpp"

extern "C" [[gnu::weak]] void __gcov_dump();

namespace godwit::runtime {

void unseen_error(const detail::payload& error) noexcept {
  try {
    detail::throw_captured(
        error, [](detail::ref) {}, 0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "godwit: an exception left a thread that nobody joins: %s\n", detail::what_of(e));
    return;
  } catch (...) {
  }
  std::fprintf(stderr, "godwit: an exception left a thread that nobody joins (not a std::exception)\n");
}

void begin_worker(launch& what, transport::shm::segment& memory, transport::worker_no me, std::byte* window,
                  const sched::worker_hooks& hooks) {
  sched::make_worker(what.opts, what.job)
      .init({&memory, me, what.cpus, what.seed, &what.job, &what.opts, hooks, what.rings->of(me)});
  detail::hot().host_heap = what.job.in_process || heap::is_shared() ? 1 : 0;
  detail::hot().one_heap = what.job.host_count == 1 ? detail::hot().host_heap : 0;
  start_global(window, what.global_space, what.opts, what.job);
}

void finish_worker() noexcept {
  detail::end_locals();
  end_global();
  sched::this_worker().finish_stats();
#ifndef NDEBUG
  sched::this_worker().check_invariants();
#endif
}

void root_thread(void* launched) noexcept {
  launch& what = *static_cast<launch*>(launched);
  const detail::ref record = sched::root_record(what.memory.where());
  track_for_main();
  {
    writer w;
    auto kind = detail::outcome::value;
    try {
      (*what.root)(w);
    } catch (...) {
      kind = detail::outcome::error;
      w = writer();
      if (detail::hot().in_place != 0)  // main is in this process
        what.thrown = std::current_exception();
      else
        detail::encode_current_exception(w);
    }
    sched::this_worker().records().publish(record, kind, w.data(), w.size());
  }
  if (detail::thread_block* block = detail::this_block(); block != nullptr && block->at_end != nullptr)
    std::exchange(block->at_end, nullptr)(block);
  sched::this_worker().end_of_root_thread();
}

void bind_to_cpu(const std::vector<int>& cpus, std::uint32_t n) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpus[n % cpus.size()], &set);
  sched_setaffinity(0, sizeof set, &set);
}

namespace {

transport::worker_no me_{};

void tell_supervisor(const char* text) noexcept {
  sched::node_words& node = *sched::this_worker().here().node;
  std::uint64_t expected = 0;
  if (!node.failed.compare_exchange_strong(expected, 1, std::memory_order_seq_cst)) {
    while (node.failed.load(std::memory_order_acquire) == 1) base::nap(100'000);
    return;  // the first one wins, and has written it when the second one ends
  }
  std::strncpy(node.message, text, sizeof node.message - 1);
  node.failed.store(2, std::memory_order_release);
}

/// Up to where a stack of this worker can be followed. Above that, frames may have left it.
std::uintptr_t end_of_stack() noexcept {
  const sched::worker& w = sched::this_worker();
  const auto at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const stack::range scheduler = w.scheduler_stack().bytes();
  if (scheduler.holds(at)) return scheduler.high;
  return detail::facts_of(w.here().opts).lists_threads() ? detail::hot().bottom[-1].sp : 0;
}

void exit_worker() noexcept {
  finish_worker();
  heap::report_leaks(sched::this_worker().scheduler_stack().bytes());
  if (const std::string problem = flush_output(); !problem.empty())
    base::fatal("worker %u: %s", transport::index(me_), problem.c_str());
  if (__gcov_dump != nullptr) __gcov_dump();
  sched::this_worker().retire();
  _exit(0);
}

constexpr std::uint32_t most_private_heaps = 1024;  // more workers than that share ranges

/// Frames made here are checked where they end, possibly in a process that was not forked from the same one.
__attribute__((no_stack_protector)) void set_canary(std::uint64_t value) noexcept {
#if defined(__x86_64__)
  asm volatile("movq %0, %%fs:0x28" ::"r"(value));
#elif defined(__sparc__)
  asm volatile("stx %0, [%%g7+0x28]" ::"r"(value));
#else
  static_cast<void>(value);  // a read-only variable of the C library: with a common one see docs/cluster.md
#endif
}

void on_own_stack(void* launched) {
  launch& what = *static_cast<launch*>(launched);
  fault_map map;
  if (what.opts.private_heap) {
    const std::uint32_t heaps = std::min(what.job.workers, most_private_heaps);
    const std::uint32_t number = transport::index(me_) % heaps;
    const stack::range mine = stack::own_private_heap(number, heaps, what.heap == nullptr);
    if (mine.high != 0) {
      map.own_private_heap = mine;
      map.private_heap_bytes = mine.high - mine.low;
      map.private_heaps.low = mine.low - map.private_heap_bytes * number;
      map.private_heaps.high = map.private_heaps.low + map.private_heap_bytes * heaps;
    } else if (what.warns_of_heaps && me_ == transport::worker_no{0}) {
      std::fprintf(stderr, "godwit: warning: %s\n", equal_heaps);
    }
  }
  base::move_environment();
  map.main_stack = what.main_stack;
  bind_to_cpu(what.bind_to, transport::index(me_) - what.memory.near().first);
  sched::worker_hooks hooks{exit_worker, unseen_error};
  hooks.on_idle = heap::tidy;     // if there is one
  if (what.job.host_count > 1) {  // on one host the hardware does all of this
    hooks.heap_in_use = heap::in_use;
    hooks.is_free = heap::is_free;
    hook_global(hooks, what.opts);
    hook_parcels(hooks);
  }
  begin_worker(what, what.memory, me_, what.global.base(), hooks);
  sched::this_worker().keep_with(map.own_private_heap);
  base::set_fatal_hook(tell_supervisor);
  heap::keep();
  heap::remember_mains_blocks(what.opts.check_heap);
  if (what.opts.check_heap && heap::records_main()) heap::remember_mains_variables();
  map.mpi_code = forbid_mpi();
  if (what.heap != nullptr) {
    const auto heap = reinterpret_cast<std::uintptr_t>(what.heap->base());
    map.shared_heap = {heap, heap + what.heap->bytes()};
    map.hosts_heaps = what.job.hosts_heaps;
  }
  install_handlers(map);
  stack::protect(what.main_stack);
  if (what.heap != nullptr) {
    keep_from_children(*what.heap);
    heap::enter(transport::index(me_) - what.memory.near().first, end_of_stack);
  }
  sched::this_worker().start(me_ == transport::worker_no{0} ? root_thread : nullptr, &what);
}

}  // namespace

std::string flush_output() noexcept {
  const auto is_open = [](int fd) { return fcntl(fd, F_GETFL) >= 0; };
  std::string problem;
  try {
    errno = 0;
    const bool flushed = std::fflush(nullptr) == 0;
    const int first_error = flushed ? 0 : errno;
    const auto flush = [](auto& stream) {
      try {
        stream.flush();
      } catch (...) {  // it was told to throw
      }
      return !stream.bad();
    };
    const bool narrow_out = flush(std::cout), wide_out = flush(std::wcout), narrow_err = flush(std::cerr),
               log = flush(std::clog);
    const bool out = narrow_out && wide_out, err = narrow_err && log;
    const char* where = is_open(1) && (!out || std::ferror(stdout) != 0)   ? "output"
                        : is_open(2) && (!err || std::ferror(stderr) != 0) ? "error"
                                                                           : nullptr;
    if (where != nullptr)
      problem = std::string("not all that was printed to standard ") + where + " could be written: " +
                (first_error != 0 ? std::strerror(first_error) : "an earlier write failed") +
                ": make room where it goes, and run again";
  } catch (...) {  // no memory for a sentence
  }
  return problem;
}

// Never comes back, so it may change the canary under its own feet.
__attribute__((no_stack_protector)) void worker_main(launch& what, transport::worker_no me) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != what.supervisor) _exit(base::status_failed);  // it died meanwhile
  if (what.canary != 0) set_canary(what.canary);
  base::open_output();  // what threads print is shown, whatever the rank
  base::write_whole_lines();
  me_ = me;
  what.memory.adopt(me);
  context::use_hot_words(
      reinterpret_cast<detail::hot_words*>(what.memory.common() + what.memory.where().hot));
  describe_to_debuggers(what, transport::index(me));
  std::byte* low = stack::map_private(stack::scheduler_stack_bytes);
  context::sanitizer_on_stack(low, stack::scheduler_stack_bytes);
  godwit_ctx_start(low + stack::scheduler_stack_bytes, on_own_stack, &what);
  __builtin_unreachable();
}

}  // namespace godwit::runtime
