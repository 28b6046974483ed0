// Elements of global arrays and vectors that own something: how they are made, moved and destroyed. Not an
// interface for users but for take and replace.
//
// Such an element is moved by copying its bytes (relocatable, global_ptr.hpp), so growing a vector and moving
// parts of it need nothing of this. They are made and destroyed by the workers that are their homes, all at
// once, so that what an element allocates lies where it does. Called by: global_array.hpp, global_vector.hpp.
// Test: tests/global/nested_test.cpp. See docs/containers.md.
#pragma once

#include <godwit/global_access.hpp>
#include <godwit/global_atomic.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/global_span.hpp>
#include <godwit/runtime.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace godwit {

namespace detail {

/// A T that is nobody's: its destructor does not run by itself.
template <class T>
struct owned_bytes {
  alignas(T) std::byte bytes[sizeof(T)];

  T& value() noexcept { return *std::launder(reinterpret_cast<T*>(bytes)); }
  /// The bytes of @p v, which is empty afterwards.
  static owned_bytes of(T& v) noexcept {
    owned_bytes b;
    std::memcpy(b.bytes, static_cast<const void*>(std::addressof(v)), sizeof(T));
    std::construct_at(std::addressof(v));
    return b;
  }
  static owned_bytes empty() noexcept {
    T v;
    return of(v);
  }
  static global_ptr<owned_bytes> at(global_ptr<T> p) noexcept { return global_ptr<owned_bytes>(p.address()); }
};

/// Calls f(p, i) here for elements [0, n) of @p s whose home is this worker.
template <class T, class F>
void each_at_home(global_span<T> s, const F& f) {
  for (std::uint64_t i = 0; i < s.size();) {
    const global_address at = (s.data() + static_cast<std::ptrdiff_t>(i)).address();
    std::uint32_t home = 0;
    const std::uint64_t bytes = global_home_piece(at, (s.size() - i) * sizeof(T), home);
    const std::uint64_t n = std::max<std::uint64_t>(1, (bytes + sizeof(T) - 1) / sizeof(T));
    if (home == worker_id())
      for (std::uint64_t k = i; k < i + n; ++k) f(s.data() + static_cast<std::ptrdiff_t>(k), k);
    i += n;
  }
}

/// While a worker does something for a container of another thread. It must stay there: a spawn or join now
/// is found out like one during a checkout.
struct at_home {
  at_home() noexcept { ++hot().checkouts; }
  ~at_home() { --hot().checkouts; }
  at_home(const at_home&) = delete;
};

/// So few are not worth a message to every worker.
inline constexpr std::uint64_t few_elements = 16;

/// Run the destructors of [s]. By the elements' homes; here, one after the other, if they are few or if the
/// calling thread must not leave.
template <class T>
void destroy_elements(global_span<T> s) noexcept {
  if constexpr (owning_element<T>) {
    const auto destroy = [](global_ptr<T> p, std::uint64_t) {
      owned_bytes<T> b = get(owned_bytes<T>::at(p));
      std::destroy_at(&b.value());
    };
    if (s.size() > few_elements && worker_count() > 1 && hot().checkouts == 0 &&
        std::uncaught_exceptions() == 0) {
      on_each_worker([s, destroy] {
        const at_home here;
        each_at_home(s, destroy);
      });
    } else {
      for (std::uint64_t i = 0; i < s.size(); ++i) destroy(s.data() + static_cast<std::ptrdiff_t>(i), i);
    }
  }
}

/// What went wrong first in make_elements.
struct make_failure {
  std::uint64_t no_room;  ///< it was a global_bad_alloc
  char text[248];
};

/// Every element of @p s, which are all empty, becomes make(i), made by its home. Throws what went wrong
/// first; then some are made, and others not.
template <class T, class F>
void make_elements(global_span<T> s, const F& make) {
  static_assert(plain<F>,
                "godwit: the function that makes elements must be plain bytes: it is copied to every worker");
  const global_ptr<std::uint64_t> failures = global_new<std::uint64_t>(std::uint64_t{0});
  const global_ptr<make_failure> failure = global_new<make_failure>();
  on_each_worker([s, make, failures, failure] {
    const at_home here;
    const auto failed = [&](bool no_room, const char* text) {
      if (atomic_fetch_add(failures, std::uint64_t{1}) != 0) return;
      make_failure f{no_room ? 1u : 0u, {}};
      std::strncpy(f.text, text, sizeof f.text - 1);
      put(failure, f);
    };
    try {
      each_at_home(s, [&](global_ptr<T> p, std::uint64_t i) {
        T v = make(i);
        put(owned_bytes<T>::at(p), owned_bytes<T>::of(v));
      });
    } catch (const global_bad_alloc& e) {
      failed(true, e.what());
    } catch (const std::exception& e) {
      failed(false, e.what());
    } catch (...) {
      failed(false, "godwit: an element could not be made");
    }
  });
  const bool any = get(failures) != 0;
  const make_failure f = get(failure);
  global_delete(failures);
  global_delete(failure);
  if (!any) return;
  if (f.no_room != 0) throw global_bad_alloc(f.text);
  throw std::runtime_error(f.text);
}

}  // namespace detail

/// The element *p, which owns something, itself: an empty one is left in its place. By one thread at a time.
/// Cost: a get and a put.
template <class T>
requires detail::owning_element<T> T take(global_ptr<T> p) {
  auto b = get(detail::owned_bytes<T>::at(p));
  put(detail::owned_bytes<T>::at(p), detail::owned_bytes<T>::empty());
  T v;
  std::memcpy(static_cast<void*>(std::addressof(v)), b.bytes, sizeof(T));
  return v;
}
/// Put @p v in the place of *p, which is destroyed. By one thread at a time. Cost: a get, a put, and the
/// destructor.
template <class T>
requires detail::owning_element<T>
void replace(global_ptr<T> p, std::type_identity_t<T> v) {
  const T before = take(p);
  put(detail::owned_bytes<T>::at(p), detail::owned_bytes<T>::of(v));
}

}  // namespace godwit
