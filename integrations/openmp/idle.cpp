// See idle.hpp. Futexes through syscall(): in lightweight threads godwit-pthread suspends the thread.
#include "idle.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "settings.hpp"

namespace godwit::openmp {

idle_limits limits_{2000, 20};

void choose_limits(bool active, bool passive) noexcept {
  if (active) limits_ = {200'000, 1000};
  if (passive) limits_ = {0, 0};
}

namespace {

void futex_wait(std::uint32_t* word, std::uint32_t seen, const timespec* limit) noexcept {
  const int before = errno;
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, limit, nullptr, 0);
  errno = before;
}
void futex_wake(std::uint32_t* word, int most) noexcept {
  const int before = errno;
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
  errno = before;
}

}  // namespace

bool idle::crowded() const noexcept { return team_ != nullptr && team_->size > usable_threads(); }
void idle::give_way() noexcept { ::sched_yield(); }

std::uint32_t idle::lie_down() noexcept {
  t_.sleeps.store(any_task_ ? thread::asleep_for_any_task : thread::asleep, std::memory_order_seq_cst);
  if (team_ != nullptr) team_->sleepers.fetch_add(1, std::memory_order_seq_cst);
  return __atomic_load_n(&t_.event, __ATOMIC_SEQ_CST);
}
void idle::sleep(std::uint32_t seen, unsigned times_before) noexcept {
  constexpr long shortest_ns = 500'000;
  const timespec limit{0, shortest_ns << std::min(times_before, 6u)};
  futex_wait(&t_.event, seen, team_ != nullptr ? &limit : nullptr);
}
void idle::get_up() noexcept {
  if (team_ != nullptr) team_->sleepers.fetch_sub(1, std::memory_order_relaxed);
  t_.sleeps.store(thread::awake, std::memory_order_relaxed);
}

void wake(thread& t) noexcept {
  if (t.sleeps.load(std::memory_order_seq_cst) == thread::awake) return;
  __atomic_fetch_add(&t.event, 1, __ATOMIC_SEQ_CST);
  futex_wake(&t.event, 1);
}
void wake_all(team& m) noexcept {
  if (m.sleepers.load(std::memory_order_seq_cst) == 0) return;
  for (unsigned i = 0; i < m.size; ++i) wake(*m.members[i]->who);
}
void wake_one(team& m) noexcept {
  for (unsigned i = 0; i < m.size; ++i) {
    thread& t = *m.members[i]->who;
    std::uint32_t sleeping = thread::asleep_for_any_task;
    // It is woken by this caller alone: it says itself when it is awake.
    if (t.sleeps.load(std::memory_order_relaxed) == sleeping &&
        t.sleeps.compare_exchange_strong(sleeping, thread::asleep, std::memory_order_seq_cst)) {
      wake(t);
      return;
    }
  }
}

// 0: open, 1: held, 2: held, and somebody sleeps.
bool try_lock(std::uint32_t& word) noexcept {
  std::uint32_t open = 0;
  return __atomic_compare_exchange_n(&word, &open, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
void lock(std::uint32_t& word) noexcept {
  if (try_lock(word)) return;
  for (unsigned spins = 0; spins < 100; ++spins) {
    __builtin_ia32_pause();
    if (__atomic_load_n(&word, __ATOMIC_RELAXED) == 0 && try_lock(word)) return;
  }
  while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE) != 0) futex_wait(&word, 2, nullptr);
}
void unlock(std::uint32_t& word) noexcept {
  if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2) futex_wake(&word, 1);
}

}  // namespace godwit::openmp
