// Entry points: tasks, groups of them, loops of them.
#include <algorithm>
#include <sched.h>

#include "entry.hpp"
#include "reductions.hpp"
#include "settings.hpp"
#include "task.hpp"
#include "team.hpp"

using namespace godwit::openmp;

using function = void(void*);
using copier = void(void*, void*);
using ull = unsigned long long;

OPENMP_ENTRY void GOMP_taskwait() {
  thread& t = self();
  const task& k = *t.current;
  if (k.waits_for_children()) wait_running(t, [&] { return !k.waits_for_children(); });
}
OPENMP_ENTRY void GOMP_taskwait_depend(void** depend) { wait_for_dependences(self(), depend); }
OPENMP_ENTRY void GOMP_taskyield() {
  if (!run_descendant(self())) ::sched_yield();
}
OPENMP_ENTRY void omp_fulfill_event(void* event) { fulfill(event); }
OPENMP_ENTRY void omp_fulfill_event_(void* event) { omp_fulfill_event(event); }  // Fortran's: by value, too

OPENMP_ENTRY void GOMP_taskgroup_start() { begin_heap_group(self()); }
OPENMP_ENTRY void GOMP_taskgroup_end() { end_heap_group(self()); }

namespace {

/// A taskloop's iterations, counted from 0, in `tasks` of nearly the same size.
struct pieces {
  std::uint64_t count, tasks, each, more;  ///< the first `more` tasks have one iteration more
};
pieces divide(std::uint64_t count, unsigned flags, std::uint64_t asked, unsigned threads) noexcept {
  if (count == 0) return {0, 0, 0, 0};
  std::uint64_t tasks;
  if ((flags & grain_size_flag) != 0 && (flags & strict_flag) != 0)
    return {count, (count - 1) / asked + 1, asked, 0};
  if ((flags & grain_size_flag) != 0)
    tasks = std::max<std::uint64_t>(count / std::max<std::uint64_t>(asked, 1), 1);
  else
    tasks = asked != 0 ? asked : std::uint64_t{threads} * 8;
  tasks = std::min(tasks, count);
  return {count, tasks, count / tasks, count % tasks};
}

/// What the compiler passes begins with the iterations; with reductions, their list comes next.
template <class T>
struct loop_data {
  T begin, end;
  std::uintptr_t* reductions;
};

template <class T>
void run_loop(const task_request& r, unsigned flags, const pieces& p, T from, T to, T by) noexcept {
  thread& t = self();
  group g;
  const bool grouped = (flags & no_group_flag) == 0;
  if (grouped) {
    begin_group(t, g);
    if ((flags & reduction_flag) != 0) {
      std::uintptr_t* list = static_cast<loop_data<T>*>(r.data)->reductions;
      make_copies(list, g.reductions, t.me->of->size);
      g.reductions = list;
    }
  }
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < p.tasks; ++i) {
    const std::uint64_t next = std::min(at + p.each + (i < p.more ? 1 : 0), p.count);
    make_task(t, r, [&](void* own) {
      auto* d = static_cast<loop_data<T>*>(own);
      const auto place = [&](std::uint64_t n) {
        return static_cast<T>(static_cast<ull>(from) + n * static_cast<ull>(by));
      };
      d->begin = place(at);
      d->end = next == p.count ? to : place(next);
    });
    at = next;
  }
  if (grouped) end_group(t);
}

task_request request(function* f, void* data, copier* copy, long bytes, long align, unsigned flags) noexcept {
  return {f,
          data,
          copy,
          static_cast<std::size_t>(bytes),
          static_cast<std::size_t>(align),
          (flags & if_flag) != 0,
          (flags & final_flag) != 0,
          nullptr,
          nullptr};
}

}  // namespace

OPENMP_ENTRY void GOMP_taskloop(function* f, void* data, copier* copy, long bytes, long align, unsigned flags,
                                unsigned long tasks, int, long from, long to, long by) {
  const loop l = loop_of(schedule_kind::fixed, from, to, by, 0);
  run_loop(request(f, data, copy, bytes, align, flags), flags,
           divide(l.count, flags, tasks, self().me->of->size), from, to, by);
}
OPENMP_ENTRY void GOMP_taskloop_ull(function* f, void* data, copier* copy, long bytes, long align,
                                    unsigned flags, unsigned long tasks, int, ull from, ull to, ull by) {
  const loop l = loop_of(schedule_kind::fixed, (flags & upwards_flag) != 0, from, to, by, 0);
  run_loop(request(f, data, copy, bytes, align, flags), flags,
           divide(l.count, flags, tasks, self().me->of->size), from, to, by);
}
