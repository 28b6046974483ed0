// Signals. See signals.cpp.
#pragma once

#include "thread.hpp"

namespace godwit::pthread {

/// On the initial thread, before it has given its block away.
void begin_signals(thread& main) noexcept;
/// The initial OS thread, from then on: handlers run here.
[[noreturn]] void serve_signals() noexcept;
/// A thread with this mask begins, or ends.
void count_mask(const thread& t, bool begins) noexcept;
/// Give the calling OS thread the caller's mask, for a forked child.
void use_real_mask(const thread& t, sigset_t* before = nullptr) noexcept;
void set_real_mask(const sigset_t& mask) noexcept;

}  // namespace godwit::pthread
