// Calls that go by datagram: to who has a block, wherever that is (transport/net), and once only.
//
// What both ends agree on: the worker's side (gas/routed.cpp), the places where such calls are carried out
// (gas/places.cpp), and the channel that carries them (transport/net/channel.hpp), which knows nothing of
// memory. Document: docs/protocols/switch.md (SW).
#pragma once

#include "transport/far/calls.hpp"

namespace godwit::transport::far {

/// The most that a call or its answer brings.
inline constexpr std::size_t routed_bytes = 1200;

/// Routed calls have header::more[2], the number of the block.
inline std::uint64_t& block_of(header& h) noexcept { return h.more[2]; }

/// What a handler did with a routed call: header::more[0] of what it answers. Or it named another worker.
enum class outcome : std::uint64_t {
  not_now,  ///< nothing: it is asked again later
  read,     ///< as often as one likes
  changed,  ///< must not be done again. The answer has most_said bytes, and a result
};
inline std::uint64_t& outcome_of(header& h) noexcept { return h.more[0]; }

/// SW2: the last call of a worker that changed something here, or before it came here.
inline constexpr std::size_t most_said = 24;
struct record {
  std::uint64_t number = 0;  ///< 0: none
  std::uint64_t result = 0;
  std::byte said[most_said] = {};
  std::uint32_t asker = 0;  ///< worker
  std::uint32_t bytes = 0;  ///< of said
};
static_assert(sizeof(record) == 48);

/// A rule for the switch.
struct binding {
  std::uint64_t block, version;
};

/// Records of another host: argument: the first worker; answer: records, and as result who is next, 0: nobody
inline constexpr std::uint64_t give_records = call_number("net.give_records");
inline constexpr std::size_t most_records = inline_bytes / sizeof(record);
/// To the own host's companion. argument: records in the payload; argument2: bindings behind them. Answered
/// when the switch knows them.
inline constexpr std::uint64_t take_over = call_number("net.take_over");
inline constexpr std::size_t most_bindings = 64;
inline constexpr std::size_t most_taken = (inline_bytes - most_bindings * sizeof(binding)) / sizeof(record);

}  // namespace godwit::transport::far
