// test: tsan
// Tables of translations by themselves: what is found, what is forgotten for others, by which rule, and that
// workers may share one. Document: docs/moving.md.
#include "gas/translations.hpp"

#include "context/context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

using godwit::choice::translations_lock;
using godwit::choice::translations_replace;
using godwit::gas::place_words;
using table = godwit::gas::translation_table;

constexpr std::uint64_t age = 7;

/// Addresses of words, which nobody looks at.
const place_words* part(std::uint64_t i) { return reinterpret_cast<const place_words*>(1 << 20) + i; }

table own(std::uint64_t entries, translations_replace r) {
  return table({entries, r, translations_lock::none, nullptr});
}
bool has(table& t, std::uint64_t i, std::uint64_t at = age) {
  std::uint64_t owner = 0;
  return t.find(part(i), at, owner);
}

TEST(Translations, WhatIsEnteredIsFound) {
  table t = own(4, translations_replace::lru);
  std::uint64_t owner = 0;
  EXPECT_FALSE(t.find(part(1), age, owner));
  EXPECT_FALSE(t.enter(part(1), age, 11));
  EXPECT_FALSE(t.enter(part(2), age, 12));
  ASSERT_TRUE(t.find(part(1), age, owner));
  EXPECT_EQ(owner, 11u);
  EXPECT_FALSE(t.enter(part(1), age, 13)) << "it was known: nothing is forgotten for it";
  ASSERT_TRUE(t.find(part(1), age, owner));
  EXPECT_EQ(owner, 13u);
  ASSERT_TRUE(t.find(part(2), age, owner));
  EXPECT_EQ(owner, 12u);
}

TEST(Translations, OfMemoryThatWasGivenOutAgainNothingIsKnown) {
  table t = own(1, translations_replace::lru);
  EXPECT_FALSE(t.enter(part(1), age, 11));
  EXPECT_FALSE(has(t, 1, age + 1));
  EXPECT_FALSE(t.enter(part(2), age + 1, 12)) << "what is forgotten was worth nothing";
  EXPECT_TRUE(has(t, 2, age + 1));
}

TEST(Translations, TheLeastRecentlyUsedIsForgotten) {
  table t = own(3, translations_replace::lru);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_FALSE(t.enter(part(i), age, i));
  EXPECT_TRUE(has(t, 0));
  EXPECT_TRUE(t.enter(part(3), age, 3));
  EXPECT_TRUE(has(t, 0));
  EXPECT_FALSE(has(t, 1));
  EXPECT_TRUE(has(t, 2));
  EXPECT_TRUE(t.enter(part(4), age, 4));
  EXPECT_FALSE(has(t, 3));
}

TEST(Translations, AnyIsForgottenAtRandom) {
  table t = own(4, translations_replace::random);
  bool newest_went = false, old_stayed = false;
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(t.enter(part(i), age, i), i >= 4);
    std::uint64_t there = 0;
    for (std::uint64_t k = 0; k <= i; ++k) {
      if (!has(t, k)) continue;
      ++there;
      old_stayed = old_stayed || i - k > 8;
    }
    EXPECT_EQ(there, std::min<std::uint64_t>(i + 1, 4));
    EXPECT_TRUE(has(t, i));
    newest_went = newest_went || (i != 0 && !has(t, i - 1));
  }
  EXPECT_TRUE(newest_went);
  EXPECT_TRUE(old_stayed);
}

/// Of N parts in use, all alike, a table of C has C / N, whichever is forgotten; and it has never more.
TEST(Translations, HitRatesAreTheShareThatThereIsRoomFor) {
  constexpr std::uint64_t parts = 4096, looks = 40'000;
  for (const auto replace : {translations_replace::lru, translations_replace::random})
    for (const std::uint64_t entries : {256u, 1000u, 2048u}) {
      table t = own(entries, replace);
      std::uint64_t hits = 0, misses = 0, evictions = 0, x = 1;
      for (std::uint64_t i = 0; i < parts + looks; ++i) {
        x = x * 6364136223846793005 + 1442695040888963407;
        const std::uint64_t p = i < parts ? i : (x >> 40) % parts;
        if (has(t, p)) {
          ++hits;
          continue;
        }
        ++misses;
        evictions += t.enter(part(p), age, p);
      }
      EXPECT_EQ(evictions, misses - entries);
      const double rate = static_cast<double>(hits) / looks;
      EXPECT_NEAR(rate, static_cast<double>(entries) / parts, 0.02) << entries;
    }
}

TEST(Translations, AsManyPartsAsEntriesAllFit) {
  table t = own(4096, translations_replace::lru);
  for (std::uint64_t i = 0; i < 4096; ++i) EXPECT_FALSE(t.enter(part(i), age, i));
  for (std::uint64_t i = 0; i < 4096; ++i) EXPECT_TRUE(has(t, i));
}

/// Several threads use one table: each finds what it entered itself or others did, whole.
TEST(Translations, SharedUnderALock) {
  for (const auto lock : {translations_lock::single_lock, translations_lock::concurrent}) {
    constexpr std::uint64_t entries = 32, parts = 64;
    const std::uint64_t bytes = table::bytes_of(entries);
    const std::unique_ptr<void, decltype(&std::free)> room(std::aligned_alloc(64, bytes), std::free);
    std::memset(room.get(), 0, bytes);
    std::atomic<std::uint64_t> wrong{0}, found{0};
    std::vector<std::thread> threads;
    for (std::uint64_t n = 0; n < 3; ++n)
      threads.emplace_back([&, n] {
        godwit::detail::hot_words own{};  // of a worker each: it is named in locks
        own.self = &own;
        own.worker = static_cast<std::uint32_t>(n);
        godwit::context::use_hot_words(&own);
        table t({entries, translations_replace::lru, lock, static_cast<std::byte*>(room.get())});
        for (std::uint64_t i = 0; i < 3'000; ++i) {
          const std::uint64_t p = (i * (n + 3)) % parts;
          std::uint64_t owner = 0;
          if (t.find(part(p), age, owner)) {
            found.fetch_add(1, std::memory_order_relaxed);
            if (owner % parts != p) wrong.fetch_add(1, std::memory_order_relaxed);
          } else {
            t.enter(part(p), age, p + parts * n);
          }
        }
        godwit::context::use_hot_words(nullptr);
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong.load(), 0u);
    EXPECT_NE(found.load(), 0u);
  }
}

}  // namespace
