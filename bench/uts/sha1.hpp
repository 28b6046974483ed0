// SHA-1 of messages that fit into one block, as the tree's random number generator needs it.
//
// A node's state is kept as five words, so going from one digest to the next message needs no byte swapping.
// Two implementations of the same function: portable C++, and the CPU's SHA instructions (--sha ni).
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

/// A node of the tree: its state, which is a digest, and its depth.
///
/// Nodes are copied right after they were made, into threads. The CPU forwards a store to a load only if the
/// load lies inside the store, so a node is written in the pieces in which compilers copy it, 16 + 8 bytes:
/// word by word, every copy would wait some 5 ns for the words to reach the cache.
struct node {
  std::uint32_t head[4];  ///< words 0..3 of the digest; word i holds bytes 4i..4i+3, the first one uppermost
  std::uint64_t tail;     ///< word 4 below, depth above

  [[gnu::always_inline]] std::uint32_t word4() const { return static_cast<std::uint32_t>(tail); }
  [[gnu::always_inline]] std::uint32_t depth() const { return static_cast<std::uint32_t>(tail >> 32); }
  /// The node's random number, 31 bits.
  [[gnu::always_inline]] std::uint32_t random() const { return word4() & 0x7fffffffu; }

  [[gnu::always_inline]] void set(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d,
                                  std::uint32_t e, std::uint32_t depth) {
    typedef std::uint32_t four [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]];
    *reinterpret_cast<four*>(head) = four{a, b, c, d};
    tail = std::uint64_t{depth} << 32 | e;
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
  /// Child @p i: digest of the parent's 20 bytes followed by the 4 bytes of i.
  [[gnu::noinline]] static void child(const node& parent, std::uint32_t i, node& to) {
    const std::uint32_t* w = parent.head;
    block({{w[0], w[1], w[2], w[3], parent.word4(), i, 0x80000000u, 0, 0, 0, 0, 0, 0, 0, 0, 24 * 8},
           0,
           0,
           0,
           0,
           0},
          parent.depth() + 1, to);
  }
  /// Root: digest of 16 zero bytes followed by the 4 bytes of the seed.
  [[gnu::noinline]] static void root(std::uint32_t seed, node& to) {
    block({{0, 0, 0, 0, seed, 0x80000000u, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20 * 8}, 0, 0, 0, 0, 0}, 0, to);
  }

 private:
  [[gnu::always_inline]] static void block(detail::sha1_rounds s, std::uint32_t depth, node& to) {
    const std::uint32_t* const start = detail::sha1_start;
    s.a = start[0], s.b = start[1], s.c = start[2], s.d = start[3], s.e = start[4];
    s.all(std::make_index_sequence<80>{});
    to.set(s.a + start[0], s.b + start[1], s.c + start[2], s.d + start[3], s.e + start[4], depth);
  }
};

#if BENCH_HAS_SHA_NI
/// The SHA extensions of x86-64 (sha_ni.cpp).
struct sha1_ni {
  static bool available();
  static void child(const node& parent, std::uint32_t i, node& to);
};
#endif

}  // namespace uts
