// Members of child_worker: threads with stacks of their own (child_full), which wait in a queue of their
// worker. docs/protocols/policies.md. A header, though nobody else includes it: members of a template, which
// child.cpp instantiates.
#pragma once

#include "sched/child.hpp"

#include <algorithm>
#include <utility>

namespace godwit::sched {

using trace::idle_cause;
using trace::kind;
using transport::index;

template <class P>
typename child_worker<P>::thread* child_worker<P>::new_thread(ref r) noexcept {
  std::byte* low = nullptr;
  if (free_stacks_.empty()) {
    low = stack::map_private(thread_stack_bytes);
    stacks_.insert(std::ranges::upper_bound(stacks_, low), low);
  } else {
    low = free_stacks_.back();
    free_stacks_.pop_back();
  }
  static_assert(sizeof(thread) <= descriptor_room);
  auto* t = reinterpret_cast<thread*>(low + thread_stack_bytes - descriptor_room);
  context::sanitizer_forget(reinterpret_cast<std::uintptr_t>(low),
                            reinterpret_cast<std::uintptr_t>(t) + sizeof *t);
  *t = thread{};
  t->record = r;
  t->stack_low = low;
  return t;
}

/// When nobody runs on them any more.
template <class P>
child_worker<P>::~child_worker() {
  for (std::byte* low : stacks_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(low);
    context::sanitizer_forget(begin, begin + thread_stack_bytes);
    stack::unmap_private(low, thread_stack_bytes);
  }
}

template <class P>
bool child_worker<P>::is_in_own_stack(std::uintptr_t word) const noexcept {
  const auto above = std::ranges::upper_bound(
      stacks_, word, {}, [](const std::byte* low) { return reinterpret_cast<std::uintptr_t>(low); });
  return above != stacks_.begin() && word - reinterpret_cast<std::uintptr_t>(above[-1]) < thread_stack_bytes;
}

template <class P>
const char* child_worker<P>::overflow_of_thread(std::uintptr_t address) const noexcept {
  if (current_ == nullptr || current_->stack_low == nullptr) return nullptr;
  const auto low = reinterpret_cast<std::uintptr_t>(current_->stack_low);
  return address < low && low - address <= thread_stack_bytes ? "child_full" : nullptr;
}

template <class P>
stack::range child_worker<P>::private_stack() const noexcept {
  if (current_ == nullptr || current_->stack_low == nullptr) return {};
  const auto low = reinterpret_cast<std::uintptr_t>(current_->stack_low);
  return {low, low + thread_stack_bytes};
}

template <class P>
void child_worker<P>::wait_in_queue(ref r, const detail::place& where) noexcept {
  bool outstanding = false;
  bool yielded = false;
  while (r == 0 ? !std::exchange(yielded, true) : !records_.is_complete(r)) {
    if (r != 0) {
      if (const ref t = pop_own(); t != 0) {
        call(t, r, where);
        continue;
      }
      if (!outstanding) ++here_.words->stats.outstanding_joins;
      outstanding = true;
    }
    struct parting {
      child_worker* self;
      ref r;
      const detail::place* where;
    } p{this, r, &where};
    scheduler_stack_.announce();
    godwit_ctx_suspend(
        scheduler_stack_.end(),
        [](void* arg, std::uintptr_t sp) {
          const auto p = *static_cast<parting*>(arg);
          child_worker& w = *p.self;
          thread* t = w.current_;
          t->takes = w.carried_.now();
          w.enqueue(*t, sp, p.r, *p.where);
          // Those who called it as a part of their joins leave with it. Who waits for what it called goes on
          // when that ends; the others may go on before.
          for (thread* caller; (caller = t->caller) != nullptr; t = caller) {
            if (caller->waits_for == t->record) {
              if (!std::exchange(t->caller_left, true))
                w.note_leaves(*caller, caller->waits_for, *caller->where, base::fast_ns());
              continue;
            }
            t->caller = nullptr;
            w.enqueue(*caller, t->caller_sp, caller->waits_for, *caller->where);
            ++w.here_.words->stats.outstanding_joins;
          }
          w.current_ = nullptr;
          w.words_come({});
          w.account_.begin_idle(p.r != 0 ? idle_cause::join : idle_cause::no_work);
          w.loop();
        },
        &p);
  }
}

template <class P>
void child_worker<P>::enqueue(thread& t, std::uintptr_t sp, ref waits_for,
                              const detail::place& where) noexcept {
  GODWIT_ASSERT(t.record != 0, "a thread completes a record");
  auto* im = static_cast<image*>(heap_.allocate(object_kind::image, sizeof(image)));
  im->sp = sp;
  im->low = sp;
  im->top = reinterpret_cast<std::uintptr_t>(t.stack_low != nullptr
                                                 ? reinterpret_cast<std::byte*>(&t)
                                                 : reinterpret_cast<std::byte*>(here_.region_high));
  im->own_record = t.record;
  im->takes = t.takes;
  im->waiting_for = im->waited_for = waits_for;
  im->parked_at = nullptr;
  im->suspended_ns = base::fast_ns();
  im->ready_ns = 0;
  im->float_control = base::float_control();
  im->extra = reinterpret_cast<std::uintptr_t>(&t);
  im->fork = false;
  im->where = where;
  ++here_.words->stats.suspends;
  spend(base::step::suspend);
  if (t.stack_low == nullptr) uses_region(sp);
  note_leaves(t, waits_for, where, im->suspended_ns);
  waiting_.push(im);
}

template <class P>
void child_worker<P>::note_leaves(const thread& t, ref waits_for, const detail::place& where,
                                  std::uint64_t now) noexcept {
  if (!account_.traced()) return;
  account_.note(kind::suspend, now, t.record, waits_for);
  if (waits_for != 0) account_.note_wait(now, nullptr, where);
}

template <class P>
void child_worker<P>::try_waiting() noexcept {
  image* im = waiting_.pop();
  if (im == nullptr) return;
  GODWIT_ASSERT(im->kind == object_kind::image && im->own_record != 0, "the queue holds threads that wait");
  GODWIT_ASSERT(!idle_.is_idle() && current_ == nullptr, "a worker has one thread");
  const ref r = im->waiting_for;
  if (r != 0 && !records_.is_complete(r)) {
    waiting_.push(im);
    return;
  }
  const std::uint64_t now = base::fast_ns();
  if (r != 0) account_.count_outstanding(records_.ready_since(r, im->suspended_ns), now);
  account_.end_idle(now);
  if (account_.traced()) account_.note(kind::resume, now, im->own_record, r, 0, 0, index(here_.me));
  ++here_.words->stats.resumes;
  spend(base::step::resume);
  here_.acquire_writes();
  idle_.thread_came();
  current_ = reinterpret_cast<thread*>(im->extra);
  words_come(im->takes);
  const std::uintptr_t sp = im->sp;
  base::set_float_control(im->float_control);
  heap_.free(im);
  if (current_->stack_low != nullptr)
    context::sanitizer_on_stack(current_->stack_low, thread_stack_bytes);
  else
    announce_stack(0);
  godwit_ctx_resume_suspended(sp, 0);
  __builtin_unreachable();
}

/// Run @p task on a stack of its own, as a call from the join of the present thread, which waits for @p
/// waits_for.
template <class P>
void child_worker<P>::call(ref task, ref waits_for, const detail::place& where) noexcept {
  thread* me = current_;
  GODWIT_ASSERT(me != nullptr, "a task is called from the join of a thread");
  me->waits_for = waits_for;
  me->where = &where;
  me->takes = carried_.now();
  thread* t = new_thread(task);
  t->caller = me;
  context::sanitizer_on_stack(t->stack_low, thread_stack_bytes);
  const auto done = reinterpret_cast<thread*>(godwit_ctx_suspend(
      t,
      [](void* arg, std::uintptr_t sp) {
        auto& w = static_cast<child_worker&>(this_worker());
        auto* self = static_cast<thread*>(arg);
        self->caller_sp = sp;
        if (w.current_->stack_low == nullptr) w.uses_region(sp);
        w.current_ = self;
        w.run_task(self->record, true);
        if (self->caller == nullptr) w.complete(0);  // the join has left meanwhile
        w.current_ = self->caller;
        if (self->caller_left && w.account_.traced())
          w.account_.note(kind::resume, base::fast_ns(), w.current_->record, self->record, 0, 0,
                          index(w.here_.me));
        if (w.current_->stack_low != nullptr)
          context::sanitizer_on_stack(w.current_->stack_low, thread_stack_bytes);
        else
          w.announce_stack(0);
        godwit_ctx_resume_suspended(self->caller_sp, reinterpret_cast<std::uintptr_t>(self));
      },
      t));
  if (done != nullptr) free_stacks_.push_back(done->stack_low);
}

}  // namespace godwit::sched
