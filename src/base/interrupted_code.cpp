// See interrupted_code.hpp.
#include "base/interrupted_code.hpp"

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <signal.h>
#include <string_view>
#include <ucontext.h>

#include "base/walk_stack.hpp"

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
  constexpr std::size_t most_of_handler = 32;  // else the unwinder has lost its way
  std::size_t found = 0, passed = 0;           // passed: frames of the handler
  bool is_there = false;                       // they have been passed
  const auto look = [&](std::uintptr_t code, std::uintptr_t low) noexcept {
    is_there |= code == interrupted;
    if (is_there && !of_a_library(code)) to[found++] = code;
    return is_there ? found < to.size() && low < end : ++passed < most_of_handler;
  };
  if (!to.empty()) walk_stack(look);
  return found;
}

}  // namespace godwit::base
