// Where and how the algorithms' tests run: distributions of tiny and large blocks, schedules, memory checked
// or not (checked memory is reached by checkout and by copies, as that of other hosts is). And sizes, and
// ranges in and out.
#pragma once

#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace support {

/// Around the borders of leaves (n / 128, n / 512), of copied pieces (256 or 512) and of blocks.
constexpr std::array<std::uint64_t, 15> sizes() {
  return {0, 1, 2, 3, 7, 8, 9, 127, 129, 255, 257, 511, 513, 1025, 5003};
}

/// Is p[i] == f(i) for i < n? No vector of what is expected may live across an algorithm: the thread may go
/// on elsewhere.
template <class T, class F>
bool same(godwit::global_ptr<T> p, std::uint64_t n, F f) {
  const auto s = godwit::checkout(p, n, godwit::access::read);
  for (std::uint64_t i = 0; i < n; ++i)
    if (!(s[i] == static_cast<std::remove_cv_t<T>>(f(i)))) return false;
  return true;
}
/// p[i] = f(i) for i < n.
template <class T, class F>
void set(godwit::global_ptr<T> p, std::uint64_t n, F f) {
  const auto s = godwit::checkout(p, n, godwit::access::write);
  for (std::uint64_t i = 0; i < n; ++i) s[i] = static_cast<T>(f(i));
}
/// The elements as a vector: for use between two algorithms, not across one.
template <class T>
std::vector<T> load(godwit::global_ptr<T> p, std::uint64_t n) {
  std::vector<T> v(n);
  if (n != 0) godwit::get(p, v.data(), n);
  return v;
}
/// A number that looks like chance, the same for the same i.
constexpr std::uint64_t scrambled(std::uint64_t i) {
  std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}
/// What is wrong, without a frame that holds it across a spawn.
inline std::string wrong(const char* what, std::uint64_t n) {
  return std::string(what) + ", n = " + std::to_string(n);
}

/// body(distribution) in a run, gives back what is wrong; for all places and schedules.
template <class Body>
void for_each_place(Body body) {
  const bool everything = number_from_environment("STRESS_SHORT", 0) == 0;
  for (const char* check : {"off", "on"})
    for (const char* force : {"none", "parents", "children", "random"})
      for (const std::uint32_t workers : {1u, 2u, 4u}) {
        if (!everything && (workers > 2 || std::string_view(force) == "parents")) continue;
        if (workers != 2 && (std::string_view(force) == "parents" || std::string_view(force) == "children"))
          continue;
        godwit::options o = schedule(workers, force);
        o.check_global = godwit::choice::named{check};
        SCOPED_TRACE(describe(o) + " check_global=" + check);
        EXPECT_EQ(godwit::run<std::string>([body] { return body(godwit::distribution::cyclic(48)); }, o), "")
            << "cyclic";
        EXPECT_EQ(godwit::run<std::string>([body] { return body(godwit::distribution::blocked()); }, o), "")
            << "blocked";
        if (testing::Test::HasFailure()) return;
      }
}

}  // namespace support
