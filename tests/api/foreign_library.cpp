// See foreign_library.hpp. Linked as a shared library, with stack protectors, by extras.cmake.
#include "foreign_library.hpp"

#include <cstring>
#include <string>

int foreign_sum(foreign_callback back, void* context, int n) {
  char text[64];
  std::strcpy(text, "kept in a frame of a shared library");
  const std::string small = "small";
  int* const pointer = &n;
  int sum = 0;
  for (int i = 0; i < *pointer; ++i) {
    sum += back(context, i);
    if (std::strcmp(text, "kept in a frame of a shared library") != 0 || small != "small") sum -= 1000000;
  }
  return sum;
}

int foreign_nested(foreign_callback back, void* context, int depth) {
  volatile int canary = depth;
  const int below = depth == 0 ? back(context, 0) : foreign_nested(back, context, depth - 1);
  return canary == depth ? below + 1 : -1000000;
}

namespace {
struct counts_its_end {
  int* destroyed;
  counts_its_end(int* d) : destroyed(d) {}
  counts_its_end(const counts_its_end&) = delete;
  ~counts_its_end() { ++*destroyed; }
};
}  // namespace

int foreign_throwing(foreign_callback back, void* context, int* destroyed) {
  const counts_its_end local(destroyed);
  return back(context, 1) + 1;
}

namespace {
int (*volatile on_use)() = nullptr;  // compilers know that null is never called
}
void foreign_open() {
  on_use = [] { return 6; };
}
int foreign_use() { return on_use() + 1; }
