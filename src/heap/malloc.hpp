// Which part the calling OS thread allocates from. See malloc.cpp.
#pragma once

#include "heap/layout.hpp"

namespace godwit::heap {

/// Null: the C library's malloc. W its thread.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local part* mine = nullptr;

}  // namespace godwit::heap
