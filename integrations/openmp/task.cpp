// See task.hpp.
#include "task.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "entry.hpp"
#include "settings.hpp"
#include "team.hpp"

namespace godwit::openmp {

void clear(task& k) noexcept {
  if (k.of_children != nullptr) free_dependences(k.of_children);
  k.of_children = nullptr;
  k.open_here = 0;
  k.ended_elsewhere.store(0, std::memory_order_relaxed);
}

namespace {

inline void give_back(thread& t, task& k) noexcept {
  if (k.of_children != nullptr) [[unlikely]]
    clear(k);
  if (k.home == &t) [[likely]] {
    k.next = t.free_tasks;
    t.free_tasks = &k;
    return;
  }
  std::atomic<task*>& list = k.home->returned;
  k.next = list.load(std::memory_order_relaxed);
  while (!list.compare_exchange_weak(k.next, &k, std::memory_order_release)) {
  }
}

/// One that has ended and whom one of its children still knew.
void forget_child(thread& t, task& k) noexcept {
  if (k.ended_elsewhere.fetch_add(1, std::memory_order_acq_rel) == -1) give_back(t, k);
}

[[gnu::noinline]] void announce_elsewhere(thread& t, task& parent) noexcept {
  thread* waiter = parent.runs_on;
  const std::int64_t before = parent.ended_elsewhere.fetch_add(1, std::memory_order_seq_cst);
  if (before == -1)
    give_back(t, parent);
  else if (before >= 0)
    wake(*waiter);
}

/// To those that wait for it, but its team. @p in_task: by one that goes on afterwards, and may hold a lock.
inline void announce_end(thread& t, task& k, bool in_task = false) noexcept {
  if (k.node != nullptr) [[unlikely]]
    end_dependences(t, k, in_task);
  if (group* g = k.in; g != nullptr) {
    thread* waiter = g->waiter;
    if (g->open.fetch_sub(1, std::memory_order_seq_cst) == 1 && waiter != &t) wake(*waiter);
  }
  task& p = *k.parent.load(std::memory_order_relaxed);
  if (p.runs_on == &t && !p.ended) [[likely]]
    --p.open_here;
  else
    announce_elsewhere(t, p);
}
inline void count_end(member& me) noexcept {
  me.ended.store(me.ended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

/// By the thread that ran it, before anybody hears of its end.
inline void go(task& k) noexcept {
  if (k.open_here != 0) [[unlikely]]
    k.gone.store(true, std::memory_order_release);
}
/// By the thread that ran it, last of all: its memory is free when its children have ended.
inline void leave(thread& t, task& k) noexcept {
  const auto left = static_cast<std::int64_t>(k.open_here);
  if (left != 0) [[unlikely]] {
    k.open_here = 0;
    k.ended = true;
    if (k.ended_elsewhere.fetch_sub(left, std::memory_order_acq_rel) != left) return;
  }
  give_back(t, k);
}

bool is_cancelled(const group* g, const team& m) noexcept {
  return (g != nullptr && g->cancelled.load(std::memory_order_relaxed)) ||
         m.cancelled.load(std::memory_order_relaxed);
}

inline void call_function(thread& t, task& k) noexcept {
  member& me = *t.me;
  task* before = t.current;
  const std::uint64_t floor = me.floor;
  k.runs_on = &t;
  me.floor = me.tasks.end();
  t.current = &k;
  k.function(k.data);
  t.current = before;
  me.floor = floor;
}
/// False: it was cancelled, and its function not called.
inline bool call(thread& t, task& k) noexcept {
  const bool called = !environment_.cancellation || !is_cancelled(k.in, *k.of);
  if (called) [[likely]]
    call_function(t, k);
  return called;
}

// The address of a detached task, in bits that it does not use the lower ones of how many it has been: those
// who are late with the event of one that was cancelled find another number there.
constexpr unsigned low_bits = 4, address_bits = 48, number_bits = low_bits + 64 - address_bits;
constexpr std::uint32_t low_mask = (1u << low_bits) - 1, number_mask = (1u << number_bits) - 1;
static_assert(alignof(task) > low_mask);

/// No event of @p k is known any more.
void forget_event(task& k) noexcept {
  k.event.store((k.event.load(std::memory_order_relaxed) | 1) + 1, std::memory_order_release);
  k.detached = false;
}
void end_detached(thread& t, task& k, bool in_task) noexcept {
  k.gone.store(true, std::memory_order_release);
  announce_end(t, k, in_task);
  if (member& me = *t.me; me.of == k.of) {
    count_end(me);
  } else {
    team& m = *k.of;
    m.ended_elsewhere.fetch_add(1, std::memory_order_seq_cst);
    wake_all(m);
  }
  forget_event(k);
  forget_child(t, k);
}
/// Its event is one more that knows it.
[[gnu::noinline]] void leave_to_event(thread& t, task& k) noexcept {
  ++k.open_here;
  leave(t, k);
  if ((k.event.fetch_or(1, std::memory_order_acq_rel) & 1) != 0) end_detached(t, k, false);
}

inline void run(thread& t, task& k) noexcept {
  const bool called = call(t, k);
  if (k.detached) [[unlikely]] {
    if (called) return leave_to_event(t, k);
    forget_event(k);
  }
  go(k);
  announce_end(t, k);
  count_end(*t.me);
  leave(t, k);
}

/// One that was handed to the team. Null: none.
template <class F>
task* take_handed(team& m, F wanted) noexcept {
  const guard hold(m.handed_word);
  task *before = nullptr, *k = m.handed.load(std::memory_order_relaxed);
  for (; k != nullptr && !wanted(k); k = k->next) before = k;
  if (k == nullptr) return nullptr;
  if (before != nullptr)
    before->next = k->next;
  else
    m.handed.store(k->next, std::memory_order_release);
  return k;
}

template <class F>
task* steal(const member& me, F wanted) noexcept {
  team& m = *me.of;
  if (m.handed.load(std::memory_order_acquire) != nullptr) [[unlikely]]
    if (task* k = take_handed(m, wanted); k != nullptr) return k;
  for (unsigned i = 1; i < m.size; ++i) {
    member& victim = *m.members[(me.number + i) % m.size];
    if (task* k = victim.tasks.steal(wanted); k != nullptr) return k;
  }
  return nullptr;
}

/// Is it so many steps above @p k, which is in use? Who has gone may have done so before its parent was
/// looked at, which may have been used again by then: so all are asked once more, the highest first.
bool is_above(const task& from, const task* k, std::uint32_t steps) noexcept {
  if (steps == 0) return k == &from;
  const auto has_gone = [&] { return k->gone.load(std::memory_order_acquire); };
  return k != nullptr && !has_gone() &&
         is_above(from, k->parent.load(std::memory_order_acquire), steps - 1) && !has_gone();
}
bool is_above(const task& from, const task* k) noexcept {
  return k->depth >= from.depth && is_above(from, k, k->depth - from.depth);
}
/// @p k cannot begin meanwhile, nor its groups end. Where tasks above it have gone, it is known by its
/// groups, or nobody waits for it but a barrier.
bool descends(const task& k, const task& from) noexcept {
  if (is_above(from, &k)) return true;
  for (const group* g = k.in; g != nullptr && g->by != nullptr; g = g->outer)
    if (is_above(from, g->by)) return true;
  return false;
}

}  // namespace

namespace {
void* block_for(task& k, const task_request& r) noexcept {
  const std::size_t align = std::max(r.align, alignof(std::max_align_t)), bytes = r.bytes + align;
  if (k.block_bytes < bytes) {
    std::free(k.block);
    k.block = static_cast<char*>(std::malloc(bytes));
    if (k.block == nullptr) fail("out of memory for a task's %zu bytes of variables", r.bytes);
    k.block_bytes = bytes;
  }
  return k.block + (0 - reinterpret_cast<std::uintptr_t>(k.block)) % align;
}
}  // namespace

task& make_free_task(thread& t) noexcept {
  task* k = t.returned.exchange(nullptr, std::memory_order_acquire);
  if (k == nullptr) {
    constexpr unsigned batch = 64;
    task* all = new (std::nothrow) task[batch];
    if (all == nullptr) fail("out of memory for tasks");
    for (unsigned i = 0; i < batch; ++i) {
      all[i].home = &t;
      all[i].next = i + 1 < batch ? &all[i + 1] : nullptr;
    }
    k = all;
  }
  t.free_tasks = k->next;
  return *k;
}

namespace {
constexpr std::size_t few_bytes = 64;
/// From 8 to few_bytes of them, without a call. In words, as the program has just written them: a load of two
/// would wait until both have reached the cache.
inline void copy_few(void* to, const void* from, std::size_t bytes) noexcept {
  const auto ends = [&](std::size_t at) {  // the word there, and the one as far from the end
    long first, last;
    std::memcpy(&first, static_cast<const char*>(from) + at, sizeof first);
    std::memcpy(&last, static_cast<const char*>(from) + bytes - at - sizeof last, sizeof last);
    std::memcpy(static_cast<char*>(to) + at, &first, sizeof first);
    std::memcpy(static_cast<char*>(to) + bytes - at - sizeof last, &last, sizeof last);
  };
  constexpr std::size_t word = sizeof(long);
  ends(0);
  if (bytes > 2 * word) ends(word);
  if (bytes > 4 * word) ends(2 * word);
  if (bytes > 6 * word) ends(3 * word);
}
inline bool has_room(std::size_t bytes, std::size_t align) noexcept {
  return bytes <= task::room_bytes && align <= alignof(std::max_align_t);
}
}  // namespace

void copy_data(task& k, const task_request& r) noexcept {
  k.data = has_room(r.bytes, r.align) ? k.room : block_for(k, r);
  if (r.copy != nullptr) return r.copy(k.data, r.data);
  std::memcpy(k.data, r.data, r.bytes);
}

bool is_discarded(const thread& t) noexcept { return is_cancelled(t.current->in, *t.me->of); }

namespace {
/// One more that its parent, its group and its team wait for.
inline void count(member& me, task& k) noexcept {
  k.of = me.of;
  ++k.parent.load(std::memory_order_relaxed)->open_here;
  if (k.in != nullptr) k.in->open.fetch_add(1, std::memory_order_relaxed);
  me.made.store(me.made.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}
inline void wake_one_for(team& m) noexcept {
  if (m.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
    wake_one(m);
}
}  // namespace

void start_deferred(thread& t, task& k, const task_request& r) noexcept {
  count(*t.me, k);
  if (r.depend == nullptr || link_dependences(k, r.depend)) offer(t, k);
}

void hand_over(task& k) noexcept {
  team& m = *k.of;
  {
    const guard hold(m.handed_word);
    k.next = m.handed.load(std::memory_order_relaxed);
    m.handed.store(&k, std::memory_order_release);
  }
  wake_all(m);
}
bool push(thread& t, task& k) noexcept {
  member& me = *t.me;
  team& m = *k.of;
  if (me.of != &m || m.size == 1 || !me.tasks.push(&k, k.depth)) return false;
  wake_one_for(m);
  return true;
}
void offer(thread& t, task& k) noexcept {
  if (t.me->of != k.of) [[unlikely]]
    return hand_over(k);
  if (!push(t, k)) run(t, k);
}

void run_undeferred(thread& t, task& k, const task_request& r) noexcept {
  k.of = t.me->of;
  t.me->tasks.answer();
  if (r.depend != nullptr) wait_for_dependences(t, r.depend);
  const bool called = call(t, k);
  if (k.detached) {
    if (called) wait_running(t, [&] { return (k.event.load(std::memory_order_acquire) & 1) != 0; });
    forget_event(k);
  }
  go(k);
  leave(t, k);
}

void* event_of(task& k) noexcept {
  const std::uintptr_t number = (k.event.load(std::memory_order_relaxed) / 2) & number_mask;
  const std::uintptr_t high = number >> low_bits << address_bits;
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&k) | high | (number & low_mask));
}
void fulfill(void* event) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(event);
  const std::uintptr_t address =
      bits << (64 - address_bits) >> (64 - address_bits) & ~std::uintptr_t{low_mask};
  task& k = *reinterpret_cast<task*>(address);
  const auto number = static_cast<std::uint32_t>(bits >> address_bits << low_bits | (bits & low_mask));
  std::uint32_t now = k.event.load(std::memory_order_acquire);
  do {
    if ((now / 2 & number_mask) != number) return;
    if ((now & 1) != 0) return end_detached(self(), k, true);
  } while (!k.event.compare_exchange_weak(now, now | 1, std::memory_order_acq_rel));
}

namespace {
[[gnu::noinline]] bool run_stolen(thread& t, bool descendants) noexcept {
  const auto wanted = [&](const task* k) { return !descendants || descends(*k, *t.current); };
  t.me->tasks.answer();
  task* k = steal(*t.me, wanted);
  if (k != nullptr) run(t, *k);
  return k != nullptr;
}
inline bool run_own(thread& t) noexcept {
  task* k = t.me->tasks.pop(t.me->floor);
  if (k != nullptr) run(t, *k);
  return k != nullptr;
}
}  // namespace

bool run_any_task(thread& t) noexcept { return run_own(t) || run_stolen(t, false); }
[[gnu::flatten]] bool run_descendant(thread& t) noexcept { return run_own(t) || run_stolen(t, true); }
bool any_task_waits(const team& m) noexcept {
  if (m.handed.load(std::memory_order_acquire) != nullptr) return true;
  for (unsigned i = 0; i < m.size; ++i)
    if (!m.members[i]->tasks.empty()) return true;
  return false;
}

void begin_group(thread& t, group& g) noexcept {
  g.outer = t.current->in;
  g.by = t.current;
  g.reductions = g.outer != nullptr ? g.outer->reductions : nullptr;
  g.waiter = &t;
  g.open.store(0, std::memory_order_relaxed);
  g.cancelled.store(false, std::memory_order_relaxed);
  t.current->in = &g;
}
void end_group(thread& t) noexcept {
  group& g = *t.current->in;
  if (g.open.load(std::memory_order_acquire) != 0)
    wait_running(t, [&] { return g.open.load(std::memory_order_acquire) == 0; });
  t.current->in = g.outer;
}
group& begin_heap_group(thread& t) noexcept {
  auto* g = new (std::nothrow) group;
  if (g == nullptr) fail("out of memory");
  begin_group(t, *g);
  return *g;
}
void end_heap_group(thread& t) noexcept {
  const group* g = t.current->in;
  end_group(t);
  delete g;
}

}  // namespace godwit::openmp

using namespace godwit::openmp;

namespace {

using function = void(void*);
using copier = void(void*, void*);

[[gnu::noinline]] void make_special(function* f, void* data, copier* copy, long bytes, long align,
                                    bool if_clause, unsigned flags, void** depend, void* event) noexcept {
  const task_request r{f,
                       data,
                       copy,
                       static_cast<std::size_t>(bytes),
                       static_cast<std::size_t>(align),
                       if_clause,
                       (flags & final_flag) != 0,
                       (flags & depend_flag) != 0 ? depend : nullptr,
                       (flags & detach_flag) != 0 ? static_cast<void**>(event) : nullptr};
  make_task(self(), r, [](void*) {});
}

/// There is one.
inline task& take_free_task(thread& t) noexcept {
  task& k = *t.free_tasks;
  t.free_tasks = k.next;
  return k;
}
/// Nobody else needs it: as run_undeferred, with nothing to look after, and no cancellation.
[[gnu::noinline]] void run_at_once(thread& t, function* f, void* data) noexcept {
  task& k = take_free_task(t);
  begin_task(k, *t.current);
  k.final = false;
  k.function = f;
  k.data = data;
  k.of = t.me->of;
  t.me->tasks.answer();
  call_function(t, k);
  go(k);
  leave(t, k);
}

}  // namespace

/// Most tasks are deferred, with nothing to look after but few variables: make_special is for all others.
/// This function calls no other before its end, so that it saves no registers.
OPENMP_ENTRY void GOMP_task(function* f, void* data, copier* copy, long bytes, long align, bool if_clause,
                            unsigned flags, void** depend, int, void* event) {
  thread* const t = self_;
  const auto size = static_cast<std::size_t>(bytes);
  const bool special = t == nullptr || (flags & (final_flag | depend_flag | detach_flag)) != 0 ||
                       !if_clause || copy != nullptr || size - sizeof(long) > few_bytes - sizeof(long) ||
                       align > static_cast<long>(alignof(std::max_align_t)) || t->free_tasks == nullptr ||
                       t->current->final || environment_.cancellation;
  if (special) [[unlikely]]
    return make_special(f, data, copy, bytes, align, if_clause, flags, depend, event);
  if (!can_defer(*t)) return run_at_once(*t, f, data);
  member& me = *t->me;
  task& k = take_free_task(*t);
  begin_task(k, *t->current);
  k.final = false;
  k.function = f;
  k.data = k.room;
  copy_few(k.room, data, size);
  count(me, k);
  me.tasks.push_into_room(&k, k.depth);
  wake_one_for(*me.of);
}
