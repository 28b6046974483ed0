// The user and groups of the process, which the kernel keeps for each OS thread. See identity.cpp.
#pragma once

namespace godwit::pthread {

/// Once all workers have begun: who they are, for when /proc is not there any more (chroot).
void remember_threads();
/// Around a fork, so that no child finds a change half done.
void lock_identity() noexcept;
void unlock_identity() noexcept;

}  // namespace godwit::pthread
