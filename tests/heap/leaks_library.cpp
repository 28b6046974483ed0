// A shared library that knows nothing of Godwit, and allocates. For leaks_test.cpp, mains_blocks_test.cpp.
#include "heap/leaks_library.hpp"

#include <cstdlib>

namespace leaks_library {

const int keep_line = __LINE__ + 1;
void* keep(std::size_t bytes) { return kept_ = std::malloc(bytes); }

const int list_line = __LINE__ + 3;
entry* list(int n) {
  if (n == 0) return nullptr;
  auto* const e = new entry();
  e->next = list(n - 1);
  return e;
}

}  // namespace leaks_library
