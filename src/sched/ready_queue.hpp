// A worker's queue of threads that are ready: suspended ones that may go on, and such as have not begun.
// First in, first out; any worker of the host may take from it. The words lie in public_words, a thread hangs
// in by the link of its image. docs/protocols/join.md; test: tests/sched/ready_queue_test.cpp. Inlined where
// threads come and go.
#pragma once

#include "base/lock.hpp"
#include "sched/record.hpp"
#include "sched/words.hpp"

#include <algorithm>

namespace godwit::sched {

/// One worker's queue, as another one or its owner sees it.
class ready_queue {
 public:
  ready_queue() = default;
  /// @p words: the queue's, where the caller reaches them. @p me: what it writes into locks. @p alone: nobody
  /// else takes from it. @p turn: of waiting for its lock.
  ready_queue(const transport::shm::segment& memory, public_words& words, std::uint32_t me,
              bool alone = false, base::lock_turn turn = base::turn_of) noexcept
      : memory_(&memory), words_(&words), lock_turn_(turn), me_(me), alone_(alone) {}

  /// A look, without the lock.
  std::uint64_t size() const noexcept { return words_->ready_count.load(std::memory_order_relaxed); }
  bool empty() const noexcept { return size() == 0; }

  /// @p im, which is @p image_ref, is of this host, and ready. @p in_front: it comes first, instead of last.
  [[gnu::always_inline]] inline void push(image* im, ref image_ref, bool in_front) noexcept {
    GODWIT_ASSERT(im == memory_->at<image>(image_ref), "ready queues hold images of their host");
    im->next = 0;
    im->waiting_for = 0;
    lock();
    const std::uint64_t count = size();
    if (count != 0 && in_front) {
      im->next = words_->ready_head.load(std::memory_order_relaxed);
      memory_->at<image>(im->next)->prev = image_ref;
    } else if (count != 0) {
      append(im, image_ref);
    }
    if (count == 0 || in_front) words_->ready_head.store(image_ref, std::memory_order_relaxed);
    if (count == 0 || !in_front) words_->ready_tail.store(image_ref, std::memory_order_relaxed);
    if (alone_)
      words_->ready_count.store(count + 1, std::memory_order_relaxed);
    else
      // on most machines also what makes who looks for sleepers next see them in time
      words_->ready_count.fetch_add(1, std::memory_order_relaxed);
    unlock();
  }

  /// The first; 0: there is none, or somebody else has the lock.
  [[gnu::always_inline]] inline ref pop() noexcept {
    if (!try_lock()) return 0;
    ref r = 0;
    if (const std::uint64_t count = size(); count != 0) {
      r = take_first();
      words_->ready_count.store(count - 1, std::memory_order_relaxed);
    }
    unlock();
    return r;
  }
  /// Weighs no thread: who is not to be taken.
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  /// The same with the lightest of the first few, by @p weight(image); of several the first.
  template <class W>
  ref pop_lightest(W&& weight) noexcept {
    if (!try_lock()) return 0;
    const found lightest = find_lightest(weight);
    if (lightest.r != 0) {
      if (lightest.before == 0)
        take_first();
      else
        take_behind(lightest.before, lightest.r);
      words_->ready_count.store(size() - 1, std::memory_order_relaxed);
    }
    unlock();
    return lightest.r;
  }
  /// Would it find one? True, too, if somebody else has the lock.
  template <class W>
  bool has(W&& weight) noexcept {
    if (empty()) return false;
    if (!try_lock()) return true;
    const bool found = find_lightest(weight).r != 0;
    unlock();
    return found;
  }
  /// The same with the last.
  ref pop_newest() noexcept {
    if (!try_lock()) return 0;
    ref r = 0;
    if (const std::uint64_t count = size(); count != 0) {
      r = words_->ready_tail.load(std::memory_order_relaxed);
      words_->ready_tail.store(memory_->at<image>(r)->prev, std::memory_order_relaxed);
      words_->ready_count.store(count - 1, std::memory_order_relaxed);
    }
    unlock();
    return r;
  }

  /// Append @p last and take the first, under one lock. 0: the queue is empty, and stays so.
  [[gnu::always_inline]] inline ref rotate(image* last, ref last_ref) noexcept {
    GODWIT_ASSERT(last == memory_->at<image>(last_ref) && last->sp != 0,
                  "the thread is saved before it is appended");
    lock();
    ref r = 0;
    if (size() != 0) {
      last->next = 0;
      append(last, last_ref);
      words_->ready_tail.store(last_ref, std::memory_order_relaxed);
      r = take_first();
      GODWIT_ASSERT(r != last_ref, "a thread does not yield to itself");
    }
    unlock();
    return r;
  }

 private:
  [[gnu::always_inline]] inline bool try_lock() noexcept {
    if (!alone_ && !base::planted("ready.nobody_locks") && !base::try_lock(words_->ready_lock, me_))
      return false;
    GODWIT_ASSERT(agrees(), "head and tail of the ready queue agree with its count");
    return true;
  }
  [[gnu::always_inline]] inline void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      lock_slowly();
  }
  [[gnu::noinline, gnu::cold]] void lock_slowly() noexcept {
    base::lock(words_->ready_lock, me_, lock_turn_);
  }
  [[gnu::always_inline]] inline void unlock() noexcept {
    GODWIT_ASSERT(agrees(), "head and tail of the ready queue agree with its count");
    if (!alone_) base::unlock(words_->ready_lock, me_);
  }
  // With the lock.
  void append(image* im, ref image_ref) noexcept {
    im->prev = words_->ready_tail.load(std::memory_order_relaxed);
    memory_->at<image>(im->prev)->next = image_ref;
  }
  ref take_first() noexcept {
    const ref r = words_->ready_head.load(std::memory_order_relaxed);
    GODWIT_ASSERT(memory_->reaches(transport::ref_worker(r)), "who is ready is of this host");
    words_->ready_head.store(memory_->at<image>(r)->next, std::memory_order_relaxed);
    return r;
  }
  void take_behind(ref before, ref r) noexcept {
    const bool last = words_->ready_tail.load(std::memory_order_relaxed) == r;
    if (last)
      words_->ready_tail.store(before, std::memory_order_relaxed);
    else
      memory_->at<image>(memory_->at<image>(r)->next)->prev = before;
    memory_->at<image>(before)->next = last ? 0 : memory_->at<image>(r)->next;
  }
  struct found {
    ref r = 0, before = 0;
  };
  template <class W>
  found find_lightest(W&& weight) noexcept {
    constexpr std::uint64_t most_looks = 16;
    std::uint64_t least = never;
    found lightest;
    ref r = words_->ready_head.load(std::memory_order_relaxed), before = 0;
    for (std::uint64_t i = 0, n = std::min(size(), most_looks); i < n; ++i) {
      const image& im = *memory_->at<image>(r);
      if (const std::uint64_t w = weight(im); w < least) {
        least = w;
        lightest = {r, before};
      }
      before = r;
      r = im.next;
    }
    return lightest;
  }
  bool agrees() const noexcept {
    const ref head = words_->ready_head.load(std::memory_order_relaxed);
    const ref tail = words_->ready_tail.load(std::memory_order_relaxed);
    return size() == 0 || (head != 0 && tail != 0 && (size() == 1) == (head == tail));
  }

  const transport::shm::segment* memory_ = nullptr;
  public_words* words_ = nullptr;
  base::lock_turn lock_turn_ = nullptr;
  std::uint32_t me_ = 0;
  bool alone_ = true;
};

}  // namespace godwit::sched
