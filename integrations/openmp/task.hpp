// Tasks: made, run, waited for. task.cpp; depend.cpp: those that wait for others.
#pragma once

#include "idle.hpp"
#include "settings.hpp"
#include "thread.hpp"

namespace godwit::openmp {

/// A task construct, as the compiler describes it.
struct task_request {
  void (*function)(void*);
  void* data;
  void (*copy)(void* to, void* from);  ///< null: bytes
  std::size_t bytes, align;
  bool deferred;  ///< its if clause
  bool final;
  void** depend;  ///< null: none. depend.cpp
  void** event;   ///< detach: where the program wants the event, or null
};

/// What a task that nobody knows yet has from its parent.
inline void begin_task(task& k, task& parent) noexcept {
  k.parent.store(&parent, std::memory_order_release);
  k.in = parent.in;
  k.own = parent.own;
  k.depth = parent.depth + 1;
  k.ended = false;
  k.gone.store(false, std::memory_order_release);
}
/// As it is while not in use, but for where it lies in lists.
void clear(task& k) noexcept;

/// @p change(data) is called on the task's own copy of what it is given, before it can begin.
template <class F>
void make_task(thread& t, const task_request& r, F change) noexcept;

/// Run a task of the team, if there is one: its own newest, or another member's oldest.
bool run_any_task(thread& t) noexcept;
bool any_task_waits(const team& m) noexcept;
/// The same, but only descendants of the task that runs: what a task may do while it waits (a thread that
/// holds a lock must not begin a task that wants it).
bool run_descendant(thread& t) noexcept;

/// Until @p done(), running descendants.
template <class F>
void wait_running(thread& t, F done) noexcept {
  idle rest(t, false);
  while (!done())
    if (run_descendant(t))
      rest.reset();
    else
      rest.pause(done);
}

/// The task may begin: in the calling member's deque, or at once where that is full. A caller that is not in
/// its team hands it over.
void offer(thread& t, task& k) noexcept;
/// The same, but false, and nothing has happened, where it is full or the caller is alone in its team.
bool push(thread& t, task& k) noexcept;
/// The task may begin, but not on top of what the caller is in.
void hand_over(task& k) noexcept;
/// What the program has of a detached task's event, and its use. Nothing happens if the task was cancelled.
void* event_of(task& k) noexcept;
void fulfill(void* event) noexcept;

void begin_group(thread& t, group& g) noexcept;
void end_group(thread& t) noexcept;
/// The same with the group on the heap: for those that end in another call.
group& begin_heap_group(thread& t) noexcept;
void end_heap_group(thread& t) noexcept;

/// As the compiler passes them.
enum task_flag : unsigned {
  final_flag = 1u << 1,
  depend_flag = 1u << 3,
  upwards_flag = 1u << 8,
  grain_size_flag = 1u << 9,
  if_flag = 1u << 10,
  no_group_flag = 1u << 11,
  reduction_flag = 1u << 12,
  detach_flag = 1u << 13,
  strict_flag = 1u << 14,
};

// What make_task is made of.
bool is_discarded(const thread& t) noexcept;  ///< what the calling task makes now
/// There are others to take it, and it is wanted.
inline bool can_defer(thread& t) noexcept {
  return t.me->of->size != 1 && t.me->tasks.wants(t.current->depth + 1);
}
task& make_free_task(thread& t) noexcept;
inline task& take_task(thread& t) noexcept {
  task* k = t.free_tasks;
  if (k == nullptr) [[unlikely]]
    return make_free_task(t);
  t.free_tasks = k->next;
  return *k;
}
void copy_data(task& k, const task_request& r) noexcept;
void start_deferred(thread& t, task& k, const task_request& r) noexcept;
void run_undeferred(thread& t, task& k, const task_request& r) noexcept;

template <class F>
void make_task(thread& t, const task_request& r, F change) noexcept {
  if (environment_.cancellation && is_discarded(t)) return;
  task& parent = *t.current;
  task& k = take_task(t);
  begin_task(k, parent);
  k.function = r.function;
  k.final = parent.final || r.final;
  k.detached = r.event != nullptr;
  if (r.event != nullptr) {
    *r.event = event_of(k);
    if (r.data != nullptr) *static_cast<void**>(r.data) = *r.event;
  }
  // One that others wait for, or that waits for others, may do so for longer than its maker.
  const bool deferred =
      r.deferred && !parent.final && (can_defer(t) || r.event != nullptr || r.depend != nullptr);
  if (deferred || r.copy != nullptr)
    copy_data(k, r);
  else
    k.data = r.data;
  change(k.data);
  if (deferred)
    start_deferred(t, k, r);
  else
    run_undeferred(t, k, r);
}

// depend.cpp
/// Enter the task @p k among its parent's children. False: it has to wait; offer is called for it later.
bool link_dependences(task& k, void** depend) noexcept;
/// The calling task waits until what @p depend names has ended.
void wait_for_dependences(thread& t, void** depend) noexcept;
/// It has ended: those that waited for it alone are offered to @p t. If @p in_task: they are handed over.
void end_dependences(thread& t, task& k, bool in_task) noexcept;
void free_dependences(dependences* d) noexcept;

}  // namespace godwit::openmp
