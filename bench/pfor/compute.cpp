// The multiply-adds and their calibration. See compute.hpp.
//
// Not AVX-512: its heavy instructions lower the clock of some CPUs for everybody, for milliseconds. Eight
// chains keep two units of latency four busy.

#include "compute.hpp"

#include <vector>

#include "../common/clock.hpp"
#include "../common/harness.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace pfor {

namespace {

// x <- x * a + b with |a| < 1 goes to b / (1 - a): never denormal, never infinite.
constexpr float factor = 0.75f, summand = 0.5f;

#if defined(__x86_64__)
[[gnu::target("avx2,fma"), gnu::noinline]] void chains_avx2(std::uint64_t rounds) noexcept {
  const __m256 a = _mm256_set1_ps(factor), b = _mm256_set1_ps(summand);
  __m256 x0 = a, x1 = a, x2 = a, x3 = a, x4 = a, x5 = a, x6 = a, x7 = a;
  for (; rounds != 0; --rounds) {
    x0 = _mm256_fmadd_ps(x0, a, b);
    x1 = _mm256_fmadd_ps(x1, a, b);
    x2 = _mm256_fmadd_ps(x2, a, b);
    x3 = _mm256_fmadd_ps(x3, a, b);
    x4 = _mm256_fmadd_ps(x4, a, b);
    x5 = _mm256_fmadd_ps(x5, a, b);
    x6 = _mm256_fmadd_ps(x6, a, b);
    x7 = _mm256_fmadd_ps(x7, a, b);
    asm volatile("" : "+x"(x0), "+x"(x1), "+x"(x2), "+x"(x3), "+x"(x4), "+x"(x5), "+x"(x6), "+x"(x7));
  }
}
using wide = __m128;
wide start() { return _mm_set1_ps(factor); }
wide step(wide x) { return _mm_add_ps(_mm_mul_ps(x, _mm_set1_ps(factor)), _mm_set1_ps(summand)); }
#define BENCH_VECTOR "+x"
constexpr const char* plain_kind = "SSE2 multiply and add, 4 lanes of float";
#elif defined(__aarch64__)
using wide = float32x4_t;
wide start() { return vdupq_n_f32(factor); }
wide step(wide x) { return vfmaq_f32(vdupq_n_f32(summand), x, vdupq_n_f32(factor)); }
#define BENCH_VECTOR "+w"
constexpr const char* plain_kind = "NEON FMA, 4 lanes of float";
#else
using wide = float;
wide start() { return factor; }
wide step(wide x) { return __builtin_fmaf(x, factor, summand); }
#define BENCH_VECTOR "+m"
constexpr const char* plain_kind = "scalar FMA";
#endif

[[gnu::noinline]] void chains_plain(std::uint64_t rounds) noexcept {
  wide x0 = start(), x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0;
  for (; rounds != 0; --rounds) {
    x0 = step(x0);
    x1 = step(x1);
    x2 = step(x2);
    x3 = step(x3);
    x4 = step(x4);
    x5 = step(x5);
    x6 = step(x6);
    x7 = step(x7);
    asm volatile(""
                 : BENCH_VECTOR(x0), BENCH_VECTOR(x1), BENCH_VECTOR(x2), BENCH_VECTOR(x3), BENCH_VECTOR(x4),
                   BENCH_VECTOR(x5), BENCH_VECTOR(x6), BENCH_VECTOR(x7));
  }
}

using chains = void (*)(std::uint64_t) noexcept;

chains choose() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return chains_avx2;
#endif
  return chains_plain;
}

const chains chosen = choose();

double ns_of(std::uint64_t rounds, int times, std::uint64_t (*clock)()) {
  const std::uint64_t from = clock();
  for (int i = 0; i < times; ++i) compute(rounds);
  return static_cast<double>(clock() - from) / times;
}
std::uint64_t wall() { return bench::now_ns(); }
std::uint64_t cpu() { return bench::cpu_ns(); }

}  // namespace

void compute(std::uint64_t rounds) noexcept { chosen(rounds); }

const char* compute_kind() noexcept {
#if defined(__x86_64__)
  if (chosen == chains_avx2) return "AVX2 FMA, 8 lanes of float";
#endif
  return plain_kind;
}

calibration calibrate(double us) {
  calibration c{1000, us, 0, 0};
  for (int i = 0; i < 3; ++i) {  // the first one warms up
    std::vector<double> ns;
    // A clock costs up to 1 us: not in every call. CPU time, because others may use this CPU just now.
    const int times = std::max(1, static_cast<int>(500 / us));
    for (int k = 0; k < 51; ++k) ns.push_back(ns_of(c.rounds, times, cpu));
    c.rounds = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(static_cast<double>(c.rounds) * us * 1e3 / bench::median(ns) + 0.5));
  }
  std::vector<double> by_cpu, by_wall;
  const int times = std::max(1, static_cast<int>(10e3 / us));
  for (int k = 0; k < 15; ++k) by_cpu.push_back(ns_of(c.rounds, times, cpu) * 1e-3);
  for (int k = 0; k < 15; ++k) by_wall.push_back(ns_of(c.rounds, times, wall) * 1e-3);
  c.cpu_us = bench::median(by_cpu);
  c.wall_us = bench::median(by_wall);
  return c;
}

}  // namespace pfor
