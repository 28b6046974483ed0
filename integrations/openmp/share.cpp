// See share.hpp.
#include "share.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "idle.hpp"
#include "settings.hpp"
#include "team.hpp"

namespace godwit::openmp {

loop loop_of(schedule_kind kind, long start, long end, long step, long chunk) noexcept {
  const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(end),
             by = static_cast<std::uint64_t>(step);
  std::uint64_t count = 0;
  if (step > 0 && start < end) count = (to - from - 1) / by + 1;
  if (step < 0 && start > end) count = (from - to - 1) / (0 - by) + 1;
  return {kind, chunk > 0 ? static_cast<std::uint64_t>(chunk) : 0, from, to, by, count};
}
loop loop_of(schedule_kind kind, bool up, unsigned long long start, unsigned long long end,
             unsigned long long step, unsigned long long chunk) noexcept {
  std::uint64_t count = 0;
  if (up && start < end) count = (end - start - 1) / step + 1;
  if (!up && start > end) count = (start - end - 1) / (0 - step) + 1;
  return {kind, chunk, start, end, step, count};
}

void set_loop(share& s, const loop& l) noexcept {
  s.kind = l.kind;
  s.chunk = l.chunk;
  if (s.kind == schedule_kind::run_time) {
    const settings& own = settings_of(*self().current);
    s.kind = own.schedule;
    s.chunk = static_cast<std::uint64_t>(own.chunk);
  }
  if (s.kind == schedule_kind::automatic) {
    s.kind = schedule_kind::fixed;
    s.chunk = 0;
  }
  if (s.kind != schedule_kind::fixed) s.chunk = std::max<std::uint64_t>(s.chunk, 1);
  s.start = l.start;
  s.finish = l.finish;
  s.step = l.step;
  s.count = l.count;
  s.next.store(0, std::memory_order_relaxed);
  s.turn.store(0, std::memory_order_relaxed);
}

void clear_share(share& s) noexcept {
  s.number = 0;
  std::free(s.memory);
  std::free(static_cast<void*>(s.posted));
  s.memory = nullptr;
  s.posted = nullptr;
  s.reductions = nullptr;
}

namespace {

share& slot_of(team& m, std::uint64_t number) noexcept { return m.shares[number % team::share_count]; }

/// The construct of that number, or one for it. Null: the one eight before it is not over. Under the lock.
/// @p never_over: of a cancelled region; members that have left it do not come to its constructs.
share* find(share& slot, std::uint64_t number, bool never_over) noexcept {
  share *unused = nullptr, *last = nullptr;
  for (share* s = &slot; s != nullptr; s = s->more) {
    if (s->number == number) return s;
    if (s->number == 0 && unused == nullptr) unused = s;
    last = s;
  }
  if (!never_over) return slot.number == 0 ? &slot : nullptr;
  if (unused != nullptr) return unused;
  last->more = new (std::nothrow) share;
  if (last->more == nullptr) fail("out of memory");
  return last->more;
}

}  // namespace

bool begin_share(thread& t, share*& s) noexcept {
  member& me = *t.me;
  team& m = *me.of;
  const std::uint64_t number = ++me.shares;
  me.trips = me.chunk_begin = me.chunk_end = 0;
  share& slot = slot_of(m, number);
  const auto look = [&] {
    s = find(slot, number, m.cancelled.load(std::memory_order_acquire));
    return s != nullptr;
  };
  for (lock(slot.lock); !look(); lock(slot.lock)) {
    unlock(slot.lock);
    wait_until(t, [&] {
      const guard hold(slot.lock);
      return look();
    });
  }
  me.in = s;
  if (s->number == number) {
    unlock(slot.lock);
    return false;
  }
  s->number = number;
  s->left = 0;
  return true;
}
void end_preparing(thread& t) noexcept { unlock(slot_of(*t.me->of, t.me->shares).lock); }

void leave_share(thread& t) noexcept {
  share& s = *t.me->in;
  team& m = *t.me->of;
  share& slot = slot_of(m, s.number);
  lock(slot.lock);
  const bool last = ++s.left == m.size;
  if (last) clear_share(s);
  unlock(slot.lock);
  if (last) wake_all(m);
}

namespace {

bool next_fixed(const share& s, member& me, unsigned size) noexcept {
  const std::uint64_t trip = me.trips++;
  if (s.chunk == 0) {
    const std::uint64_t each = s.count / size, more = s.count % size;
    me.chunk_begin = me.number * each + std::min<std::uint64_t>(me.number, more);
    me.chunk_end = me.chunk_begin + each + (me.number < more ? 1 : 0);
    return trip == 0 && me.chunk_begin < me.chunk_end;
  }
  const std::uint64_t index = me.number + trip * size;
  if (index > (s.count - 1) / s.chunk || s.count == 0) return false;
  me.chunk_begin = index * s.chunk;
  me.chunk_end = std::min(s.count - me.chunk_begin, s.chunk) + me.chunk_begin;
  return true;
}

bool next_shared(share& s, member& me, unsigned size) noexcept {
  std::uint64_t begin = s.next.load(std::memory_order_relaxed), end;
  do {
    if (begin >= s.count) return false;
    const std::uint64_t rest = s.count - begin;
    std::uint64_t n = s.chunk;
    if (s.kind == schedule_kind::guided) n = std::max(n, rest / size + (rest % size != 0));
    end = begin + std::min(n, rest);
  } while (!s.next.compare_exchange_weak(begin, end, std::memory_order_relaxed));
  me.chunk_begin = begin;
  me.chunk_end = end;
  return true;
}

}  // namespace

bool next_chunk(thread& t) noexcept {
  member& me = *t.me;
  share& s = *me.in;
  const bool got =
      s.kind == schedule_kind::fixed ? next_fixed(s, me, me.of->size) : next_shared(s, me, me.of->size);
  if (!got) me.chunk_begin = me.chunk_end = 0;
  return got;
}

namespace {
/// Or until the region is cancelled: then members whose turn comes before may have left it.
void wait_for_turn(thread& t) noexcept {
  const member& me = *t.me;
  const std::atomic<bool>& cancelled = me.of->cancelled;
  wait_until(t, [&] {
    return me.in->turn.load(std::memory_order_acquire) == me.chunk_begin ||
           cancelled.load(std::memory_order_acquire);
  });
}
}  // namespace

void enter_ordered(thread& t) noexcept {
  member& me = *t.me;
  if (me.in == nullptr || me.chunk_begin == me.chunk_end) return;
  wait_for_turn(t);
  me.ordered = me.in;
  lock(me.ordered->ordered);
}
void leave_ordered(member& me) noexcept {
  if (me.ordered == nullptr) return;
  unlock(me.ordered->ordered);
  me.ordered = nullptr;
}
void pass_turn(thread& t) noexcept {
  member& me = *t.me;
  if (me.chunk_begin == me.chunk_end) return;
  wait_for_turn(t);
  me.in->turn.store(me.chunk_end, std::memory_order_seq_cst);
  wake_all(*me.of);
}

}  // namespace godwit::openmp
