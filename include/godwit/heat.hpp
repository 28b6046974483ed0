// What is known of the parts of movable memory (distribution::movable): who has each, and how it is used.
//
//   for (const gw::part_info& part : gw::parts_of(a, n)) std::printf("%u\n", part.owner);
//
// With several hosts every access to movable memory is counted where the part is: a get, a put, an atomic, a
// checkout, a transfer to or from another host's cache are one each. What a cache has needs no access. Counts
// begin at zero when a part comes to a host, and some may be lost when several workers count at once. On one
// host all are zero: there an access to movable memory is a plain load or store. docs/moving.md. Source:
// Active global address space, section 6.2. Tests: tests/global/rebalance_test.cpp.
#pragma once

#include <godwit/global_ptr.hpp>
#include <godwit/global_span.hpp>

#include <cstdint>
#include <vector>

namespace godwit {

/// Accesses to a part since it came to its host; rebalance halves them each time.
struct part_heat {
  std::uint64_t near = 0;  ///< by the owner's host
  std::uint64_t far = 0;   ///< by others
  /// First worker of the host among the others that made more than half of `far`, if one did (else of any);
  /// ~0: there was none.
  std::uint32_t other = ~0u;
  std::uint64_t by_other = 0;  ///< at least so many of `far` are its
  std::uint64_t all() const noexcept { return near + far; }
};

/// A part of movable memory: what moves together.
struct part_info {
  global_ptr<std::byte> begin;
  std::uint64_t bytes;
  std::uint32_t home;
  std::uint32_t owner;  ///< worker that has it
  part_heat heat;
};

namespace detail {
/// @p halve: the counts are halved then.
std::vector<part_info> global_parts(global_address at, std::uint64_t bytes, bool halve);
}  // namespace detail

/// All parts that hold objects [p, p + n), in the order of their addresses. Parts that are moving are waited
/// for. The calling thread stays on its worker. Throws std::invalid_argument if the memory is not movable, or
/// the allocation ends before the range. Cost: one message per 124 parts that another host has.
template <class T>
std::vector<part_info> parts_of(global_ptr<T> p, std::uint64_t n) {
  return detail::global_parts(p.address(), n * sizeof(T), false);
}
template <class T>
std::vector<part_info> parts_of(global_span<T> s) {
  return parts_of(s.data(), s.size());
}
/// Of the part that holds *p. Throws as parts_of. Cost: local, or one message.
template <class T>
part_heat heat_of(global_ptr<T> p) {
  return parts_of(p, 1).front().heat;
}

}  // namespace godwit
