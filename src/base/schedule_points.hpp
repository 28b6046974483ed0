// For who tests schedules: in a build with GODWIT_SCHEDULE_POINTS, each access to a word that workers share
// is a point at which the made world (world.hpp) may let others go first, and mistakes can be planted by
// name.
//
// In every other build `shared` is std::atomic, and nothing is planted: the compiler sees constants. Such a
// build is tests/seeds (docs/scale.md), where the simulator is the world.
#pragma once

#include "base/world.hpp"

#include <atomic>
#include <cstdint>
#include <string_view>

namespace godwit::base {

/// A mistake that can be planted, by its name (FNV-1a).
struct mistake {
  std::uint64_t number = 0xcbf29ce484222325;
  constexpr explicit mistake(std::string_view name) noexcept {
    for (const char c : name) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
};

#ifndef GODWIT_SCHEDULE_POINTS

template <class T>
using shared = std::atomic<T>;
inline void schedule_point() noexcept {}
/// Has the tester asked for mistake @p name?
consteval bool planted(std::string_view) noexcept { return false; }

#else

inline void schedule_point() noexcept {
  if (made_world != nullptr) made_world->access();
}
extern std::uint64_t planted_mistake;  ///< its number; 0: none. The tester's
inline bool planted(std::string_view name) noexcept { return planted_mistake == mistake(name).number; }

template <class T>
class shared : public std::atomic<T> {
  using word = std::atomic<T>;

 public:
  using word::word;
  template <class... Order>
  T load(Order... o) const noexcept {
    schedule_point();
    return word::load(o...);
  }
  template <class... Order>
  void store(T v, Order... o) noexcept {
    schedule_point();
    word::store(v, o...);
  }
  template <class... Order>
  T exchange(T v, Order... o) noexcept {
    schedule_point();
    return word::exchange(v, o...);
  }
  template <class... Order>
  bool compare_exchange_strong(T& expected, T v, Order... o) noexcept {
    schedule_point();
    return word::compare_exchange_strong(expected, v, o...);
  }
  template <class... Order>
  bool compare_exchange_weak(T& expected, T v, Order... o) noexcept {
    schedule_point();
    return word::compare_exchange_weak(expected, v, o...);
  }
  template <class... Order>
  T fetch_add(T v, Order... o) noexcept {
    schedule_point();
    return word::fetch_add(v, o...);
  }
  template <class... Order>
  T fetch_sub(T v, Order... o) noexcept {
    schedule_point();
    return word::fetch_sub(v, o...);
  }
};
static_assert(sizeof(shared<std::uint64_t>) == sizeof(std::atomic<std::uint64_t>));

#endif

}  // namespace godwit::base
