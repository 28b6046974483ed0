// The scheduler loop, stealing, resuming and exposing. See worker.hpp.
#include "sched/worker.hpp"

#include <csignal>
#include <cstring>
#include <sched.h>
#include <unistd.h>

#include "base/check.hpp"
#include "context/context.hpp"
#include "stack/stack.hpp"

#include <godwit/future.hpp>

namespace godwit::sched {

worker this_worker;

using transport::index;
using transport::ref_worker;

namespace {

// Failed rounds before a worker counts as idle: some microseconds, so that short gaps cost no shared counter.
constexpr std::uint32_t rounds_before_idle = 256;
constexpr std::uint32_t rounds_before_idle_crowded = 16;

void yield_cpu() noexcept {
  this_worker.serve_inbox();  // the lock's holder may be a thief whose next request waits there
  sched_yield();
}

// Deques call this between racing steps; set when options ask for delays.
std::uint32_t delay_limit_us_ = 0;
base::small_random delay_random_;
void delay_step() noexcept {
  if (delay_limit_us_ == 0) return;
  const std::uint64_t until = base::now_ns() + delay_random_.below(delay_limit_us_ * 1000);
  while (base::now_ns() < until) base::spin_pause();
}

}  // namespace

void worker::init(const worker_setup& setup) noexcept {
  seg_ = setup.memory;
  me_ = setup.me;
  shape_ = *setup.job;
  workers_ = shape_.workers;
  near_ = seg_->near();
  opts_ = *setup.opts;
  hooks_ = setup.hooks;
  crowded_ = near_.count > setup.cpus;
  const auto me = me_;
  random_ = base::small_random(setup.seed + index(me) * 7919 + 1);
  delay_limit_us_ = opts_.delay_us;
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
  job_ = &words->job;
  far_words_ = &words->far;
  root_ = root_record(l);
  net_.init(*seg_);
  if (shape_.host_count > 1)
    net_.far().init(*seg_, me_, far_words_, &seg_->at(shape_.bell_of, words)->far,
                    shape_.serves_itself ? +[](void* w) { static_cast<worker*>(w)->serve_inbox(); } : nullptr, this,
                    !crowded_);
  words_->pid.store(static_cast<std::uint64_t>(getpid()), std::memory_order_relaxed);
  region_low_ = reinterpret_cast<std::uintptr_t>(base + l.stack);
  region_high_ = region_low_ + l.stack_bytes;
  scheduler_stack_ = stack::map_private(stack::scheduler_stack_bytes, &scheduler_stack_low_);

  godwit_hot_.worker = index(me);
  godwit_hot_.workers = workers_;
  godwit_hot_.pending = nullptr;
  godwit_hot_.in_runtime = 1;
  godwit_hot_.poll.store(force_mode_ != 0, std::memory_order_relaxed);
  // A network card may have registered the pages of a job of several hosts: they must not change.
  heap_.init(base, base + l.heap, l.heap_bytes, &words_->live, shape_.host_count == 1);
  deque_.init(&godwit_hot_, words_, reinterpret_cast<spawn_slot*>(base + l.slots), yield_cpu, delay_step);
}

void worker::delay() noexcept { delay_step(); }

/// Address sanitizer: the scheduler stack starts afresh, and the frames above @p left_sp are gone (0: they
/// are kept).
void worker::announce_scheduler_stack(std::uintptr_t left_sp) noexcept {
  if (left_sp != 0) context::sanitizer_forget(left_sp / 64 * 64, region_high_);
  context::sanitizer_forget(reinterpret_cast<std::uintptr_t>(scheduler_stack_low_),
                            reinterpret_cast<std::uintptr_t>(scheduler_stack_));
  context::sanitizer_on_stack(scheduler_stack_low_,
                              static_cast<std::size_t>(scheduler_stack_ - scheduler_stack_low_));
}

void worker::announce_region() noexcept {
  context::sanitizer_on_stack(reinterpret_cast<void*>(region_low_), region_high_ - region_low_);
}

void worker::start(void (*root)(void*), void* arg) noexcept {
  if (root != nullptr) {
    const ref r = new_record();
    GODWIT_CHECK(r == root_, "the root thread's record is the first object");
    enter_thread(region_high_, r);
    announce_region();
    godwit_hot_.in_runtime = 0;
    godwit_ctx_start(reinterpret_cast<void*>(region_high_ - 64), root, arg);
  }
  announce_scheduler_stack(0);
  godwit_ctx_start(
      scheduler_stack_, [](void* w) { static_cast<worker*>(w)->loop(); }, this);
  __builtin_unreachable();
}

void worker::loop() noexcept {
  for (;;) {
    // The region and the deque are empty here. Count as running before touching any work: a worker that holds
    // a
    // ready queue's lock while it counts as idle would let the others believe that nothing is left. I1
    if (is_idle_) {
      if (!sees_work()) {
        wait_for_work();
        continue;
      }
      become_running();
    }
    serve_inbox();  // before the own queue: else a thread that only yields would never leave
    serve_mailbox();
    if (words_->ready_count.load(std::memory_order_relaxed) != 0) {
      if (const ref r = pop_ready_of(*seg_, words_, me_)) resume_image(r);
    }
    const bool uniform = shape_.host_count > 1 && opts_.victims == "uniform";
    if (uniform && random_.below(workers_) >= near_.count) look_far();
    const std::uint32_t first = random_.below(near_.count);
    for (std::uint32_t i = 0; i < near_.count; ++i) {
      const worker_no v{near_.first + (first + i) % near_.count};
      if (v == me_) continue;
      try_steal(v);
      if (seg_->at(v, words_)->ready_count.load(std::memory_order_relaxed) != 0) {
        if (const ref r = pop_ready_of(*seg_, words_, v)) resume_image(r);
      }
    }
    if (shape_.host_count > 1 && !uniform) look_far();
    if (crowded_)
      sched_yield();
    else
      base::spin_pause();
    if (++failed_rounds_ >= (crowded_ ? rounds_before_idle_crowded : rounds_before_idle)) become_idle();
  }
}

/// The region is empty and a thread is about to be put there.
void worker::enter_thread(std::uint64_t top, ref own_record) noexcept {
  deque_.sentinel().sp = top;
  deque_.sentinel().record = own_record;
  failed_rounds_ = 0;
  far_failures_ = 0;
  next_far_ns_ = 0;
  idle_since_ns_ = 0;
  sleep_ms_ = 1;
}

bool worker::try_steal(worker_no victim) noexcept {
  loot got{};
  std::uint64_t bytes = 0;
  const auto outcome =
      steal(net_, victim, words_, opts_.empty_check, delay_step, [&](const spawn_slot& own, const spawn_slot& above) {
        const std::uint64_t low = own.sp - context::fork_bytes_below;
        bytes = above.sp - low;
        context::sanitizer_forget(low, above.sp);
        net_.remote_get(victim, reinterpret_cast<void*>(low), reinterpret_cast<const void*>(low), bytes);
        got = {own.sp, own.fp, own.extra, low, above.sp, above.record, own.record,
               is_near(own.record) ? at<record>(own.record)->float_control : base::float_control()};
        if (opts_.check_frames)
          net_.remote_store(ref_worker(own.record), &home<record>(own.record)->frame_hash,
                            hash_frame(own.sp, above.sp), std::memory_order_relaxed);
      });
  if (outcome != steal_outcome::taken) {
    ++words_->stats.steals_failed;
    // Ask for more, also when there was nothing: it answers at its next spawn.
    if (net_.is_near(victim)) {
      auto* hot = reinterpret_cast<detail::hot_words*>(seg_->common());
      auto& poll = seg_->at(victim, hot)->poll;
      if (poll.load(std::memory_order_relaxed) == 0) poll.store(1, std::memory_order_relaxed);
    }
    return false;
  }
  ++words_->stats.steals;
  words_->stats.stolen_bytes += bytes;
  wake_one();  // where there was one, there may be more
  resume(got, loot_kind::fork);
}

/// The bytes are in the region. Does not return.
void worker::resume(const loot& what, loot_kind kind) noexcept {
  enter_thread(what.top, what.own_record);
#if defined(__x86_64__)
  // A stolen thread's own return address leads into a parent that is not here: end backtraces instead.
  if (kind == loot_kind::fork)
    reinterpret_cast<std::uintptr_t*>(what.top)[-1] = reinterpret_cast<std::uintptr_t>(&godwit_ctx_thread_end);
#endif
  base::set_float_control(static_cast<std::uint32_t>(what.float_control));
  announce_region();
  godwit_hot_.in_runtime = 0;
  if (kind == loot_kind::fork)
    godwit_ctx_resume_fork(what.sp, what.fp, what.extra, what.status);
  else
    godwit_ctx_resume_suspended(what.sp, 0);
  __builtin_unreachable();
}

void worker::resume_image(ref r) noexcept {
  ++words_->stats.resumes;
  image head;
  const auto* bytes = home<std::byte>(r) + sizeof(image);
  net_.remote_get(ref_worker(r), static_cast<void*>(&head), home<image>(r), sizeof head);
  context::sanitizer_forget(head.low, head.top);
  net_.remote_get(ref_worker(r), reinterpret_cast<void*>(head.low), bytes, head.top - head.low);
  free_object(r);
  resume({head.sp, head.fp, head.extra, head.low, head.top, head.own_record, head.status, head.float_control},
         head.fork ? loot_kind::fork : loot_kind::suspended);
}

void worker::encode_pending(std::uintptr_t low, std::uintptr_t high) noexcept {
  for (detail::pending_value* v = godwit_hot_.pending; v != nullptr;) {
    detail::pending_value* next = v->next;
    const auto address = reinterpret_cast<std::uintptr_t>(v);
    const bool on_stack = address >= region_low_ && address < region_high_;
    if (!on_stack || (address >= low && address < high)) v->encode(v);
    v = next;
  }
}

void worker::expose(spawn_slot* end, std::uint32_t control) noexcept {
  deque_.expose(end, [&](spawn_slot& s) {
    if (s.record == 0) s.record = new_record();
    at<record>(s.record)->float_control = control;
  });
  ++words_->stats.exposures;
}

void worker::spawn_point(bool child_may_leave) noexcept {
  if (workers_ == 0)
    base::fatal(
        "spawn, invoke or join was called outside godwit::run: call it from the root thread that run starts");
  godwit_hot_.poll.store(0, std::memory_order_relaxed);
  // Before looking: what was posted before poll was set again must be seen now, or poll stay set. Else a
  // request
  // (way am) or a letter could wait for as long as nobody else asks.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  serve_inbox();
  serve_mailbox();
  delay();
  if (force_mode_ != 0) {
    godwit_hot_.poll.store(1, std::memory_order_relaxed);
    force(child_may_leave && (force_mode_ == 2 || (force_mode_ == 3 && (random_.next() >> 40 & 1) != 0)));
    return;
  }
  spawn_slot* end = deque_.next_split();
  if (end == godwit_hot_.split) return;
  const section inside;  // from here on: a half-encoded frame must not become public by signal
  if (godwit_hot_.pending != nullptr) encode_pending(end[-1].sp, region_high_);
  end = deque_.next_split();
  if (end == godwit_hot_.split) return;  // the signal was faster
  expose(end, base::float_control());
  wake_one();
}

/// @p float_control of the interrupted code: the kernel resets the register itself for signal handlers.
void worker::on_expose_signal(std::uint32_t float_control) noexcept {
  if (godwit_hot_.in_runtime != 0 || godwit_hot_.pending != nullptr || force_mode_ != 0) {
    godwit_hot_.poll.store(1, std::memory_order_relaxed);  // at the next spawn, then
    return;
  }
  godwit_hot_.in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (spawn_slot* end = deque_.next_split(); end != godwit_hot_.split) {
    expose(end, float_control);
    ++words_->stats.signals;
    wake_one();
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  godwit_hot_.in_runtime = 0;
}

/// Forced-steal mode, called at the start of a child.
/// parents: every queued continuation goes to the ready queue, as if stolen. children: the child itself does,
/// and its
/// parent goes on at once, so that every join is outstanding.
void worker::force(bool children) noexcept {
  if (children) {
    yield_thread();
    return;
  }
  const section inside;
  encode_pending(region_low_, region_high_);
  if (godwit_hot_.bottom > godwit_hot_.split) expose(godwit_hot_.bottom, base::float_control());
  for (;;) {
    ref r = 0;
    const bool found = deque_.take_own([&](const spawn_slot& own, const spawn_slot& above) {
      const std::uint64_t low = own.sp - context::fork_bytes_below;
      auto* im = static_cast<image*>(heap_.allocate(object_kind::image, sizeof(image) + (above.sp - low)));
      im->sp = own.sp;
      im->fp = own.fp;
      im->extra = own.extra;
      im->low = low;
      im->top = above.sp;
      im->own_record = above.record;
      im->status = own.record;
      im->waiting_for = 0;
      im->float_control = base::float_control();
      im->fork = true;
      im->where = {};
      context::sanitizer_forget(low, above.sp);
      std::memcpy(im->bytes(), reinterpret_cast<const void*>(low), above.sp - low);
      if (opts_.check_frames)
        at<record>(own.record)->frame_hash.store(hash_frame(own.sp, above.sp), std::memory_order_relaxed);
      r = ref_of(im);
    });
    if (!found) break;
    push_ready(r);
    ++words_->stats.suspends;
  }
}

// Reads whole frames, redzones included.
__attribute__((no_sanitize("address"))) std::uint64_t worker::hash_frame(std::uint64_t low, std::uint64_t high) const noexcept {
  std::uint64_t h = 0x243F6A8885A308D3ull;
  for (const auto* p = reinterpret_cast<const std::uint64_t*>(low);
       p < reinterpret_cast<const std::uint64_t*>(high) - 1; ++p)
    h = (h ^ *p) * 0x9E3779B97F4A7C15ull;
  return h | 1;
}

ref worker::pop_public(spawn_slot* b) noexcept {
  const section inside;
  const auto popped = deque_.pop_public(b, [&](const spawn_slot& s) {
    if (!opts_.check_frames) return;
    const std::uint64_t hash = at<record>(s.record)->frame_hash.load(std::memory_order_relaxed);
    if (hash != 0 && hash != hash_frame(s.sp, (&s)[-1].sp))
      base::fatal(
          "worker %u: a thread wrote into its parent's stack frame after the parent had moved to another "
          "worker: the "
          "write is lost. Capture by value and give back results through join",
          index(me_));
  });
  return popped.parent_here ? 0 : popped.record;
}

void worker::serve_mailbox() noexcept {
  if (words_->mailbox.load(std::memory_order_relaxed) == 0) return;
  for (ref m = words_->mailbox.exchange(0, std::memory_order_acquire); m != 0;) {
    message head;
    struct alignas(64) line {
      std::byte bytes[64];
    };
    std::vector<line> copy;
    const std::byte* closure = home<message>(m)->closure();
    net_.remote_get(ref_worker(m), static_cast<void*>(&head), home<message>(m), sizeof head);
    if (is_near(m)) {
      closure = at<message>(m)->closure();
    } else {
      copy.resize(head.bytes / sizeof(line) + 1);
      net_.remote_get(ref_worker(m), copy.data(), closure, head.bytes);
      closure = copy.data()->bytes;
    }
    head.call(closure);
    const section inside;
    free_object(m);
    finish_record(head.done);
    // I2: cannot be the last to count, this worker runs
    if (head.between_hosts != 0)
      net_.remote_fetch_add(worker_no{0}, &job_->idle_nodes, 1);
    else
      node_->idle.fetch_add(1);
    m = head.next;
  }
}

void worker::send(worker_no to, ref done, void (*call)(const void*), const void* closure,
                  std::size_t bytes) noexcept {
  const section inside;
  const bool near = net_.is_near(to);
  auto* m = static_cast<message*>(heap_.allocate(object_kind::message, sizeof(message) + bytes));
  m->done = done;
  m->call = call;
  m->bytes = bytes;
  m->between_hosts = near ? 0 : 1;
  std::memcpy(static_cast<void*>(m + 1), closure, bytes);
  // I2: a letter on its way counts like a running worker
  if (near)
    node_->idle.fetch_sub(1);
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

void worker::finish_stats() noexcept {
  words_->stats.stack_high_bytes = transport::shm::segment::touched_from_top(
      reinterpret_cast<std::byte*>(region_low_), reinterpret_cast<std::byte*>(region_high_));
  words_->stats.heap_high_bytes = heap_.high_bytes();
}

void worker::check_invariants() noexcept {
  deque_.check_invariants();
  heap_.check_invariants();
}

}  // namespace godwit::sched
