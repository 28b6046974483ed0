// Programs whose threads own memory: a tree in which every node fills a std::map and hands it to its parent,
// and results that are strings.
#pragma once

#include "../common/clock.hpp"
#include "../common/copies.hpp"

#include <godwit/godwit.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace heap_bench {

using table = std::map<std::uint32_t, std::string>;

inline std::uint32_t scattered(std::uint32_t v) noexcept {
  v = (v ^ (v >> 16)) * 0x7feb352du;
  v = (v ^ (v >> 15)) * 0x846ca68bu;
  return v ^ (v >> 16);
}

/// Sixteen entries of its own, and those of its children whose keys it does not have.
template <bool Spawns>
table grow(unsigned depth, std::uint32_t seed) {
  table own;
  for (std::uint32_t i = 0; i < 16; ++i) {
    const std::uint32_t key = scattered(seed * 16 + i) % 64;
    own.emplace(key, std::string(16 + key, static_cast<char>('a' + key % 26)));
  }
  if (depth == 0) return own;
  const auto join_in = [&own](table&& left, table&& right) {
    own.merge(left);
    own.merge(right);
  };
  if constexpr (Spawns) {
    auto left = godwit::spawn([=] { return grow<Spawns>(depth - 1, 2 * seed); });
    table right = grow<Spawns>(depth - 1, 2 * seed + 1);
    join_in(left.join(), std::move(right));
  } else {
    table left = grow<Spawns>(depth - 1, 2 * seed);
    table right = grow<Spawns>(depth - 1, 2 * seed + 1);
    join_in(std::move(left), std::move(right));
  }
  return own;
}

/// What has to come out, whoever computed it.
inline std::uint64_t sum_of(const table& t) {
  std::uint64_t sum = t.size();
  for (const auto& [key, text] : t) sum = sum * 31 + key + text.size();
  return sum;
}

struct grown {
  double s;
  std::uint64_t sum;
};
template <bool Spawns>
grown grow_timed(unsigned depth) {
  const std::uint64_t begin = bench::now_ns();
  const std::uint64_t sum = sum_of(grow<Spawns>(depth, 1));
  return {static_cast<double>(bench::now_ns() - begin) * 1e-9, sum};
}

/// As many serial ones at once: mean of their times.
inline double trees_at_once(unsigned depth, unsigned copies) {
  return bench::copies_at_once(copies,
                               [depth] {
                                 bench::sample s;
                                 s.seconds = grow_timed<false>(depth).s;
                                 return s;
                               })
      .seconds;
}

[[gnu::noinline]] inline std::string plain_text(std::size_t bytes) { return std::string(bytes, 'x'); }

struct called {
  double plain_ns, spawned_ns;
};
/// A call that gives back a string, and the same as a thread that nobody steals.
inline called call_and_spawn(std::size_t bytes, int times) {
  std::size_t sum = 0;
  const std::uint64_t begin = bench::now_ns();
  for (int i = 0; i < times; ++i) sum += plain_text(bytes).size();
  const std::uint64_t middle = bench::now_ns();
  for (int i = 0; i < times; ++i) sum += godwit::spawn([bytes] { return plain_text(bytes); }).join().size();
  const std::uint64_t end = bench::now_ns();
  if (sum != 2 * bytes * static_cast<std::size_t>(times)) std::abort();
  return {static_cast<double>(middle - begin) / times, static_cast<double>(end - middle) / times};
}

}  // namespace heap_bench
