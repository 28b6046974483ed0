// Stacks of threads that stay where they are: workers as threads of one process.
//
// All are of one size, a power of two, aligned to it, with a guard at the low end; they are cut from ranges
// that the caller owns (the workers' segments). A free stack is named by its *top*: the highest address that
// its next thread may use, where the address of the next free stack is written. Tops differ in their low
// bits, so that the first frames of nested threads do not meet in one set of the cache. Workers keep a list
// of their own (hot_words::free_stacks) and come here for more, or with too many.
//
//   low: | guard | ...                      frames grow down <- top | colour | block | : low + size
//
// The block at the end is the thread's: what is known of it while it is suspended (stack/pool.hpp knows only
// its size). Memory: a stack costs what its thread touched; beyond a few hundred free ones, free stacks give
// theirs back (MADV_FREE: the system takes it when it is short). Called by:
// src/sched/continuation_stacks.hpp. Test: tests/stack/pool_test.cpp.
#pragma once

#include "base/lock.hpp"
#include "stack/stack.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace godwit::stack {

class pool {
 public:
  static constexpr std::size_t block_bytes = 256;  ///< at the end of each stack
  static constexpr unsigned batch = 16;            ///< stacks that a worker fetches at a time, at most

  /// Ranges [first + i * distance, + bytes) for i < count; @p stack_bytes a power of two, @p root_bytes (a
  /// multiple of it) go to one large stack at the begin of the first.
  void init(std::uintptr_t first, std::uint64_t distance, std::uint32_t count, std::uint64_t bytes,
            std::uint64_t stack_bytes, std::uint64_t root_bytes) noexcept;

  /// A list of free stacks, linked through their tops; null only if there are none left. From any worker.
  void* take() noexcept;
  /// @p list: of @p n stacks. From any worker.
  void give(void* list, unsigned n) noexcept;

  /// Stacks that can be in use at a time, whatever @p workers workers keep of free ones and of those of
  /// threads that just ended.
  std::uint64_t usable(std::uint64_t workers) const noexcept {
    const std::uint64_t kept = workers * (most_kept() + batch_ + 2);
    return all_ > kept ? all_ - kept : 1;
  }
  std::uint64_t stack_bytes() const noexcept { return size_; }
  std::uint64_t root_bytes() const noexcept { return root_bytes_; }
  /// Fewer than batch where there are few in all: what a worker keeps, others cannot have.
  unsigned batch_size() const noexcept { return batch_; }
  /// So many that ended at a worker, and it gives a batch back.
  unsigned most_kept() const noexcept { return batch_ == 1 ? 2 : 4 * batch_; }
  /// Of the stack that @p address lies in: its end, its lowest usable address. The root's included.
  std::uintptr_t end_of(std::uintptr_t address) const noexcept {
    if (address - root_low_ < root_bytes_) [[unlikely]]
      return root_low_ + root_bytes_;
    return (address | (size_ - 1)) + 1;
  }
  std::uintptr_t low_of(std::uintptr_t address) const noexcept {
    if (address - root_low_ < root_bytes_) [[unlikely]]
      return root_low_ + guard_;
    return (address & ~(size_ - 1)) + guard_;
  }
  bool is_root(std::uintptr_t address) const noexcept { return address - root_low_ < root_bytes_; }
  std::uintptr_t root_top() const noexcept { return root_low_ + root_bytes_ - block_bytes; }
  /// The top of the stack that @p address lies in.
  std::uintptr_t top_of(std::uintptr_t address) const noexcept { return top_before(end_of(address)); }
  /// The top of the stack that ends at @p end.
  std::uintptr_t top_before(std::uintptr_t end) const noexcept {
    return end - block_bytes - 64 - colour(end);
  }
  /// The block of the stack that @p address lies in.
  void* block_of(std::uintptr_t address) const noexcept {
    return reinterpret_cast<void*>(end_of(address) - block_bytes);
  }
  /// Does it lie in a stack that was cut?
  bool owns(std::uintptr_t address) const noexcept {
    return size_ != 1 && address >= first_ && (is_root(address) || number_at(address) < made());
  }
  /// Is @p address in the guard of a stack?
  bool in_guard(std::uintptr_t address) const noexcept;

  /// Stacks cut so far; the end of the @p i -th.
  std::uint64_t made() const noexcept { return made_.load(std::memory_order_acquire); }
  std::uintptr_t end_of_number(std::uint64_t i) const noexcept { return low_of_number(i) + size_; }
  /// add(name, value) for what leads to all stacks that were cut, for debuggers (runtime/debugger.hpp).
  template <class F>
  void describe(F&& add) const {
    add("stacks.first", first_);
    add("stacks.distance", distance_);
    add("stacks.per_range", per_range_);
    add("stacks.size", size_);
    add("stacks.root_bytes", root_bytes_);
    add("stacks.block", block_bytes);
    add("stacks.made", reinterpret_cast<std::uintptr_t>(&made_));
  }
  /// Walks the lists of free stacks; ends the run if they are broken.
  void check_invariants() noexcept;
  std::uintptr_t root_end() const noexcept { return root_low_ + root_bytes_; }

 private:
  std::uintptr_t colour(std::uintptr_t end) const noexcept { return (end >> shift_) * 5 % 32 * 64; }
  std::uint64_t number_at(std::uintptr_t address) const noexcept {
    return (address - first_) / distance_ * per_range_ + (address - first_) % distance_ / size_ -
           root_bytes_ / size_;
  }
  std::uintptr_t low_of_number(std::uint64_t i) const noexcept {
    i += root_bytes_ / size_;
    return first_ + i / per_range_ * distance_ + i % per_range_ * size_;
  }
  void make_guard(std::uintptr_t low) noexcept;
  bool is_list(void* list, std::uint64_t n) const noexcept;

  std::uintptr_t first_ = 0, root_low_ = 0;
  unsigned shift_ = 0;  // of size_
  std::uint64_t distance_ = 0, size_ = 1, root_bytes_ = 0, per_range_ = 0, all_ = 0;
  std::uint64_t guard_ = 4096;  // a page
  unsigned batch_ = 1;
  std::atomic<std::uint64_t> made_{0};  // W and R all workers: stacks made so far
  base::short_lock lock_;
  void* free_ = nullptr;  // batches: linked by the second word at the top of each one's first stack
  std::uint64_t free_batches_ = 0;
  enum class guards { unknown, install, protect, none };
  std::atomic<guards> guards_{guards::unknown};  // W who makes the first guard, R all workers
};

}  // namespace godwit::stack
