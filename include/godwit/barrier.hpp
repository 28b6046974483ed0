// barrier: like std::barrier, but who waits is suspended and its worker goes on with other threads.
//
// Substrate threads (see mutex.hpp for elsewhere). docs/threads.md. Code: src/sync/barrier.cpp. Test:
// tests/threads/wait_test.cpp.
#pragma once

#include <godwit/detail/wait_list.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace godwit {

namespace detail {

struct no_completion {
  void operator()() const noexcept {}
};

class basic_barrier {
 public:
  using phase = std::uint64_t;
  constexpr explicit basic_barrier(std::ptrdiff_t expected) noexcept : expected_(expected), left_(expected) {}

  /// Gives back the phase; @p last: it is over, and the caller is to call end_phase.
  phase arrive(std::ptrdiff_t n, bool drop, bool& last) noexcept;
  void end_phase() noexcept;
  void wait(phase p, const place& where) noexcept;

 private:
  wait_list list_;
  // Under the list's lock.
  phase phase_ = 0;
  std::ptrdiff_t expected_;  // in the next phase
  std::ptrdiff_t left_;      // of this one
};

}  // namespace detail

/// Like std::barrier. @p Completion runs in the thread that arrives last, before the others go on; it may
/// suspend. Each arrival takes two atomics.
template <class Completion = detail::no_completion>
class barrier {
  static_assert(std::is_nothrow_invocable_v<Completion&>, "godwit: a barrier's completion must be noexcept");

 public:
  class [[nodiscard]] arrival_token {
   public:
    arrival_token(arrival_token&&) noexcept = default;
    arrival_token& operator=(arrival_token&&) noexcept = default;

   private:
    friend class barrier;
    explicit arrival_token(std::uint64_t p) noexcept : phase_(p) {}
    std::uint64_t phase_;
  };

  static constexpr std::ptrdiff_t(max)() noexcept { return PTRDIFF_MAX; }

  constexpr explicit barrier(std::ptrdiff_t expected, Completion f = Completion())
      : barrier_(expected), completion_(std::move(f)) {}
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  arrival_token arrive(std::ptrdiff_t n = 1) { return arrival_token(arrive(n, false)); }
  /// Until the phase of @p t is over. May migrate the calling thread.
  void wait(arrival_token&& t, detail::place where = detail::place::here()) const {
    barrier_.wait(t.phase_, where);
  }
  void arrive_and_wait(detail::place where = detail::place::here()) { wait(arrive(), where); }
  /// One less is expected from the next phase on.
  void arrive_and_drop() { arrive(1, true); }

 private:
  std::uint64_t arrive(std::ptrdiff_t n, bool drop) {
    bool last;
    const std::uint64_t phase = barrier_.arrive(n, drop, last);
    if (last) {
      completion_();
      barrier_.end_phase();
    }
    return phase;
  }
  mutable detail::basic_barrier barrier_;
  [[no_unique_address]] Completion completion_;
};

}  // namespace godwit
