// Bytes of other hosts, fetched or written in few messages: small ones of one host travel together.
//
// Called by access.cpp (gather, scatter) and cache_transfer.cpp. Tests: tests/global under MPI.
#pragma once

#include "gas/reach.hpp"

#include <cstdint>
#include <vector>

namespace godwit::gas {

/// A range that one other host owns, and the memory here that it is copied to or from.
struct part {
  std::uint32_t host;
  global_address at;
  std::uint64_t bytes;
  std::byte* here;
};
std::uint64_t bytes_of(const std::vector<part>& parts) noexcept;

/// All of them are here when it returns. Sorts them, and joins those that touch. How many requests it took.
std::uint64_t fetch(const reach& net, std::vector<part>& parts) noexcept;
/// All of them are there when it returns. The same else.
std::uint64_t write(const reach& net, std::vector<part>& parts) noexcept;

}  // namespace godwit::gas
