// fork_call for the library itself, whose code is the same for all variants of the context switch.
#pragma once

#include <godwit/detail/fork_call.hpp>

namespace godwit::context {

/// fork_call(a0, 0, slot, nullptr) of a child that is known at run time only.
detail::word_pair fork(detail::child_fn* child, std::uintptr_t a0, detail::spawn_slot* slot) noexcept;

}  // namespace godwit::context
