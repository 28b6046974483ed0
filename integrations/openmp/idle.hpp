// Waiting: a while awake, then giving way, then asleep until woken.
//
// A pause that was announced (thread::sleeps) is ended by wake. Who pushes a task looks for sleepers without
// a fence, and may miss one that just lies down: so sleep has an end of its own, later each time.
#pragma once

#include "team.hpp"

namespace godwit::openmp {

struct idle_limits {
  unsigned spins;   ///< pauses awake
  unsigned yields;  ///< then so many times giving way
};
extern idle_limits limits_;
/// OMP_WAIT_POLICY; before the first region.
void choose_limits(bool active, bool passive) noexcept;

class idle {
 public:
  /// @p any_task: it would run any task of its team.
  idle(thread& t, bool any_task) noexcept
      : t_(t), team_(t.me != nullptr ? t.me->of : nullptr), any_task_(any_task) {}
  void reset() noexcept { rounds_ = 0; }
  /// One pause. @p again(): asked once more before it sleeps; true: it does not.
  template <class F>
  void pause(F again) noexcept {
    const unsigned round = rounds_++;
    if (round < limits_.spins && !crowded()) {
      __builtin_ia32_pause();
    } else if (round < limits_.spins + limits_.yields) {
      give_way();
    } else {
      const std::uint32_t seen = lie_down();
      if (!again()) sleep(seen, round - limits_.spins - limits_.yields);
      get_up();
    }
  }

 private:
  bool crowded() const noexcept;
  static void give_way() noexcept;
  std::uint32_t lie_down() noexcept;
  void sleep(std::uint32_t seen, unsigned times_before) noexcept;
  void get_up() noexcept;

  thread& t_;
  team* team_;  ///< null: not in any; then it sleeps until it is woken
  bool any_task_;
  unsigned rounds_ = 0;
};

/// Until @p ready() holds; runs nothing meanwhile. Who makes it hold calls wake or wake_all.
template <class F>
void wait_until(thread& t, F ready) noexcept {
  idle rest(t, false);
  while (!ready()) rest.pause(ready);
}

/// A lock of one word, 0 when open: what the program's own words become, too (omp_lock_t, critical names).
void lock(std::uint32_t& word) noexcept;
bool try_lock(std::uint32_t& word) noexcept;
void unlock(std::uint32_t& word) noexcept;

/// The same for C++.
struct guard {
  explicit guard(std::uint32_t& w) noexcept : word(w) { lock(w); }
  ~guard() { unlock(word); }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  std::uint32_t& word;
};

}  // namespace godwit::openmp
