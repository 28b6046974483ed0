// For who tests schedules: in a build with GODWIT_SCHEDULE_POINTS, each access to a word that workers share
// is a point at which the made world (world.hpp) may let others go first, stores may become visible late, and
// mistakes can be planted by name.
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

inline constexpr bool has_schedule_points = false;
template <class T>
using shared = std::atomic<T>;
inline void schedule_point() noexcept {}
inline void settle() noexcept {}
/// Has the tester asked for mistake @p name?
consteval bool planted(std::string_view) noexcept { return false; }

#else

inline constexpr bool has_schedule_points = true;
inline void schedule_point() noexcept {
  if (made_world != nullptr) made_world->access();
}
/// Stores that others do not see yet are done, as by an atomic operation on any word.
inline void settle() noexcept {
  if (made_world != nullptr) made_world->settle();
}
// The tester's:
extern std::uint64_t planted_mistake;  ///< its number; 0: none
extern bool stores_are_late;           ///< as on CPUs with store buffers (x86)
inline bool planted(std::string_view name) noexcept { return planted_mistake == mistake(name).number; }

/// Inlined, since each place of the code is slow or not by itself (sim/engine.cpp). Loads see the caller's
/// own stores, others see them in their order, but perhaps after loads that follow them: not after an atomic
/// operation, a sequentially consistent store, or a fence.
template <class T>
class shared : public std::atomic<T> {
  using word = std::atomic<T>;

  [[gnu::always_inline]] static inline void act_on_memory() noexcept {
    schedule_point();
    settle();
  }

 public:
  using word::word;
  template <class... Order>
  [[gnu::always_inline]] inline T load(Order... o) const noexcept {
    schedule_point();
    std::uint64_t own = 0;
    if (stores_are_late && made_world != nullptr && made_world->own_store(this, own))
      return static_cast<T>(own);
    return word::load(o...);
  }
  [[gnu::always_inline]] inline void store(T v, std::memory_order o = std::memory_order_seq_cst) noexcept {
    schedule_point();
    if (stores_are_late && made_world != nullptr && o != std::memory_order_seq_cst &&
        made_world->put_off(this, sizeof(T), static_cast<std::uint64_t>(v)))
      return;
    settle();
    word::store(v, o);
  }
  template <class... Order>
  [[gnu::always_inline]] inline T exchange(T v, Order... o) noexcept {
    act_on_memory();
    return word::exchange(v, o...);
  }
  template <class... Order>
  [[gnu::always_inline]] inline bool compare_exchange_strong(T& expected, T v, Order... o) noexcept {
    act_on_memory();
    return word::compare_exchange_strong(expected, v, o...);
  }
  template <class... Order>
  [[gnu::always_inline]] inline bool compare_exchange_weak(T& expected, T v, Order... o) noexcept {
    act_on_memory();
    return word::compare_exchange_weak(expected, v, o...);
  }
  template <class... Order>
  [[gnu::always_inline]] inline T fetch_add(T v, Order... o) noexcept {
    act_on_memory();
    return word::fetch_add(v, o...);
  }
  template <class... Order>
  [[gnu::always_inline]] inline T fetch_and(T v, Order... o) noexcept {
    act_on_memory();
    return word::fetch_and(v, o...);
  }
  template <class... Order>
  [[gnu::always_inline]] inline T fetch_or(T v, Order... o) noexcept {
    act_on_memory();
    return word::fetch_or(v, o...);
  }
  template <class... Order>
  [[gnu::always_inline]] inline T fetch_sub(T v, Order... o) noexcept {
    act_on_memory();
    return word::fetch_sub(v, o...);
  }
};
static_assert(sizeof(shared<std::uint64_t>) == sizeof(std::atomic<std::uint64_t>));

#endif

/// What the caller stored before it is seen by others before it loads anything after it.
inline void fence() noexcept {
  settle();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace godwit::base
