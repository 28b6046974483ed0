// Rules of single frames: what a call is in the middle of, where there is no rule, bounds of a step.
// test: timeout=60 skip-asan skip-qemu
#include "context/context.hpp"
#include "context/frame_rules.hpp"

#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(__linux__)

#include <stdexcept>
#include <sys/mman.h>
#include <unwind.h>
#include <vector>

namespace {

namespace context = godwit::context;
using context::frame_registers;
using context::frame_rule;
using context::frame_rules;

struct marked {};
struct other {};
std::uint8_t classify(const std::type_info& t) noexcept { return t == typeid(marked) ? 7 : 0; }

frame_rules& rules() {
  static frame_rules r;
  static const bool loaded = (r.learn(classify), true);
  static_cast<void>(loaded);
  return r;
}

std::vector<std::uint8_t> seen_;
/// What the calls are in the middle of that led here, the innermost first.
[[gnu::noinline]] int look(int n) {
  seen_.clear();
  auto return_to = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  frame_registers g;
  asm volatile(
      "movq %%rbx, 0(%0)\n\tmovq %%rbp, 8(%0)\n\tmovq %%r12, 16(%0)\n\tmovq %%r13, 24(%0)\n\t"
      "movq %%r14, 32(%0)\n\tmovq %%r15, 40(%0)\n\tmovq %%rsp, 48(%0)\n\tleaq 0(%%rip), %%rax\n\t"
      "movq %%rax, 56(%0)"
      :
      : "r"(&g)
      : "rax", "memory");
  const std::uintptr_t high = g.rsp + (1 << 20);
  std::uintptr_t low = g.rsp;
  const frame_rule* r = &rules().of_instruction(g.rip);
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(r->is, frame_rule::known::frame);
    EXPECT_TRUE(frame_rules::step(g, *r, low, high));
    if (i == 0) {
      EXPECT_EQ(g.rip, return_to);
    }
    low = g.rsp - sizeof(std::uintptr_t);
    r = &rules().of_return(g.rip);
    seen_.push_back(r->catches);
  }
  if (n < 0) throw other();
  return n;
}
[[gnu::noinline]] int in_marked(int n) {
  int r = 1;
  try {
    r = look(n);
  } catch (const marked&) {
    return 2;
  } catch (...) {
    return 3;
  }
  return r + 1;
}
[[gnu::noinline]] int in_other(int n) {
  int r = 1;
  try {
    r = in_marked(n);
  } catch (const other&) {
    return 2;
  }
  return r + 1;
}
[[gnu::noinline]] int outside(int n) { return look(n) + 1; }
/// The innermost handler counts.
[[gnu::noinline]] int nested(int n) {
  int r = 1;
  try {
    try {
      r = look(n);
    } catch (const other&) {
      return 4;
    }
  } catch (const marked&) {
    return 2;
  }
  return r + 1;
}
volatile bool throws_ = false;
struct counted {
  int& n;
  ~counted() { ++n; }
};
/// What is to be destroyed on the way does not hide the handler.
[[gnu::noinline]] int with_objects(int n) {
  int count = 0, r = 1;
  counted before{count};
  try {
    r = look(n);
    if (throws_) throw marked();
  } catch (const marked&) {
    return 2;
  }
  return r + count;
}

TEST(frame_rules, says_what_the_first_handler_of_a_call_catches) {
  ASSERT_EQ(frame_rules::refusal(), nullptr);
  static_cast<void>(in_other(3));
  EXPECT_EQ(seen_, (std::vector<std::uint8_t>{7, 0, 0}));
  static_cast<void>(outside(2));
  EXPECT_EQ(seen_, (std::vector<std::uint8_t>{0, 0}));
  static_cast<void>(nested(2));
  EXPECT_EQ(seen_, (std::vector<std::uint8_t>{0, 0}));
  static_cast<void>(with_objects(2));
  EXPECT_EQ(seen_, (std::vector<std::uint8_t>{7, 0}));
}

TEST(frame_rules, there_are_none_outside_of_code_that_was_loaded) {
  EXPECT_EQ(rules().of_return(0x1000).is, frame_rule::known::no);
  static int data = 0;
  EXPECT_EQ(rules().of_instruction(reinterpret_cast<std::uintptr_t>(&data)).is, frame_rule::known::no);
  auto* code = static_cast<unsigned char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));  // as of a JIT
  ASSERT_NE(code, MAP_FAILED);
  EXPECT_EQ(rules().of_return(reinterpret_cast<std::uintptr_t>(code) + 8).is, frame_rule::known::no);
  munmap(code, 4096);
}

TEST(frame_rules, there_are_none_in_the_unwinder) {
  auto unwinder = reinterpret_cast<std::uintptr_t>(&_Unwind_RaiseException);
  EXPECT_EQ(rules().of_instruction(unwinder).is, frame_rule::known::no);
  EXPECT_EQ(rules().of_return(unwinder + 5).is, frame_rule::known::no);
}

TEST(frame_rules, a_stack_ends_where_the_tables_say_so) {
  EXPECT_EQ(rules().of_return(reinterpret_cast<std::uintptr_t>(&godwit_ctx_thread_end)).is,
            frame_rule::known::last);
}

TEST(frame_rules, a_step_stays_within_the_live_stack) {
  std::uintptr_t stack[8] = {};
  const auto low = reinterpret_cast<std::uintptr_t>(stack), high = low + sizeof stack;
  frame_rule r;
  r.is = frame_rule::known::frame;
  r.cfa_register = 7;
  for (auto& s : r.saved) s = frame_rule::not_saved;
  for (const auto& [offset, fits] :
       {std::pair{0, false}, {8, true}, {64, true}, {72, false}, {12, false}, {-8, false}}) {
    r.cfa_offset = offset;
    frame_registers g;
    g.rsp = low;
    EXPECT_EQ(frame_rules::step(g, r, low, high), fits) << offset;
    EXPECT_EQ(g.rsp, fits ? low + static_cast<std::uintptr_t>(offset) : low);
  }
  r.cfa_offset = 64;
  r.saved[1] = -56;
  stack[1] = 17;
  stack[7] = 18;
  frame_registers g;
  g.rsp = low;
  ASSERT_TRUE(frame_rules::step(g, r, low, high));
  EXPECT_EQ(g.rbp, 17u);
  EXPECT_EQ(g.rip, 18u);
  r.saved[1] = -1024;  // far below the stack
  g.rsp = low;
  EXPECT_FALSE(frame_rules::step(g, r, low, high));
}

}  // namespace

#endif
