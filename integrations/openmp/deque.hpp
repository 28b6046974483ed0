// The tasks that one member of a team has made and nobody has begun: it takes the newest, others the oldest.
//
// The older part is public and under a lock; the newer part is the owner's alone, who needs neither lock nor
// fence there. A thief that finds nothing public asks the owner, who makes half of the rest public when it
// next takes a task or runs one at once. If it does not for a while, because it is in a long task, the thief
// does it: it moves `split_` and has the kernel fence all threads of the process (membarrier) before it looks
// how far the owner has come. So the owner, which first moves `end_` and then looks at `split_`, and the
// thief cannot miss each other. The fence interrupts other CPUs: that can take 10 us.
//
// The size is fixed: where it is full, or has enough (wants), a task is run by who makes it. Positions only
// grow, so whoever remembers one (a floor) knows which tasks came after it. deque.cpp. Test: tests/openmp.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace godwit::openmp {

struct task;

/// The kernel has no membarrier: owners fence for themselves. W before main
extern bool owners_fence_;

class deque {
 public:
  static constexpr std::uint64_t size = 256, each_thread = 8;

  /// Owner: where the next task comes.
  std::uint64_t end() const noexcept { return end_.load(std::memory_order_relaxed); }

  /// Owner: for a team of so many.
  void fit(std::uint64_t threads) noexcept {
    enough_for_team_ = std::min(threads * each_thread, size);
    forget_question();
  }
  /// Owner. False: it is full, or enough wait, and they are higher up in the tree of tasks than one of @p
  /// depth: that keeps others busy for longer, and costs its maker half as much if it runs at once.
  bool wants(std::uint32_t depth) noexcept {
    const std::uint64_t e = end(), enough = enough_.load(std::memory_order_relaxed);
    if (e - begin_seen_ < enough) return true;
    begin_seen_ = begin_.load(std::memory_order_acquire);
    return e - begin_seen_ < enough || (e - begin_seen_ < size && depth <= depths_[begin_seen_ % size]);
  }
  /// Owner, where it runs a task at once: make some public if a thief asks.
  void answer() noexcept {
    if (enough_.load(std::memory_order_relaxed) == 0) [[unlikely]]
      answer_thief();
  }
  /// Owner. False: full.
  bool push(task* t, std::uint32_t depth) noexcept {
    if (end() - begin_seen_ >= size) begin_seen_ = begin_.load(std::memory_order_acquire);
    if (end() - begin_seen_ >= size) return false;
    push_into_room(t, depth);
    return true;
  }
  /// Owner; it is not full.
  void push_into_room(task* t, std::uint32_t depth) noexcept {
    const std::uint64_t e = end();
    depths_[e % size] = depth;
    place(e).store(t, std::memory_order_relaxed);
    end_.store(e + 1, std::memory_order_release);
  }

  /// Owner: the newest one, if it came at @p floor or later. Null: none.
  task* pop(std::uint64_t floor) noexcept {
    const std::uint64_t e = end();
    if (e <= floor) return nullptr;
    end_.store(e - 1, std::memory_order_relaxed);
    if (owners_fence_) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (split_.load(std::memory_order_acquire) < e) [[likely]]
      return place(e - 1).load(std::memory_order_relaxed);
    return pop_public(e - 1);
  }

  /// Anybody: the oldest one, if @p wanted(task) says so.
  template <class F>
  task* steal(F wanted) noexcept {
    if (is_asked() || empty() || !lock_public()) return nullptr;
    task* t = oldest();
    if (t != nullptr && wanted(t))
      begin_.store(begin_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    else
      t = nullptr;
    unlock_public();
    return t;
  }

  bool empty() const noexcept {
    return begin_.load(std::memory_order_acquire) >= end_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::uint64_t asked = ~std::uint64_t{0};  ///< split_ while a thief waits for an answer
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds patience{8};  ///< so long it waits

  bool is_asked() const noexcept {
    return split_.load(std::memory_order_relaxed) == asked &&
           clock::now() - asked_at_.load(std::memory_order_relaxed) < patience;
  }
  void forget_question() noexcept { enough_.store(enough_for_team_, std::memory_order_relaxed); }
  void answer_thief() noexcept;
  std::atomic<task*>& place(std::uint64_t i) noexcept { return tasks_[i % size]; }
  task* pop_public(std::uint64_t last) noexcept;
  bool lock_public() noexcept;
  void unlock_public() noexcept;
  /// Under the lock. Null: none.
  task* oldest() noexcept;

  std::atomic<std::uint64_t> end_{0};        ///< W owner, R all
  std::uint64_t begin_seen_ = 0;             ///< owner's: an old value of begin_
  std::atomic<std::uint64_t> enough_{size};  ///< 0 while a thief asks. W owner, and thieves to 0
  std::uint64_t enough_for_team_ = size;     ///< owner's
  std::uint32_t depths_[size] = {};          ///< owner's: of the tasks in these places
  alignas(64) std::uint32_t word_ = 0;
  std::atomic<std::uint64_t> begin_{0};  ///< W under the lock, R all
  /// begin_ <= split_ <= end_, but while a thief or the owner under the lock looks; or `asked`. W under the
  /// lock, R all
  std::atomic<std::uint64_t> split_{0};
  std::atomic<clock::time_point> asked_at_{};        ///< W under the lock, R thieves
  alignas(64) std::atomic<task*> tasks_[size] = {};  ///< W owner, R all
};

}  // namespace godwit::openmp
