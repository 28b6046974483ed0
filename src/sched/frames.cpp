// See frames.hpp.
#include "sched/frames.hpp"

#include "base/check.hpp"
#include "context/context.hpp"

#include <algorithm>

// What is inlined needs it too: its variables would be marked on the caller's stack, and nobody would take
// the marks away.
#define WITHOUT_ASAN __attribute__((no_sanitize("address")))

namespace godwit::sched {

namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t lanes = 8;  // words side by side, in vectors of whichever length: the hash is the same
using two_lanes [[gnu::vector_size(2 * word_bytes)]] = std::uint64_t;
using four_lanes [[gnu::vector_size(4 * word_bytes)]] = std::uint64_t;

/// Frames hold bytes that were never set: memcheck must not follow them into decisions.
[[gnu::always_inline]] inline std::uint64_t settled(std::uint64_t v) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(&v);
  if (context::sanitized()) [[unlikely]]
    context::sanitizer_forget(at, at + sizeof v);
  return v;
}

// Random: for up to seven words that are left, the sums, and, even, their sums: so a word alone has an odd
// factor, whatever its place.
constexpr std::uint64_t factors[] = {
    0x44DCDA6A797D76DF, 0x87751D4CA8501E2D, 0x598B88DBAA99E079, 0x61B339FF248174E5, 0xFF22A27B02C7BFF3,
    0x7B87A9E25FEFE911, 0xA4B66F8C462804DB, 0x75D0DD66CF72F859, 0xDD45AF1CB0CAAE1D, 0x3A46E6B099F916B1,
    0x006D2CC78EE58B07, 0x9FCDB9E1A94C56B9, 0xFA60DBD625329041, 0x5E1EA97870A76E49, 0x56F547AB298A59F9,
    0x35D30D75CFDBB0CE, 0x9382CC701E1E38D2, 0x331B2FB3A33C644A, 0x8376099826333BC2, 0xD1BA5C0F5FB7523A,
    0xAE729AFEAC8B35FE, 0xCC419A5ECF299A5E, 0x165C982BAF4F7EBE};

}  // namespace

// Per lane the sum of the words and the sum of those sums, as Fletcher's: two additions a word, and the place
// of a word counts. In the end the lanes, and the words that are left, have factors of their own. Nothing
// waits for a multiplication. With @p Copy each piece goes to @p to as it was read. Reads whole frames,
// redzones included.
template <class V, bool Copy>
WITHOUT_ASAN __attribute__((always_inline)) static inline std::uint64_t hash_of(std::byte* to,
                                                                                const std::byte* from,
                                                                                std::size_t bytes) noexcept {
  constexpr std::size_t vectors = lanes * word_bytes / sizeof(V);
  const auto take = [&](auto& v, std::size_t at) WITHOUT_ASAN __attribute__((always_inline)) {
    __builtin_memcpy(&v, from + at, sizeof v);
    if constexpr (Copy) __builtin_memcpy(to + at, &v, sizeof v);
  };
  V sum[vectors]{}, of_sums[vectors]{};
  std::size_t at = 0;
  for (; bytes - at >= lanes * word_bytes; at += lanes * word_bytes)
    for (std::size_t i = 0; i < vectors; ++i) {
      V v;
      take(v, at + i * sizeof v);
      of_sums[i] += sum[i] += v;
    }
  std::uint64_t h = bytes;
  const std::uint64_t* factor = factors;
  for (; bytes - at >= word_bytes; at += word_bytes) {
    std::uint64_t v;
    take(v, at);
    h += v * *factor++;
  }
  for (std::size_t i = 0; i < lanes; ++i) {
    constexpr std::size_t each = sizeof(V) / word_bytes;
    h += sum[i / each][i % each] * factors[7 + i] + of_sums[i / each][i % each] * factors[7 + lanes + i];
  }
  return settled(h) | 1;
}

template <bool Copy>
WITHOUT_ASAN static std::uint64_t in_short_vectors(std::byte* to, const std::byte* from,
                                                   std::size_t bytes) noexcept {
  return hash_of<two_lanes, Copy>(to, from, bytes);
}

#if defined(__x86_64__)
template <bool Copy>
WITHOUT_ASAN __attribute__((target("avx2"))) static std::uint64_t in_long_vectors(
    std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  return hash_of<four_lanes, Copy>(to, from, bytes);
}
static const bool has_long_vectors = (__builtin_cpu_init(), __builtin_cpu_supports("avx2") != 0);
#endif

template <bool Copy>
static std::uint64_t in_vectors(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  if (has_long_vectors) return in_long_vectors<Copy>(to, from, bytes);
#endif
  return in_short_vectors<Copy>(to, from, bytes);
}

std::uint64_t frame_hash(const void* from, std::size_t bytes) noexcept {
  return in_vectors<false>(nullptr, static_cast<const std::byte*>(from), bytes);
}

std::uint64_t last_frame_hash(std::uintptr_t low, std::uintptr_t high) noexcept {
  constexpr std::uintptr_t line = 64, most = 32 << 10;
  GODWIT_ASSERT(low + word_bytes <= high && ((high - low) & (word_bytes - 1)) == 0, "frames are whole words");
  // All of them before the first is read: asked for one by one beside the reading, steals that follow gain
  // nothing.
  for (std::uintptr_t at = low; at < std::min(high, low + most); at += line)
#if defined(__x86_64__)
    // what compilers make of __builtin_prefetch is for reading. Old CPUs ignore it
    asm volatile("prefetchw (%0)" : : "r"(at));
#else
    __builtin_prefetch(reinterpret_cast<const void*>(at), 1);
#endif
  return frame_hash(low, high);
}

std::uint64_t frame_hash_in_short_vectors(const void* from, std::size_t bytes) noexcept {
  return in_short_vectors<false>(nullptr, static_cast<const std::byte*>(from), bytes);
}

std::uint64_t copy_frames(void* to, const void* from, std::size_t bytes) noexcept {
  GODWIT_ASSERT((bytes & (word_bytes - 1)) == 0, "frames are whole words");
  return in_vectors<true>(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

// A line at a time, without a decision for each word.
template <class V>
WITHOUT_ASAN __attribute__((always_inline)) static inline bool any_in(const std::byte* at,
                                                                      const std::byte* end,
                                                                      const stack::range& there) noexcept {
  constexpr std::size_t vectors = lanes * word_bytes / sizeof(V);
  const std::uint64_t bytes = there.high - there.low;
  for (; at + lanes * word_bytes <= end; at += lanes * word_bytes) {
    decltype(V{} < V{}) inside{};
    for (std::size_t i = 0; i < vectors; ++i) {
      V v;
      __builtin_memcpy(&v, at + i * sizeof v, sizeof v);
      inside |= v - there.low < V{} + bytes;
    }
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < sizeof(V) / word_bytes; ++i) any |= static_cast<std::uint64_t>(inside[i]);
    if (settled(any) != 0) return true;
  }
  for (; at < end; at += word_bytes) {
    std::uint64_t v;
    __builtin_memcpy(&v, at, sizeof v);
    if (settled(v) - there.low < bytes) return true;
  }
  return false;
}
#if defined(__x86_64__)
WITHOUT_ASAN __attribute__((target("avx2"))) static bool any_in_long(const std::byte* at,
                                                                     const std::byte* end,
                                                                     const stack::range& there) noexcept {
  return any_in<four_lanes>(at, end, there);
}
#endif

WITHOUT_ASAN bool names(std::uintptr_t low, std::uintptr_t high, const stack::range& there) noexcept {
  const auto* at = reinterpret_cast<const std::byte*>(low / word_bytes * word_bytes);
  const auto* const end = reinterpret_cast<const std::byte*>(high / word_bytes * word_bytes);
#if defined(__x86_64__)
  if (has_long_vectors) return any_in_long(at, end, there);
#endif
  return any_in<two_lanes>(at, end, there);
}

WITHOUT_ASAN bool refers_to(const detail::spawn_slot& parent, std::uintptr_t low, std::uintptr_t high,
                            std::uintptr_t region_low, std::uintptr_t region_high,
                            bool if_it_hides) noexcept {
  const auto inside = [&](std::uintptr_t word) { return word - low < high - low; };
  const std::uintptr_t first = settled(parent.closure[0]);
  if (inside(first) || inside(settled(parent.closure[1]))) return true;
  constexpr unsigned address_bits = 48;
  const std::uintptr_t above = first >> address_bits;
  const std::uintptr_t words = above & ~detail::closure_hides;
  if (words == 0 || words > detail::most_closure_words) return false;
  if (words != above && if_it_hides) return true;
  const std::uintptr_t closure = first & ((std::uintptr_t{1} << address_bits) - 1);
  const std::uintptr_t bytes = words * sizeof(std::uintptr_t);
  // One that was moved in from elsewhere may be gone by now. Nothing is lost by too careful an answer but
  // time.
  if (words == detail::most_closure_words || closure - region_low >= region_high - region_low ||
      region_high - closure < bytes)
    return true;
  for (std::uintptr_t at = closure; at + sizeof(std::uintptr_t) <= closure + bytes;
       at += sizeof(std::uintptr_t)) {
    const std::uintptr_t word = settled(*reinterpret_cast<const std::uintptr_t*>(at));
    if (inside(word) && word - closure >= bytes) return true;
  }
  return false;
}

}  // namespace godwit::sched
