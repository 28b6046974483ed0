// Tests of the context switch by its contract alone: starting, suspending, resuming, what is preserved,
// exceptions, backtraces.
// test: timeout=60
#include "context/context.hpp"
#include "stack/stack.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <unwind.h>

namespace {

namespace context = godwit::context;

constexpr std::size_t stack_bytes = 256 << 10;

/// Two stacks that hand control to each other: the test's own (main_sp) and another.
struct pair_of_stacks {
  std::unique_ptr<std::byte[]> memory{new std::byte[stack_bytes]};
  std::uintptr_t main_sp = 0;
  std::uintptr_t other_sp = 0;
  std::uintptr_t passed = 0;
  void (*body)(pair_of_stacks&) = nullptr;
  bool finished = false;
  int count = 0;
  void* top() { return memory.get() + stack_bytes - 64; }
};
pair_of_stacks* pair_ = nullptr;
std::uintptr_t main_stack_low_ = 0;               // address sanitizer wants to know on which stack we are
alignas(64) std::byte switcher_stack_[64 << 10];  // code that jumps runs on a stack of its own

void to_main(void*, std::uintptr_t sp) {
  pair_->other_sp = sp;
  const godwit::stack::range mine = godwit::stack::system_stack();
  context::sanitizer_on_stack(reinterpret_cast<void*>(main_stack_low_), mine.high - main_stack_low_);
  godwit_ctx_resume_suspended(pair_->main_sp, pair_->passed);
}
/// On the other stack: give a value to the test; comes back with what it gives next.
std::uintptr_t give(std::uintptr_t value) {
  pair_->passed = value;
  return godwit_ctx_suspend(switcher_stack_ + sizeof switcher_stack_, to_main, nullptr);
}
void other_main(void*) {
  pair_->body(*pair_);
  pair_->finished = true;
  give(0);
}
void to_other(void*, std::uintptr_t sp) {
  pair_->main_sp = sp;
  main_stack_low_ = sp - (64 << 10);
  context::sanitizer_on_stack(pair_->memory.get(), stack_bytes);
  if (pair_->other_sp == 0) godwit_ctx_start(pair_->top(), other_main, nullptr);
  godwit_ctx_resume_suspended(pair_->other_sp, pair_->passed);
}
/// On the test's stack: run the other until it gives something.
std::uintptr_t take(std::uintptr_t value = 0) {
  pair_->passed = value;
  return godwit_ctx_suspend(switcher_stack_ + sizeof switcher_stack_, to_other, nullptr);
}

std::atomic<std::uint64_t> lock_{0};
/// From the stack that saves itself to @p own straight to the one at @p next.
[[gnu::noinline]] void straight(std::uintptr_t& own, std::uintptr_t next) {
  const bool to_other_stack = &own == &pair_->main_sp;
  const godwit::stack::range mine = godwit::stack::system_stack();
  context::sanitizer_on_stack(to_other_stack ? pair_->memory.get() : reinterpret_cast<void*>(main_stack_low_),
                              to_other_stack ? stack_bytes : mine.high - main_stack_low_);
  lock_ = 1;
  own = 0;
  context::switch_to(&own, next, &lock_, switcher_stack_ + sizeof switcher_stack_);
}

class context_switch : public testing::Test {
 protected:
  void SetUp() override { pair_ = &p; }
  void start(void (*body)(pair_of_stacks&)) { p.body = body; }
  pair_of_stacks p;
};

TEST_F(context_switch, from_stack_to_stack) {
  start([](pair_of_stacks& of) {
    volatile std::uint64_t seed = 3;
    std::uint64_t a = seed, b = a * 5, c = b * 7, d = c * 11, e = d * 13, f = e * 17;
    for (int i = 0; i < 100; ++i) {
      a += b ^ c, b += c ^ d, c += d ^ e, d += e ^ f, e += f ^ a, f += a ^ b;
      if (i % 10 == 9)
        give(1);
      else
        straight(of.other_sp, of.main_sp);
      EXPECT_EQ(lock_, 0u);
      EXPECT_NE(of.main_sp, 0u) << "saved by the time it is left";
    }
    of.passed = a + b + c + d + e + f;
    of.count = 100;
    straight(of.other_sp, of.main_sp);
  });
  std::uint64_t a = 3, b = a * 5, c = b * 7, d = c * 11, e = d * 13, f = e * 17;
  for (int i = 0; i < 100; ++i) a += b ^ c, b += c ^ d, c += d ^ e, d += e ^ f, e += f ^ a, f += a ^ b;
  static_cast<void>(take());
  for (int i = 1; p.count != 100; ++i) {
    ASSERT_LE(i, 100);
    if (i % 7 == 0)
      static_cast<void>(take());
    else
      straight(p.main_sp, p.other_sp);
    EXPECT_EQ(lock_, 0u);
    EXPECT_NE(p.other_sp, 0u);
  }
  EXPECT_EQ(p.passed, a + b + c + d + e + f) << "both kept what they had in registers";
}

TEST_F(context_switch, back_and_forth_with_values) {
  start([](pair_of_stacks&) {
    std::uintptr_t v = 1;
    for (int i = 0; i < 10000; ++i) v = give(v * 2);
  });
  std::uintptr_t v = take();
  for (int i = 0; i < 9999; ++i) {
    ASSERT_EQ(v, 2u * (i == 0 ? 1u : static_cast<std::uintptr_t>(i)));
    v = take(static_cast<std::uintptr_t>(i + 1));
  }
  EXPECT_FALSE(p.finished);
  take(0);
  EXPECT_TRUE(p.finished);
}

// Enough live values for every callee-saved register, on both sides, with different contents.
[[gnu::noinline]] std::uint64_t many_live(std::uint64_t seed, std::uintptr_t (*swap)(std::uintptr_t)) {
  std::uint64_t a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13, f = seed * 17,
                g = seed * 19;
  double x = static_cast<double>(seed), y = x * 2;
  for (int i = 0; i < 1000; ++i) {
    swap(1);
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
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(x) & 0xffff);
}
std::uint64_t other_result_ = 0;
std::uintptr_t no_swap(std::uintptr_t v) { return v; }

TEST_F(context_switch, preserves_registers_on_both_sides) {
  const std::uint64_t expected_here = many_live(1234567, no_swap),
                      expected_there = many_live(7654321, no_swap);
  start([](pair_of_stacks&) { other_result_ = many_live(7654321, give); });
  const std::uint64_t here = many_live(1234567, take);
  while (!p.finished) take();
  EXPECT_EQ(here, expected_here);
  EXPECT_EQ(other_result_, expected_there);
}

#if defined(__x86_64__)
TEST_F(context_switch, preserves_every_callee_saved_register) {
  start([](pair_of_stacks&) {
    for (;;) {
      asm volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
      give(0);
    }
  });
  std::uint64_t wrong = 0;
  std::uintptr_t (*const function)(std::uintptr_t) = take;
  for (int i = 0; i < 100; ++i)
    asm volatile(
        "pushq %%rbp\n\t"
        "movq %%rsp, %%rbp\n\t"
        "subq $256, %%rsp\n\t"  // out of the red zone
        "andq $-16, %%rsp\n\t"
        "movq $0x11, %%rbx\n\tmovq $0x22, %%r12\n\tmovq $0x33, %%r13\n\tmovq $0x44, %%r14\n\tmovq $0x55, "
        "%%r15\n\t"
        "xorl %%edi, %%edi\n\t"
        "call *%[function]\n\t"
        "xorq $0x11, %%rbx\n\txorq $0x22, %%r12\n\txorq $0x33, %%r13\n\txorq $0x44, %%r14\n\txorq $0x55, "
        "%%r15\n\t"
        "orq %%rbx, %%r12\n\torq %%r13, %%r12\n\torq %%r14, %%r12\n\torq %%r15, %%r12\n\t"
        "movq %%rbp, %%rsp\n\t"
        "popq %%rbp\n\t"
        "movq %%r12, %%rax"
        : "=&a"(wrong)
        : [function] "0"(function)
        : "rbx", "r12", "r13", "r14", "r15", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory",
          "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
          "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  EXPECT_EQ(wrong, 0u);
}
#endif

TEST_F(context_switch, stacks_are_aligned_for_the_abi) {
  start([](pair_of_stacks& s) {
    alignas(64) int wide[16] = {};
    s.count = static_cast<int>(reinterpret_cast<std::uintptr_t>(wide) % 64);
    double d = 1.5;
    char text[64];
    std::snprintf(text, sizeof text, "%.3f %a", d, d * 3);  // uses aligned vector stores
    s.count += std::strcmp(text, "1.500 0x1.2p+2") != 0;
  });
  take();
  EXPECT_EQ(p.count, 0);
}

struct counts_down {
  int& n;
  ~counts_down() { --n; }
};
[[gnu::noinline]] void throw_deep(int depth, int& alive) {
  ++alive;
  const counts_down guard{alive};
  if (depth == 0) throw std::out_of_range("at the bottom");
  throw_deep(depth - 1, alive);
  give(99);  // never comes here
}

TEST_F(context_switch, exceptions_are_caught_on_a_started_stack) {
  start([](pair_of_stacks& s) {
    int alive = 0;
    for (int i = 0; i < 100; ++i) {
      give(0);  // between the steps the stack is left and resumed
      try {
        throw_deep(i % 20, alive);
      } catch (const std::out_of_range& e) {
        s.count += std::string(e.what()) == "at the bottom" && alive == 0;
      }
    }
  });
  while (!p.finished) take();
  EXPECT_EQ(p.count, 100);
}

struct walk {
  int frames = 0;
  bool ended = false;
};
_Unwind_Reason_Code count_frame(_Unwind_Context* c, void* arg) {
  auto* w = static_cast<walk*>(arg);
  ++w->frames;
  if (_Unwind_GetIP(c) == 0) w->ended = true;
  return w->frames > 1000 ? _URC_END_OF_STACK : _URC_NO_REASON;
}
[[gnu::noinline]] int frames_here() {
  walk w;
  _Unwind_Backtrace(count_frame, &w);
  return w.frames;
}
[[gnu::noinline]] int nested_frames(int depth) {
  const int n = depth == 0 ? frames_here() : nested_frames(depth - 1);
  asm volatile("");  // no tail call
  return n;
}

TEST_F(context_switch, backtraces_end_where_the_stack_was_started) {
  start([](pair_of_stacks& s) { s.count = nested_frames(10) * 1000 + nested_frames(0); });
  take();
  const int deep = p.count / 1000, flat = p.count % 1000;
  EXPECT_EQ(deep - flat, 10);
  EXPECT_LT(flat, 12) << "and do not run on into the stack that started it";
}

}  // namespace
