// ThreadSanitizer, which is in this process if the program was built with -fsanitize=thread. It does not see
// this library's own synchronisation, and is told of it here. docs/debugging.md. Test: tests/tsan.
#pragma once

#include <cstdint>

extern "C" {
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
}

namespace godwit::base {

/// Is it there? Local.
inline bool on_thread_sanitizer() noexcept { return &__tsan_acquire != nullptr; }

/// What the caller did so far is over for all who come after the same address (happens_after). Local.
inline void happens_before(const void* at) noexcept {
  if (on_thread_sanitizer()) [[unlikely]]
    __tsan_release(const_cast<void*>(at));
}
inline void happens_after(const void* at) noexcept {
  if (on_thread_sanitizer()) [[unlikely]]
    __tsan_acquire(const_cast<void*>(at));
}

/// Can it keep a shadow of memory at [@p low, @p low + @p bytes)? Elsewhere it lets a program map nothing, or
/// ends it. True without it. Local.
inline bool thread_sanitizer_allows(std::uintptr_t low, std::uint64_t bytes) noexcept {
  // Two of the ranges that it gives to programs on x86-64; other machines have room in the first, too.
  constexpr std::uintptr_t end = 0x80'0000'0000, next = 0x5500'0000'0000, end_of_next = 0x5680'0000'0000;
  return !on_thread_sanitizer() || (low < end && bytes <= end - low) ||
         (low >= next && low < end_of_next && bytes <= end_of_next - low);
}

}  // namespace godwit::base
