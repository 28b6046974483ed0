// What tests of values that own memory have in common.
#pragma once

#include "support/elsewhere.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <cstdint>
#include <string>

namespace owning {

namespace gw = godwit;

inline void elsewhere() { support::elsewhere(30); }  // where it is then does not matter

inline std::string long_text(int n) {
  return std::string(static_cast<std::size_t>(40 + n % 300), 'a') + std::to_string(n);
}

/// f(7) in 2^n threads; gives back the sum.
inline int many(int (*f)(int), int n) {
  if (n == 0) return f(7);
  auto left = gw::spawn([f, n] { return many(f, n - 1); });
  const int right = many(f, n - 1);
  return left.join() + right;
}

inline gw::options shared_heap(std::uint32_t workers, const char* force) {
  gw::options o = support::schedule(workers, force);
  o.heap = gw::choice::heap::shared;
  return o;
}

}  // namespace owning
