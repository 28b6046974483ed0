// System calls without the C library's wrappers: those may be somebody's own (the pthread preload replaces
// read and the like), and `errno` has an address that compilers keep over a suspension, after which it can be
// another OS thread's.
#pragma once

#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread_sanitizer.hpp"

namespace godwit::events {

/// Who reads comes after who wrote, whatever connects them: ThreadSanitizer does not see these calls.
inline constexpr char order_of_calls = 0;

[[gnu::noinline]] inline long raw_words(long number, long a, long b, long c, long d, long e,
                                        long f) noexcept {
  const long r = syscall(number, a, b, c, d, e, f);
  return r == -1 ? -errno : r;
}
inline long raw_word(const void* p) noexcept { return reinterpret_cast<long>(p); }
inline long raw_word(long v) noexcept { return v; }

/// The result, or -errno.
template <class... Args>
long raw(long number, Args... args) noexcept {
  const long words[6] = {raw_word(args)...};
  base::happens_before(&order_of_calls);
  const long result = raw_words(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  base::happens_after(&order_of_calls);
  return result;
}

/// ThreadSanitizer, which has seen the program open it, is to see this as well: the number may be another's
/// soon.
inline long raw_close(int fd) noexcept {
  if (!base::on_thread_sanitizer()) [[likely]]
    return raw(SYS_close, fd);
  base::happens_after(&order_of_calls);
  const long result = close(fd) == 0 ? 0 : -errno;
  base::happens_before(&order_of_calls);
  return result;
}

/// What the C library would give back. Not inlined: the caller may have migrated.
[[gnu::noinline]] inline long with_errno(long result) noexcept {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}
inline int int_with_errno(long result) noexcept { return static_cast<int>(with_errno(result)); }

}  // namespace godwit::events
