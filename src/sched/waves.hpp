// Is every host idle? Waves find out: from the first host down a tree of all, and back up, while those that
// are passed are idle. docs/protocols/idle_nodes.md (IN1 to IN4); models/idle_nodes.pml. Several hosts only.
// Called by idleness, for workers that count as idle. Tests: tests/sched/idleness_test.cpp.
//
// A host is asked by the one above, asks those below, and answers when they have and all its workers are
// idle: whether one has left idleness since the wave before, and how many letters it has sent to other hosts
// and not got from them. Busy hosts hold a wave up, and send and get nothing. The words: node_words.
//   IN1  nobody has left idleness between two waves, and as many letters have come as were sent: at the
//        moment between the two all were idle, and no letter was under way
//   IN3  what those below have answered is reset before they are asked; the wave is over here before the host
//        above hears of it
//   IN4  a visit looks at the letters first, then at the workers
#pragma once

#include "sched/site.hpp"

namespace godwit::sched {

class waves {
 public:
  explicit waves(const site& here) noexcept : here_(here) {}

  /// Is there something to do for an idle worker of this host? A few words of the host.
  bool has_step() const noexcept;
  /// Whoever does it must be the only one of its host. Others need not wait: whoever it is looks again.
  [[nodiscard]] bool try_enter() noexcept {
    return base::planted("nodes.nobody_locks") || base::try_lock(here_.node->gate, here_.holder());
  }
  void leave() noexcept {
    if (!base::planted("nodes.nobody_locks")) base::unlock(here_.node->gate, here_.holder());
  }

  // Between try_enter and leave.
  enum class outcome : std::uint8_t {
    under_way,  ///< here or elsewhere; or this is not the first host
    unclean,    ///< it has come back to the first host
    clean,      ///< and nobody has left idleness since the one before, and no letter was under way: IN1
  };
  /// What can be done now. Sends messages, and waits for none.
  /// @p nothing_is_ready(idle): can no thread go on that looks for itself whether it can? While
  /// node_words::idle is @p idle, else it does not matter. ID5
  template <class F>
  outcome advance(F&& nothing_is_ready) noexcept {
    if (!has_step()) return outcome::under_way;  // somebody else has been here
    node_words& node = *here_.node;
    if (node.wave.load(std::memory_order_seq_cst) != wave_passed_on) begin();
    const std::uint64_t below = node.answers.load(std::memory_order_seq_cst);
    if (answers_missing(below) != 0 && !base::planted("nodes.answers_first")) return outcome::under_way;
    std::uint64_t letters = node.letters.load(std::memory_order_seq_cst);  // IN4: first these,
    const std::uint64_t idle = node.idle.load(std::memory_order_seq_cst);  // then those
    if (!all_idle(idle)) return outcome::under_way;
    if (base::planted("nodes.letters_are_looked_at_late"))
      letters = node.letters.load(std::memory_order_seq_cst);
    const bool left = idle != node.seen.load(std::memory_order_relaxed);
    if (!left && !is_unclean(below) && !nothing_is_ready(idle)) return outcome::under_way;
    if (!base::planted("nodes.what_was_seen_is_not_kept")) node.seen.store(idle, std::memory_order_relaxed);
    return answer(left || (is_unclean(below) && !base::planted("nodes.unclean_is_lost")),
                  letters + letters_in(below));
  }
  /// At the first host: the next wave.
  void begin() noexcept;

 private:
  outcome answer(bool unclean, std::uint64_t letters) noexcept;
  bool all_idle(std::uint64_t idle) const noexcept {
    return is_full(idle, here_.near.count) || base::planted("nodes.may_be_busy");
  }
  const site& here_;
};

}  // namespace godwit::sched
