// What semaphores and latches do when somebody has to wait. Words and orderings: semaphore.hpp, latch.hpp,
// docs/protocols/park.md ("the end of a list"): whoever holds the lock bit is the only one that changes the
// word, and opens the list with its last access.
#include <godwit/latch.hpp>
#include <godwit/semaphore.hpp>

#include "base/check.hpp"
#include "base/thread_sanitizer.hpp"

namespace godwit {
namespace detail {

/// The lock is held. True: there was a unit, and the list is open.
bool semaphore_word::take_or_mark() noexcept {
  const std::uint32_t s = list_.word.load(std::memory_order_relaxed);
  GODWIT_ASSERT((s & wait_list::lock_bit) != 0, "whoever changes the word holds the list's lock");
  GODWIT_ASSERT(list_.empty() || s < one, "nobody waits beside a unit");
  if (s >= one) {
    list_.word.store((s - one) & ~wait_list::lock_bit, std::memory_order_release);
    return true;
  }
  list_.word.store(s | waiters, std::memory_order_relaxed);
  return false;
}

void semaphore_word::acquire_slow(const place& where) noexcept {
  wait_node n;
  list_.lock();
  if (!take_or_mark()) list_.wait(n, "semaphore", where);
  base::happens_after(&list_.word);
}

bool semaphore_word::acquire_until(std::uint64_t deadline_ns, const place& where) noexcept {
  timed_node n(list_, deadline_ns);
  list_.lock();
  const bool taken = take_or_mark() || list_.wait(n, "semaphore", where);
  base::happens_after(&list_.word);
  return taken;
}

void semaphore_word::release_slow(std::ptrdiff_t n) noexcept {
  base::happens_before(&list_.word);
  wake_chain woken;
  list_.lock();
  for (; n > 0 && list_.pop(woken); --n) {
  }
  const std::uint32_t left = (list_.word.load(std::memory_order_relaxed) & ~(waiters | wait_list::lock_bit)) +
                             static_cast<std::uint32_t>(n) * one;
  list_.word.store(left | (list_.empty() ? 0 : waiters), std::memory_order_release);
  woken.wake();
}

}  // namespace detail

void latch::count_down_slow(std::uint32_t down) noexcept {
  base::happens_before(&list_.word);
  detail::wake_chain woken;
  list_.lock();
  const std::uint32_t left =
      (list_.word.load(std::memory_order_relaxed) & ~(waiters | detail::wait_list::lock_bit)) - down;
  if (left == 0) list_.pop_all(woken);
  list_.word.store(left | (list_.empty() ? 0 : waiters), std::memory_order_release);
  woken.wake();
}

void latch::wait_slow(const detail::place& where) const noexcept {
  list_.lock();
  const std::uint32_t s = list_.word.load(std::memory_order_relaxed);
  detail::wait_node n;
  if (s < one) {
    list_.unlock();
  } else {
    list_.word.store(s | waiters, std::memory_order_relaxed);
    list_.wait(n, "latch", where);
  }
  base::happens_after(&list_.word);
}

}  // namespace godwit
