// Which part the calling OS thread allocates from, and where its calls of malloc go on to if it has none. See
// malloc.cpp.
#pragma once

#include "heap/layout.hpp"

namespace godwit::heap {

/// Null: calls go on to `next_`. W its thread.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local part* mine = nullptr;
/// The part of a worker whose allocations are recorded: they have to go on to `next_`, so `mine` is null. W
/// its thread.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local part* recorded = nullptr;

inline part* own_part() noexcept { return mine != nullptr ? mine : recorded; }

/// The C library's, or those of an allocator that was preloaded: found at the first call. In workers whose
/// allocations are recorded some are those of record.cpp. W any.
struct next_functions {
  void* (*malloc)(std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*calloc)(std::size_t, std::size_t) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void* (*memalign)(std::size_t, std::size_t) = nullptr;
  std::size_t (*usable_size)(void*) = nullptr;
};
[[gnu::visibility("hidden")]] inline constinit next_functions next_;

// Functions between a caller of malloc and what looks for that caller are together in one section.
#define GODWIT_IN_MALLOC gnu::section("godwit_malloc")

}  // namespace godwit::heap
