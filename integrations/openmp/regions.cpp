// Entry points: parallel regions, barriers, single, critical, ordered, cancellation, teams on the host.
#include "entry.hpp"
#include "idle.hpp"
#include "reductions.hpp"
#include "settings.hpp"
#include "task.hpp"
#include "team.hpp"

using namespace godwit::openmp;

using function = void(void*);

OPENMP_ENTRY void GOMP_parallel_start(function* f, void* data, unsigned threads) {
  begin_region(f, data, region_size(threads), nullptr, nullptr, nullptr);
}
OPENMP_ENTRY void GOMP_parallel_end() { end_region(); }
OPENMP_ENTRY void GOMP_parallel(function* f, void* data, unsigned threads, unsigned) {
  begin_region(f, data, region_size(threads), nullptr, nullptr, nullptr);
  f(data);
  end_region();
}
/// The first word of the data leads to the reductions; the program merges the copies of as many threads as
/// this gives back.
OPENMP_ENTRY unsigned GOMP_parallel_reductions(function* f, void* data, unsigned threads, unsigned) {
  const unsigned n = region_size(threads);
  group g;
  g.outer = nullptr;
  g.by = nullptr;
  g.waiter = &self();
  g.open.store(0, std::memory_order_relaxed);
  g.cancelled.store(false, std::memory_order_relaxed);
  g.reductions = *static_cast<std::uintptr_t**>(data);
  make_copies(g.reductions, nullptr, n);
  begin_region(f, data, n, &g, nullptr, nullptr);
  f(data);
  end_region();
  return n;
}

OPENMP_ENTRY void GOMP_barrier() { barrier(self(), false); }
OPENMP_ENTRY bool GOMP_barrier_cancel() { return barrier(self(), true); }

OPENMP_ENTRY bool GOMP_single_start() {
  member& me = *self().me;
  std::uint64_t mine = me.singles++;
  return me.of->singles.compare_exchange_strong(mine, mine + 1, std::memory_order_relaxed);
}
OPENMP_ENTRY void* GOMP_single_copy_start() {
  if (GOMP_single_start()) return nullptr;
  thread& t = self();
  barrier(t, false);
  return t.me->of->broadcast;
}
OPENMP_ENTRY void GOMP_single_copy_end(void* data) {
  thread& t = self();
  t.me->of->broadcast = data;
  barrier(t, false);
}

namespace {
std::uint32_t critical_ = 0, atomic_ = 0;
}
OPENMP_ENTRY void GOMP_critical_start() { lock(critical_); }
OPENMP_ENTRY void GOMP_critical_end() { unlock(critical_); }
// A named section has a pointer of zeros; its first word is the lock.
OPENMP_ENTRY void GOMP_critical_name_start(void** name) { lock(*reinterpret_cast<std::uint32_t*>(name)); }
OPENMP_ENTRY void GOMP_critical_name_end(void** name) { unlock(*reinterpret_cast<std::uint32_t*>(name)); }
OPENMP_ENTRY void GOMP_atomic_start() { lock(atomic_); }
OPENMP_ENTRY void GOMP_atomic_end() { unlock(atomic_); }

OPENMP_ENTRY void GOMP_ordered_start() { enter_ordered(self()); }
// The chunk's turn ends with the chunk.
OPENMP_ENTRY void GOMP_ordered_end() { leave_ordered(*self().me); }

namespace {
enum construct : int { the_region = 1, a_loop = 2, sections = 4, a_taskgroup = 8 };
}
OPENMP_ENTRY bool GOMP_cancellation_point(int which) {
  if (!environment_.cancellation) return false;
  const thread& t = self();
  const team& m = *t.me->of;
  const bool region = m.cancelled.load(std::memory_order_acquire);
  if ((which & (a_loop | sections)) != 0)
    return m.share_cancelled.load(std::memory_order_acquire) == m.barriers_passed() || region;
  if ((which & a_taskgroup) == 0) return region;
  const group* g = t.current->in;
  return region || (g != nullptr && g->cancelled.load(std::memory_order_acquire));
}
OPENMP_ENTRY bool GOMP_cancel(int which, bool really) {
  if (!environment_.cancellation) return false;
  if (!really) return GOMP_cancellation_point(which);
  thread& t = self();
  team& m = *t.me->of;
  if ((which & (a_loop | sections)) != 0) {
    m.share_cancelled.store(m.barriers_passed(), std::memory_order_release);
  } else if ((which & a_taskgroup) != 0) {
    if (group* g = t.current->in; g != nullptr) g->cancelled.store(true, std::memory_order_release);
  } else {
    m.cancelled.store(true, std::memory_order_seq_cst);
    wake_all(m);
  }
  return true;
}

/// A league on the host: its teams run one after the other.
OPENMP_ENTRY void GOMP_teams_reg(function* f, void* data, unsigned teams, unsigned thread_limit, unsigned) {
  thread& t = self();
  const settings* before = t.current->own;
  if (teams == 0) teams = default_teams_ != 0 ? default_teams_ : 1;
  if (thread_limit == 0) thread_limit = teams_thread_limit_;
  for (unsigned i = 0; i < teams; ++i) {
    settings s = *before;
    s.team_number = i;
    s.team_count = teams;
    if (thread_limit != 0) s.thread_limit = thread_limit;
    t.current->own = keep(s);
    f(data);
  }
  t.current->own = before;
}
