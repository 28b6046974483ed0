// See child.hpp.
#include "sched/child.hpp"

#include <cstring>
#include <memory>

#include "sched/child_arrive.hpp"
#include "sched/child_threads.hpp"
#include "sched/frames.hpp"

namespace godwit::sched {

using transport::ref_worker;

namespace {
constexpr std::size_t closure_bytes_on_stack = 1024;
/// What lies with the OS thread and belongs to the thread that waits: it has that again afterwards.
class kept_by_thread {
 public:
  explicit kept_by_thread(const site& here) noexcept
      : exceptions_(*here.exceptions.state), before_(std::exchange(exceptions_, {})) {}
  ~kept_by_thread() {
    exceptions_ = before_;
    base::set_float_control(control_);
  }
  kept_by_thread(const kept_by_thread&) = delete;
  kept_by_thread& operator=(const kept_by_thread&) = delete;

 private:
  context::exception_state& exceptions_;
  const context::exception_state before_;
  const std::uint32_t control_ = base::float_control();
};
constexpr std::size_t slots_between_looks = 4096;  // of the deque: for stolen ones to be used again
}  // namespace

template <class P>
void child_worker<P>::init(const worker_setup& setup) noexcept {
  worker::init(setup);
  const auto& l = here_.memory->where();
  slots_ = l.slots_bytes / sizeof(spawn_slot);
  compact_at_ = detail::hot().bottom + std::min(slots_between_looks, slots_ - 2);
  if constexpr (full) idle_.poll(waiting_);
  // Nothing here is exposed by signal: everything is public already. And spawn() of other policies must be
  // noticed.
  detail::hot().in_runtime = 1;
  detail::hot().poll.store(1, std::memory_order_relaxed);
  uses_region(here_.region_high);
}

template <class P>
void child_worker<P>::start(void (*root)(void*), void* arg) noexcept {
  if (root != nullptr) {
    const ref r = records_.make();
    GODWIT_CHECK(r == here_.root, "the root thread's record is the first object");
    root_thread_.record = r;
    current_ = &root_thread_;
    running_ = r;
    if (account_.traced()) account_.note(kind::start, base::fast_ns(), r);
    announce_stack(0);
    godwit_ctx_start(reinterpret_cast<void*>(here_.region_high - 64), root, arg);
  }
  enter_loop();
}

template <class P>
bool child_worker<P>::spawn_point(bool, bool) noexcept {
  base::fatal(
      "this run's policy is %s, but the program spawned with godwit::spawn or invoke: take the policy of the "
      "run "
      "(godwit::with_policy), or do not set --godwit-policy (GODWIT_POLICY)",
      name_of(here_.opts.policy));
}

template <class P>
ref child_worker<P>::pop_public(spawn_slot*) noexcept {
  spawn_point(false, false);
  return 0;
}

template <class P>
ref child_worker<P>::spawn_task(detail::task_entry* entry, const detail::task_bytes& closure,
                                std::uintptr_t spawned_at) noexcept {
  serve();
  here_.release_writes();
  auto* t = static_cast<task*>(heap_.allocate(object_kind::record, sizeof(task) + closure.size));
  clear_record(t);
  t->entry = entry;
  t->closure_bytes = closure.size;
  t->spawned_at = spawned_at;
  t->made_by = number_of_thread();
  put_carried(*t, child_takes());
  add_strand(*here_.memory, carried_.scope());
  t->refers_to_stacks = here_.opts.check_frames && (refers_to_stacks(closure.data, closure.size) ||
                                                    refers_to_stacks(closure.boxed, closure.boxed_size));
  base::happens_after(t);  // of whoever was there before
  std::memcpy(t->closure(), closure.data, closure.size);
  base::happens_before(t);
  const ref r = here_.ref_of(t);
  if (detail::hot().bottom >= compact_at_) make_room();
  spawn_slot* slot = detail::hot().bottom;
  slot->sp = 0;
  const auto bytes = reinterpret_cast<std::uintptr_t>(t->closure());
  const bool stays = !base::planted("stay.closures_are_not_searched") &&
                     names(bytes, bytes + closure.size, here_.heap_in_use());
  slot->extra = stays ? 1 : 0;
  slot->record = r;
  detail::hot().bottom = slot + 1;
  catch_up();
  deque_.expose(slot + 1, [](spawn_slot&) {});
  ++here_.words->stats.spawns;
  idle_.wake_one();
  return r;
}

/// Does it hold an address in this worker's stacks, which mean nothing elsewhere?
template <class P>
bool child_worker<P>::refers_to_stacks(const void* closure, std::size_t bytes) const noexcept {
  for (const auto* at = static_cast<const std::byte*>(closure); bytes >= sizeof(std::uintptr_t);
       at += sizeof(std::uintptr_t), bytes -= sizeof(std::uintptr_t)) {
    std::uintptr_t word;
    std::memcpy(&word, at, sizeof word);
    const auto own = reinterpret_cast<std::uintptr_t>(&word);
    context::sanitizer_forget(own, own + sizeof word);  // perhaps never set
    if (word - here_.region_low < here_.region_high - here_.region_low || is_in_own_stack(word)) return true;
  }
  return false;
}

/// Slots are not pushed and popped in step here: those of stolen tasks pile up below the ones that wait.
template <class P>
void child_worker<P>::make_room() noexcept {
  const std::size_t waiting = deque_.compact();
  if (waiting + 2 >= slots_)
    base::fatal(
        "worker %u: policy %s: %zu threads have been spawned here that did not begin yet, and there is no "
        "room "
        "for more: join some first, or raise --godwit-stack-bytes (GODWIT_STACK_BYTES), which also sets this",
        index(here_.me), name_of(here_.opts.policy), waiting);
  // Not again before as many came as had to be moved.
  compact_at_ = detail::hot().bottom + std::min(waiting + slots_between_looks, slots_ - waiting - 2);
}

/// The newest task of the own deque, or 0.
template <class P>
ref child_worker<P>::pop_own() noexcept {
  if (deque_.empty()) return 0;
  spawn_slot* mine = detail::hot().bottom - 1;
  detail::hot().bottom = mine;
  const ref r = mine->record;
  GODWIT_ASSERT(r != 0, "a slot of the deque holds a task");
  if (mine < detail::hot().split &&
      !deque_.pop_public(mine, [](const spawn_slot*, const spawn_slot*) {}).parent_here)
    return 0;
  // That took half of them back. But this worker may be busy for long now, and nobody can ask it to share
  // them.
  if (deque_.has_private()) deque_.expose(detail::hot().bottom, [](spawn_slot&) {});
  return r;
}

template <class P>
ref child_worker<P>::take_from(worker_no victim) noexcept {
  GODWIT_ASSERT(victim != here_.me && !idle_.is_idle(), "ID1: who steals counts as running");
  worker_stats& stats = here_.words->stats;
  if (here_.opts.empty_check && !here_.words_of(victim)->shares_work()) {
    ++stats.steals_failed;
    return 0;
  }
  const std::uint64_t before = base::fast_ns();
  ref r = 0;
  const auto result = steal(here_.net, here_.holder(), victim, here_.words, here_.opts.empty_check,
                            delay_step, [&](const spawn_slot& own, const spawn_slot&, spawn_slot*, ref) {
                              r = own.record;
                              return true;
                            });
  if (result != steal_outcome::taken) {
    ++stats.steals_failed;
    return 0;
  }
  spend(base::step::steal);
  ++stats.steals;
  ++stats.steals_timed;
  stats.steal_ns += base::fast_ns() - before;
  return r;
}

/// Who has begun stays.
template <class P>
bool child_worker<P>::migrate(worker_no, bool, std::uintptr_t, const detail::place&) noexcept {
  ++here_.words->stats.threads_kept;
  return false;
}

/// What was sent here, own deque, then one victim after the other. 0: nothing anywhere. Does not come back if
/// a waiting thread can go on.
template <class P>
ref child_worker<P>::look_for_task() noexcept {
  if (const ref r = pop_here(); r != 0) return r;
  // Else threads that could go on pile up as long as there is work. Who has only yielded lets others go
  // first.
  if constexpr (full)
    if (!waiting_.empty() && waiting_.front()->waiting_for != 0) try_waiting();
  const std::uint32_t first = random_.below(here_.near.count);
  for (std::uint32_t i = 0; i < here_.near.count; ++i) {
    const worker_no v{here_.near.first + (first + i) % here_.near.count};
    if (v == here_.me) continue;
    spend(base::step::look);
    if (const ref r = take_from(v); r != 0) return r;
    if constexpr (full) try_waiting();
  }
  if (!here_.one_host())
    if (const far_catch got = far_.look(); got.kind == loot_kind::task) return got.got.own_record;
  return 0;
}

/// On the present stack: copy the closure here, run it, complete the record.
template <class P>
void child_worker<P>::run_task(ref r, bool buried) noexcept {
  const worker_no from = ref_worker(r);  // records of tasks lie with who spawned them
  task head;
  if (here_.is_near(r)) base::happens_after(here_.at<record>(r));
  const std::uint64_t start = base::fast_ns();
  here_.net.remote_get(from, static_cast<void*>(&head), here_.home<task>(r), sizeof head);
  GODWIT_ASSERT(head.kind == object_kind::record && head.entry != nullptr, "a task has a record");
  GODWIT_ASSERT(heap::room_of(head) >= sizeof(task) + head.closure_bytes, "a task holds its closure");
  GODWIT_ASSERT(head.state.load(std::memory_order_relaxed) != state_done, "a task runs once");
  if (head.refers_to_stacks && from != here_.me) ancestors_.refuse_reference(head.spawned_at);
  // Large ones would use up a full thread's stack. The process's heap will do: who has begun stays here.
  std::unique_ptr<closure_line[]> large;
  if (head.closure_bytes > closure_bytes_on_stack)
    large = std::make_unique_for_overwrite<closure_line[]>(head.closure_bytes / sizeof(closure_line) + 1);
  void* closure = large != nullptr ? large.get() : __builtin_alloca_with_align(head.closure_bytes + 1, 512);
  here_.net.remote_get(from, closure, here_.home<task>(r) + 1, head.closure_bytes);
  const std::uint64_t now = base::fast_ns();
  if (from != here_.me) {
    here_.words->stats.steal_copy_ns += now - start;
    here_.words->stats.stolen_bytes += head.closure_bytes;
  }
  account_.end_idle(now);
  idle_.thread_came();
  if (account_.traced()) {
    account_.note(kind::task, now, r, 0, from != here_.me ? now - start : 0, head.closure_bytes, index(from),
                  buried);
    account_.note_callers(now, {{head.spawned_at}});
  }
  here_.acquire_writes();
  base::set_float_control(head.float_control);
  const ref below = std::exchange(running_, r);
  const carried words_below = carried_.now();
  words_come(carried_by(head));
  const std::uint64_t number_below = std::exchange(number_, ++last_number_);
  head.entry(closure, head.closure_bytes, r);
  running_ = below;
  end_segment();
  strand_ended();
  number_ = number_below;
  here_.release_writes();
  finish_task(r);
  // Who called it from a join may have gone on before, and left its scope.
  if (!full || current_->caller != nullptr) words_come(words_below);
}

template <class P>
void child_worker<P>::finish_task(ref r) noexcept {
  catch_up();
  const std::uint64_t now = base::fast_ns();
  records_.stamp_done(r, now);
  if (account_.traced()) account_.note(kind::end, now, r);
  const std::uint64_t before = records_.exchange_state(r, state_done);  // JN1
  GODWIT_ASSERT(before != state_done, "a record is completed once");
  if (is_detached(before)) ended_detached(r, before);
}

template <class P>
void child_worker<P>::loop() noexcept {
  for (;;) {
    catch_up();
    if (idle_.is_idle()) {
      if (!idle_.sees_work()) {
        idle_.wait_for_work();
        continue;
      }
      idle_.become_running();
    }
    serve();
    if (const ref r = look_for_task(); r != 0) begin(r);
    if constexpr (full) try_waiting();
    GODWIT_ASSERT(deque_.empty(), "ID1: the deque of an idle worker is empty");
    if (idle_.end_of_round()) {
      records_.send_releases();
      heap_.rest();
      idle_.become_idle();
    }
  }
}

/// A new thread, from the scheduler stack.
template <class P>
void child_worker<P>::begin(ref r) noexcept {
  GODWIT_ASSERT(current_ == nullptr || !full, "a thread begins when none is there");
  GODWIT_ASSERT(!idle_.is_idle(), "ID1: only a worker that counts as running has a thread");
  starting_ = r;
  void* top = reinterpret_cast<void*>(here_.region_high - 64);
  if constexpr (full) {
    current_ = new_thread(r);
    context::sanitizer_on_stack(current_->stack_low, thread_stack_bytes);
    top = current_;
  } else {
    announce_stack(0);
  }
  godwit_ctx_start(
      top,
      [](void*) {
        auto& w = static_cast<child_worker&>(this_worker());
        w.run_task(w.starting_, false);
        w.complete(0);
      },
      nullptr);
  __builtin_unreachable();
}

/// The thread on the present stack is over; @p r: the root's record, 0: completed already.
template <class P>
void child_worker<P>::complete(ref r) noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (r != 0) {
    end_segment();
    GODWIT_CHECK(r == here_.root, "only the root thread ends this way");
    if (account_.traced()) account_.note(kind::end, base::fast_ns(), r);
    here_.release_writes();
    here_.at<record>(r)->state.store(state_done, std::memory_order_release);
    static_cast<void>(here_.net.remote_exchange(worker_no{0}, &here_.job->root_done, 1));  // IN5
  }
  const bool in_region = here >= here_.region_low && here < here_.region_high;
  scheduler_stack_.announce(here, in_region ? here_.region_high : reinterpret_cast<std::uintptr_t>(current_));
  godwit_ctx_start(
      scheduler_stack_.end(),
      [](void*) {
        auto& w = static_cast<child_worker&>(this_worker());
        if (w.current_ != nullptr && w.current_->stack_low != nullptr)
          w.free_stacks_.push_back(w.current_->stack_low);
        w.current_ = nullptr;
        w.words_come({});
        w.account_.begin_idle(w.waiting_.empty() ? idle_cause::no_work : idle_cause::join);
        w.loop();
      },
      nullptr);
  __builtin_unreachable();
}

template <class P>
void child_worker<P>::end_of_root_thread() noexcept {
  complete(here_.root);
}

template <class P>
void child_worker<P>::block(ref r, const detail::place& where, const char*) noexcept {
  need_thread_here(where);
  const kept_by_thread kept(here_);  // who runs meanwhile has others
  if constexpr (full)
    wait_in_queue(r, where);
  else
    bury(r, where);
  here_.acquire_writes();
}

template <class P>
void child_worker<P>::yield_thread() noexcept {
  if (here_.shape.takes_turns) base::pause();  // who waits by yielding lets time pass
  serve();
  const kept_by_thread kept(here_);
  if constexpr (full) {
    // Who called this thread from a join may be ready by now, too.
    if (current_ == nullptr) return;  // a letter, between threads
    if (!waiting_.empty() || !deque_.empty() || !arrivals_.empty() || current_->caller != nullptr)
      wait_in_queue(0, {});
  } else if (const ref r = pop_here(); r != 0) {
    run_task(r, true);  // all that can be done: on top of this one
  }
}

/// Run to completion: the copy would go to a thread that is no parent, and perhaps wait for what it buries.
template <class P>
void child_worker<P>::share(ref r) noexcept {
  if constexpr (!full)
    base::fatal(
        "worker %u: this run's policy is %s, where a thread may wait for its own children only, but the "
        "program "
        "copied a shared_future: keep it in the thread that spawned, or take another policy with "
        "--godwit-policy (GODWIT_POLICY)",
        index(here_.me), name_of(here_.opts.policy));
  records_.retain(r);
}

// ---- run to completion ----

/// Whom another thread made might be, or wait for, what this one is buried below or buries.
template <class P>
void child_worker<P>::check_made_here(ref r, const detail::place& where) const noexcept {
  if (ref_worker(r) == here_.me) {
    const std::uint64_t by = here_.template at<record>(r)->made_by;
    if (by == number_ || by == 0) return;
  }
  base::fatal(
      "worker %u: this run's policy is %s, where a thread may wait for its own children only, but the one at "
      "%s:%u waits for a thread that another one created: join where it was spawned, or take another policy "
      "with --godwit-policy (GODWIT_POLICY)",
      index(here_.me), name_of(here_.opts.policy), where.file != nullptr ? where.file : "?", where.line);
}

/// Run other tasks on top of this thread until @p r is complete.
template <class P>
void child_worker<P>::bury(ref r, const detail::place& where) noexcept {
  if (!records_.is_complete(r)) check_made_here(r, where);
  std::uint64_t since = 0;  // when this join was found outstanding
  while (!records_.is_complete(r)) {
    if (since == 0 && deque_.empty()) {
      since = base::fast_ns();
      ++here_.words->stats.outstanding_joins;
      if (account_.traced()) {
        account_.note(kind::suspend, since, running_, r, 0, 0, 0, 2);
        account_.note_wait(since, nullptr, where);
      }
    }
    serve();
    if (const ref t = look_for_task(); t != 0) {
      run_task(t, true);
      continue;
    }
    if (!account_.is_idle()) account_.begin_idle(idle_cause::join);
    if (idle_.end_of_round()) idle_.nap();  // tasks and ends come without a wake-up
  }
  const std::uint64_t now = base::fast_ns();
  account_.end_idle(now);
  idle_.thread_came();
  if (since == 0) return;
  account_.count_outstanding(records_.ready_since(r, since), now);
  if (account_.traced()) account_.note(kind::resume, now, running_, r, 0, 0, index(here_.me));
}

namespace {
constexpr maker_rows makers_ = of_each_row(policy_rows{}, [](auto row) -> worker_makers {
  if constexpr (policy_table[row].steals_children)
    return {made<child_worker<children<row>>>, made<child_worker<children<row>>>,
            made<child_worker<children<row>>>};
  else
    return {};
});
}  // namespace

const maker_rows& child_makers() noexcept { return makers_; }

}  // namespace godwit::sched
