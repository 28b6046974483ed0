// What mutexes and once_flag do when somebody has to wait. docs/protocols/mutex.md, models/wait_list.pml.
//
// The word: lock bit of the list, locked, waiters. Whoever holds the lock bit is the only one that changes
// the word, so it may be stored.
#include <godwit/mutex.hpp>

#include "base/check.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/world.hpp"

namespace godwit {
namespace detail {

namespace {

constexpr std::uint32_t vain_wakes = 4;  // after so many the mutex is handed over
constexpr std::uint32_t handed = ~std::uint32_t{0};
constexpr unsigned spins_before_waiting = 60;  // a holder that runs lets go soon: cheaper than two switches

/// MX1: without the list's lock, while nobody has it.
bool take_if_free(wait_list& l) noexcept {
  std::uint32_t s = l.word.load(std::memory_order_relaxed);
  return (s & (mutex_locked | wait_list::lock_bit)) == 0 &&
         l.word.compare_exchange_strong(s, s | mutex_locked, std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

bool spin(wait_list& l) noexcept {
  if (hot_workers() > 1)
    for (unsigned i = 0; i < spins_before_waiting; ++i) {
      if (take_if_free(l)) return true;
      base::pause();
    }
  return take_if_free(l);
}

/// The list's lock is held. True: the mutex was free, is ours, and the list is open. False: unlock knows that
/// somebody waits.
bool take_or_mark(wait_list& l) noexcept {
  const std::uint32_t s = l.word.load(std::memory_order_relaxed);
  GODWIT_ASSERT((s & wait_list::lock_bit) != 0, "whoever changes the word holds the list's lock");
  GODWIT_ASSERT(l.empty() || (s & (mutex_waiters | mutex_locked)) != 0, "who waits is marked");
  if ((s & mutex_locked) == 0) {
    l.word.store(mutex_locked | (l.empty() ? 0 : mutex_waiters), std::memory_order_release);
    return true;
  }
  l.word.store(s | mutex_waiters, std::memory_order_relaxed);
  return false;
}

}  // namespace

void mutex_lock_slow(wait_list& l, const char* what, const place& where) noexcept {
  bool taken = spin(l);
  wait_node n;
  for (std::uint32_t tries = 0; !taken; ++tries) {
    l.lock();
    if (take_or_mark(l)) break;
    n.mark = tries;
    l.wait(n, what, where, tries != 0);  // who came back without it keeps its place
    taken = n.mark == handed;
  }
  base::happens_after(&l.word);
}

bool mutex_lock_until(wait_list& l, std::uint64_t deadline_ns, const char* what,
                      const place& where) noexcept {
  bool taken = spin(l);
  for (std::uint32_t tries = 0; !taken; ++tries) {
    timed_node n(l, deadline_ns);
    l.lock();
    if (take_or_mark(l)) break;
    n.mark = tries;
    if (!l.wait(n, what, where, tries != 0)) return false;
    taken = n.mark == handed;
  }
  base::happens_after(&l.word);
  return true;
}

void mutex_unlock_slow(wait_list& l) noexcept {
  base::happens_before(&l.word);
  wake_chain woken;
  l.lock();
  wait_node* first = l.first();
  GODWIT_ASSERT(first == nullptr || (l.word.load(std::memory_order_relaxed) & mutex_waiters) != 0,
                "unlock knows that somebody waits");
  const bool hand_over = first != nullptr && first->mark >= vain_wakes;
  if (hand_over) first->mark = handed;
  l.pop(woken);
  // MX2: the last access. From here on somebody may take it, let go, and destroy it.
  l.word.store((hand_over ? mutex_locked : 0) | (l.empty() ? 0 : mutex_waiters), std::memory_order_release);
  woken.wake();
}

void mutex_misused(const char* what, const place& where) noexcept {
  base::fatal("a %s at %s:%u (%s)", what, where.file, where.line, where.function);
}

}  // namespace detail

bool once_flag::begin(const detail::place& where) noexcept {
  for (;;) {
    list_.lock();
    const std::uint32_t s = list_.word.load(std::memory_order_relaxed);
    if ((s & running) == 0) {
      if ((s & done) != 0)
        list_.unlock();
      else
        list_.word.store(running, std::memory_order_release);
      base::happens_after(&list_.word);
      return (s & done) == 0;
    }
    detail::wait_node n;
    list_.wait(n, "call_once", where);
  }
}

void once_flag::end(bool success) noexcept {
  base::happens_before(&list_.word);
  detail::wake_chain woken;
  list_.lock();
  GODWIT_ASSERT((list_.word.load(std::memory_order_relaxed) & running) != 0, "who ends a call has begun it");
  if (success)
    list_.pop_all(woken);
  else
    list_.pop(woken);  // the next one tries
  list_.word.store(success ? done : 0, std::memory_order_release);
  woken.wake();
}

}  // namespace godwit
