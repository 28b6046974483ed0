// SHA-1 of 24 bytes with the SHA extensions. See sha1.hpp.

#include "sha1.hpp"

#if BENCH_HAS_SHA_NI
#include <immintrin.h>

namespace uts {

bool sha1_ni::available() {
  unsigned a = 7, b = 0, c = 0, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (b >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1");
}

[[gnu::target("sha,sse4.1")]] void sha1_ni::child(const node& parent, std::uint32_t i, node& to) {
  // Vectors hold four words with the first one uppermost.
  const auto word = [](std::uint32_t x) { return static_cast<int>(x); };
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(parent.head));
  __m128i m[4] = {_mm_shuffle_epi32(first, 0x1b),
                  _mm_set_epi32(word(parent.word4()), word(i), word(0x80000000u), 0), _mm_setzero_si128(),
                  _mm_set_epi32(0, 0, 0, 24 * 8)};
  const __m128i start_abcd = _mm_set_epi32(word(detail::sha1_start[0]), word(detail::sha1_start[1]),
                                           word(detail::sha1_start[2]), word(detail::sha1_start[3]));
  const __m128i start_e = _mm_set_epi32(word(detail::sha1_start[4]), 0, 0, 0);
  __m128i abcd = start_abcd;
  __m128i before = start_abcd;  // abcd of the previous group: the next e comes from its a
  __m128i e = _mm_add_epi32(start_e, m[0]);

  // Twenty groups of four rounds; the message of group g is m[g % 4], extended in place from group 4 on.
#define BENCH_SHA_GROUP(g)                                                                   \
  {                                                                                          \
    if ((g) >= 4)                                                                            \
      m[(g) % 4] = _mm_sha1msg2_epu32(                                                       \
          _mm_xor_si128(_mm_sha1msg1_epu32(m[(g) % 4], m[((g) + 1) % 4]), m[((g) + 2) % 4]), \
          m[((g) + 3) % 4]);                                                                 \
    if ((g) > 0) e = _mm_sha1nexte_epu32(before, m[(g) % 4]);                                \
    before = abcd;                                                                           \
    abcd = _mm_sha1rnds4_epu32(abcd, e, (g) / 5);                                            \
  }
  BENCH_SHA_GROUP(0);
  BENCH_SHA_GROUP(1);
  BENCH_SHA_GROUP(2);
  BENCH_SHA_GROUP(3);
  BENCH_SHA_GROUP(4);
  BENCH_SHA_GROUP(5);
  BENCH_SHA_GROUP(6);
  BENCH_SHA_GROUP(7);
  BENCH_SHA_GROUP(8);
  BENCH_SHA_GROUP(9);
  BENCH_SHA_GROUP(10);
  BENCH_SHA_GROUP(11);
  BENCH_SHA_GROUP(12);
  BENCH_SHA_GROUP(13);
  BENCH_SHA_GROUP(14);
  BENCH_SHA_GROUP(15);
  BENCH_SHA_GROUP(16);
  BENCH_SHA_GROUP(17);
  BENCH_SHA_GROUP(18);
  BENCH_SHA_GROUP(19);
#undef BENCH_SHA_GROUP

  e = _mm_sha1nexte_epu32(before, start_e);
  abcd = _mm_add_epi32(abcd, start_abcd);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to.head), _mm_shuffle_epi32(abcd, 0x1b));
  to.tail = std::uint64_t{parent.depth() + 1} << 32 | static_cast<std::uint32_t>(_mm_extract_epi32(e, 3));
}

}  // namespace uts
#endif
