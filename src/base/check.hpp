// Fatal errors and invariant checks.
//
// fatal() is for what ends the run: a bug of the caller or ours, or an exhausted limit. It tells the process
// hook (src/runtime puts the text where the supervisor finds it) and leaves with status 70; the supervisor
// then ends all workers. Async-signal-safe as far as vsnprintf is. Test: tests/api/fault_test.cpp.
#pragma once

namespace godwit::base {

/// Exit status of a run that the runtime stopped (EX_SOFTWARE).
inline constexpr int status_failed = 70;

using fatal_hook = void (*)(const char* text) noexcept;
/// Where the text of a fatal error goes; null: standard error.
void set_fatal_hook(fatal_hook hook) noexcept;

/// Say what, where and what to do -- in one line -- and end this process.
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] void fatal(const char* format, ...) noexcept;

}  // namespace godwit::base

/// Always on, off the fast path. The text says what was expected.
#define GODWIT_CHECK(condition, ...)                                                 \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::godwit::base::fatal("internal check failed (" #condition "): " __VA_ARGS__); \
  } while (false)

#ifndef NDEBUG
#define GODWIT_ASSERT(condition, ...) GODWIT_CHECK(condition, __VA_ARGS__)
#else
#define GODWIT_ASSERT(condition, ...) static_cast<void>(0)
#endif
