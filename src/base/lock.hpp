// The lock for a few instructions: a word that is 0, or says who holds it, a worker's number plus one. So
// that whoever waits knows for whom, and what a worker held that is gone is known. Who does not get it leaves
// the word as it is (an exchange would write over the holder's name). Taken where the words lie: in memory
// that several workers see, also over a transport, which has the same compare-and-exchange. Not held over a
// suspension. Test: tests/base/lock_test.cpp.
#pragma once

#include "base/check.hpp"
#include "base/schedule_points.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/world.hpp"

#include <godwit/detail/hot.hpp>

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace godwit::base {

/// An OS thread that is no worker.
inline constexpr std::uint32_t outsider = ~std::uint32_t{0};

/// What worker @p number writes into a lock's word.
constexpr std::uint32_t holder_of(std::uint32_t number) noexcept { return number + 1; }
/// What the caller writes.
inline std::uint32_t holder() noexcept {
  const detail::hot_words& mine = detail::hot();
  return mine.workers != 0 ? holder_of(mine.worker) : outsider;
}

template <class Word>  // std::atomic or shared, here and below
[[gnu::always_inline, nodiscard]] inline bool try_lock(Word& word, typename Word::value_type me) noexcept {
  typename Word::value_type nobody = 0;
  schedule_point();
  settle();
  return word.compare_exchange_strong(nobody, me, std::memory_order_acquire, std::memory_order_relaxed);
}

template <class Word>
[[gnu::always_inline]] inline void unlock(Word& word, typename Word::value_type me) noexcept {
  GODWIT_ASSERT(word.load(std::memory_order_relaxed) == me, "who unlocks holds the lock");
  static_cast<void>(me);
  schedule_point();
  if constexpr (!std::is_same_v<Word, shared<typename Word::value_type>>) settle();
  word.store(0, std::memory_order_release);
}

template <class Word>
void lock(Word& word, typename Word::value_type me, lock_turn turn = turn_of) noexcept {
  GODWIT_ASSERT(word.load(std::memory_order_relaxed) != me || me == outsider, "who locks does not hold it");
  for (spin_wait w; !try_lock(word, me);) do
      turn(w);
    while (word.load(std::memory_order_relaxed) != 0);
}

/// One of a process, for its workers and other OS threads.
class short_lock {
 public:
  void lock() noexcept {
    base::lock(word_, holder());
    happens_after(&word_);
  }
  void unlock() noexcept {
    happens_before(&word_);
    base::unlock(word_, holder());
  }
  /// Free, whoever had it: after a run, and in a forked child, where its holder does not exist.
  void forget_holder() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> word_{0};  // W and R all
};

}  // namespace godwit::base
