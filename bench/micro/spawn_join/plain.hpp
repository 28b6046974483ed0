// The functions that are called, plainly or by a thread. In a file of their own, so that no caller sees
// inside.
#pragma once

#include <cstdint>
#include <string>

namespace spawn_join {

struct block64 {
  std::uint64_t words[8];
};

void nothing(std::uint64_t i);
std::uint64_t word(std::uint64_t i);
block64 block(std::uint64_t i);
std::string short_text(std::uint64_t i);  ///< fits into the string object
std::string long_text(std::uint64_t i);   ///< lies on the heap

}  // namespace spawn_join
