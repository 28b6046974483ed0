// What a person knows a site (record.hpp) by. Called by leaks.cpp, mains_blocks.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace godwit::heap {

/// Blocks, counted.
struct sum {
  std::uint64_t blocks = 0, bytes = 0;
  void add(const sum& s) noexcept {
    blocks += s.blocks;
    bytes += s.bytes;
  }
  /// "3 blocks (96 bytes)"
  std::string text() const {
    return std::to_string(blocks) + (blocks == 1 ? " block (" : " blocks (") + std::to_string(bytes) +
           " bytes)";
  }
};

struct site_line {
  std::string place;    ///< "main.cpp:40"
  std::string line;     ///< "tree (main.cpp:40)"
  std::string callers;  ///< ", called at main.cpp:42, main.cpp:61"; empty: nobody known
};

/// Of who has allocated there, by its callers (site::callers). Takes up to some seconds.
site_line line_of(std::span<const std::uintptr_t> callers);

}  // namespace godwit::heap
