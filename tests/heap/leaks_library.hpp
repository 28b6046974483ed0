// See leaks_library.cpp.
#pragma once

#include <cstddef>

namespace leaks_library {

struct entry {
  entry* next = nullptr;
  long more[5] = {};
};

inline void* kept_ = nullptr;

/// Allocates, and keeps it in a variable of the library.
extern const int keep_line;
void* keep(std::size_t bytes);
/// A list, whose entries lead to each other.
extern const int list_line;
entry* list(int n);

}  // namespace leaks_library
