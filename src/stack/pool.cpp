// See pool.hpp.
#include "stack/pool.hpp"

#include <algorithm>
#include <bit>
#include <sys/mman.h>
#include <unistd.h>

#include "base/valgrind.hpp"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102  // Linux 6.13: a guard without a mapping of its own
#endif

namespace godwit::stack {

namespace {

constexpr std::uint64_t batches_kept = 32;  // free ones whose memory stays

// A free stack's first words.
struct free_stack {
  void* next;   // in a list
  void* batch;  // first of a batch: the next batch
  std::uint64_t count;
};
free_stack* at(void* top) noexcept { return static_cast<free_stack*>(top); }

bool guard_in_mapping(void* low, std::size_t bytes) noexcept {
  constexpr int no_advice = 0x60d;  // an emulator that takes it takes anything, and does nothing
  static const bool means_it = madvise(low, bytes, no_advice) != 0;
  return means_it && madvise(low, bytes, MADV_GUARD_INSTALL) == 0;
}

}  // namespace

void pool::init(std::uintptr_t first, std::uint64_t distance, std::uint32_t count, std::uint64_t bytes,
                std::uint64_t stack_bytes, std::uint64_t root_bytes) noexcept {
  first_ = root_low_ = first;
  distance_ = distance;
  size_ = stack_bytes;
  shift_ = static_cast<unsigned>(std::countr_zero(stack_bytes));
  root_bytes_ = root_bytes;
  guard_ = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  per_range_ = bytes / stack_bytes;
  const std::uint64_t for_root = root_bytes / stack_bytes;
  all_ = per_range_ * count > for_root ? per_range_ * count - for_root : 0;
  batch_ = static_cast<unsigned>(std::clamp<std::uint64_t>(all_ / (std::uint64_t{count} * 32), 1, batch));
  GODWIT_ASSERT(std::has_single_bit(stack_bytes), "a stack's size is a power of two");
  GODWIT_ASSERT(count == 1 || distance >= bytes, "the ranges of stacks do not overlap");
  const bool aligned = ((first | distance) & (stack_bytes - 1)) == 0;
  GODWIT_CHECK(aligned, "stacks are aligned to their size");
  made_.store(0, std::memory_order_relaxed);
  free_ = nullptr;
  free_batches_ = 0;
  guards_.store(guards::unknown, std::memory_order_relaxed);
  make_guard(root_low_);
  if (base::on_valgrind()) base::valgrind_stack(root_low_, root_end());
}

void pool::make_guard(std::uintptr_t low) noexcept {
  auto* p = reinterpret_cast<void*>(low);
  guards how = guards_.load(std::memory_order_relaxed);
  if (how == guards::unknown || how == guards::install) {
    if (guard_in_mapping(p, guard_)) {
      if (how == guards::unknown) guards_.store(guards::install, std::memory_order_relaxed);
      return;
    }
    guards_.store(how = guards::protect, std::memory_order_relaxed);
  }
  if (how == guards::protect &&
      (made_.load(std::memory_order_relaxed) > protected_at_most || mprotect(p, guard_, PROT_NONE) != 0))
    guards_.store(guards::none, std::memory_order_relaxed);
}

void* pool::take() noexcept {
  lock_.lock();
  GODWIT_ASSERT((free_ != nullptr) == (free_batches_ != 0), "free batches are counted");
  if (free_ != nullptr) {
    void* list = free_;
    free_ = at(list)->batch;
    --free_batches_;
    lock_.unlock();
    return list;
  }
  const std::uint64_t from = made_.load(std::memory_order_relaxed);
  GODWIT_ASSERT(from <= all_, "no more stacks are cut than there are");
  const std::uint64_t n = all_ - from < batch_ ? all_ - from : batch_;
  made_.store(from + n, std::memory_order_release);
  lock_.unlock();
  void* list = nullptr;
  for (std::uint64_t i = from + n; i-- > from;) {
    make_guard(low_of_number(i));
    if (base::on_valgrind()) base::valgrind_stack(low_of_number(i), end_of_number(i));
    auto* top = reinterpret_cast<void*>(top_of(low_of_number(i)));
    at(top)->next = list;
    list = top;
  }
  return list;
}

void pool::give(void* list, unsigned n) noexcept {
  GODWIT_ASSERT(is_list(list, n), "a batch is as long as it says, of stacks of this pool");
  if (free_batches_ >= batches_kept)
    for (void* s = list; s != nullptr; s = at(s)->next) {
      // All but the page that holds the link. (The guard is a page.)
      const auto low = low_of(reinterpret_cast<std::uintptr_t>(s));
      const auto high = reinterpret_cast<std::uintptr_t>(s) & ~std::uintptr_t{guard_ - 1};
      if (high > low) madvise(reinterpret_cast<void*>(low), high - low, MADV_FREE);
    }
  lock_.lock();
  at(list)->batch = free_;
  at(list)->count = n;
  free_ = list;
  ++free_batches_;
  lock_.unlock();
}

bool pool::is_list(void* list, std::uint64_t n) const noexcept {
  for (void* s = list; s != nullptr; s = at(s)->next) {
    const auto top = reinterpret_cast<std::uintptr_t>(s);
    if (n-- == 0 || !owns(top) || top_of(top) != top) return false;
  }
  return n == 0;
}

void pool::check_invariants() noexcept {
  lock_.lock();
  std::uint64_t batches = 0;
  bool lists = true;
  for (void* b = free_; b != nullptr && batches <= free_batches_ && lists; b = at(b)->batch, ++batches)
    lists = is_list(b, at(b)->count);
  const bool counted = batches == free_batches_, cut = made_.load(std::memory_order_relaxed) <= all_;
  lock_.unlock();
  GODWIT_CHECK(lists, "a batch is as long as it says, of stacks of this pool");
  GODWIT_CHECK(counted, "free batches are counted");
  GODWIT_CHECK(cut, "no more stacks are cut than there are");
}

bool pool::in_guard(std::uintptr_t address) const noexcept {
  if (size_ == 1 || address < first_) return false;
  if (is_root(address)) return address < root_low_ + guard_;
  const std::uint64_t range = (address - first_) / distance_;
  const std::uint64_t offset = (address - first_) % distance_;
  if (range * per_range_ > all_ + root_bytes_ / size_ || offset >= per_range_ * size_) return false;
  return offset % size_ < guard_;
}

}  // namespace godwit::stack
