// Small accesses to a part of movable memory, by its number: who has it carries them out, wherever that is.
//
// With a switch nobody here looks up who has the part; with datagrams alone the hint says where to begin.
// The answer says that it is done: there is nobody else to ask. Larger accesses, several parts at once and
// what the cache fetches go by message (parts.hpp), since they must be able to hear "not now".
// Called by: access.cpp. Document: docs/protocols/switch.md. Test: tests/global/routed_test.cpp.
#pragma once

#include "gas/parts.hpp"
#include "transport/far/routed.hpp"

#include <cstdint>

namespace godwit::gas {

/// The most bytes of a put or get.
inline constexpr std::uint64_t largest_routed = 1024;

/// The number of a part: the same on all hosts, never 0.
inline std::uint64_t block_of(const reach& net, const place_words& words) noexcept {
  return net.address_of(&words) / sizeof(place_words);
}

/// Does an access to @p p go by its number?
inline bool is_routed(const reach& net, const part& p) noexcept {
  return net.has_datagrams() && p.words != nullptr && p.bytes <= largest_routed;
}

// Each is done when it returns. One round trip, half a one more for each host that has given the part away.
void get_routed(const reach& net, part& p) noexcept;
void put_routed(const reach& net, part& p) noexcept;
/// The value before.
std::uint64_t atomic_routed(const reach& net, part& p, atomic_function f, unsigned width,
                            std::uint64_t operand, std::uint64_t expected) noexcept;
/// The worker that has it.
std::uint32_t owner_routed(const reach& net, part& p) noexcept;

}  // namespace godwit::gas
