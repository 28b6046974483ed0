// See plain.hpp.

#include "plain.hpp"

namespace spawn_join {

void nothing(std::uint64_t i) { asm volatile("" ::"r"(i)); }

std::uint64_t word(std::uint64_t i) { return i + 1; }

block64 block(std::uint64_t i) { return {{i, i, i, i, i, i, i, i}}; }

std::string short_text(std::uint64_t i) { return std::string(8, static_cast<char>('a' + i % 16)); }

std::string long_text(std::uint64_t i) { return std::string(40, static_cast<char>('a' + i % 16)); }

}  // namespace spawn_join
