// What main.cpp measures of godwit's threads only.
#pragma once

#include "threads.hpp"

namespace threads {

double created_bytes(std::size_t live);     ///< resident memory per thread that has not begun
double blocked_bytes(std::size_t threads);  ///< resident memory per thread that waits at a latch
double mutex_ns(std::size_t times);         ///< a mutex that nobody else wants, lock and unlock

}  // namespace threads
