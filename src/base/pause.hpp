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
#elif defined(__riscv)
  // pause (Zihintpause); does nothing on CPUs that do not know it
  asm volatile(".insn i 0x0f, 0, x0, x0, 0x010" ::: "memory");
#elif defined(__sparc__)
  asm volatile("rd %%ccr, %%g0\n\trd %%ccr, %%g0\n\trd %%ccr, %%g0" ::: "memory");
#endif
}

#if defined(__x86_64__)
/// Control bits of both floating-point units: MXCSR's, and the x87 control word in the upper half.
inline std::uint32_t pack_float_control(std::uint32_t mxcsr, std::uint16_t x87) noexcept {
  return (mxcsr & 0xffc0u) | static_cast<std::uint32_t>(x87) << 16;
}
#endif

#if defined(__sparc__)
inline constexpr std::uint32_t fsr_control = 0xcfc0'0000u;  ///< of %fsr: RD (30, 31), TEM (23 to 27), NS (22)
#endif

/// Rounding, flush-to-zero, precision and exception mask bits; not the sticky flags.
inline std::uint32_t float_control() noexcept {
#if defined(__x86_64__)
  std::uint16_t x87;
  asm volatile("fnstcw %0" : "=m"(x87));
  return pack_float_control(_mm_getcsr(), x87);
#elif defined(__aarch64__)
  std::uint64_t v;
  asm volatile("mrs %0, fpcr" : "=r"(v));
  return static_cast<std::uint32_t>(v);
#elif defined(__riscv_flen)
  std::uint32_t v;
  asm volatile("frrm %0" : "=r"(v));
  return v;
#elif defined(__sparc__)
  std::uint64_t v;
  asm volatile("stx %%fsr, %0" : "=m"(v));
  return static_cast<std::uint32_t>(v) & fsr_control;
#else
  return 0;
#endif
}

/// Loading the control word costs tens of nanoseconds when it changes, so compare first.
inline void set_float_control(std::uint32_t wanted) noexcept {
  const std::uint32_t present = float_control();
  if (present == wanted) return;
#if defined(__x86_64__)
  if ((present ^ wanted) >> 16 != 0) {
    const auto x87 = static_cast<std::uint16_t>(wanted >> 16);
    asm volatile("fldcw %0" ::"m"(x87));
  }
  _mm_setcsr((_mm_getcsr() & ~0xffc0u) | (wanted & 0xffc0u));
#elif defined(__aarch64__)
  const std::uint64_t v = wanted;
  asm volatile("msr fpcr, %0" ::"r"(v));
#elif defined(__riscv_flen)
  asm volatile("fsrm %0" ::"r"(wanted));
#elif defined(__sparc__)
  std::uint64_t v;
  asm volatile("stx %%fsr, %0" : "=m"(v));
  v = (v & ~std::uint64_t{fsr_control}) | wanted;
  asm volatile("ldx %0, %%fsr" ::"m"(v));
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

/// A constant-rate counter that all CPUs of a machine share, in its own unit: for durations where a clock is
/// too slow.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t v;
  asm volatile("mrs %0, cntvct_el0" : "=r"(v));
  return v;
#elif defined(__riscv)
  std::uint64_t v;
  asm volatile("rdtime %0" : "=r"(v));
  return v;
#else
  return now_ns();  // SPARC: which of %tick and %stick is the same on all CPUs, the kernel knows
#endif
}

/// now_ns() by way of ticks(), at less than half its cost; the same in all processes forked after
/// prepare_fast_clock. Where the kernel does not trust the counter itself: now_ns().
struct fast_clock {
  std::uint64_t from_ticks = 0;
  std::uint64_t from_ns = 0;
  std::uint64_t ns_per_tick = 0;  ///< times 2^32; 0: not usable
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
