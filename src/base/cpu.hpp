// What differs between CPUs outside the context switch: the hint to a spinning CPU, the control word of
// floating point.
#pragma once

#include <cstdint>

namespace godwit::base {

/// For who looks again and again. Not for loops that wait for another worker: base::pause (world.hpp).
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
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
inline constexpr std::uint32_t mxcsr_flags = 0x3f;  ///< the sticky ones
/// Control bits of both floating-point units: MXCSR's, and the x87 control word in the upper half.
inline std::uint32_t pack_float_control(std::uint32_t mxcsr, std::uint16_t x87) noexcept {
  return (mxcsr & 0xffffu & ~mxcsr_flags) | static_cast<std::uint32_t>(x87) << 16;
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
  return pack_float_control(__builtin_ia32_stmxcsr(), x87);
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

/// Take up what float_control gave, or keep_float_control kept; sticky flags stay. Loading the control word
/// costs tens of nanoseconds when it changes, so compare first.
inline void set_float_control(std::uint32_t wanted) noexcept {
#if defined(__x86_64__)
  wanted &= ~mxcsr_flags;
#endif
  const std::uint32_t present = float_control();
  if (present == wanted) return;
#if defined(__x86_64__)
  if ((present ^ wanted) >> 16 != 0) {
    const auto x87 = static_cast<std::uint16_t>(wanted >> 16);
    asm volatile("fldcw %0" ::"m"(x87));
  }
  __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0xffc0u) | (wanted & 0xffc0u));
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

/// float_control into memory; on x86-64 with MXCSR's sticky flags. Who looks at MXCSR itself waits for it,
/// some 15 ns on AMD's Zen.
inline void keep_float_control(std::uint32_t& where) noexcept {
#if defined(__x86_64__)
  using half [[gnu::may_alias]] = std::uint16_t;
  asm volatile("stmxcsr %0" : "=m"(where));  // nothing is in its upper half
  asm volatile("fnstcw %0" : "=m"(reinterpret_cast<half*>(&where)[1]));
#else
  where = float_control();
#endif
}

/// Take up what keep_float_control has kept, flags too, without a look at what there is: where as a rule
/// nothing changes.
inline void take_float_control(std::uint32_t kept) noexcept {
#if defined(__x86_64__)
  const auto x87 = static_cast<std::uint16_t>(kept >> 16);
  asm volatile("fldcw %0" ::"m"(x87));
  __builtin_ia32_ldmxcsr(kept & 0xffffu);
#else
  set_float_control(kept);
#endif
}

}  // namespace godwit::base
