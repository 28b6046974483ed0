// See fork.hpp. Compiled for each variant, as portable.cpp is (cmake/godwit_context.cmake).
#include "context/fork.hpp"

namespace godwit::context {

namespace {

detail::word_pair call(std::uintptr_t child, std::uintptr_t a0, detail::spawn_slot* slot,
                       void* out) noexcept {
  return reinterpret_cast<detail::child_fn*>(child)(a0, 0, slot, out);
}

}  // namespace

/// The call that fork_call's contract asks for. Weak: compilers must not know that it does nothing.
[[gnu::weak, gnu::noinline]] void fork_came_back() noexcept { asm volatile("" : : : "memory"); }

detail::word_pair fork(detail::child_fn* child, std::uintptr_t a0, detail::spawn_slot* slot) noexcept {
  const detail::word_pair w =
      detail::fork_call<&call>(reinterpret_cast<std::uintptr_t>(child), a0, slot, nullptr);
  fork_came_back();
  return w;
}

}  // namespace godwit::context
