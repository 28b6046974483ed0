// What all policies do: set-up, resuming, exposing, mail. See worker.hpp.
#include "sched/worker.hpp"

#include <csignal>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.hpp"
#include "base/check.hpp"
#include "base/valgrind.hpp"
#include "context/context.hpp"
#include "sched/frames.hpp"
#include "stack/stack.hpp"
#include "base/world.hpp"

#include <godwit/future.hpp>

namespace godwit::sched {

using transport::index;
using transport::ref_worker;

namespace {

void yield_cpu() noexcept {
  this_worker().serve_inbox();  // the lock's holder may be a thief whose next request waits there
  base::give_way();
}

}  // namespace

/// Deques call it between racing steps.
void worker::delay_step() noexcept { this_worker().delay_a_little(); }

void worker::delay_a_little() noexcept {
  if (opts_.delay_us == 0) return;
  const std::uint64_t until = base::fast_ns() + delay_random_.below(opts_.delay_us * 1000);
  while (base::fast_ns() < until) base::pause();
}

worker::~worker() {
  if (scheduler_stack_low_ != nullptr)
    stack::unmap_private(scheduler_stack_low_, stack::scheduler_stack_bytes);
}

void worker::init(const worker_setup& setup) noexcept {
  seg_ = setup.memory;
  me_ = setup.me;
  shape_ = *setup.job;
  workers_ = shape_.workers;
  near_ = seg_->near();
  opts_ = *setup.opts;
  if (shape_.in_process) opts_.check_frames = false;  // every address means the same everywhere
  hooks_ = setup.hooks;
  trace_.init(setup.trace);
  started_ns_ = base::fast_ns();
  thread_pointer_ = context::thread_pointer();
  const std::uint32_t regular = workers_ - shape_.spares;
  GODWIT_ASSERT(near_.holds(me_) && near_.first + near_.count <= workers_, "a worker is one of its host's");
  GODWIT_ASSERT(shape_.host_count == 1 || shape_.spares == 0, "spare workers are for one host");
  is_spare_ = index(me_) >= regular;
  is_idle_ = is_spare_;  // counted from the start
  spare_number_ = is_spare_ ? index(me_) - regular : 0;
  crowded_ = is_spare_ || near_.count - shape_.spares > setup.cpus;
  const auto me = me_;
  random_ = base::small_random(setup.seed + index(me) * 7919 + 1);
  delay_random_ = base::small_random(setup.seed + index(me) * 104729 + 17);
  force_mode_ = opts_.force_steal == "parents"    ? 1
                : opts_.force_steal == "children" ? 2
                : opts_.force_steal == "random"   ? 3
                                                  : 0;
  const auto& l = seg_->where();
  std::byte* base = seg_->common();
  auto* words = reinterpret_cast<segment_words*>(base + l.words);
  words_ = &words->worker;
  node_ = &seg_->at(worker_no{near_.first}, words)->node;
  GODWIT_ASSERT((reinterpret_cast<std::uintptr_t>(words) & (alignof(segment_words) - 1)) == 0,
                "the workers' words are aligned");
  job_ = &words->job;
  far_words_ = &words->far;
  root_ = root_record(l);
  net_.init(*seg_);
  if (shape_.host_count > 1)
    net_.far().init(*seg_, me_, far_words_, &seg_->at(shape_.bell_of, words)->far,
                    shape_.serves_itself ? +[](void* w) { static_cast<worker*>(w)->serve_inbox(); } : nullptr,
                    this, !crowded_);
  if (shape_.serves_itself) {
    call_site_ = {seg_, words_, node_, &random_, holder()};
    enter_calls(calls_, call_site_);
  }
  words_->pid.store(static_cast<std::uint64_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  region_low_ = reinterpret_cast<std::uintptr_t>(base + l.stack);
  region_high_ = region_low_ + l.stack_bytes;
  if (base::on_valgrind() && shape_.stacks == nullptr) base::valgrind_stack(region_low_, region_high_);
  scheduler_stack_ = stack::map_private(stack::scheduler_stack_bytes, &scheduler_stack_low_);

  detail::hot().worker = index(me);
  detail::hot().workers = regular;
  detail::hot().pending = nullptr;
  detail::hot().spawns = 0;
  detail::hot().in_place = shape_.stacks != nullptr ? 1 : 0;
  detail::hot().free_stacks = nullptr;
  detail::hot().in_runtime = 1;
  detail::hot().poll.store(force_mode_ != 0, std::memory_order_relaxed);
  // A network card may have registered the pages of a job of several hosts: they must not change.
  heap_.init(base, base + l.heap, l.heap_bytes, &words_->live, shape_.host_count == 1);
  deque_.init(&detail::hot(), words_, reinterpret_cast<spawn_slot*>(base + l.slots), yield_cpu, delay_step);
}

void worker::delay() noexcept { delay_a_little(); }

void worker::announce_scheduler_stack_now(std::uintptr_t left_sp, std::uintptr_t left_top) noexcept {
  if (left_sp != 0) context::sanitizer_forget(left_sp / 64 * 64, left_top != 0 ? left_top : region_high_);
  context::sanitizer_forget(reinterpret_cast<std::uintptr_t>(scheduler_stack_low_),
                            reinterpret_cast<std::uintptr_t>(scheduler_stack_));
  context::sanitizer_on_stack(scheduler_stack_low_,
                              static_cast<std::size_t>(scheduler_stack_ - scheduler_stack_low_));
}

void worker::announce_stack_now(std::uintptr_t sp) noexcept {
  // Below it there may be marks of frames that were left without returning.
  constexpr std::uintptr_t enough = 64 << 10;
  if (sp >= region_low_ + enough) context::sanitizer_forget((sp - enough) / 64 * 64, sp / 64 * 64);
  context::sanitizer_on_stack(reinterpret_cast<void*>(region_low_), region_high_ - region_low_);
}

/// The region is empty and a thread is about to be put there, with the bytes up to @p bytes_end.
void worker::enter_thread(std::uint64_t top, std::uint64_t bytes_end, ref own_record) noexcept {
  GODWIT_ASSERT(deque_.empty(), "a thread enters an empty region");
  GODWIT_ASSERT(!is_idle_, "ID1: only a worker that counts as running has a thread");
  GODWIT_ASSERT(own_record != 0, "a thread completes a record");
  GODWIT_ASSERT(shape_.stacks != nullptr ? shape_.stacks->owns(top - 1) : is_stack(top - 1, top, bytes_end),
                "a thread's stack lies where stacks lie");
  deque_.sentinel().sp = top;
  deque_.sentinel().record = own_record;
  frames_came(top, bytes_end);
  failed_rounds_ = 0;
  far_failures_ = 0;
  next_far_ns_ = 0;
  idle_since_ns_ = 0;
  sleep_ms_ = 1;
}

/// The bytes are in the region. Does not return.
void worker::resume(const loot& what, loot_kind kind) noexcept {
  GODWIT_ASSERT(is_stack(what.low, what.top, what.bytes_end), "a thread's stack lies where stacks lie");
  GODWIT_ASSERT(what.sp == what.low + (kind == loot_kind::fork ? context::fork_bytes_below : 0),
                "the bytes of a thread begin where it was saved");
  GODWIT_ASSERT(kind != loot_kind::fork || what.status != 0, "a parent goes on with the record of its child");
  enter_thread(what.top, what.bytes_end, what.own_record);
#if defined(__x86_64__)
  // A stolen thread's own return address leads into a parent that is not here: end backtraces instead.
  if (kind == loot_kind::fork && !shape_.own_stacks && shape_.stacks == nullptr)
    reinterpret_cast<std::uintptr_t*>(what.top)[-1] =
        reinterpret_cast<std::uintptr_t>(&godwit_ctx_thread_end);
#elif defined(__sparc__)
  // Its caller's window lies 176 bytes below the end (fork_call_sparcv9.hpp): that one is shown still, and
  // nothing above it.
  if (kind == loot_kind::fork && !shape_.own_stacks && shape_.stacks == nullptr) {
    auto* window = reinterpret_cast<std::uintptr_t*>(what.top - 176);
    window[14] = what.top - 176 - 2047;
    window[15] = reinterpret_cast<std::uintptr_t>(&godwit_ctx_thread_end) - 8;
  }
#endif
  base::set_float_control(static_cast<std::uint32_t>(what.float_control));
  announce_stack(what.sp);
  detail::hot().in_runtime = 0;
  if (kind == loot_kind::fork)
    godwit_ctx_resume_fork(what.sp, what.fp, what.extra, what.status);
  else
    godwit_ctx_resume_suspended(what.sp, 0);
  __builtin_unreachable();
}

void worker::encode_pending(std::uintptr_t low, std::uintptr_t high) noexcept {
  for (detail::pending_value* v = detail::hot().pending; v != nullptr;) {
    detail::pending_value* next = v->next;
    const auto address = reinterpret_cast<std::uintptr_t>(v);
    const bool on_stack = address >= region_low_ && address < region_high_;
    if (!on_stack || (address >= low && address < high)) v->encode(v);
    v = next;
  }
}

void worker::expose(spawn_slot* end, std::uint32_t control, bool by_signal) noexcept {
  GODWIT_ASSERT(end > detail::hot().split, "there is something to expose");
  GODWIT_ASSERT(detail::hot().in_runtime != 0, "the expose signal keeps its hands off meanwhile");
  // What the parents wrote, before anybody can take them. A signal comes only when there is nothing to
  // release, and must not try: the code that it interrupts may hold locks.
  if (!by_signal) release_writes();
  const auto count = static_cast<std::uint64_t>(end - detail::hot().split);
  context::flush_windows();
  deque_.expose(end, [&](spawn_slot& s) {
    if (s.record == 0) s.record = new_record();
    record* r = at<record>(s.record);
    r->float_control = control;
    r->spawned_at = spawned_at(s);
    s.bytes_end = needed_end((&s)[-1], (&s)[-1].sp);
    GODWIT_ASSERT(r->kind == object_kind::record && r->references.load(std::memory_order_relaxed) != 0,
                  "a slot's record has somebody who will join");
  });
  ++words_->stats.exposures;
  if (trace_.on() && force_mode_ == 0)
    note(trace::kind::expose, base::fast_ns(), 0, 0, 0, count, 0, by_signal);
}

/// @p float_control of the interrupted code: the kernel resets the register itself for signal handlers.
void worker::on_expose_signal(std::uint32_t float_control) noexcept {
  if (detail::hot().in_runtime != 0 || detail::hot().pending != nullptr || force_mode_ != 0 ||
      (hooks_.must_release != nullptr && hooks_.must_release())) {
    detail::hot().poll.store(1, std::memory_order_relaxed);  // at the next spawn, then
    return;
  }
  detail::hot().in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (spawn_slot* end = deque_.next_split(); end != detail::hot().split) {
    expose(end, float_control, true);
    ++words_->stats.signals;
    wake_one();
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  detail::hot().in_runtime = 0;
}

// What a policy does not have, a program asked for with functions of another.
namespace {
[[noreturn]] void wrong_policy(const options& o) {
  base::fatal(
      "this run's policy is %s, but the program spawned a thread of another one: take the policy of the run "
      "(godwit::with_policy), or do not set --godwit-policy (GODWIT_POLICY)",
      o.policy.c_str());
}
}  // namespace
bool worker::park(detail::publish_fn*, void*, detail::wakes, const char*, const detail::place&) noexcept {
  wrong_policy(opts_);
}
ref worker::create_thread(detail::task_entry*, const void*, std::size_t) noexcept { wrong_policy(opts_); }
ref worker::spawn_task(detail::task_entry*, const void*, std::size_t, std::uintptr_t) noexcept {
  wrong_policy(opts_);
}
void* worker::new_stack() noexcept { wrong_policy(opts_); }
void worker::free_stack(void*) noexcept { wrong_policy(opts_); }

void worker::serve_mailbox() noexcept {
  static_cast<void>(serve_others());
  if (words_->mailbox.load(std::memory_order_relaxed) == 0) return;
  GODWIT_ASSERT(!is_idle_, "ID1: only a worker that counts as running takes letters");
  for (ref m = words_->mailbox.exchange(0, std::memory_order_acquire); m != 0;) {
    message head;
    struct alignas(64) line {
      std::byte bytes[64];
    };
    std::vector<line> copy;
    const std::byte* closure = home<message>(m)->closure();
    net_.remote_get(ref_worker(m), static_cast<void*>(&head), home<message>(m), sizeof head);
    GODWIT_ASSERT(head.kind == object_kind::message && head.done != 0, "a mailbox holds letters");
    GODWIT_ASSERT((head.between_hosts == 0) == is_near(m), "a letter is counted where its way says");
    if (is_near(m)) {
      closure = at<message>(m)->closure();
    } else {
      copy.resize(head.bytes / sizeof(line) + 1);
      net_.remote_get(ref_worker(m), copy.data(), closure, head.bytes);
      closure = copy.data()->bytes;
    }
    acquire_writes();
    head.call(closure);
    const section inside;
    free_object(m);
    finish_record(head.done);
    // ID2, IN4: cannot be the last to count, this worker runs
    if (head.between_hosts != 0)
      net_.remote_fetch_add(worker_no{0}, &job_->idle_nodes, 1);
    else
      node_->idle.fetch_add(1, std::memory_order_seq_cst);
    m = head.next;
  }
}

void worker::send(worker_no to, ref done, void (*call)(const void*), const void* closure,
                  std::size_t bytes) noexcept {
  const section inside;
  release_writes();
  const bool near = net_.is_near(to);
  GODWIT_ASSERT(index(to) < workers_, "a letter goes to a worker of the run");
  GODWIT_ASSERT(!is_idle_, "ID2: only a worker that counts as running sends letters");
  auto* m = static_cast<message*>(heap_.allocate(object_kind::message, sizeof(message) + bytes));
  m->done = done;
  m->call = call;
  m->bytes = bytes;
  m->between_hosts = near ? 0 : 1;
  std::memcpy(static_cast<void*>(m + 1), closure, bytes);
  // ID2, IN4: a letter on its way counts like a running worker
  if (near)
    node_->idle.fetch_sub(1, std::memory_order_seq_cst);
  else
    net_.remote_fetch_add(worker_no{0}, &job_->idle_nodes, ~std::uint64_t{0});
  std::uint64_t head = net_.remote_load(to, &words_->mailbox, std::memory_order_relaxed);
  do m->next = head;
  while (!net_.remote_compare_exchange(to, &words_->mailbox, head, ref_of(m)));
  if (!near) {
    net_.far().cast(to, static_cast<std::uint64_t>(call_no::nudge), 0);
    return;
  }
  auto* hot = reinterpret_cast<detail::hot_words*>(seg_->common());
  seg_->at(to, hot)->poll.store(1, std::memory_order_relaxed);
  wake_all();  // sleepers cannot be woken one by one; mail is rare
}

void worker::unpark(detail::waiter* w, detail::wakes by) noexcept {
  const section inside;
  GODWIT_ASSERT(!is_idle_, "PK3: only a worker that counts as running wakes threads");
  GODWIT_ASSERT(shape_.stacks != nullptr && shape_.stacks->owns(reinterpret_cast<std::uintptr_t>(w)),
                "a waiter lies on the stack of its thread");
  GODWIT_ASSERT(block_of(reinterpret_cast<std::uintptr_t>(w))->suspended == w, "who is woken is suspended");
  push_ready(seg_->ref_of_any(w), 0);
  if (by == detail::wakes::inside) return;
  node_->outside.fetch_sub(1, std::memory_order_relaxed);
  node_->idle.fetch_add(1, std::
                               // ID2, PK3: it counted like a letter; this worker runs, so it is not the last
                        memory_order_seq_cst);
}

void worker::check_invariants() noexcept {
#ifndef NDEBUG
  if (node_->failed.load(std::memory_order_acquire) != 0) return;  // wherever it was
  GODWIT_CHECK(is_idle_, "ID3: the run ends when all workers are idle");
  GODWIT_CHECK(deque_.empty(), "ID1: the deque of an idle worker is empty");
  GODWIT_CHECK(words_->ready_count.load(std::memory_order_relaxed) == 0,
               "ID1: the ready queue of an idle worker is empty");
  GODWIT_CHECK(words_->mailbox.load(std::memory_order_relaxed) == 0, "ID2: no letter is left");
#endif
  deque_.check_invariants();
  heap_.check_invariants();
}

#ifndef NDEBUG
void worker::check_host(const transport::shm::segment& memory, bool only_host) noexcept {
  const transport::shm::near_range near = memory.near();
  if (near.count == 0) return;  // a host without workers
  const auto* words = reinterpret_cast<const segment_words*>(memory.common() + memory.where().words);
  const node_words& node = memory.at(worker_no{near.first}, words)->node;
  if (node.failed.load(std::memory_order_acquire) != 0) return;
  GODWIT_CHECK(node.shutdown.load(std::memory_order_acquire) != 0, "somebody decided that the run is over");
  GODWIT_CHECK(node.idle.load(std::memory_order_relaxed) == near.count,
               "I1, I2: all workers are idle and no letter is under way");
  GODWIT_CHECK(node.outside.load(std::memory_order_relaxed) == 0,
               "PK3: no thread waits for something outside");
  GODWIT_CHECK(node.gate.load(std::memory_order_relaxed) == 0, "nobody is at the gate");
  // (The last stores of thieves on other hosts may be dropped with the run.)
  for (std::uint32_t v = near.first; v < near.first + near.count && only_host; ++v) {
    const public_words& w = memory.at(worker_no{v}, words)->worker;
    GODWIT_CHECK(w.lock.load(std::memory_order_relaxed) == 0 &&
                     w.ready_lock.load(std::memory_order_relaxed) == 0 &&
                     w.free_lock.load(std::memory_order_relaxed) == 0,
                 "worker %u: nobody holds a lock of its", v);
    GODWIT_CHECK(w.top.load(std::memory_order_relaxed) == w.split.load(std::memory_order_relaxed),
                 "worker %u: nothing is left to steal", v);
  }
}
#endif

}  // namespace godwit::sched
