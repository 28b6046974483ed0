// The address space of global memory: what lies where. Pure arithmetic, no memory is touched.
//
//   0 | nothing: a null pointer leads here | service: words and tables of each host, its own | local: one
//   area per home | shared: distributed allocations | end
//
// Every byte has the same number in all processes, and the same place in every host's window. Addresses of
// the local part name their home: (address - local_low) >> local_bits. Those of the shared part are looked up
// in the directory (directory.hpp), by granule. Numbers of homes up to 2^24, of bytes up to 2^63: how much of
// that can be mapped is the window's limit. Test: tests/gas/space_test.cpp.
#pragma once

#include <godwit/detail/global_path.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace godwit::gas {

using detail::global_address;

struct space {
  static constexpr std::uint32_t most_homes = 1u << 24;
  /// shared allocations take whole granules of 1 MiB of addresses
  static constexpr unsigned granule_bits = 20;
  static constexpr std::uint64_t granule_bytes = std::uint64_t{1} << granule_bits;
  /// bytes of the local part that one bit of the shadow stands for
  static constexpr std::uint64_t shadow_grain = 16;

  /// of a home: with less it is refused. Whether that is enough for what a program allocates is its matter.
  static constexpr std::uint64_t least_local_bytes = 2048;

  /// from 0: no access, so that a null pointer faults
  static constexpr std::uint64_t null_bytes = granule_bytes;
  /// service: host_words, then a home_words per home
  static constexpr std::uint64_t words_low = null_bytes;

  std::uint32_t homes = 0;
  std::uint64_t bytes = 0;          ///< end of the space
  std::uint64_t units_low = 0;      ///< service: table of cached units
  std::uint64_t directory_low = 0;  ///< service: one descriptor per granule
  std::uint64_t shadow_low = 0;     ///< service: which local memory is allocated (check_global)
  std::uint64_t local_low = 0;
  unsigned local_bits = 0;  ///< log2 of the bytes of each home
  std::uint64_t shared_low = 0;

  /// Granules that so many bytes take.
  static constexpr std::uint64_t granules_for(std::uint64_t b) noexcept {
    return (b + granule_bytes - 1) >> granule_bits;
  }
  std::uint64_t granules() const noexcept { return (bytes - shared_low) >> granule_bits; }
  std::uint64_t granule_of(global_address a) const noexcept { return (a - shared_low) >> granule_bits; }
  global_address granule_begin(std::uint64_t granule) const noexcept {
    return shared_low + (granule << granule_bits);
  }
  bool is_local(global_address a) const noexcept {
    return a - local_low < std::uint64_t{homes} << local_bits;
  }
  bool is_shared(global_address a) const noexcept { return a >= shared_low && a < bytes; }
  std::uint32_t local_home(global_address a) const noexcept {
    return static_cast<std::uint32_t>((a - local_low) >> local_bits);
  }
  global_address local_begin(std::uint32_t home) const noexcept {
    return local_low + (std::uint64_t{home} << local_bits);
  }
  std::uint64_t local_bytes() const noexcept { return std::uint64_t{1} << local_bits; }
};

/// Divide @p bytes: service tables as large as needed, then half of the rest for local memory (at most 1 TiB
/// per home), the rest for shared allocations. @p units_bytes: of the cache's table. homes == 0 in the
/// result: it does not fit.
inline space plan_space(std::uint64_t bytes, std::uint32_t homes, std::uint64_t words_bytes,
                        std::uint64_t units_bytes, std::uint64_t descriptor_bytes) noexcept {
  auto up = [](std::uint64_t v) {
    return (v + space::granule_bytes - 1) >> space::granule_bits << space::granule_bits;
  };
  space s;
  s.units_low = s.words_low + up(words_bytes);
  s.directory_low = s.units_low + up(units_bytes);
  s.shadow_low = s.directory_low + up((bytes >> space::granule_bits) * descriptor_bytes);
  s.local_low = s.shadow_low + up(bytes / 2 / (space::shadow_grain * 8));
  if (homes == 0 || homes > space::most_homes || s.local_low >= bytes) return s;
  const std::uint64_t per_home = std::min((bytes - s.local_low) / 2 / homes, std::uint64_t{1} << 40);
  if (per_home < space::least_local_bytes) return s;
  s.local_bits = static_cast<unsigned>(std::bit_width(per_home)) - 1;
  s.shared_low = up(s.local_low + (std::uint64_t{homes} << s.local_bits));
  s.bytes = bytes >> space::granule_bits << space::granule_bits;
  s.homes = homes;
  return s;
}

}  // namespace godwit::gas
