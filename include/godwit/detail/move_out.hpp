// The value of a thread is moved twice while nobody steals: out of the child's frame into the future, and out
// of the future into what join returns. Test: tests/api/future_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace godwit::detail {

/// | address of the text | length | room for a short text |: a string of libstdc++.
template <class T>
constexpr bool has_room_for_text = false;
#if defined(__GLIBCXX__) && _GLIBCXX_USE_CXX11_ABI
template <class C, class Traits>
constexpr bool has_room_for_text<std::basic_string<C, Traits>> = true;
#endif

/// Move @p from to @p to, where no value is yet, and end it.
template <class T>
[[gnu::always_inline]] inline void move_out(T& from,
                                            void* to) noexcept(std::is_nothrow_move_constructible_v<T>) {
  if constexpr (has_room_for_text<T>) {
    // By words, as it was written: a string's own move calls memcpy for a short text, and wider loads
    // would wait for narrower stores. Either costs more than a spawn.
    using word = std::uintptr_t;
    constexpr std::size_t words = sizeof(T) / sizeof(word), room = 2;
    auto* const old_place = reinterpret_cast<std::byte*>(__builtin_addressof(from));
    auto* const place = static_cast<std::byte*>(to);
    const auto copy = [&](std::size_t first, std::size_t end) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (std::size_t i = first; i < end; ++i) {
        word w;
        std::memcpy(&w, old_place + i * sizeof w, sizeof w);
        asm volatile("" : "+r"(w));
        std::memcpy(place + i * sizeof w, &w, sizeof w);
      }
    };
    if (reinterpret_cast<std::byte*>(from.data()) == old_place + room * sizeof(word)) {
      const auto text = reinterpret_cast<word>(place + room * sizeof(word));
      std::memcpy(place, &text, sizeof text);
      copy(1, words);
    } else {
      copy(0, room + 1);  // the last one is how long it may become
    }
  } else {
    new (to) T(std::move(from));
    from.~T();
  }
}

/// Move @p from to the caller, and end it.
template <class T>
[[gnu::always_inline]] inline T moved_out(T& from) noexcept(std::is_nothrow_move_constructible_v<T>) {
  const struct ended {
    T& v;
    ~ended() { v.~T(); }
  } after{from};
  return std::move(from);
}
template <class T>
requires has_room_for_text<T>
[[gnu::always_inline]] inline T moved_out(T& from) noexcept {
  T to;
  move_out(from, __builtin_addressof(to));
  return to;
}

}  // namespace godwit::detail
