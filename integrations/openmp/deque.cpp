// See deque.hpp.
#include "deque.hpp"

#include <algorithm>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "idle.hpp"

namespace godwit::openmp {

bool owners_fence_ = false;

namespace {

[[gnu::constructor]] void prepare_fences() noexcept {
  owners_fence_ = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

/// Every thread of the process passes a fence.
void fence_all() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!owners_fence_) ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

}  // namespace

bool deque::lock_public() noexcept { return try_lock(word_); }
void deque::unlock_public() noexcept { unlock(word_); }

task* deque::oldest() noexcept {
  const std::uint64_t b = begin_.load(std::memory_order_relaxed);
  std::uint64_t s = split_.load(std::memory_order_relaxed);
  if (b == s || s == asked) {
    const std::uint64_t e = end_.load(std::memory_order_acquire);
    if (e <= b) return nullptr;
    if (s != asked) {
      asked_at_.store(clock::now(), std::memory_order_relaxed);
      split_.store(asked, std::memory_order_relaxed);
      enough_.store(0, std::memory_order_relaxed);
      return nullptr;
    }
    s = b + (e - b + 1) / 2;
    split_.store(s, std::memory_order_relaxed);
    fence_all();
    s = std::clamp(end_.load(std::memory_order_acquire), b, s);
    split_.store(s, std::memory_order_release);
  }
  return b < s ? place(b).load(std::memory_order_relaxed) : nullptr;
}

/// If a thief holds the lock, the next time.
void deque::answer_thief() noexcept {
  if (!try_lock(word_)) return;
  forget_question();
  const std::uint64_t b = begin_.load(std::memory_order_relaxed);
  if (split_.load(std::memory_order_relaxed) == asked)
    split_.store(b + (end() - b + 1) / 2, std::memory_order_relaxed);
  unlock(word_);
}

/// @p last may be public, or a thief asks or is about to make it so: under the lock it has done that.
task* deque::pop_public(std::uint64_t last) noexcept {
  end_.store(last + 1, std::memory_order_relaxed);
  if (begin_.load(std::memory_order_relaxed) > last) return nullptr;
  const guard hold(word_);
  const std::uint64_t b = begin_.load(std::memory_order_relaxed);
  if (b > last) return nullptr;
  // Half of what is public comes back: the next ones cost no lock. A thief that asks gets half.
  const std::uint64_t s = split_.load(std::memory_order_relaxed);
  if (s == asked) forget_question();
  split_.store(s == asked ? b + (last - b + 1) / 2 : std::min(s, b + (last - b) / 2),
               std::memory_order_relaxed);
  end_.store(last, std::memory_order_release);
  return place(last).load(std::memory_order_relaxed);
}

}  // namespace godwit::openmp
