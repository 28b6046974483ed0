// See exceptions.hpp. The C++ runtime asks two functions for the place, at every throw, catch and rethrow;
// they are defined here, in front of its own. They are weak: a program, or a host that loads the library as
// a plugin, may have others that are in use already; then every spawn has to look.
#include "context/exceptions.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <exception>

#include <godwit/detail/hot.hpp>

#include "base/check.hpp"

namespace {

using godwit::context::exception_state;

struct kept {
  exception_state state;
  bool of_worker = false;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local kept kept_;

/// Does the C++ runtime use @p s?
bool is_in_use(exception_state& s) noexcept {
  const int before = std::uncaught_exceptions();
  ++s.uncaught;
  const bool found = std::uncaught_exceptions() == before + 1;
  --s.uncaught;
  return found;
}

}  // namespace

extern "C" {
[[gnu::weak, gnu::visibility("default")]] abi::__cxa_eh_globals* __cxa_get_globals() noexcept {
  if (kept_.of_worker) godwit::context::look_at_spawns();
  return reinterpret_cast<abi::__cxa_eh_globals*>(&kept_.state);
}
[[gnu::weak, gnu::visibility("default")]] abi::__cxa_eh_globals* __cxa_get_globals_fast() noexcept {
  return reinterpret_cast<abi::__cxa_eh_globals*>(&kept_.state);
}
}

namespace godwit::context {

exception_place exceptions_here() noexcept {
  kept_.of_worker = true;
  if (is_in_use(kept_.state)) return {&kept_.state, true};
  auto* state = reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
  if (is_in_use(*state)) return {state, false};
  if (auto* next = reinterpret_cast<exception_state* (*)()>(dlsym(RTLD_NEXT, "__cxa_get_globals"))) {
    state = next();
    if (is_in_use(*state)) return {state, false};
  }
  base::fatal(
      "cannot find out where the C++ runtime keeps its exceptions: no function __cxa_get_globals that is "
      "in reach gives the place: link one C++ library only");
}

void look_at_spawns() noexcept {
  std::atomic<std::uint32_t>& poll = detail::hot().poll;
  std::uint32_t nothing = 0;  // who asks for something must not be forgotten for it
  if (poll.load(std::memory_order_relaxed) == 0)
    poll.compare_exchange_strong(nothing, poll_exceptions, std::memory_order_relaxed);
}

}  // namespace godwit::context
