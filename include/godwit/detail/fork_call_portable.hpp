// fork_call without assembly: the baselines ucontext and setjmp. Included by fork_call.hpp, whose contract it
// keeps.
//
// What the inlined save does is here a call of a function of the library, whose name says which variant this
// program was compiled for: a library of another one does not have it, so the two cannot be linked. To a
// compiler it is a call like any other: it comes back once, with the callee-saved registers as they were, on
// whichever worker. Counterpart: src/context/portable.cpp. docs/protocols/context.md. Tests: tests/context.
#pragma once

#if defined(GODWIT_CONTEXT_UCONTEXT)
#define GODWIT_CONTEXT_FORK godwit_ctx_fork_ucontext
#else
#define GODWIT_CONTEXT_FORK godwit_ctx_fork_setjmp
#endif

extern "C" godwit::detail::word_pair GODWIT_CONTEXT_FORK(std::uintptr_t a0, std::uintptr_t a1,
                                                         godwit::detail::spawn_slot* slot, void* out,
                                                         godwit::detail::child_fn* child) noexcept;

namespace godwit::detail {

template <child_fn* Child>
[[gnu::always_inline]] inline word_pair fork_call(std::uintptr_t a0, std::uintptr_t a1, spawn_slot* slot,
                                                  void* out) {
  return GODWIT_CONTEXT_FORK(a0, a1, slot, out, Child);
}

}  // namespace godwit::detail
