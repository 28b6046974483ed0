// What the owners of global memory (global_array, global_vector, global_bytes, global_map) have in common:
// they know the run that they belong to. Not an interface for users.
//
// An owner may outlive its run: as a global variable, or as what run<T> gave back. Its memory is gone then,
// so freeing it is nothing, and every other use is a std::logic_error. The check is one compare of a local
// word. Test: tests/global/array_test.cpp.
#pragma once

#include <godwit/detail/slow_path.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace godwit::detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void run_is_over(const char* what) {
  throw std::logic_error(
      std::string("godwit: this ") + what + " belongs to a run that is over" +
      (detail::hot_run() != 0 ? " (another one is on now)" : "") +
      ", and its memory went with it: copy out what you need before run ends, and return that");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void owner_taken_twice(const char* what) {
  throw std::logic_error(
      std::string("godwit: a ") + what +
      " has one owner, so a shared_future cannot give it to several readers: let the thread return its "
      "span or view, and keep the owner elsewhere");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void index_out_of_range(const char* what, std::uint64_t i,
                                                                      std::uint64_t n) {
  throw std::out_of_range(std::string("godwit: ") + what + "::at(" + std::to_string(i) + "): there are " +
                          std::to_string(n) + " elements");
}

/// @p run: when the memory was allocated.
[[gnu::always_inline]] inline void require_run(std::uint32_t run, const char* what) {
  if (run != detail::hot_run()) [[unlikely]]
    run_is_over(what);
}

}  // namespace godwit::detail
