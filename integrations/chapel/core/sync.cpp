// Sync variables: a lock that is taken when the variable is full, or empty. See godwit-chapel.h.
//
// Who unlocks hands the lock over: to the task that has waited longest among those that the new state suits.
// So while nobody holds the lock, nobody waits that could have it, and who finds it free and the state right
// may take it at once. A state is changed by the holder only.
//
//   word bit 0  the queues' lock: held for some instructions, by a task that suspends until it is saved (S1)
//        bit 1  somebody holds the sync variable's lock
//        bit 2  full
//        bit 3  some task waits
#include "internal.hpp"

#include <sched.h>

#include <algorithm>

#include "base/world.hpp"

namespace godwit::chapel {

namespace {

constexpr std::uint32_t queues = 1, held = 2, full = 4, waited_for = 8;

std::atomic_ref<std::uint32_t> word_of(gwchpl_sync& s) noexcept {
  return std::atomic_ref<std::uint32_t>(s.word);
}

bool suits(std::uint32_t word, gwchpl_when when) noexcept {
  return when == GWCHPL_ANY || (when == GWCHPL_FULL) == ((word & full) != 0);
}

/// The first and the last that wait for @p when. Under the queues' lock.
void push(gwchpl_sync& s, gwchpl_when when, waiting& w) noexcept {
  auto& [first, last] = s.waiting[when];
  (last != nullptr ? static_cast<waiting*>(last)->next : reinterpret_cast<waiting*&>(first)) = &w;
  last = &w;
}
waiting* first_of(const gwchpl_sync& s, gwchpl_when when) noexcept {
  return static_cast<waiting*>(s.waiting[when][0]);
}
void pop(gwchpl_sync& s, gwchpl_when when) noexcept {
  auto& [first, last] = s.waiting[when];
  first = static_cast<waiting*>(first)->next;
  if (first == nullptr) last = nullptr;
}

/// The queues' lock, and what the rest of the word is.
std::uint32_t lock_queues(gwchpl_sync& s) noexcept {
  for (base::spin_wait turns;; turns.turn()) {
    const std::uint32_t seen = word_of(s).fetch_or(queues, std::memory_order_acquire);
    if ((seen & queues) == 0) return seen;
  }
}

struct entering {
  gwchpl_sync* sync;
  waiting* node;
};

/// The task is saved. It holds the queues' lock since it came.
bool publish(void* arg, detail::waiter* me) noexcept {
  const entering e = *static_cast<const entering*>(arg);
  e.node->who = me;
  word_of(*e.sync).fetch_and(~queues, std::memory_order_release);  // S1: from here on it may run
  return true;
}

constexpr const char* what_[] = {"lock of a sync variable", "sync variable to be full",
                                 "sync variable to be empty"};

/// False: it did not suit.
bool try_lock(gwchpl_sync& s, gwchpl_when when) noexcept {
  std::uint32_t seen = word_of(s).load(std::memory_order_relaxed);
  while ((seen & (queues | held)) == 0 && suits(seen, when))
    if (word_of(s).compare_exchange_weak(seen, seen | held, std::memory_order_acquire,
                                         std::memory_order_relaxed))
      return true;
  return false;
}

void wait(gwchpl_sync& s, gwchpl_when when, gwchpl_place where, task& me) noexcept {
  waiting w;
  w.of = &me;
  w.what = what_[when];
  w.where = where;
  list(w);
  const std::uint32_t seen = lock_queues(s);
  if ((seen & held) == 0 && suits(seen, when)) {
    word_of(s).store((seen | held) & ~queues, std::memory_order_release);
    unlist(w);
    return;
  }
  w.ticket = s.tickets++;
  push(s, when, w);
  word_of(s).store(seen | queues | waited_for, std::memory_order_relaxed);
  count(&counters::blocked);
  entering e{&s, &w};
  const char* file = setup().file_name != nullptr ? setup().file_name(where.file) : nullptr;
  detail::park(publish, &e, detail::wakes::inside, w.what,
               {file, "a task", static_cast<unsigned>(std::max(where.line, 0))});
  count(&counters::woken);
  unlist(w);
}

}  // namespace

void wake(waiting& w) noexcept {
  if (detail::on_substrate_threads())
    detail::unpark(w.who, detail::wakes::inside);
  else
    outside::wake_later(w);
}

}  // namespace godwit::chapel

using namespace godwit::chapel;

extern "C" {

void gwchpl_sync_lock(gwchpl_sync* sync, enum gwchpl_when when, gwchpl_place where) {
  if (try_lock(*sync, when)) return;
  if (task* me = self()) {
    wait(*sync, when, where, *me);
    return;
  }
  while (!try_lock(*sync, when)) ::sched_yield();  // an OS thread cannot be handed anything
}

void gwchpl_sync_unlock(gwchpl_sync* sync, enum gwchpl_when now) {
  const auto after = [now](std::uint32_t word) noexcept {
    return now == GWCHPL_ANY ? word : now == GWCHPL_FULL ? word | full : word & ~full;
  };
  std::uint32_t seen = word_of(*sync).load(std::memory_order_relaxed);
  while ((seen & (queues | waited_for)) == 0)
    if (word_of(*sync).compare_exchange_weak(seen, after(seen) & ~held, std::memory_order_release,
                                             std::memory_order_relaxed))
      return;
  seen = after(lock_queues(*sync));
  const gwchpl_when that = (seen & full) != 0 ? GWCHPL_FULL : GWCHPL_EMPTY;
  waiting* next = first_of(*sync, that);
  gwchpl_when from = that;
  if (waiting* any = first_of(*sync, GWCHPL_ANY);
      any != nullptr && (next == nullptr || static_cast<std::int32_t>(any->ticket - next->ticket) < 0)) {
    next = any;
    from = GWCHPL_ANY;
  }
  if (next != nullptr)
    pop(*sync, from);
  else
    seen &= ~held;
  const bool some = std::any_of(std::begin(sync->waiting), std::end(sync->waiting),
                                [](const auto& q) { return q[0] != nullptr; });
  if (!some) seen &= ~waited_for;
  // The last access: who holds the lock next may end the variable.
  word_of(*sync).store(seen & ~queues, std::memory_order_release);
  if (next != nullptr) wake(*next);
}

int gwchpl_sync_is_full(const gwchpl_sync* sync) {
  return (word_of(const_cast<gwchpl_sync&>(*sync)).load(std::memory_order_acquire) & full) != 0;
}

}  // extern "C"
