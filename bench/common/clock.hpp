// Clocks of the benchmarks: wall time in nanoseconds and the CPU's constant-rate counter.
//
// The counter (TSC, cntvct) is the same on all cores, so stamps taken by two workers can be subtracted.
// Used by everything below bench/.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace bench {

/// Nanoseconds of the steady clock. The same in every process of the machine.
inline std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// CPU time of the calling process so far, all threads.
inline std::uint64_t cpu_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

/// Counter ticks, not ordered against the surrounding loads and stores: for intervals of microseconds.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t t;
  asm volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
#else
  return now_ns();
#endif
}

/// Counter ticks after everything before them: the stamp cannot be taken too early.
inline std::uint64_t ticks_ordered() noexcept {
#if defined(__x86_64__)
  unsigned cpu;
  const std::uint64_t t = __rdtscp(&cpu);
  _mm_lfence();
  return t;
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
  return ticks();
#else
  return now_ns();
#endif
}

/// Counter ticks per nanosecond, measured once (about 20 ms).
double ticks_per_ns();

/// One turn of a waiting loop.
inline void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The compiler must produce @p value, and may assume nothing about it afterwards.
template <class T>
[[gnu::always_inline]] inline void keep(T& value) noexcept {
  asm volatile("" : "+m"(value)::"memory");
}

}  // namespace bench
