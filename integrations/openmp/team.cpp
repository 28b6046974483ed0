// See team.hpp: threads that a team hires, regions, barriers.
#include "team.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <pthread.h>
#include <sched.h>

#include "idle.hpp"
#include "settings.hpp"
#include "task.hpp"

namespace godwit::openmp {

__thread thread* self_ __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

std::uint32_t list_lock_ = 0;
// Under list_lock_: of threads that have ended, the program's and those that teams had hired.
thread *left_over_ = nullptr, *hired_before_ = nullptr;
pthread_key_t end_key_;
pthread_once_t once_ = PTHREAD_ONCE_INIT;

template <class T>
T* make() noexcept {
  T* p = new (std::nothrow) T();
  if (p == nullptr) fail("out of memory");
  return p;
}

/// @p parent: null outside all regions.
void begin_implicit(member& me, task* parent, const settings* s, group* in) noexcept {
  task& k = me.implicit;
  k.parent.store(parent, std::memory_order_release);
  k.depth = parent != nullptr ? parent->depth + 1 : 0;
  k.runs_on = me.who;
  k.own = s;
  k.in = in;
  k.of = me.of;
  k.final = k.ended = false;
}

void put(thread*& list, thread& t) noexcept {
  const guard hold(list_lock_);
  t.next = list;
  list = &t;
}
/// From the list, or new.
thread& take(thread*& list) noexcept {
  {
    const guard hold(list_lock_);
    if (thread* t = list; t != nullptr) {
      list = t->next;
      return *t;
    }
  }
  return *make<thread>();
}

void dismiss_teams(thread& t) noexcept;

/// A hired thread's life: one region after the other.
void* serve(void* p) {
  thread& t = *static_cast<thread*>(p);
  self_ = &t;
  for (;;) {
    const auto called = [&] {
      return t.job.load(std::memory_order_acquire) != nullptr || t.dismissed.load(std::memory_order_acquire);
    };
    t.me = nullptr;
    wait_until(t, called);
    if (t.dismissed.load(std::memory_order_acquire)) {
      dismiss_teams(t);
      self_ = nullptr;
      put(hired_before_, t);
      return nullptr;
    }
    member& me = *t.job.load(std::memory_order_relaxed);
    team& m = *me.of;
    t.me = &me;
    t.current = &me.implicit;
    m.function(m.data);
    leave_ordered(me);
    barrier(t, false);
    clear(me.implicit);
    t.job.store(nullptr, std::memory_order_release);  // the last touch of the team: wait_until_unused
  }
}

thread* hire() noexcept {
  thread* t = &take(hired_before_);
  t->dismissed.store(false, std::memory_order_relaxed);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (environment_.stack_bytes != 0) pthread_attr_setstacksize(&attributes, environment_.stack_bytes);
  pthread_t id{};
  if (pthread_create(&id, &attributes, serve, t) != 0)
    fail(
        "cannot start another thread of a team: raise the limit on memory (ulimit -v), or lower "
        "OMP_NUM_THREADS or OMP_STACKSIZE");
  pthread_attr_destroy(&attributes);
  return t;
}

/// None of its threads is in the region before any more: they read the team, and take each other's tasks.
/// They have passed its last barrier.
void wait_until_unused(const team& m) noexcept {
  for (unsigned i = 1; i < m.hired; ++i)
    while (m.members[i]->who->job.load(std::memory_order_acquire) != nullptr) ::sched_yield();
}

/// The same members as before, in an array for @p size. One that was too small stays: threads outside the
/// team may still read it.
member** places_for(team& m, unsigned size) noexcept {
  member** before = m.members;
  if (size <= m.places) return before;
  m.places = std::max(size, 2 * m.places);
  auto** members = static_cast<member**>(std::malloc(m.places * sizeof(member*)));
  if (members == nullptr) fail("out of memory");
  std::copy_n(before, m.capacity, members);
  return members;
}

/// @p m has room for @p size members, all there but the first one's thread.
void enlarge(team& m, unsigned size) noexcept {
  if (size > m.capacity) {
    member** members = places_for(m, size);
    for (unsigned i = m.capacity; i < size; ++i) {
      members[i] = make<member>();
      members[i]->of = &m;
      members[i]->number = i;
    }
    m.members.store(members, std::memory_order_release);
    m.capacity = size;
  }
  for (; m.hired < size; ++m.hired)
    if (m.hired != 0) m.members[m.hired]->who = hire();
}

team& take_team(thread& t) noexcept {
  team* m = t.unused_teams;
  if (m == nullptr) return *make<team>();
  t.unused_teams = m->next;
  return *m;
}

void dismiss(team& m) noexcept {
  wait_until_unused(m);
  for (unsigned i = 1; i < m.hired; ++i) {
    thread& t = *m.members[i]->who;
    t.dismissed.store(true, std::memory_order_seq_cst);
    wake(t);
  }
  m.hired = std::min(m.hired, 1u);
}
void dismiss_teams(thread& t) noexcept {
  for (team* m = t.unused_teams; m != nullptr; m = m->next) dismiss(*m);
}

/// A thread of the program ends: the teams that it led end with it.
void end_of_thread(void* p) {
  auto* t = static_cast<thread*>(p);
  if (t->me->of->outer != nullptr) return;  // inside a region: nobody may touch these any more
  dismiss_teams(*t);
  self_ = nullptr;
  put(left_over_, *t);
}

/// Those in a region of that level which @p k begins.
const settings* settings_inside(const task& k, unsigned level) noexcept {
  settings s = settings_of(k);
  if (level >= environment_.level_count) return k.own;
  s.threads = environment_.threads_of_level[level];
  return keep(s);
}

void prepare_member(team& m, unsigned i, const settings* s) noexcept {
  member& me = *m.members[i];
  me.floor = me.tasks.end();
  me.tasks.fit(m.size);
  me.made.store(0, std::memory_order_relaxed);
  me.ended.store(0, std::memory_order_relaxed);
  me.shares = me.singles = 0;
  me.in = nullptr;
  me.trips = me.chunk_begin = me.chunk_end = 0;
  begin_implicit(me, m.outer_task, s, m.reductions);
}

}  // namespace

thread& make_self() noexcept {
  pthread_once(&once_, [] {
    if (pthread_key_create(&end_key_, end_of_thread) != 0) fail("no pthread key is left for OpenMP threads");
  });
  thread* t = &take(left_over_);
  self_ = t;
  pthread_setspecific(end_key_, t);
  if (t->me == nullptr) {  // a team of its own, outside all regions
    team& m = *make<team>();
    enlarge(m, 1);
    m.members[0]->who = t;
    m.size.store(1, std::memory_order_release);
    m.others = &m.own_others;
    t->me = m.members[0];
  }
  clear(t->me->implicit);
  prepare_member(*t->me->of, 0, &environment_.initial);
  t->current = &t->me->implicit;
  return *t;
}

unsigned region_size(unsigned asked) noexcept {
  thread& t = self();
  const settings& s = settings_of(*t.current);
  const unsigned n = asked != 0 ? asked : s.threads;
  if (t.me->of->active_level >= s.most_active_levels) return 1;
  // The limit is for the regions of a thread of the program together: the caller is counted already.
  std::atomic<unsigned>& others = *t.me->of->others;
  unsigned now = others.load(std::memory_order_relaxed), more;
  do {
    const unsigned most = s.thread_limit - 1;
    more = std::min(std::max(n, 1u) - 1, most > now ? most - now : 0);
  } while (more != 0 && !others.compare_exchange_weak(now, now + more, std::memory_order_relaxed));
  return 1 + more;
}

team& begin_region(void (*function)(void*), void* data, unsigned threads, group* reductions,
                   prepare_share first, void* argument) noexcept {
  thread& t = self();
  team& m = take_team(t);
  wait_until_unused(m);
  enlarge(m, threads);
  if (m.members[0]->who == nullptr) m.members[0]->who = &t;
  m.size.store(threads, std::memory_order_release);
  m.outer = t.me;
  m.outer_task = t.current;
  const team& around = *t.me->of;
  m.others = around.others;
  m.level = around.level + 1;
  m.active_level = around.active_level + (threads > 1 ? 1 : 0);
  m.function = function;
  m.data = data;
  m.reductions = reductions;
  m.cancelled.store(false, std::memory_order_relaxed);
  m.share_cancelled.store(team::none_cancelled, std::memory_order_relaxed);
  m.ended_elsewhere.store(0, std::memory_order_relaxed);
  m.singles.store(0, std::memory_order_relaxed);
  for (share& turn : m.shares)
    for (share* s = &turn; s != nullptr; s = s->more) clear_share(*s);
  const settings* inside = settings_inside(*t.current, m.level);
  for (unsigned i = 0; i < threads; ++i) prepare_member(m, i, inside);
  if (first != nullptr) {
    share& s = m.shares[1];
    s.number = 1;
    s.left = 0;
    first(s, argument);
    for (unsigned i = 0; i < threads; ++i) {
      m.members[i]->shares = 1;
      m.members[i]->in = &s;
    }
  }
  for (unsigned i = 1; i < threads; ++i) {
    thread& other = *m.members[i]->who;
    other.job.store(m.members[i], std::memory_order_seq_cst);
    wake(other);
  }
  t.me = m.members[0];
  t.current = &t.me->implicit;
  return m;
}

void end_region() noexcept {
  thread& t = self();
  team& m = *t.me->of;
  leave_ordered(*t.me);
  barrier(t, false);
  clear(t.me->implicit);
  t.me = m.outer;
  t.current = m.outer_task;
  m.outer = nullptr;
  if (m.size > 1) m.others->fetch_sub(m.size - 1, std::memory_order_relaxed);
  m.next = t.unused_teams;
  t.unused_teams = &m;
}

namespace {

/// All tasks of the team have ended, if all members are at the barrier. Ends are read before begins: where
/// they are equal then, nothing was open when the first was read.
bool all_done(const team& m) noexcept {
  std::uint64_t ended = m.ended_elsewhere.load(std::memory_order_acquire), made = 0;
  for (unsigned i = 0; i < m.size; ++i) ended += m.members[i]->ended.load(std::memory_order_acquire);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (unsigned i = 0; i < m.size; ++i) made += m.members[i]->made.load(std::memory_order_acquire);
  return ended == made;
}

constexpr std::uint64_t one_passed = team::one_passed;

}  // namespace

bool barrier(thread& t, bool cancellable) noexcept {
  team& m = *t.me->of;
  if (cancellable && m.cancelled.load(std::memory_order_acquire)) return true;
  std::atomic<std::uint64_t>& word = m.barriers[cancellable ? 1 : 0].word;
  const std::uint64_t passed = word.fetch_add(1, std::memory_order_seq_cst) / one_passed;
  const auto is_over = [&] { return word.load(std::memory_order_acquire) / one_passed != passed; };
  idle rest(t, true);
  while (!is_over()) {
    if (run_any_task(t)) {
      rest.reset();
      continue;
    }
    std::uint64_t now = word.load(std::memory_order_seq_cst);
    if (now / one_passed != passed) break;
    if (cancellable && m.cancelled.load(std::memory_order_acquire)) {  // it is not here any more
      if (word.compare_exchange_strong(now, now - 1, std::memory_order_seq_cst)) return true;
      continue;
    }
    if (now % one_passed == m.size && !any_task_waits(m) && all_done(m)) {
      if (word.compare_exchange_strong(now, (passed + 1) * one_passed, std::memory_order_seq_cst)) {
        wake_all(m);
        break;
      }
      continue;
    }
    rest.pause([&] {
      const std::uint64_t b = word.load(std::memory_order_seq_cst);
      return b / one_passed != passed || any_task_waits(m) || (b % one_passed == m.size && all_done(m)) ||
             (cancellable && m.cancelled.load(std::memory_order_acquire));
    });
  }
  return cancellable && m.cancelled.load(std::memory_order_acquire);
}

}  // namespace godwit::openmp
