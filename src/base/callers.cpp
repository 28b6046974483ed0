// See callers.hpp.
#include "base/callers.hpp"

#include <algorithm>
#include <cstddef>
#include <link.h>

#include "base/walk_stack.hpp"

namespace godwit::base {

namespace {

struct range {
  std::uintptr_t low = 0, high = 0;
  bool holds(std::uintptr_t at) const noexcept { return at - low < high - low; }
};

/// The code of the shared library that this is in; empty: it is in the program itself.
range find_own_code() noexcept {
  struct search {
    bool is_program = true;
    range found{};
  } s;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* to) {
        auto& all = *static_cast<search*>(to);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          const range code{object->dlpi_addr + part.p_vaddr, object->dlpi_addr + part.p_vaddr + part.p_memsz};
          if (part.p_type != PT_LOAD || !code.holds(reinterpret_cast<std::uintptr_t>(&find_own_code)))
            continue;
          if (!all.is_program) all.found = code;
          return 1;
        }
        all.is_program = false;  // it comes first
        return 0;
      },
      &s);
  return s.found;
}

}  // namespace

callers callers_of(const void* variable, std::uintptr_t end) noexcept {
  static const range own_code = find_own_code();
  callers found{};
  std::size_t count = 0;
  std::uintptr_t last = 0;  // the frame before
  walk_stack([&](std::uintptr_t code, std::uintptr_t low) noexcept {
    if (code == 0 || low >= end || low < last) return false;  // below: of another stack
    last = low;
    if (low <= reinterpret_cast<std::uintptr_t>(variable))
      found.code[0] = code, count = 1;  // until a frame begins beyond it
    else if (count == 1 && own_code.holds(found.code[0]))
      found.code[0] = code;
    else
      found.code[count++] = code;
    return count < found.code.size();
  });
  return found;
}

}  // namespace godwit::base
