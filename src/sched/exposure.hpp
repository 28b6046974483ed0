// How continuations become public: at a spawn, when somebody asked, or by signal, when the running thread
// does not spawn. docs/protocols/deque.md. Test: tests/sched/exposure_test.cpp.
#pragma once

#include "sched/account.hpp"
#include "sched/ancestors.hpp"
#include "sched/carried.hpp"
#include "sched/deque.hpp"
#include "sched/records.hpp"
#include "sched/site.hpp"

namespace godwit::sched {

class exposure {
 public:
  exposure(const site& here, deque_owner& own, join_records& records, const ancestors& frames,
           const carried_words& words, account& counts) noexcept
      : here_(here), deque_(own), records_(records), ancestors_(frames), carried_(words), account_(counts) {}

  /// Encode what threads on [low, high), or no stack at all, have in a form that does not travel
  /// (detail::pending_value).
  void encode_pending(std::uintptr_t low, std::uintptr_t high) noexcept;
  /// What @p s needs to be public: it gets a record. @p float_control: of the code that runs.
  void prepare(spawn_slot& s, std::uint32_t float_control) noexcept;
  /// Make all slots below @p end public.
  void expose(spawn_slot* end, std::uint32_t float_control) noexcept;
  /// From the expose signal's handler: half of what is private, if that is possible where the thread was
  /// interrupted; else at its next spawn. True: somebody should be woken for it.
  bool on_signal(std::uint32_t float_control) noexcept;

 private:
  /// Before a slot becomes public.
  void tell_heap_end() noexcept;
  void expose_all(spawn_slot* end, std::uint32_t float_control, bool by_signal) noexcept;

  const site& here_;
  deque_owner& deque_;
  join_records& records_;
  const ancestors& ancestors_;
  const carried_words& carried_;
  account& account_;
};

}  // namespace godwit::sched
