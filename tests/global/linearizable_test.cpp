// Words of movable memory while they move: what threads on all hosts saw of one word must be possible one
// after the other (docs/memory-model.md, docs/moving.md). The checker first: it must refuse what cannot be.
#include "support/linearizable.hpp"

#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gw = godwit;

namespace {

using support::history_search;
using support::word_call;
using support::word_op;

bool possible(std::vector<std::vector<word_call>> calls) {
  return history_search(std::move(calls), 0).possible();
}

TEST(Checker, OrdersThatTimesAllowAreFound) {
  // The reader began before the writer ended: both values can be.
  for (const std::uint64_t seen : {0u, 7u})
    EXPECT_TRUE(possible({{{10, 20, word_op::put, 0, 7, 0, 0}}, {{15, 30, word_op::get, 1, 0, 0, seen}}}));
  // Two additions that overlap, and what each found.
  EXPECT_TRUE(possible({{{10, 30, word_op::add, 0, 5, 0, 3}}, {{10, 30, word_op::add, 1, 3, 0, 0}}}));
  EXPECT_TRUE(possible({{{10, 12, word_op::exchange, 0, 4, 0, 0}, {13, 20, word_op::get, 0, 0, 0, 9}},
                        {{11, 19, word_op::compare_exchange, 1, 9, 4, 4}}}));
}

TEST(Checker, WhatCannotBeIsRefused) {
  // A value from before a write that had ended.
  EXPECT_FALSE(possible({{{10, 20, word_op::put, 0, 7, 0, 0}}, {{21, 30, word_op::get, 1, 0, 0, 0}}}));
  // A lost addition: both found 0.
  EXPECT_FALSE(possible({{{10, 30, word_op::add, 0, 5, 0, 0}}, {{10, 30, word_op::add, 1, 3, 0, 0}}}));
  // An addition made twice.
  EXPECT_FALSE(possible({{{10, 20, word_op::add, 0, 5, 0, 0}, {21, 30, word_op::get, 0, 0, 0, 10}}}));
  // New, then old.
  EXPECT_FALSE(possible({{{10, 50, word_op::put, 0, 7, 0, 0}},
                         {{11, 12, word_op::get, 1, 0, 0, 7}, {13, 14, word_op::get, 1, 0, 0, 0}}}));
}

constexpr std::uint64_t page = 4096, words_of_page = page / 8;
constexpr std::uint32_t clients = 4, movers = 3, most_calls = 60;

/// With nothing of what stands around it still to happen: a plain store may become visible to others later
/// than its thread goes on (memory-model.md: inside a host these are C++'s words).
std::uint64_t now() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto t = std::chrono::steady_clock::now().time_since_epoch().count();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return static_cast<std::uint64_t>(t);
}
std::uint32_t mix(std::uint64_t i) { return static_cast<std::uint32_t>(i * 0x9e3779b97f4a7c15u >> 40); }

word_call call_word(gw::global_ptr<std::uint64_t> p, std::uint32_t client, std::uint64_t i,
                    std::uint64_t seed) {
  const std::uint32_t die = mix(seed + client * 1000 + i);
  word_call c{0, 0, static_cast<word_op>(die % 5), client, (client + 1) * 1'000'000 + i, 0, 0};
  const auto order = die % 2 == 0 ? std::memory_order_seq_cst : std::memory_order_relaxed;
  if (c.op == word_op::compare_exchange) c.expected = gw::atomic_load(p, order);
  c.began = now();
  switch (c.op) {
    case word_op::get:
      c.result = die % 3 == 0 ? gw::atomic_load(p, order) : gw::get(p);
      break;
    case word_op::put:
      if (die % 3 == 0)
        gw::atomic_store(p, c.operand, order);
      else
        gw::put(p, c.operand);
      break;
    case word_op::add:
      c.result = gw::atomic_fetch_add(p, c.operand, order);
      break;
    case word_op::exchange:
      c.result = gw::atomic_exchange(p, c.operand, order);
      break;
    case word_op::compare_exchange: {
      std::uint64_t expected = c.expected;
      const bool changed = gw::atomic_compare_exchange(p, expected, c.operand, order);
      c.result = changed ? c.expected : expected;
      break;
    }
  }
  c.ended = now();
  return c;
}

/// One of several at a time: a part or both, to any worker or to the own; some moves are not waited for at
/// once.
void move_parts(gw::global_ptr<std::uint64_t> p, std::uint32_t moves, std::uint64_t seed) {
  const std::uint32_t n = gw::worker_count();
  std::array<gw::future<gw::move_result>, 2> under_way;
  for (std::uint32_t i = 0; i < moves; ++i) {
    const std::uint32_t die = mix(seed + i);
    const std::uint32_t to = die % 3 == 0 ? gw::worker_id() : die / 8 % n;
    auto& f = under_way[i % 2];
    if (f.valid()) f.join();
    f = die % 5 == 0 ? gw::move(p, 2 * words_of_page, to) : gw::move(p + die % 2 * words_of_page, to);
  }
  for (auto& f : under_way)
    if (f.valid()) f.join();
}

/// Histories of two words of two parts, while these move. Empty: they can be.
std::string words_under_moves(std::uint32_t calls, std::uint32_t moves, std::uint64_t seed) {
  const auto p = gw::allocate<std::uint64_t>(2 * words_of_page, gw::distribution::cyclic(page).movable(page));
  const auto notes = gw::allocate<word_call>(2ul * clients * calls, gw::distribution::at(0));
  std::array<gw::future<void>, clients + movers> all;
  for (std::uint32_t c = 0; c < clients; ++c)
    all[c] = gw::spawn([=] {
      for (std::uint32_t i = 0; i < calls; ++i) {
        if (i % 4 == 0) gw::yield();  // moves to this worker are made now
        for (std::uint32_t w = 0; w < 2; ++w)
          gw::put(notes + ((w * clients + c) * std::uint64_t{calls} + i),
                  call_word(p + w * words_of_page, c, i, seed + 77 * w));
      }
    });
  for (std::uint32_t m = 0; m < movers; ++m)
    all[clients + m] = gw::spawn([=] { move_parts(p, moves / movers, seed + 1000 * m); });
  for (auto& f : all) f.join();
  std::string wrong;
  for (std::uint32_t w = 0; w < 2 && wrong.empty(); ++w) {
    std::vector<std::vector<word_call>> history(clients, std::vector<word_call>(calls));
    for (std::uint32_t c = 0; c < clients; ++c)
      gw::get(notes + (w * clients + c) * std::uint64_t{calls}, history[c].data(), calls);
    const history_search search(std::move(history), 0);
    if (!search.possible())
      wrong = "word " + std::to_string(w) + ": no order of more than " + std::to_string(search.longest()) +
              " of its calls";
  }
  gw::deallocate(notes, 2ul * clients * calls);
  gw::deallocate(p, 2 * words_of_page);
  return wrong;
}

TEST(Linearizable, WordsThatMove) {
  support::for_each_schedule([](const gw::options& o) {
    const std::uint64_t seed = o.seed;
    EXPECT_EQ(gw::run<std::string>(
                  [seed] {
                    std::string wrong = words_under_moves(most_calls, 40, seed);
                    return wrong;
                  },
                  o),
              "");
  });
}

}  // namespace
