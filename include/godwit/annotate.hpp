// Names for what a program does, in traces. Document: docs/tracing.md. Test: tests/api/annotate_test.cpp.
#pragma once

#include <godwit/detail/slow_path.hpp>

#include <cstddef>

namespace godwit {

namespace detail {
/// A text that lies in the program.
struct literal {
  const char* text;
  template <std::size_t N>
  consteval literal(const char (&letters)[N]) noexcept : text(letters) {}
};
}  // namespace detail

/// For as long as this object exists, the trace calls what its thread does by @p name, wherever the thread
/// goes on; so it does with the threads that it spawns meanwhile, to their ends. The innermost name counts. A
/// name is a string literal. Never fails; without a trace, or outside of a run, nothing happens. Cost: a call
/// and a test; with a trace two events.
class [[nodiscard]] annotate {
 public:
  explicit annotate(detail::literal name) noexcept { detail::begin_name(name.text, this); }
  ~annotate() { detail::end_name(this); }
  annotate(const annotate&) = delete;
  annotate& operator=(const annotate&) = delete;
};

}  // namespace godwit
