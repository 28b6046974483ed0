// The split deque of parent continuations.
//
//   slots:  0 sentinel | 1 ... stolen ... | top ... public ... | split ... private ... | bottom
//
// Words: split W owner R thieves; top W thieves and owner under lock R all; lock W all; bottom and the
// owner's copy of split are the owner's. A slot's contents: W owner before it is public, R thieves under
// lock.
// Invariants:  top <= split <= bottom          (seen by the owner with the lock held)
//              hot.split == split              (outside pop_public)
//              slot[i].record != 0             for every public slot
//              slot[0] describes the thread at the bottom of the region: its stack's end, what it completes
// The owner pushes and pops private slots without any synchronisation (task.hpp). Orderings:
//   DQ1  pop: bottom is stored before split is read -- against the expose signal on the same CPU only
//   DQ2  expose: slots and records before split (release);      thief: split (acquire) before the slot
//   DQ3  reclaim: split, fence, top (owner);                     top, fence, split (thief)     -- THE
//   DQ4  thief: stack copied before unlock (release);            owner: lock (acquire) before reuse of region
// Long form, alternatives and the model: docs/protocols/deque.md, models/deque.pml.
// Test: tests/sched/deque_test.cpp.
// Sources: Frigo et al. (THE), Uni-address threads 5.3, Lace (the split).
#pragma once

#include "base/lock.hpp"
#include "sched/words.hpp"

#include <cstring>

namespace godwit::sched {

using detail::hot_words;
using detail::spawn_slot;

inline std::uint64_t as_word(const spawn_slot* s) noexcept { return reinterpret_cast<std::uint64_t>(s); }
inline spawn_slot* as_slot(std::uint64_t w) noexcept { return reinterpret_cast<spawn_slot*>(w); }

/// For traces, of slots of one deque: the number of a slot, and of the thread whose next spawn fills it.
inline std::uint16_t level_of(const spawn_slot* s) noexcept {
  return static_cast<std::uint16_t>(as_word(s) / sizeof(spawn_slot));
}

/// The owner's side. Test hook: @p delay is called between the steps that race.
class deque_owner {
 public:
  void init(hot_words* hot, public_words* words, spawn_slot* slots, base::lock_turn turn,
            void (*delay)() noexcept) noexcept {
    hot_ = hot;
    words_ = words;
    slots_ = slots;
    lock_turn_ = turn;
    delay_ = delay;
    GODWIT_ASSERT((as_word(slots) & (alignof(spawn_slot) - 1)) == 0, "each slot lies in a line of its own");
    hot_->bottom = hot_->split = slots_ + 1;
    words_->top.store(as_word(slots_ + 1), std::memory_order_relaxed);
    words_->split.store(as_word(slots_ + 1), std::memory_order_release);
  }

  /// The slot that describes the thread at the bottom of the region.
  spawn_slot& sentinel() noexcept { return slots_[0]; }
  bool is_sentinel(const spawn_slot* s) const noexcept { return s == slots_; }
  bool empty() const noexcept { return hot_->bottom == slots_ + 1; }
  bool has_private() const noexcept { return hot_->bottom > hot_->split; }

  /// First slot that expose() would leave private; equal to the present split if there is nothing to expose.
  spawn_slot* next_split() const noexcept {
    const auto n = hot_->bottom - hot_->split;
    return hot_->split + (n + 1) / 2;
  }

  /// Make the slots below @p end public. @p prepare(slot) must leave slot->record set. Local, no lock.
  template <class Prepare>
  void expose(spawn_slot* end, Prepare&& prepare) noexcept {
    GODWIT_ASSERT(hot_->split <= end && end <= hot_->bottom, "only slots in use become public");
    GODWIT_ASSERT(words_->split.load(std::memory_order_relaxed) == as_word(hot_->split),
                  "both copies of split agree");
    spawn_slot* const first = hot_->split;
    if (base::planted("deque.split_first")) words_->split.store(as_word(end), std::memory_order_release);
    for (spawn_slot* s = first; s < end; ++s) {
      prepare(*s);
      GODWIT_ASSERT(s->record != 0, "a public slot has a record");
    }
    hot_->split = end;
    words_->split.store(as_word(end), std::memory_order_release);  // DQ2
  }

  /// What pop_public found.
  struct popped {
    bool parent_here;
    ref record;         ///< if not: what the ending or leaving thread must complete
    std::uint64_t top;  ///< if not: end of that thread's stack
  };

  /// Pop slot @p b, which was public when the caller looked; bottom is already b. If the parent is gone, @p
  /// left(first, last) is called with the slots of all continuations that left since the region was empty,
  /// before it may be reused; first is the sentinel.
  template <class Left>
  popped pop_public(spawn_slot* b, Left&& left) noexcept {
    GODWIT_ASSERT(hot_->bottom == b, "bottom is stored before a public slot is popped");
    GODWIT_ASSERT(slots_ <= b && b < hot_->split, "the popped slot was public");
    GODWIT_ASSERT(words_->split.load(std::memory_order_relaxed) == as_word(hot_->split),
                  "both copies of split agree");
    if (b == slots_) {  // the thread at the bottom: its parent left before it came here
      left(slots_, b);
      hot_->bottom = slots_ + 1;
      return {false, b->record, b->sp};
    }
    spawn_slot* t = as_slot(words_->top.load(std::memory_order_relaxed));
    if (t <= b) {
      spawn_slot* middle = t + (b - t + 1) / 2;  // leave the older half to thieves, and one at least
      words_->split.store(as_word(middle), std::memory_order_relaxed);
      if (!base::planted("deque.owner_has_no_fence")) base::fence();  // DQ3
      delay_();
      t = as_slot(words_->top.load(std::memory_order_acquire));  // who took a claim back has read the slot
      if (t <= middle || base::planted("deque.owner_looks_once")) {
        hot_->split = middle;
        return {true, 0, 0};
      }
    }
    lock();  // DQ4: no thief is copying any more
    t = as_slot(words_->top.load(std::memory_order_relaxed));
    GODWIT_ASSERT(slots_ + 1 <= t && t <= hot_->split, "under the lock: 1 <= top <= split");
    if (t <= b) {
      hot_->split = b;
      words_->split.store(as_word(b), std::memory_order_relaxed);
      base::unlock(words_->lock, me());
      return {true, 0, 0};
    }
    GODWIT_ASSERT(t == b + 1, "top beyond the popped slot");
    GODWIT_ASSERT(b->record != 0, "a stolen slot keeps its record until the reset");
    left(slots_, b);
    const popped result{false, b->record, b->sp};
    // the thread that pops is at the bottom now; it may still run user code
    slots_[0].sp = slots_[0].bytes_end = b->sp;
    slots_[0].record = b->record;
    for (spawn_slot* s = slots_ + 1; s <= b; ++s) s->record = 0;  // they went with the stolen continuations
    reset();
    base::unlock(words_->lock, me());
    return result;
  }

  /// The owner takes the oldest continuation itself, public or not: a private one becomes public in the same
  /// step, so that no thief gets it, unless @p only_public. @p prepare: as for expose. False: none is left,
  /// or @p take(slot, neighbour) has left it where it is.
  template <class Prepare, class Take>
  bool take_own(Prepare&& prepare, Take&& take, bool only_public = false) noexcept {
    lock();
    spawn_slot* t = as_slot(words_->top.load(std::memory_order_relaxed));
    bool taken = t < (only_public ? hot_->split : hot_->bottom);
    GODWIT_ASSERT(slots_ + 1 <= t && t <= hot_->split, "under the lock: 1 <= top <= split");
    if (taken) {
      if (t == hot_->split) expose(t + 1, prepare);
      GODWIT_ASSERT(t->record != 0, "a public slot has a record");
      taken = take(*t, t[-1]);
      if (taken) words_->top.store(as_word(t + 1), std::memory_order_relaxed);
    }
    base::unlock(words_->lock, me());
    return taken;
  }

  /// Child stealing, everything public: move the waiting slots down over the stolen ones. Gives back how many
  /// wait. Thieves read slots under the lock only; a look without it may see words that do not fit together,
  /// in vain.
  std::size_t compact() noexcept {
    GODWIT_ASSERT(!has_private(), "compact moves public slots only");
    lock();
    const spawn_slot* t = as_slot(words_->top.load(std::memory_order_relaxed));
    GODWIT_ASSERT(slots_ + 1 <= t && t <= hot_->bottom, "under the lock: 1 <= top <= bottom");
    const auto waiting = static_cast<std::size_t>(hot_->bottom - t);
    if (t != slots_ + 1) std::memmove(slots_ + 1, t, waiting * sizeof(spawn_slot));
    hot_->bottom = hot_->split = slots_ + 1 + waiting;
    words_->top.store(as_word(slots_ + 1), std::memory_order_relaxed);
    words_->split.store(as_word(hot_->split), std::memory_order_relaxed);
    base::unlock(words_->lock, me());
    return waiting;
  }

  /// @p f() while nobody takes anything.
  template <class F>
  void locked(F&& f) noexcept {
    lock();
    f();
    base::unlock(words_->lock, me());
  }

  void check_invariants() noexcept {
    lock();
    const std::uint64_t t = words_->top.load(std::memory_order_relaxed);
    const std::uint64_t s = words_->split.load(std::memory_order_relaxed);
    const bool ordered = as_word(slots_ + 1) <= t && t <= s && s <= as_word(hot_->bottom);
    const bool same = s == as_word(hot_->split);
    bool records = true;
    for (const spawn_slot* i = as_slot(t); i < as_slot(s); ++i) records = records && i->record != 0;
    base::unlock(words_->lock, me());
    GODWIT_CHECK(ordered, "top <= split <= bottom");
    GODWIT_CHECK(same, "both copies of split agree");
    GODWIT_CHECK(records, "public slots have records");
  }

 private:
  std::uint64_t me() const noexcept { return base::holder_of(hot_->worker); }
  /// Nobody holds it for longer than the copy of one stack takes.
  void lock() noexcept {
    if (!base::planted("deque.owner_does_not_lock")) base::lock(words_->lock, me(), lock_turn_);
  }
  void reset() noexcept {
    hot_->bottom = hot_->split = slots_ + 1;
    words_->top.store(as_word(slots_ + 1), std::memory_order_relaxed);
    words_->split.store(as_word(slots_ + 1), std::memory_order_relaxed);
  }

  hot_words* hot_ = nullptr;
  public_words* words_ = nullptr;
  spawn_slot* slots_ = nullptr;
  base::lock_turn lock_turn_ = nullptr;
  void (*delay_)() noexcept = nullptr;
};

enum class steal_outcome { taken, empty, busy, stays };

/// The thief's side. One-sided: look (1 read), lock (1 compare-and-swap; it says @p me meanwhile), bounds
/// (read), claim (1 write), recheck (read), two slots (1 read), then @p take(slot, neighbour, place of the
/// slot, public_words::segment) copies the stack, unlock (1 write). Uni-address threads, figure 6. If take
/// says false, it stays: one write takes the claim back.
static_assert(offsetof(public_words, split) == offsetof(public_words, segment) + sizeof(word) &&
              offsetof(public_words, top) == offsetof(public_words, split) + sizeof(word));

template <transport::one_sided Transport, class Take>
[[nodiscard]] steal_outcome steal(const Transport& net, std::uint32_t me, worker_no victim,
                                  const public_words* words, bool empty_check, auto&& delay, Take&& take) {
  if (empty_check) {
    const auto seen = net.remote_load_pair(victim, &words->split);
    if (seen.second >= seen.first) return steal_outcome::empty;
  }
  std::uint64_t nobody = 0;
  if (!net.remote_compare_exchange(victim, &words->lock, nobody, me)) return steal_outcome::busy;
  steal_outcome outcome = steal_outcome::empty;
  // top first: it stands still under the lock
  const auto bounds = net.remote_load_pair(victim, &words->split);
  const std::uint64_t t = bounds.second;
  GODWIT_ASSERT(t != 0 && (t & (alignof(spawn_slot) - 1)) == 0, "top is the address of a slot");
  if (t < bounds.first) {
    if (!base::planted("deque.thief_claims_last"))
      net.remote_store(victim, &words->top, t + sizeof(spawn_slot), std::memory_order_relaxed);
    if (!base::planted("deque.thief_has_no_fence")) net.remote_fence();  // DQ3
    delay();
    const auto again = net.remote_load_pair(victim, &words->segment);  // the segment stands still as well
    if (t + sizeof(spawn_slot) <= again.second ||                      // DQ2
        base::planted("deque.thief_looks_once")) {
      if (base::planted("deque.thief_claims_last"))
        net.remote_store(victim, &words->top, t + sizeof(spawn_slot), std::memory_order_relaxed);
      if (base::planted("deque.thief_unlocks_first"))
        net.remote_store(victim, &words->lock, 0, std::memory_order_release);
      spawn_slot two[2];  // the neighbour above it says where its stack ends and what it completes
      net.remote_get(victim, two, as_slot(t) - 1, sizeof two);
      GODWIT_ASSERT(two[1].record != 0, "a public slot has a record");
      outcome = take(two[1], two[0], as_slot(t), again.first) ? steal_outcome::taken : steal_outcome::stays;
    }
    const bool keeps = outcome == steal_outcome::stays && base::planted("stay.claim_is_kept");
    if (outcome != steal_outcome::taken && !keeps)
      net.remote_store(victim, &words->top, t, std::memory_order_release);
  }
  net.remote_store(victim, &words->lock, 0, std::memory_order_release);  // DQ4
  return outcome;
}

}  // namespace godwit::sched
