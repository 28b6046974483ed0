// The walk over frames at every instruction of a corpus, compared with a shadow of the call stack that
// follows the instructions themselves: docs/protocols/lazy.md, The tables must be right.
// test: timeout=120 skip-asan skip-qemu
#include "context/context.hpp"
#include "context/frame_rules.hpp"

#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(__linux__)

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <string>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" {
unsigned long corpus_o0(unsigned long);
unsigned long corpus_o2(unsigned long);
unsigned long corpus_o3_frame_pointers(unsigned long);
unsigned long corpus_os(unsigned long);
}

namespace {

namespace context = godwit::context;
using context::frame_registers;
using context::frame_rule;

constexpr std::size_t stack_bytes = 1 << 20;

/// A call that has not returned.
struct call {
  std::uintptr_t place;    ///< of the return address
  frame_registers before;  ///< as they are when it returns; rsp: above the return address
};

frame_registers of(const user_regs_struct& r) {
  return {r.rbx, r.rbp, r.r12, r.r13, r.r14, r.r15, r.rsp, r.rip};
}

/// Bytes of the call instruction at @p pc; 0: it is none.
std::size_t call_bytes(std::uintptr_t pc) {
  const auto* p = reinterpret_cast<const unsigned char*>(pc);
  std::size_t prefixes = 0;
  while (p[prefixes] == 0x66 || p[prefixes] == 0x67 || p[prefixes] == 0x3E || p[prefixes] == 0xF2 ||
         (p[prefixes] & 0xF0) == 0x40)
    ++prefixes;
  p += prefixes;
  if (p[0] == 0xE8) return prefixes + 5;
  if (p[0] != 0xFF || (p[1] >> 3 & 7) != 2) return 0;
  const unsigned mod = p[1] >> 6, rm = p[1] & 7;
  std::size_t bytes = 2;
  if (mod != 3 && rm == 4) bytes += 1 + (mod == 0 && (p[2] & 7) == 5 ? 4 : 0);
  if (mod == 0 && rm == 5) bytes += 4;
  if (mod == 1) bytes += 1;
  if (mod == 2) bytes += 4;
  return prefixes + bytes;
}

std::string name_of(std::uintptr_t pc) {
  Dl_info in{};
  if (dladdr(reinterpret_cast<void*>(pc), &in) == 0) return "?";
  const char* file = std::strrchr(in.dli_fname, '/');
  return std::string(file != nullptr ? file + 1 : in.dli_fname) + ":" +
         (in.dli_sname != nullptr ? in.dli_sname : "?");
}

struct counts {
  std::size_t steps = 0, walked = 0, wrong = 0, frames = 0, deepest = 0;
  std::map<std::string, std::size_t> refused;  ///< by the module where the walk ended
};

class stepper {
 public:
  explicit stepper(context::frame_rules& rules, std::uintptr_t top) : rules_(rules), top_(top) {}

  /// Before the instruction at r.rip.
  void look(const user_regs_struct& r, counts& n) {
    while (!calls_.empty() && calls_.back().place < r.rsp) calls_.pop_back();
    ++n.steps;
    n.deepest = std::max(n.deepest, calls_.size());
    if (!calls_.empty()) compare(of(r), n);
    if (const std::size_t bytes = call_bytes(r.rip); bytes != 0) {
      frame_registers back = of(r);
      back.rip += bytes;
      calls_.push_back({r.rsp - sizeof(std::uintptr_t), back});
    }
  }

 private:
  void refuse(counts& n, std::uintptr_t pc) {
    const std::string name = name_of(pc);
    ++n.refused[name.substr(0, name.find(':'))];
  }
  void compare(frame_registers g, counts& n) {
    const frame_rule* rule = &rules_.of_instruction(g.rip);
    std::uintptr_t low = g.rsp;
    const std::uintptr_t from = g.rip;
    for (std::size_t i = calls_.size(); i-- != 0;) {
      const std::uintptr_t pc = g.rip;
      if (rule->is == frame_rule::known::no) return refuse(n, pc);
      const call& c = calls_[i];
      const bool stepped = context::frame_rules::step(g, *rule, low, top_);
      const bool same = stepped && g.rsp == c.place + 8 && g.rip == c.before.rip && g.rbx == c.before.rbx &&
                        g.rbp == c.before.rbp && g.r12 == c.before.r12 && g.r13 == c.before.r13 &&
                        g.r14 == c.before.r14 && g.r15 == c.before.r15;
      if (!same) {
        if (++n.wrong <= 10)
          ADD_FAILURE() << "at " << name_of(from) << " (" << std::hex << from << "), in the frame of "
                        << name_of(pc) << " (" << pc << "): " << (stepped ? "" : "no step; ") << "cfa "
                        << g.rsp << " for " << c.place + 8 << ", rip " << g.rip << " for " << c.before.rip;
        return;
      }
      ++n.frames;
      low = g.rsp - 8;
      rule = &rules_.of_return(g.rip);
    }
    ++n.walked;
  }

  context::frame_rules& rules_;
  std::uintptr_t top_;
  std::vector<call> calls_;
};

unsigned long (*corpus_)(unsigned long);
void run_corpus(void* argument) {
  const unsigned long warm = corpus_(7);  // the stubs of dynamic linking are resolved
  raise(SIGSTOP);
  *static_cast<unsigned long*>(argument) = warm + corpus_(5);
  raise(SIGSTOP);
}

class single_step : public testing::TestWithParam<unsigned long (*)(unsigned long)> {};

TEST_P(single_step, the_walk_is_right_at_every_instruction) {
  ASSERT_EQ(context::frame_rules::refusal(), nullptr);
  corpus_ = GetParam();
  const unsigned long expected = corpus_(7) + corpus_(5);
  static context::frame_rules rules;
  rules.learn(nullptr);
  // Shared, so that the walk sees the stack of the process that is stepped, at its place.
  void* const memory = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const result = static_cast<unsigned long*>(memory);
  const auto top = reinterpret_cast<std::uintptr_t>(memory) + stack_bytes;

  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    godwit_ctx_call_on(reinterpret_cast<void*>(top), run_corpus, result);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);

  counts n;
  stepper s(rules, top);
  bool inside = false;
  while (n.wrong == 0) {
    ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr), 0) << std::strerror(errno);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) break;
    user_regs_struct r;
    ASSERT_EQ(ptrace(PTRACE_GETREGS, child, nullptr, &r), 0);
    if (reinterpret_cast<void*>(r.rip) == reinterpret_cast<void*>(corpus_)) inside = true;
    if (inside) s.look(r, n);
  }
  EXPECT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP) << "status " << status;
  EXPECT_EQ(*result, expected);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  munmap(memory, stack_bytes);

  std::size_t refused = 0;
  for (const auto& [where, count] : n.refused) {
    refused += count;
    std::printf("refused in %s: %zu\n", where.c_str(), count);
  }
  std::printf("%zu instructions, %zu walks of %zu frames, %zu refused, depth %zu\n", n.steps, n.walked,
              n.frames, refused, n.deepest);
  EXPECT_GT(n.walked, 10000u);
  // Besides: in the stubs of dynamic linking, whose rules are expressions.
  for (const auto& [where, count] : n.refused) {
    if (where.find("libgcc_s") != std::string::npos) continue;
    EXPECT_LT(count, n.walked / 50) << where;
  }
}

INSTANTIATE_TEST_SUITE_P(corpus, single_step,
                         testing::Values(corpus_o0, corpus_o2, corpus_o3_frame_pointers, corpus_os),
                         [](const auto& p) {
                           return std::string(p.param == corpus_o0                  ? "o0"
                                              : p.param == corpus_o2                ? "o2"
                                              : p.param == corpus_o3_frame_pointers ? "o3_frame_pointers"
                                                                                    : "os");
                         });

}  // namespace

#endif
