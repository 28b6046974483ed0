// Tasks and runs. See godwit-chapel.h.
#include "internal.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <exception>

#include <godwit/options.hpp>
#include <godwit/run.hpp>
#include <godwit/runtime.hpp>
#include <godwit/task.hpp>
#include <godwit/thread.hpp>

#include "base/check.hpp"
#include "base/cpus.hpp"
#include "runtime/substrate.hpp"

namespace godwit::chapel {

namespace {

// Addresses for stacks of each worker, and so many of them, where addresses are not limited. (A worker's
// segment has less than 2^40 bytes.)
constexpr std::uint64_t most_stack_bytes = std::uint64_t{1} << 39;
constexpr std::uint64_t most_begun = 1 << 20;

gwchpl_setup setup_;
options options_;
// (Not destroyed: the process may be ended by a task while other workers run.)
std::vector<counters>& counters_ = *new std::vector<counters>(1);

// So many tasks, each begun by the one before, may run on top of each other.
constexpr std::uint32_t most_nested = 256;

void run_task(void* data, std::uint32_t nested) noexcept {
  task me{data};
  me.nested = nested;
  detail::this_block()->foreign = &me;
  count(&counters::begun);
  setup_.body(data);
  if (me.listed) unlist(me.yielding);
  detail::this_block()->foreign = nullptr;
  setup_.release(data);  // no report reads it any more
  count(&counters::ended);
}

struct root final : detail::root_task {
  explicit root(void* d) noexcept : data(d) {}
  bool needs_threads() const noexcept override { return true; }
  void operator()(writer&) override {
    if (outside::expected()) outside::start();
    outside::begin_those_left();
    count(&counters::created);
    run_task(data, 0);
    if (outside::expected()) outside::stop();
  }
  void* const data;
};

std::uint64_t sum(std::atomic<std::uint64_t> counters::*which) noexcept {
  std::uint64_t n = 0;
  for (const counters& c : counters_) n += (c.*which).load(std::memory_order_relaxed);
  return n;
}

/// Counted one after the other while others go on, so it may come out below zero.
std::uint64_t difference(std::uint64_t more, std::uint64_t less) noexcept {
  return more > less ? more - less : 0;
}

}  // namespace

task* self() noexcept {
  const detail::thread_block* block = detail::this_block();
  return block != nullptr ? static_cast<task*>(block->foreign) : nullptr;
}

const gwchpl_setup& setup() noexcept { return setup_; }

std::uint64_t counters::progress() const noexcept {
  return begun.load(std::memory_order_relaxed) + ended.load(std::memory_order_relaxed) +
         blocked.load(std::memory_order_relaxed) + woken.load(std::memory_order_relaxed);
}
const std::vector<counters>& all_counters() noexcept { return counters_; }
const counters& my_counters() noexcept { return counters_[worker_id() + 1]; }

void count(std::atomic<std::uint64_t> counters::*which) noexcept {
  if (!detail::on_substrate_threads()) {
    (counters_[0].*which).fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::atomic<std::uint64_t>& mine = counters_[worker_id() + 1].*which;
  mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// It runs at once, and others may take the rest of the caller: that costs least, and trees of tasks go into
// depth, so that few have begun at a time. Where each task begins the next one, that would be all of them.
void begin_inside(void* data) {
  count(&counters::created);
  const task* me = self();
  const std::uint32_t nested = me != nullptr ? me->nested + 1 : 1;
  if (nested < most_nested)
    static_cast<void>(spawn([data, nested] { run_task(data, nested); }));
  else
    thread([data] { run_task(data, 0); }).detach();
}

}  // namespace godwit::chapel

using namespace godwit;
using namespace godwit::chapel;

extern "C" {

void gwchpl_init(const gwchpl_setup* setup) {
  setup_ = *setup;
  try {
    options defaults;
    if (setup->stack_bytes != 0) defaults.thread_stack_bytes = std::bit_ceil(setup->stack_bytes);
    defaults.workers = setup->workers;
    options_ = resolve_options(defaults);
    options_.substrate = choice::substrate::threads;
    options_.policy = choice::policy::greedy;  // it lets threads wait
    if (options_.workers == 0) options_.workers = static_cast<unsigned>(base::usable_cpu_count());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::exit(2);
  }
  counters_ = std::vector<counters>(1 + options_.workers + options_.spare_workers);
}

int gwchpl_run(void* data) {
  root r(data);
  detail::run_result result;
  try {
    const std::uint64_t workers = options_.workers + options_.spare_workers;
    const std::uint64_t room = workers * std::min(most_begun, most_stack_bytes / options_.thread_stack_bytes);
    const auto threads = runtime::make_threads(options_, room);
    result = runtime::run_on(*threads, options_, r);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return base::status_failed;
  }
  return detail::report(result);
}

void gwchpl_begin(void* data) {
  if (self() != nullptr)
    begin_inside(data);
  else
    outside::begin_later(data);
}

void* gwchpl_data(void) {
  const task* me = self();
  return me != nullptr ? me->data : nullptr;
}

uint32_t gwchpl_workers(void) { return options_.workers; }
int gwchpl_is_worker(void) { return detail::on_substrate_threads() ? 1 : 0; }
uint64_t gwchpl_stack_bytes(void) { return options_.thread_stack_bytes; }

gwchpl_counts gwchpl_count(void) {
  const std::uint64_t woken = sum(&counters::woken), blocked = sum(&counters::blocked);
  const std::uint64_t ended = sum(&counters::ended), begun = sum(&counters::begun);
  return {difference(sum(&counters::created), begun), difference(begun, ended), difference(blocked, woken)};
}

}  // extern "C"
