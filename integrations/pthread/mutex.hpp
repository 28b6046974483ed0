// Locking and unlocking for conditions (cond.cpp). See mutex.cpp.
#pragma once

#include <cstdint>
#include <pthread.h>

namespace godwit::pthread {
int lock_mutex(pthread_mutex_t* m, std::uint64_t deadline_ns) noexcept;
int unlock_mutex(pthread_mutex_t* m) noexcept;
}  // namespace godwit::pthread
