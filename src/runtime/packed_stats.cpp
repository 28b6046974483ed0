// See packed_stats.hpp.
#include "runtime/packed_stats.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>

namespace godwit::runtime {

namespace {
constexpr std::size_t word_count = sizeof(worker_stats) / sizeof(std::uint64_t);
static_assert(sizeof(worker_stats) % sizeof(std::uint64_t) == 0);
using words = std::array<std::uint64_t, word_count>;
constexpr unsigned bits = 7;
constexpr std::uint64_t more = 1u << bits;  // bytes follow

[[noreturn]] void refuse() {
  throw std::runtime_error("godwit: a rank's counters are not what ranks of this program send");
}

void put(std::vector<std::byte>& to, std::uint64_t value) {
  for (; value >= more; value >>= bits) to.push_back(static_cast<std::byte>(value | more));
  to.push_back(static_cast<std::byte>(value));
}

std::uint64_t take(std::span<const std::byte>& from) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += bits) {
    if (from.empty()) break;
    const auto byte = static_cast<std::uint64_t>(from.front());
    from = from.subspan(1);
    value |= (byte & (more - 1)) << shift;
    if ((byte & more) == 0) return value;
  }
  refuse();
}
}  // namespace

std::vector<std::byte> pack(std::span<const worker_stats> of) {
  std::vector<std::byte> packed;
  for (const worker_stats& stats : of) {
    std::uint64_t zeros = 0;
    for (const std::uint64_t w : std::bit_cast<words>(stats)) {
      if (w == 0) {
        ++zeros;
        continue;
      }
      put(packed, zeros);
      put(packed, w);
      zeros = 0;
    }
    if (zeros != 0) put(packed, zeros);
  }
  return packed;
}

void unpack(std::span<const std::byte> packed, std::span<worker_stats> to) {
  for (worker_stats& stats : to) {
    words all{};
    for (std::size_t i = 0; i < word_count; ++i) {
      i += take(packed);
      if (i > word_count) refuse();
      if (i < word_count) all[i] = take(packed);
    }
    stats = std::bit_cast<worker_stats>(all);
  }
}

}  // namespace godwit::runtime
