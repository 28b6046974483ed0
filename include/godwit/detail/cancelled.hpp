// What every thread needs of cancellation: the exception, and the question. The rest: cancel.hpp.
#pragma once

#include <godwit/detail/hot.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace godwit {

/// Thrown out of a spawn, join or yield of a thread that is below a scope that was cancelled. It ends the
/// thread like any other exception; `cancel_scope::run`, `race` and `with_deadline` catch it. Not a
/// std::exception: a handler for errors does not take a request to stop for one. Who catches it and goes on
/// gets it again at the next spawn, join or yield.
class cancelled {
 public:
  /// For whoever sees it in a place that it must not leave.
  const char* what() const noexcept {
    return "godwit::cancelled left code that is noexcept: put a gw::cancel_shield in front of it, and ask "
           "gw::is_cancelled() there";
  }
};

namespace detail {
/// Result of threads that begin even if they are cancelled: others count on their end.
struct always_begins {};
/// The answer is not known any more: look at the scopes of the running thread.
[[gnu::cold]] bool ask_cancelled() noexcept;
/// Throws cancelled, unless the thread is being unwound already.
[[gnu::cold]] void throw_cancelled();
}  // namespace detail

/// Has a scope above the calling thread been cancelled, with no shield in between? Local: two loads and a
/// comparison; after a cancellation anywhere, and after the thread has moved or entered a scope, once a walk
/// over its scopes.
inline bool is_cancelled() noexcept {
  using detail::hot_words;
  const auto* const now =
      detail::hot_load<offsetof(hot_words, cancellations), const std::atomic<std::uint64_t>*>();
  const std::uint64_t differs = now->load(std::memory_order_acquire) ^
                                detail::hot_load<offsetof(hot_words, cancel_answer), std::uint64_t>();
  return differs < 2 ? differs != 0 : detail::ask_cancelled();
}

}  // namespace godwit
