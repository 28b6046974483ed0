// How much work there is between spawns, of a few in a row now and then: a spawn that nobody steals leaves no
// event. Only for traced runs. Test: tests/sched/account_test.cpp.
#pragma once

#include <cstdint>

namespace godwit::sched {

class spawn_sample {
 public:
  static constexpr std::uint32_t spawns = 64;           ///< a sample ends with the last of so many
  static constexpr std::uint64_t every_ns = 1'000'000;  ///< begin of a sample to that of the next, at least

  /// A sample begins at @p now, unless the last one began shortly before, or goes on. True: it begins.
  bool begin(std::uint64_t now) noexcept {
    if (on_ || now < since_ns_ + every_ns) return false;
    on_ = true;
    since_ns_ = now;
    count_ = 0;
    return true;
  }
  bool on() const noexcept { return on_; }
  /// A thread spawned @p where. True: it was the last one.
  bool spawned(std::uintptr_t where) noexcept {
    where_ = where;
    return ++count_ == spawns;
  }
  void end() noexcept { on_ = false; }

  std::uint64_t since_ns() const noexcept { return since_ns_; }
  std::uint32_t count() const noexcept { return count_; }
  std::uintptr_t where() const noexcept { return count_ != 0 ? where_ : 0; }

 private:
  bool on_ = false;
  std::uint32_t count_ = 0;
  std::uint64_t since_ns_ = 0;
  std::uintptr_t where_ = 0;  ///< the last one
};

}  // namespace godwit::sched
