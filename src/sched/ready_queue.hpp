// A worker's queue of threads that are ready: suspended ones that may go on, and such as have not begun.
// Those of high priority first, each kind first in, first out; any worker of the host may take from it. The
// words lie in public_words, a thread hangs in by the link of its image. docs/protocols/join.md; test:
// tests/sched/ready_queue_test.cpp. Inlined where threads come and go.
#pragma once

#include "base/lock.hpp"
#include "sched/record.hpp"
#include "sched/words.hpp"

#include <algorithm>
#include <utility>

namespace godwit::sched {

/// Where a thread is put: before all; behind the others of high priority, and before the rest; behind all.
enum class rank : std::uint8_t { first, high, last };

/// One worker's queue, as another one or its owner sees it.
class ready_queue {
 public:
  ready_queue() = default;
  /// @p words: the queue's, where the caller reaches them. @p me: what it writes into locks. @p alone: nobody
  /// else takes from it. @p turn: of waiting for its lock.
  ready_queue(const transport::shm::segment& memory, public_words& words, std::uint32_t me,
              bool alone = false, base::lock_turn turn = base::turn_of) noexcept
      : memory_(&memory), words_(&words), lock_turn_(turn), me_(me), alone_(alone) {}

  /// Most of its images will lie at refs from @p first on, @p bytes that begin here at @p address. (Only a
  /// queue's owner does this; the others are as right and slower.)
  void expect_images_at(ref first, std::byte* address, std::uint64_t bytes) noexcept {
    first_ = first;
    address_ = address;
    bytes_ = bytes;
  }
  image* at(ref r) const noexcept {
    if (r - first_ < bytes_) [[likely]]
      return reinterpret_cast<image*>(address_ + (r - first_));
    return memory_->at<image>(r);
  }
  /// Where all workers see the same memory.
  ref ref_of(image* im) const noexcept {
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(im) - address_);
    if (offset < bytes_) [[likely]]
      return first_ + offset;
    return memory_->ref_of_any(im);
  }

  /// A look, without the lock.
  std::uint64_t size() const noexcept { return words_->ready_count.load(std::memory_order_relaxed); }
  bool empty() const noexcept { return size() == 0; }

  /// @p im, which is @p image_ref, is of this host, and ready.
  [[gnu::always_inline]] inline void push(image* im, ref image_ref, rank where) noexcept {
    GODWIT_ASSERT(im == memory_->at<image>(image_ref), "ready queues hold images of their host");
    im->next = 0;
    im->waiting_for = 0;
    lock();
    const std::uint64_t count = size();
    if (where != rank::last) [[unlikely]] {
      put_before_others(im, image_ref, where, count);
    } else {
      if (count != 0)
        append(im, image_ref);
      else
        begin_with(im, image_ref);
      words_->ready_tail.store(image_ref, std::memory_order_relaxed);
    }
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
      r = take_first().r;
      words_->ready_count.store(count - 1, std::memory_order_relaxed);
    }
    unlock();
    return r;
  }
  /// The first, if @p may(image); else 0.
  template <class May>
  [[gnu::always_inline]] inline ref pop_if(May&& may) noexcept {
    if (empty() || !try_lock()) return 0;
    ref r = 0;
    if (const std::uint64_t count = size();
        count != 0 && may(*at(words_->ready_head.load(std::memory_order_relaxed)))) {
      r = take_first().r;
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
      const ref before = std::exchange(at(r)->prev, in_no_queue);
      words_->ready_tail.store(before, std::memory_order_relaxed);
      leaves_high(r, count > 1 ? before : 0);
      words_->ready_count.store(count - 1, std::memory_order_relaxed);
    }
    unlock();
    return r;
  }

  /// Out of the middle: @p im, which has been pushed here, if it still is here and @p may(others of high
  /// priority are). Else, or if somebody else has the lock, false, and nothing has happened. PK4
  template <class May>
  [[gnu::always_inline]] inline bool take(image* im, ref image_ref, May&& may) noexcept {
    if (empty() || !try_lock()) return false;
    const bool taken =
        im->prev != in_no_queue && may(words_->ready_high.load(std::memory_order_relaxed) != 0);
    if (taken) {
      if (words_->ready_head.load(std::memory_order_relaxed) == image_ref)
        take_first();
      else
        take_behind(im->prev, image_ref);
      words_->ready_count.store(size() - 1, std::memory_order_relaxed);
    }
    unlock();
    return taken;
  }

  /// Append @p last, whose thread is about to be saved, and take the first. The queue stays locked: others
  /// may take that thread as soon as it is open. Null: the queue is empty, and open.
  [[gnu::always_inline]] inline image* rotate(image* last, ref last_ref) noexcept {
    GODWIT_ASSERT(last == memory_->at<image>(last_ref), "ready queues hold images of their host");
    lock();
    if (size() == 0) [[unlikely]] {
      unlock();
      return nullptr;
    }
    last->next = 0;
    append(last, last_ref);
    words_->ready_tail.store(last_ref, std::memory_order_relaxed);
    image* const first = take_first().im;
    GODWIT_ASSERT(first != last, "a thread does not yield to itself");
    return first;
  }
  /// After rotate: the word that opens the queue when it is 0 (if it is locked at all).
  word& lock_word() noexcept { return words_->ready_lock; }

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
  void begin_with(image* im, ref image_ref) noexcept {
    im->prev = 0;
    words_->ready_head.store(image_ref, std::memory_order_relaxed);
  }
  [[gnu::always_inline]] inline void append(image* im, ref image_ref) noexcept {
    im->prev = words_->ready_tail.load(std::memory_order_relaxed);
    at(im->prev)->next = image_ref;
  }
  // With the lock. Who is put first counts as high from then on: those of high priority that come later go
  // behind it.
  [[gnu::noinline]] void put_before_others(image* im, ref image_ref, rank where,
                                           std::uint64_t count) noexcept {
    const ref last_high = words_->ready_high.load(std::memory_order_relaxed);
    const ref before = where == rank::first ? 0 : last_high;
    if (count != 0 && before == words_->ready_tail.load(std::memory_order_relaxed)) {
      append(im, image_ref);
    } else if (count != 0) {
      im->next = before == 0 ? words_->ready_head.load(std::memory_order_relaxed) : at(before)->next;
      im->prev = before;
      at(im->next)->prev = image_ref;
      if (before != 0) at(before)->next = image_ref;
    }
    if (before == 0) begin_with(im, image_ref);
    if (im->next == 0) words_->ready_tail.store(image_ref, std::memory_order_relaxed);
    if (before == last_high) words_->ready_high.store(image_ref, std::memory_order_relaxed);
  }
  /// @p r is taken out, from behind @p before.
  [[gnu::always_inline]] void leaves_high(ref r, ref before) noexcept {
    if (words_->ready_high.load(std::memory_order_relaxed) == r)
      words_->ready_high.store(before, std::memory_order_relaxed);
  }
  struct taken {
    ref r;
    image* im;
  };
  [[gnu::always_inline]] inline taken take_first() noexcept {
    const ref r = words_->ready_head.load(std::memory_order_relaxed);
    GODWIT_ASSERT(memory_->reaches(transport::ref_worker(r)), "who is ready is of this host");
    image& im = *at(r);
    words_->ready_head.store(im.next, std::memory_order_relaxed);
    im.prev = in_no_queue;
    leaves_high(r, 0);
    return {r, &im};
  }
  void take_behind(ref before, ref r) noexcept {
    const bool last = words_->ready_tail.load(std::memory_order_relaxed) == r;
    if (last)
      words_->ready_tail.store(before, std::memory_order_relaxed);
    else
      at(at(r)->next)->prev = before;
    at(before)->next = last ? 0 : at(r)->next;
    at(r)->prev = in_no_queue;
    leaves_high(r, before);
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
      const image& im = *at(r);
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
    const bool any_high = words_->ready_high.load(std::memory_order_relaxed) != 0;
    return size() == 0 ? !any_high : head != 0 && tail != 0 && (size() == 1) == (head == tail);
  }

  const transport::shm::segment* memory_ = nullptr;
  public_words* words_ = nullptr;
  base::lock_turn lock_turn_ = nullptr;
  std::uint32_t me_ = 0;
  bool alone_ = true;
  ref first_ = 0;
  std::uint64_t bytes_ = 0;
  std::byte* address_ = nullptr;
};

}  // namespace godwit::sched
