// SHA-1 of messages that fit into one block, as the tree's random number generator needs it.
//
// A node's state is a digest kept as five words, so digest -> next message needs no byte swapping. Two
// implementations of the same function: portable C++, and the CPU's SHA instructions (--sha ni).
// Not a general SHA-1: no lengths, no buffering.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#define BENCH_HAS_SHA_NI 1
#endif

namespace uts {

/// Digest, and state of one node. Word i holds bytes 4i..4i+3, the first byte uppermost.
struct digest {
  std::uint32_t w[5];

  /// Write the first four words in one piece. A node is copied right after it was made, and the CPU forwards a
  /// store to a load only if the load lies inside it: word stores would cost each such copy some 5 ns.
  [[gnu::always_inline]] void set(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d,
                                  std::uint32_t e) {
    typedef std::uint32_t four [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]];
    *reinterpret_cast<four*>(w) = four{a, b, c, d};
    w[4] = e;
  }
};

namespace detail {

inline constexpr std::uint32_t sha1_start[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
inline constexpr std::uint32_t sha1_constant[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};

struct sha1_rounds {
  std::uint32_t w[16];
  std::uint32_t a, b, c, d, e;

  // The indices are constants, so everything below lives in registers and on the stack, and the words of
  // the message that are known to be zero drop out of the schedule.
  template <std::size_t T>
  [[gnu::always_inline]] void round() {
    if constexpr (T >= 16)
      w[T % 16] = std::rotl(w[(T + 13) % 16] ^ w[(T + 8) % 16] ^ w[(T + 2) % 16] ^ w[T % 16], 1);
    // What does not depend on the previous round comes first: the chain through `a` is the critical path.
    std::uint32_t t = e + w[T % 16] + sha1_constant[T / 20];
    if constexpr (T < 20)
      t += d ^ (b & (c ^ d));
    else if constexpr (T >= 40 && T < 60)
      t = (t + (c & d)) + (b & (c ^ d));
    else
      t += b ^ c ^ d;
    t += std::rotl(a, 5);
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = t;
  }
  template <std::size_t... T>
  [[gnu::always_inline]] void all(std::index_sequence<T...>) {
    (round<T>(), ...);
  }
};

}  // namespace detail

/// Portable. Not inlined: its scratch space must not become part of the recursion's frames.
struct sha1_portable {
  /// Digest of the 20 bytes of @p from followed by the 4 bytes of @p last.
  [[gnu::noinline]] static void hash24(const digest& from, std::uint32_t last, digest& to) {
    block({{from.w[0], from.w[1], from.w[2], from.w[3], from.w[4], last, 0x80000000u, 0, 0, 0, 0, 0, 0, 0, 0, 24 * 8},
           0, 0, 0, 0, 0}, to);
  }
  /// Digest of 16 zero bytes followed by the 4 bytes of @p last.
  [[gnu::noinline]] static void hash20(std::uint32_t last, digest& to) {
    block({{0, 0, 0, 0, last, 0x80000000u, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20 * 8}, 0, 0, 0, 0, 0}, to);
  }

 private:
  [[gnu::always_inline]] static void block(detail::sha1_rounds s, digest& to) {
    using detail::sha1_start;
    s.a = sha1_start[0], s.b = sha1_start[1], s.c = sha1_start[2], s.d = sha1_start[3], s.e = sha1_start[4];
    s.all(std::make_index_sequence<80>{});
    to.set(s.a + sha1_start[0], s.b + sha1_start[1], s.c + sha1_start[2], s.d + sha1_start[3],
           s.e + sha1_start[4]);
  }
};

#if BENCH_HAS_SHA_NI
/// The SHA extensions of x86-64 (sha_ni.cpp).
struct sha1_ni {
  static bool available();
  static void hash24(const digest& from, std::uint32_t last, digest& to);
};
#endif

}  // namespace uts
