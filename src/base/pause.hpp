// Small CPU helpers: spin hints, the floating-point control word, a cheap random generator, a clock.
#pragma once

#include <cstdint>
#include <ctime>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace godwit::base {

inline void spin_pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Rounding, flush-to-zero and exception mask bits; not the sticky flags.
inline std::uint32_t float_control() noexcept {
#if defined(__x86_64__)
  return _mm_getcsr() & 0xffc0u;
#elif defined(__aarch64__)
  std::uint64_t v;
  asm volatile("mrs %0, fpcr" : "=r"(v));
  return static_cast<std::uint32_t>(v);
#endif
}

/// Loading the control word costs tens of nanoseconds when it changes, so compare first.
inline void set_float_control(std::uint32_t wanted) noexcept {
  if (float_control() == wanted) return;
#if defined(__x86_64__)
  _mm_setcsr((_mm_getcsr() & ~0xffc0u) | wanted);
#elif defined(__aarch64__)
  const std::uint64_t v = wanted;
  asm volatile("msr fpcr, %0" ::"r"(v));
#endif
}

/// xorshift64*: victim selection, forced steals, delays. Not for anything that needs quality.
class small_random {
 public:
  explicit small_random(std::uint64_t seed = 1) noexcept : x_(seed * 0x9E3779B97F4A7C15ull | 1) {}
  std::uint64_t next() noexcept {
    x_ ^= x_ >> 12;
    x_ ^= x_ << 25;
    x_ ^= x_ >> 27;
    return x_ * 0x2545F4914F6CDD1Dull;
  }
  /// Uniform enough in [0, n).
  std::uint32_t below(std::uint32_t n) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }

 private:
  std::uint64_t x_;
};

inline std::uint64_t now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace godwit::base
