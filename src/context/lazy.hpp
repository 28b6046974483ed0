// Where children return whose spawn was a plain call that the runtime has found, and how their parents go on
// elsewhere (policy lazy): the assembly behind src/sched/lazy_spawns.hpp. docs/protocols/lazy.md.
#pragma once

#include "context/context.hpp"

#include <cstdint>

extern "C" {
// On x86-64 only.
/// In place of a child's return address. Asks godwit_lazy_returned where to go on, or, with an exception on
/// its way, godwit_lazy_caught. The second one: of children whose result lies in their parent's frame.
void godwit_lazy_stub();
void godwit_lazy_stub_by_address();
/// Where godwit_ctx_resume_suspended goes on with a continuation: the words [status, return address of the
/// spawn] lie at the stack pointer.
void godwit_lazy_enter();
// All of that code. What is interrupted in it has no frames that could be followed.
extern const char godwit_lazy_begin[];
extern const char godwit_lazy_end[];
}

namespace godwit::context {

#if defined(__x86_64__) && !defined(GODWIT_CONTEXT_UCONTEXT) && !defined(GODWIT_CONTEXT_SETJMP)
inline constexpr bool lazy_spawns_exist = true;
#else
inline constexpr bool lazy_spawns_exist = false;
#endif

}  // namespace godwit::context
