// Tests of policies: which there can be, and runs under one that must fail.
#pragma once

#include "support/sanitizer.hpp"

#include <godwit/policy.hpp>
#include <godwit/run.hpp>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace support {

/// lazy exists only on x86-64 where workers are processes, and without a sanitizer.
inline bool exists_here(std::string_view policy) {
#if defined(__x86_64__)
  constexpr bool on_this_cpu = true;
#else
  constexpr bool on_this_cpu = false;
#endif
  const char* substrate = std::getenv("GODWIT_SUBSTRATE");
  const bool in_process = substrate != nullptr &&
                          (std::string_view(substrate) == "threads" || std::string_view(substrate) == "sim");
  return policy != "lazy" || (on_this_cpu && !with_asan && !in_process);
}

/// Spawns of policy lazy can be forced where they are looked at: api/extras.cmake.
template <class P>
bool is_forced_under(P, std::string_view force) {
#ifdef GODWIT_LAZY_LOOKS
  constexpr bool looks = true;
#else
  constexpr bool looks = false;
#endif
  return force == "none" || (P::migrates && (looks || !std::is_same_v<P, godwit::policies::lazy>));
}

/// The text of a run that must fail.
template <class Root>
std::string failure(const godwit::options& o, Root&& root) {
  try {
    godwit::run<void>(std::forward<Root>(root), o);
  } catch (const godwit::run_error& e) {
    return e.what();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "it did not fail";
}

inline godwit::options under(const char* policy, std::uint32_t workers = 2) {
  godwit::options o;
  o.workers = workers;
  o.policy = godwit::choice::named{policy};
  return o;
}

}  // namespace support
