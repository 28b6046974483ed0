// Tests of fork_call by its contract alone: the child's words come back, or a resumption's status; below the
// parent or on stacks of their own; what the parent holds in registers and in its frame is there again.
// test: timeout=60
#include <godwit/detail/fork_call.hpp>

#include "context/context.hpp"
#include "stack/stack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

namespace context = godwit::context;
using godwit::detail::fork_call;
using godwit::detail::hot_words;
using godwit::detail::spawn_slot;
using godwit::detail::word_pair;

constexpr std::size_t stack_bytes = 64 << 10;

std::uintptr_t log_ = 0;
alignas(64) std::byte other_stack_[stack_bytes];

class fork_calls : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    words.bottom = slots;
    if (GetParam())  // a list of free ones, whose last one is never taken
      for (int i = 0; i < 40; ++i) {
        std::byte* low = godwit::stack::map_private(stack_bytes);
        auto* top = reinterpret_cast<void**>(low + stack_bytes - 64 * (1 + i % 8));
        *top = words.free_stacks;
        words.free_stacks = top;
        mapped.push_back(low);
      }
    context::use_hot_words(&words);
    log_ = 0;
  }
  void TearDown() override {
    context::use_hot_words(nullptr);
    for (std::byte* low : mapped) godwit::stack::unmap_private(low, stack_bytes);
  }
  hot_words words{};
  spawn_slot slots[64] = {};
  std::vector<std::byte*> mapped;
};

/// Does nothing that a compiler knows of: the functions that fork need a real call (fork_call.hpp).
[[gnu::noinline]] std::uintptr_t opaque(std::uintptr_t v) {
  asm volatile("" : "+r"(v));
  return v;
}

struct step {
  using child = word_pair(std::uintptr_t, std::uintptr_t, spawn_slot*, void*) noexcept;
  static word_pair adds(std::uintptr_t a, std::uintptr_t b, spawn_slot* slot, void* out) noexcept;
  static word_pair fib(std::uintptr_t n, std::uintptr_t, spawn_slot* slot, void*) noexcept;
  static word_pair leaves(std::uintptr_t a, std::uintptr_t b, spawn_slot* slot, void* out) noexcept;
};

word_pair step::adds(std::uintptr_t a, std::uintptr_t b, spawn_slot* slot, void* out) noexcept {
  *static_cast<std::uintptr_t*>(out) = a * b;
  // Where the parent may be copied from: below it there is nothing of it.
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (godwit::detail::hot().free_stacks == nullptr && slot->sp < here) return {1, 0};
  return {0, a + b};
}

TEST_P(fork_calls, the_childs_words_come_back) {
  for (std::uintptr_t i = 0; i < 1000; ++i) {
    std::uintptr_t product = 0;
    const word_pair got = fork_call<&step::adds>(i, i + 1, slots, &product);
    ASSERT_EQ(got.status, 0u);
    ASSERT_EQ(got.value, 2 * i + 1);
    ASSERT_EQ(product, i * (i + 1));
  }
}

[[gnu::noinline]] std::uintptr_t fib(std::uintptr_t n, spawn_slot* slot) {
  if (n < 2) return opaque(n);
  const word_pair first = fork_call<&step::fib>(n - 1, 0, slot, nullptr);
  return opaque(first.value) + fib(n - 2, slot);
}
word_pair step::fib(std::uintptr_t n, std::uintptr_t, spawn_slot* slot, void*) noexcept {
  return {0, ::fib(n, slot + 1)};
}

TEST_P(fork_calls, nest) {
  const void* before = words.free_stacks;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fib(15, slots), 610u);
  EXPECT_EQ(words.free_stacks, before) << "stacks are given back, in order";
}

// The child leaves for good; from another stack its parent is resumed, as if by a thief in the same memory.
word_pair step::leaves(std::uintptr_t a, std::uintptr_t b, spawn_slot* slot, void*) noexcept {
  log_ += a;
  static std::uintptr_t given;
  static spawn_slot* parent;
  given = b;
  parent = slot;
  godwit_ctx_start(
      other_stack_ + sizeof other_stack_,
      [](void*) {
        const spawn_slot s = *parent;
        godwit_ctx_resume_fork(s.sp, s.fp, s.extra, given);
      },
      nullptr);
  return {0, 0};
}

// With enough live values for every callee-saved register.
[[gnu::noinline]] std::uint64_t many_live(std::uint64_t seed, spawn_slot* slot, bool fork) {
  std::uint64_t a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13, f = seed * 17,
                g = seed * 19;
  double x = static_cast<double>(seed), y = x * 2;
  for (std::uintptr_t i = 1; i <= 30; ++i) {
    const std::uintptr_t status = fork ? fork_call<&step::leaves>(i, 64 * i, slot, nullptr).status : 64 * i;
    if (opaque(status) != 64 * i) return 0;
    a += b;
    b ^= c;
    c += d;
    d ^= e;
    e += f;
    f ^= g;
    g += a;
    x += y;
    y = x - y;
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ static_cast<std::uint64_t>(x);
}

TEST_P(fork_calls, resumed_parents_get_the_status_and_keep_their_values) {
  const std::uint64_t expected = many_live(1234567, slots, false);
  // In place only as often as there are stacks: children that leave do not give theirs back here.
  EXPECT_EQ(many_live(1234567, slots, true), expected);
  EXPECT_EQ(log_, 465u);
}

INSTANTIATE_TEST_SUITE_P(below, fork_calls, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(own_stacks, fork_calls, testing::Values(true));

}  // namespace
