// A spawn that costs nothing: policy lazy (policy.hpp). The child is a plain call within a `try`, and nothing
// is stored. When somebody asks for work, or the thread has to wait, the runtime finds the call by the unwind
// tables, writes the slot that other spawns would have written, and makes the child return by way of the
// runtime. Whoever goes on with the parent then enters it by an exception that no program sees.
// docs/protocols/lazy.md. Found by: src/sched/lazy_spawns.cpp.
#pragma once

#include <godwit/task.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace godwit::detail {

// What the runtime knows of a spawn by the type that its handler catches.
inline constexpr unsigned lazy_by_address = 1;  ///< the result lies in the parent's frame; else in a register
inline constexpr unsigned lazy_owns = 2;     ///< the closure must have been moved before the parent may leave
inline constexpr unsigned lazy_hides = 4;    ///< and there may be addresses in what it owns
inline constexpr unsigned lazy_bare = 8;     ///< there is no room for an address in the closure
inline constexpr unsigned lazy_begins = 16;  ///< always: its spawn does not throw cancelled
inline constexpr unsigned lazy_traits_end = 32;

/// Thrown where a parent goes on, as if by its child's call.
template <unsigned Traits>
struct lazy_left {
  std::uintptr_t status;  ///< of the child's record
};
/// Never thrown: marks calls that a closure which owns memory is used in.
struct lazy_inside {};

[[noreturn]] void lazy_never();
/// Compilers must not find out that a callable throws nothing: the handler would go, and the spawn with it.
/// Nor which registers it leaves alone: the runtime does not. (lazy_never is code of elsewhere.) It costs no
/// instruction.
[[gnu::always_inline]] inline void lazy_may_throw() {
#ifdef __clang__
  asm volatile("" : : : "unwind");  // clang 14 loses the labels of `asm goto` in precompiled headers
#else
  asm volatile goto("" : : : : may);
  return;
may:
  lazy_never();
#endif
}
/// Only in programs compiled with GODWIT_LAZY_LOOKS, for tests: a spawn is looked at as others are.
void lazy_spawn_point() noexcept;
#ifdef GODWIT_LAZY_LOOKS
extern "C" [[gnu::weak, gnu::used]] const char godwit_lazy_looks = 1;
#endif

/// The thread around one callable.
template <class F, class R>
struct lazy_child {
  static constexpr bool by_word = child<F, R>::by_word;
  static constexpr bool owns = !std::is_trivially_copyable_v<F>;
  static constexpr unsigned traits = (by_word || std::is_void_v<R> ? 0 : lazy_by_address) |
                                     (owns ? lazy_owns : 0) | (owns && may_hide_address<F> ? lazy_hides : 0) |
                                     (!owns && !may_hold_address<F> ? lazy_bare : 0) |
                                     (std::is_same_v<R, always_begins> ? lazy_begins : 0);
  /// A word, or where the result is and how it gets into a record.
  using returned =
      std::conditional_t<std::is_void_v<R>, void, std::conditional_t<by_word, std::uintptr_t, word_pair>>;

  // `used`: else compilers leave out results that the caller knows or does not look at. The runtime does.
  [[gnu::noinline, gnu::used, gnu::visibility("hidden")]] static returned run(
      std::uintptr_t a0, [[maybe_unused]] std::uintptr_t a1, [[maybe_unused]] void* out) {
    manual<F> f;
    if constexpr (owns) {
      new (&f.value) F(std::move(*reinterpret_cast<F*>(a0)));
      const struct destroy {
        F& f;
        ~destroy() { f.~F(); }
      } guard{f.value};
      try {
        return inside(f.value, out);  // LZ4: from here on the parent may leave
      } catch (const lazy_inside&) {
        lazy_never();
      }
    } else {
      if constexpr (in_registers<F>) {
        const std::uintptr_t words[2] = {a0, a1};
        std::memcpy(static_cast<void*>(&f), words, sizeof(F));
      } else {
        std::memcpy(static_cast<void*>(&f), reinterpret_cast<const void*>(a0), sizeof(F));
      }
      look();
      lazy_may_throw();
      return call(f.value, out);
    }
  }

 private:
  [[gnu::always_inline]] static void look() noexcept {
#ifdef GODWIT_LAZY_LOOKS
    lazy_spawn_point();
#endif
  }
  [[gnu::always_inline]] static returned call(F& f, [[maybe_unused]] void* out) {
    if constexpr (std::is_void_v<R>) {
      return static_cast<void>(std::move(f)());
    } else if constexpr (by_word) {
      const R value = std::move(f)();
      std::uintptr_t word = 0;
      std::memcpy(&word, __builtin_addressof(value), sizeof(R));
      return word;
    } else {
      new (out) R(std::move(f)());
      return {reinterpret_cast<std::uintptr_t>(out), reinterpret_cast<std::uintptr_t>(&give)};
    }
  }
  [[gnu::noinline, gnu::used]] static returned inside(F& f, void* out) {
    look();
    lazy_may_throw();
    return call(f, out);
  }
  /// The parent left: the result of @p from goes into @p record. 0: the parent is cancelled, and it goes
  /// nowhere.
  static void give(ref record, std::uintptr_t from) noexcept {
    if constexpr (!std::is_void_v<R>) {
      R& value = *reinterpret_cast<R*>(from);
      ref error = 0;
      try {
        if (record != 0) publish_value(record, value);
      } catch (...) {
        error = capture_exception();
      }
      value.~R();
      if (error != 0) publish_error(record, error);
    }
  }
};

template <class F>
[[gnu::always_inline]] inline future<std::invoke_result_t<F>> spawn_lazily(F& f) {
  using R = std::invoke_result_t<F>;
  static_assert(
      !std::is_reference_v<R> && (std::is_void_v<R> || migratable<R>),
      "godwit: the result type of this thread cannot migrate: it must be movable, no reference, and "
      "nothing that belongs to one process (locks, OS threads, file streams)");
  using thunk = lazy_child<F, R>;
  future<R> result = future_access::make<R>();
  std::uintptr_t words[2] = {0, 0};
  if constexpr (in_registers<F>)
    std::memcpy(words, static_cast<const void*>(&f), sizeof(F));
  else
    words[0] = reinterpret_cast<std::uintptr_t>(__builtin_addressof(f));
  void* out = nullptr;
  if constexpr ((thunk::traits & lazy_by_address) != 0) out = future_access::room(result);
  [[maybe_unused]] std::uintptr_t word = 0;
  try {
    if constexpr (std::is_void_v<R>) {
      thunk::run(words[0], words[1], out);
    } else if constexpr (thunk::by_word) {
      word = thunk::run(words[0], words[1], out);
    } else {
      static_cast<void>(thunk::run(words[0], words[1], out));
    }
  } catch (const lazy_left<thunk::traits>& left) {
    future_access::state(result) = no_state;  // that may throw
    future_access::state(result) = resumed(left.status) | unmoved;
    if constexpr ((thunk::traits & lazy_begins) == 0) throw_cancelled();  // CA4
    return result;
  } catch (...) {
    future_access::state(result) = capture_exception();
    return result;
  }
  future_access::state(result) = in_frame;
  if constexpr (thunk::by_word && !std::is_void_v<R>)
    std::memcpy(future_access::room(result), &word, sizeof(R));
  else if constexpr (!is_plain_result<R>)
    future_access::link(result);
  return result;
}

}  // namespace godwit::detail
