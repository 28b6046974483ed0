// See interrupted_code.hpp.
#include "base/interrupted_code.hpp"

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <signal.h>
#include <string_view>
#include <ucontext.h>
#include <unwind.h>

namespace godwit::base {

namespace {

/// Of the C and C++ libraries, and the sanitizers'.
bool of_a_library(std::uintptr_t code) noexcept {
  Dl_info in{};
  if (dladdr(reinterpret_cast<void*>(code), &in) == 0 || in.dli_fname == nullptr) return false;
  std::string_view file = in.dli_fname;
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  return std::ranges::any_of(
      std::array{"libc.", "libc-", "libpthread", "libstdc++", "libc++", "libasan", "libubsan"},
      [=](const char* name) { return file.starts_with(name); });
}

struct search {
  std::uintptr_t interrupted, end;
  std::span<std::uintptr_t> to;
  std::size_t found = 0;
  std::size_t passed = 0;  ///< frames of the handler
  bool is_there = false;   ///< they have been passed
};
constexpr std::size_t most_of_handler = 32;  // else the unwinder has lost its way

_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* of) noexcept {
  auto& s = *static_cast<search*>(of);
  const std::uintptr_t code = _Unwind_GetIP(frame);
  s.is_there |= code == s.interrupted;
  if (s.is_there && !of_a_library(code)) s.to[s.found++] = code;
  const bool more =
      s.is_there ? s.found < s.to.size() && _Unwind_GetCFA(frame) < s.end : ++s.passed < most_of_handler;
  return more ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

std::uintptr_t program_counter(const void* context) noexcept {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__riscv)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.__gregs[REG_PC]);
#elif defined(__sparc__)  // handlers get a sigcontext here, not a ucontext
  return static_cast<std::uintptr_t>(static_cast<const sigcontext*>(context)->sigc_regs.tpc);
#else
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#endif
}

std::uintptr_t stack_pointer(const void* context) noexcept {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
#elif defined(__riscv)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.__gregs[REG_SP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.sp);
#else
  static_cast<void>(context);
  return 0;
#endif
}

std::uintptr_t return_address(const void* context) noexcept {
#if defined(__x86_64__)
  return *reinterpret_cast<const std::uintptr_t*>(stack_pointer(context));
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.regs[30]);
#else
  static_cast<void>(context);
  return 0;
#endif
}

std::size_t find_callers(std::uintptr_t interrupted, std::uintptr_t end,
                         std::span<std::uintptr_t> to) noexcept {
  search s{interrupted, end, to};
  if (!to.empty()) _Unwind_Backtrace(look_at, &s);
  return s.found;
}

}  // namespace godwit::base
