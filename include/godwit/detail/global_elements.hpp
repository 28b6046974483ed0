// Elements of global arrays and vectors that own something: how they are made, moved and destroyed. Not an
// interface for users but for take and replace.
//
// Such an element is moved by copying its bytes (relocatable, global_ptr.hpp), so growing a vector and moving
// parts of it need nothing of this. They are made by the workers that are their homes, all at once, so that
// what an element allocates lies where it does, and destroyed by those that have them. Called by:
// global_array.hpp, global_vector.hpp, global_map.hpp. Tests: tests/global/nested_test.cpp,
// movable_test.cpp. See docs/containers.md.
#pragma once

#include <godwit/detail/control_path.hpp>
#include <godwit/global_access.hpp>
#include <godwit/global_atomic.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/global_span.hpp>
#include <godwit/heat.hpp>
#include <godwit/runtime.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Memory may be at home at spare workers as well, which on_each_worker does not reach: who does there what
/// is done at @p home.
inline std::uint32_t acts_for(std::uint32_t home) noexcept { return home % worker_count(); }

/// Calls f(p, i) here for elements [0, n) of @p s for whose home this worker acts.
template <class T, class F>
void each_at_home(global_span<T> s, const F& f) {
  for (std::uint64_t i = 0; i < s.size();) {
    const global_address at = (s.data() + static_cast<std::ptrdiff_t>(i)).address();
    std::uint32_t home = 0;
    const std::uint64_t bytes = global_home_piece(at, (s.size() - i) * sizeof(T), home);
    const std::uint64_t n = std::max<std::uint64_t>(1, (bytes + sizeof(T) - 1) / sizeof(T));
    if (acts_for(home) == worker_id())
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

/// Who does something with which elements of a span, all workers at once: in movable memory who has them,
/// else their homes. It is decided once, since parts may go on moving: an element is one worker's and no
/// other's, by where its first byte lies. Plain bytes; free() when all are done.
template <class T>
class element_shares {
 public:
  /// Cost: local; movable: that of parts_of, and an allocation. If there is no room for it, their homes.
  explicit element_shares(global_span<T> s) noexcept : s_(s) {
    if (!s.empty() && global_is_movable(s.data().address())) ask_owners();
  }
  void free() const noexcept {
    if (shares_ != nullptr) deallocate(shares_, count_);
  }
  /// Calls f(p, i) here for those of this worker.
  template <class F>
  void each_of_mine(const F& f) const {
    if (shares_ == nullptr) return each_at_home(s_, f);
    constexpr std::uint64_t at_once = 64;
    share some[at_once];
    for (std::uint64_t k = 0; k < count_; k += at_once) {
      const std::uint64_t n = std::min(at_once, count_ - k);
      get(shares_ + static_cast<std::ptrdiff_t>(k), some, n);
      for (const share* x = some; x != some + n; ++x)
        for (std::uint64_t i = x->first; x->worker == worker_id() && i < x->end; ++i)
          f(s_.data() + static_cast<std::ptrdiff_t>(i), i);
    }
  }

 private:
  struct share {
    std::uint64_t first, end;
    std::uint64_t worker;
  };
  [[gnu::noinline]] void ask_owners() noexcept {  // what it has in the heap must not wait for others
    try {
      const global_address begin = s_.data().address();
      std::vector<share> all;
      for (const part_info& p : global_parts(begin, s_.size() * sizeof(T), false)) {
        const std::uint64_t bytes = p.begin.address() + p.bytes - begin;
        const std::uint64_t first = all.empty() ? 0 : all.back().end;
        const std::uint64_t end = std::min(s_.size(), (bytes + sizeof(T) - 1) / sizeof(T));
        if (!all.empty() && all.back().worker == acts_for(p.owner))
          all.back().end = end;
        else if (end > first)
          all.push_back({first, end, acts_for(p.owner)});
      }
      shares_ = allocate<share>(all.size());
      count_ = all.size();
      put(shares_, all.data(), all.size());
    } catch (const std::bad_alloc&) {
      shares_ = nullptr;
    }
  }
  global_span<T> s_;
  global_ptr<share> shares_;
  std::uint64_t count_ = 0;
};

/// f(p, i) for all elements of @p s, which own something or hold what does, and at_each(w) for all workers,
/// spare ones too. Each by the worker that has it, or acts for it (element_shares), in one call of
/// on_each_worker. Here, one after the other, if the elements are few or if the calling thread must not
/// leave.
template <class T, class F, class G>
void each_where_it_is(global_span<T> s, const F& f, const G& at_each) noexcept {
  if (s.size() > few_elements && worker_count() > 1 && hot().checkouts == 0 &&
      std::uncaught_exceptions() == 0) {
    const element_shares<T> shares(s);
    on_each_worker([shares, f, at_each] {
      const at_home here;
      shares.each_of_mine(f);
      for (std::uint32_t w = 0; w < all_workers(); ++w)
        if (acts_for(w) == worker_id()) at_each(w);
    });
    shares.free();
  } else {
    for (std::uint64_t i = 0; i < s.size(); ++i) f(s.data() + static_cast<std::ptrdiff_t>(i), i);
    for (std::uint32_t w = 0; w < all_workers(); ++w) at_each(w);
  }
}

/// Run the destructors of [s].
template <class T>
void destroy_elements(global_span<T> s) noexcept {
  if constexpr (owning_element<T>) {
    const auto destroy = [](global_ptr<T> p, std::uint64_t) {
      owned_bytes<T> b = get(owned_bytes<T>::at(p));
      std::destroy_at(&b.value());
    };
    each_where_it_is(s, destroy, [](std::uint32_t) {});
  }
}

/// What went wrong first in make_elements.
struct make_failure {
  std::uint64_t no_room;  ///< it was a global_bad_alloc
  char text[248];
};

/// Every element of @p s, which are all empty, becomes make(i), made by its home or who acts for it. Throws
/// what went wrong first; then some are made, and others not.
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
