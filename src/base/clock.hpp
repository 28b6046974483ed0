// Clocks. Time is the world's (world.hpp), which is the operating system's unless a program has made another.
#pragma once

#include <cstdint>

namespace godwit::base {

/// Nanoseconds since some moment; the same clock for all workers of a host.
std::uint64_t now_ns() noexcept;
/// That of the operating system, in whatever world.
std::uint64_t system_ns() noexcept;

/// A constant-rate counter that all CPUs of a machine share, in its own unit: for durations where a clock is
/// too slow.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t v;
  asm volatile("mrs %0, cntvct_el0" : "=r"(v));
  return v;
#elif defined(__riscv)
  std::uint64_t v;
  asm volatile("rdtime %0" : "=r"(v));
  return v;
#else
  return system_ns();  // SPARC: which of %tick and %stick is the same on all CPUs, the kernel knows
#endif
}

/// now_ns() by way of ticks(), at less than half its cost; the same in all processes forked after
/// prepare_fast_clock. Where the kernel does not trust the counter itself: now_ns().
struct fast_clock {
  std::uint64_t from_ticks = 0;
  std::uint64_t from_ns = 0;
  std::uint64_t ns_per_tick = 0;  ///< times 2^32; 0: not usable, or not wanted
};
extern fast_clock fast_clock_;
/// Measure the counter against the clock, over the time since the process started (at least a millisecond).
void prepare_fast_clock() noexcept;
inline std::uint64_t fast_ns() noexcept {
  if (fast_clock_.ns_per_tick == 0) return now_ns();
  const auto passed =
      static_cast<unsigned __int128>(ticks() - fast_clock_.from_ticks) * fast_clock_.ns_per_tick;
  return fast_clock_.from_ns + static_cast<std::uint64_t>(passed >> 32);
}

}  // namespace godwit::base
