// Counters are the same after they have travelled, and what is no counters is refused.
// test: once
#include "runtime/packed_stats.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <stdexcept>

namespace {

using godwit::worker_stats;
using godwit::runtime::pack;
using godwit::runtime::unpack;

void expect_same(const std::vector<worker_stats>& before, std::size_t more_bytes) {
  std::vector<std::byte> packed = pack(before);
  packed.resize(packed.size() + more_bytes);
  std::vector<worker_stats> after(before.size());
  std::memset(static_cast<void*>(after.data()), 1, after.size() * sizeof(worker_stats));
  unpack(packed, after);
  EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size() * sizeof(worker_stats)), 0);
}

TEST(packed_stats, come_back_as_they_were) {
  std::mt19937_64 random(3);
  expect_same({}, 0);
  expect_same(std::vector<worker_stats>(3), 7);
  for (int i = 0; i < 2000; ++i) {
    std::vector<worker_stats> some(1 + random() % 4);
    for (worker_stats& s : some) {
      auto* const words = reinterpret_cast<unsigned char*>(&s);
      const std::uint64_t filled = random() % 5;
      for (std::size_t at = 0; at < sizeof s; at += 8) {
        if (random() % 4 >= filled) continue;
        const std::uint64_t word = random() >> random() % 64;
        std::memcpy(words + at, &word, sizeof word);
      }
    }
    expect_same(some, random() % 3);
  }
}

TEST(packed_stats, are_few_bytes_where_most_counters_are_zero) {
  worker_stats s;
  EXPECT_LE(pack({&s, 1}).size(), 2u);
  s.steals = 100;
  s.life_ns = 35'000'000;
  s.heap_high_bytes = 8000;
  EXPECT_LE(pack({&s, 1}).size(), 20u);
}

TEST(packed_stats, what_is_none_is_refused) {
  worker_stats s;
  s.steals = 100;
  s.stayed_at[3].count = 1;
  const std::vector<std::byte> packed = pack({&s, 1});
  std::vector<worker_stats> to(1);
  for (std::size_t bytes = 0; bytes < packed.size(); ++bytes)
    EXPECT_THROW(unpack(std::span(packed).first(bytes), to), std::runtime_error) << bytes;
  EXPECT_THROW(unpack(std::vector<std::byte>(20, std::byte{0xff}), to), std::runtime_error);
  EXPECT_THROW(unpack({{std::byte{0xff}, std::byte{0x7f}}}, to), std::runtime_error)
      << "more zeros than words";
}

}  // namespace
