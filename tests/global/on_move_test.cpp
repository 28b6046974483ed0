// What is called when a part has come to another worker: include/godwit/on_move.hpp. Runs under MPI as well.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace gw = godwit;

namespace {

constexpr std::uint64_t page = 4096, words_of_page = page / 8;

/// Empty: all right.
template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>([f] { return std::string(f()); }, o);
}

gw::distribution dealt_out() { return gw::distribution::cyclic(page).movable(page); }

/// Word 0 of a part: how often it has come; word 1: the last worker but one; word 2: the last worker.
void count_it(const gw::moved_part& part) {
  auto* words = reinterpret_cast<std::uint64_t*>(part.bytes.data());
  std::atomic_ref(words[0]).fetch_add(1, std::memory_order_relaxed);
  std::atomic_ref(words[1]).store(part.from, std::memory_order_relaxed);
  std::atomic_ref(words[2]).store(part.to, std::memory_order_relaxed);
}

TEST(OnMove, IsCalledOnceForEveryMoveOfAPartOfTheRange) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       constexpr std::uint64_t pages = 6;
                       const auto p = gw::allocate<std::uint64_t>(pages * words_of_page, dealt_out());
                       for (std::uint64_t i = 0; i < pages * words_of_page; ++i) gw::put(p + i, 0);
                       const auto offset = p.address();
                       gw::on_move(
                           p + words_of_page, 4 * words_of_page, [offset](const gw::moved_part& part) {
                             count_it(part);
                             if (part.bytes.size() != page || (part.begin.address() - offset) % page != 0)
                               part.bytes[0] = std::byte{99};
                           });
                       for (std::uint64_t i = 0; i < pages; ++i) {
                         const auto at = p + i * words_of_page;
                         std::uint64_t moves = 0;
                         for (std::uint32_t k = 1; k <= 2 * n; ++k) {
                           const std::uint32_t to = static_cast<std::uint32_t>(i + k) % n;
                           moves += gw::move(at, to).join() == gw::move_result::moved;
                           const bool told = i >= 1 && i <= 4;
                           if (gw::get(at) != (told ? moves : 0)) return "count of page " + std::to_string(i);
                           if (told && moves != 0 && gw::get(at + 2) != to) return std::string("to");
                           if (told && moves > 1 && gw::get(at + 1) == to) return std::string("from");
                         }
                         if (n > 1 && moves == 0) return std::string("nothing moved");
                       }
                       gw::on_move(p, 1, nullptr);
                       gw::put(p + words_of_page, 7);
                       for (std::uint32_t to = 0; to < n; ++to) gw::move(p + words_of_page, to).join();
                       if (gw::get(p + words_of_page) != 7) return std::string("none any more");
                       gw::deallocate(p, pages * words_of_page);
                       // The next one here has none.
                       const auto q = gw::allocate<std::uint64_t>(words_of_page, dealt_out());
                       gw::put(q, 3);
                       for (std::uint32_t to = 0; to < n; ++to) gw::move(q, to).join();
                       if (gw::get(q) != 3) return std::string("of what was freed");
                       gw::deallocate(q, words_of_page);
                       return std::string();
                     }),
            "");
}

/// Moves by several threads, beside others that add to other words of the same parts.
std::string counted_storm(std::uint64_t moves) {
  constexpr std::uint64_t threads = 3, pages = 4, each = 300;
  const std::uint32_t n = gw::worker_count();
  const auto p = gw::allocate<std::uint64_t>(pages * words_of_page, dealt_out());
  for (std::uint64_t i = 0; i < pages * words_of_page; ++i) gw::put(p + i, 0);
  gw::on_move(p, pages * words_of_page, count_it);
  std::array<gw::future<std::uint64_t>, 2 * threads> all;
  for (std::uint64_t t = 0; t < threads; ++t) {
    all[2 * t] = gw::spawn([=] {
      for (std::uint64_t i = 0; i < each; ++i)
        gw::atomic_fetch_add(p + (i + t) % pages * words_of_page + 5, std::uint64_t{1});
      return std::uint64_t{0};
    });
    all[2 * t + 1] = gw::spawn([=] {
      std::uint64_t moved = 0;
      for (std::uint64_t i = 0; i < moves; ++i)
        moved +=
            gw::move(p + (i * 3 + t) % pages * words_of_page, static_cast<std::uint32_t>(i + t) % n).join() ==
            gw::move_result::moved;
      return moved;
    });
  }
  std::uint64_t moved = 0, told = 0, sum = 0;
  for (auto& f : all) moved += f.join();
  for (std::uint64_t i = 0; i < pages; ++i) {
    told += gw::get(p + i * words_of_page);
    sum += gw::get(p + i * words_of_page + 5);
  }
  gw::deallocate(p, pages * words_of_page);
  if (sum != threads * each) return "additions: " + std::to_string(sum);
  return told == moved ? "" : std::to_string(told) + " told of " + std::to_string(moved) + " moves";
}

TEST(OnMove, EveryMoveOfAStormTells) {
  support::for_each_schedule(
      [](const gw::options& o) { EXPECT_EQ(in_a_run(o, [] { return counted_storm(20); }), ""); });
}

TEST(OnMove, WhatCannotBeAskedForIsRefused) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const auto fixed = gw::allocate<int>(100, gw::distribution::cyclic(16));
                       try {
                         gw::on_move(fixed, 100, [](const gw::moved_part&) {});
                         return "not movable";
                       } catch (const std::invalid_argument&) {
                       }
                       gw::deallocate(fixed, 100);
                       return "";
                     }),
            "");
}

}  // namespace
