// Tests of the hash of frames and of what counts as a reference to an ancestor's frame.
// test: timeout=60
#include "sched/frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

using godwit::detail::closure_at;
using godwit::detail::spawn_slot;
using godwit::sched::frame_hash;
using godwit::sched::names;
using godwit::sched::refers_to;

std::vector<std::uint64_t> some_words(std::size_t n, std::uint64_t seed) {
  std::vector<std::uint64_t> v(n);
  for (std::uint64_t& w : v) w = seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return v;
}
std::uint64_t hash(const std::vector<std::uint64_t>& v) {
  return frame_hash(v.data(), v.size() * sizeof(std::uint64_t));
}

TEST(frame_hash, any_change_of_one_word_changes_it) {
  for (const std::size_t n : {1u, 5u, 8u, 9u, 83u, 2048u})
    for (const bool zeros : {false, true}) {
      std::vector<std::uint64_t> v = zeros ? std::vector<std::uint64_t>(n) : some_words(n, n);
      const std::uint64_t before = hash(v);
      for (std::size_t i = 0; i < n; ++i)
        for (const std::uint64_t change :
             {std::uint64_t{1}, std::uint64_t{1} << 31, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
          v[i] ^= change;
          EXPECT_NE(hash(v), before) << n << " words, word " << i << " ^ " << change;
          v[i] ^= change;
        }
      EXPECT_EQ(hash(v), before);
    }
}

TEST(frame_hash, is_that_of_the_copy_and_the_same_on_every_cpu) {
  for (std::size_t n = 0; n < 70; ++n) {
    const auto v = some_words(n, n);
    std::vector<std::uint64_t> copy(n + 2, 77);
    EXPECT_EQ(godwit::sched::copy_frames(copy.data() + 1, v.data(), n * sizeof v[0]), hash(v)) << n;
    EXPECT_TRUE(std::equal(v.begin(), v.end(), copy.begin() + 1)) << n;
    EXPECT_TRUE(copy.front() == 77 && copy.back() == 77) << n;
    EXPECT_EQ(godwit::sched::frame_hash_in_short_vectors(v.data(), n * sizeof v[0]), hash(v)) << n;
  }
}

TEST(frame_hash, the_place_of_a_word_counts) {
  std::vector<std::uint64_t> v = some_words(40, 7);
  const std::uint64_t before = hash(v);
  for (std::size_t i = 0; i < v.size(); ++i)
    for (std::size_t j = i + 1; j < v.size(); ++j) {
      std::swap(v[i], v[j]);
      EXPECT_NE(hash(v), before) << i << " and " << j;
      std::swap(v[i], v[j]);
    }
}

// What one counter up and another one down would do.
TEST(frame_hash, two_small_changes_do_not_cancel) {
  std::vector<std::uint64_t> v(80);
  const std::uint64_t before = hash(v);
  for (std::size_t i = 0; i < v.size(); ++i)
    for (std::size_t j = 0; j < v.size(); ++j)
      for (const std::int64_t by : {1, 2, 4, 8, 64, 512}) {
        if (i == j) continue;
        v[i] += static_cast<std::uint64_t>(by);
        for (const std::int64_t back : {1, 2, 4, 8, 64, 512}) {
          v[j] -= static_cast<std::uint64_t>(back);
          EXPECT_NE(hash(v), before) << i << " + " << by << ", " << j << " - " << back;
          v[j] += static_cast<std::uint64_t>(back);
        }
        v[i] -= static_cast<std::uint64_t>(by);
      }
}

TEST(names, any_word_that_lies_in_a_range) {
  std::vector<std::uintptr_t> stack(40);
  for (std::size_t i = 0; i < stack.size(); ++i) stack[i] = i * 0x1'0000'0000;
  const godwit::stack::range there{0x7000'0000'0000, 0x7000'1000'0000};
  const auto low = reinterpret_cast<std::uintptr_t>(stack.data()), high = low + 8 * stack.size();
  EXPECT_FALSE(names(low, high, there));
  for (std::size_t i = 0; i < stack.size(); ++i)
    for (const std::uintptr_t word : {there.low, there.high - 1, there.low - 1, there.high}) {
      const std::uintptr_t before = std::exchange(stack[i], word);
      EXPECT_EQ(names(low, high, there), there.holds(word)) << i;
      EXPECT_FALSE(names(low, low + 8 * i, there));
      EXPECT_FALSE(names(low + 8 * i + 8, high, there));
      stack[i] = before;
    }
  stack[3] = 0;
  EXPECT_FALSE(names(low, high, {})) << "no heap: nothing is in it";
}

struct refers : testing::Test {
  // A stack: what lies at and above its middle are the ancestors' frames.
  std::vector<std::uint64_t> stack = std::vector<std::uint64_t>(64);
  std::uintptr_t at(std::size_t i) const { return reinterpret_cast<std::uintptr_t>(stack.data() + i); }
  bool look(std::uintptr_t w0, std::uintptr_t w1, bool if_it_hides = false) const {
    spawn_slot parent{};
    parent.closure[0] = w0;
    parent.closure[1] = w1;
    return refers_to(parent, at(32), at(64), at(0), at(64), if_it_hides);
  }
};

TEST_F(refers, words) {
  EXPECT_FALSE(look(0, 0));
  EXPECT_FALSE(look(17, at(31))) << "below: not an ancestor's";
  EXPECT_FALSE(look(at(64), 0)) << "above: main's stack, for example";
  EXPECT_TRUE(look(at(32), 0));
  EXPECT_TRUE(look(17, at(63) + 7));
  EXPECT_FALSE(look(std::bit_cast<std::uintptr_t>(1.5), 0)) << "numbers";
  EXPECT_TRUE(look(std::bit_cast<std::uintptr_t>(-1.5), at(33)));
  EXPECT_FALSE(look(~std::uintptr_t{0}, 0));
}

TEST_F(refers, closures_in_memory) {
  const auto in_memory = [&](std::uintptr_t address, std::size_t words = 4) {
    return look(closure_at(reinterpret_cast<const void*>(address), words * sizeof(std::uint64_t), false), 0);
  };
  const std::uintptr_t where = at(40);
  stack[42] = at(31);
  EXPECT_FALSE(in_memory(where));
  stack[42] = at(43);
  EXPECT_FALSE(in_memory(where)) << "into the closure itself, as a short string has it";
  stack[42] = at(44);
  EXPECT_TRUE(in_memory(where));
  stack[42] = 0;
  stack[44] = at(50);
  EXPECT_FALSE(in_memory(where)) << "behind the closure";
  EXPECT_TRUE(in_memory(reinterpret_cast<std::uintptr_t>(this))) << "where it cannot be looked at";
  EXPECT_TRUE(in_memory(at(62))) << "likewise";
  EXPECT_TRUE(in_memory(where, 100000)) << "too large to be looked at";
  const std::uintptr_t hides = closure_at(reinterpret_cast<const void*>(where), 32, true);
  EXPECT_FALSE(look(hides, 0, false)) << "what it owns is not looked through";
  EXPECT_TRUE(look(hides, 0, true));
}

}  // namespace
