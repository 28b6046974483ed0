// Locking and unlocking for conditions (cond.cpp). See mutex.cpp.
#pragma once

#include <cstdint>
#include <pthread.h>

namespace godwit::pthread {
int lock_mutex(pthread_mutex_t* m, std::uint64_t deadline_ns) noexcept;
int unlock_mutex(pthread_mutex_t* m) noexcept;
/// The calling thread ends: the robust mutexes that it holds have lost their owner.
void die_with_robust_mutexes() noexcept;
/// In a forked child: those that its first thread held are still its parent's.
void forget_robust_mutexes() noexcept;
}  // namespace godwit::pthread
