// Two words that go with a thread wherever it goes, and that its children inherit. The worker has those of
// the running thread, so a spawn has nothing to do for them; they are looked at only where a thread leaves a
// worker or comes to one. docs/protocols/cancel.md (Carried words). Test: tests/sched/carried_test.cpp.
#pragma once

#include "base/own_memory.hpp"
#include "sched/words.hpp"

#include <algorithm>

namespace godwit::sched {

using detail::spawn_slot;

struct carried {
  ref scope = 0;    ///< the innermost scope that can be cancelled (scopes.hpp); 0: none
  ref segment = 0;  ///< place in the serial order of the program; 0: nobody tracks it
  bool operator==(const carried&) const = default;
};

/// The words of the threads of one deque and of the one that runs. All these threads are one serial run, so
/// they have one segment. Scopes are entered and left like the frames they lie in: where each began tells
/// those of all threads.
class carried_words {
 public:
  /// @p first: the first slot of the deque that is filled by a spawn.
  void init(public_words* words, const spawn_slot* first) noexcept {
    words_ = words;
    first_ = first;
  }

  ref segment() const noexcept { return words_->segment.load(std::memory_order_relaxed); }
  [[gnu::always_inline]] ref scope() const noexcept { return entered_.empty() ? 0 : entered_.back().scope; }
  /// Of the running thread.
  [[gnu::always_inline]] carried now() const noexcept { return {scope(), segment()}; }
  /// now(), and neither has anything to do for another thread that has none either.
  [[gnu::always_inline]] bool none() const noexcept { return entered_.empty() && segment() == 0; }
  /// Of the thread whose spawn fills or has filled @p s.
  ref scope_of(const spawn_slot* s) const noexcept {
    const auto after = std::ranges::upper_bound(entered_, s, {}, &entry::from);
    return after == entered_.begin() ? 0 : after[-1].scope;
  }

  // These are called where the expose signal keeps its hands off.
  /// The running thread, whose next spawn fills @p next, has entered @p scope.
  void enter(ref scope, const spawn_slot* next) { entered_.push_back({scope, next}); }
  /// It has left its innermost scope, and is in @p parent again (0: in none).
  void leave(ref parent) {
    const spawn_slot* const from = entered_.back().from;
    entered_.pop_back();
    if (parent != scope()) entered_.push_back({parent, from});
  }
  /// The running thread goes on in segment @p s. With the deque locked, if that is another one.
  void set_segment(ref s) noexcept {
    if (segment() != 0)  // else nothing has been looked up in it
      for (detail::view_slot& v : detail::hot().views) v.reducer = 0;
    words_->segment.store(s, std::memory_order_relaxed);
  }
  /// A thread has come that brings these words, to an empty deque; or none has, and there are no words.
  /// False: its scope is the same as before, and it is none.
  bool come(const carried& c) {
    set_segment(c.segment);
    if (c.scope == 0 && entered_.empty()) [[likely]]
      return false;
    entered_.clear();
    if (c.scope != 0) entered_.push_back({c.scope, first_});
    return true;
  }
  /// The running thread's parents are not here any more: its next spawn fills the first slot.
  void moved_down() noexcept {
    if (entered_.empty()) return;
    entered_.front() = {scope(), first_};
    entered_.resize(1);
  }
  /// The running thread has left, and its parent goes on in place, whose next spawn fills @p its.
  void parent_goes_on(const spawn_slot* its) noexcept {
    while (!entered_.empty() && entered_.back().from > its) entered_.pop_back();
  }

 private:
  struct entry {
    ref scope = 0;
    const spawn_slot* from = nullptr;  ///< of the threads whose spawns fill this slot and those behind it
  };
  base::own_vector<entry> entered_;  ///< in the order of `from`
  public_words* words_ = nullptr;
  const spawn_slot* first_ = nullptr;
};

}  // namespace godwit::sched
