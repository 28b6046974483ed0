// See valgrind.hpp.
#include "base/valgrind.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define GODWIT_HAS_VALGRIND 1
#else
#define GODWIT_HAS_VALGRIND 0
#endif

namespace godwit::base {

bool seems_to_be_valgrind() noexcept {
  const char* preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "vgpreload") != nullptr;
}

#if GODWIT_HAS_VALGRIND
bool on_valgrind() noexcept {
  static const bool yes = RUNNING_ON_VALGRIND != 0;
  return yes;
}

unsigned valgrind_stack([[maybe_unused]] std::uintptr_t low, [[maybe_unused]] std::uintptr_t high) noexcept {
  return VALGRIND_STACK_REGISTER(low, high - 1);
}

void valgrind_stack_gone([[maybe_unused]] unsigned number) noexcept { VALGRIND_STACK_DEREGISTER(number); }

void valgrind_bytes(std::uintptr_t low, std::uintptr_t high) noexcept {
  if (high > low) static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(low, high - low));
}
#else
bool on_valgrind() noexcept { return false; }
unsigned valgrind_stack(std::uintptr_t, std::uintptr_t) noexcept { return 0; }
void valgrind_stack_gone(unsigned) noexcept {}
void valgrind_bytes(std::uintptr_t, std::uintptr_t) noexcept {}
#endif

void fit_to_valgrind(options& opts) noexcept {
  if (!runs_under_valgrind()) return;
  if (!on_valgrind())
    std::fputs(
        "godwit: this program runs under valgrind, and libgodwit was built without valgrind's header: what "
        "it reports of stacks is wrong. Install valgrind, configure and build godwit again\n",
        stderr);
  const options defaults;
  if (opts.stack_bytes == defaults.stack_bytes) opts.stack_bytes = std::uint64_t{16} << 20;
  if (opts.heap_bytes == defaults.heap_bytes) opts.heap_bytes = std::uint64_t{64} << 20;
  if (opts.global_bytes == defaults.global_bytes) opts.global_bytes = std::uint64_t{256} << 20;
  // After a handler on the alternate stack memcheck takes the next large frame of the stack that was
  // interrupted for one on another stack, and calls its bytes invalid.
  opts.expose_signal = false;
}

}  // namespace godwit::base
