// See callers.hpp.
#include "base/callers.hpp"

#include <algorithm>
#include <cstddef>
#include <link.h>
#include <unwind.h>

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

struct walk {
  std::uintptr_t variable, end;
  range own_code;
  std::uintptr_t last = 0;  ///< the frame before
  std::size_t count = 0;
  callers found{};
};

/// Where unwinders are, "CFA" is the lower end of the frame that they tell about.
_Unwind_Reason_Code look(_Unwind_Context* frame, void* to) noexcept {
  auto& w = *static_cast<walk*>(to);
  const std::uintptr_t low = _Unwind_GetCFA(frame), code = _Unwind_GetIP(frame);
  if (code == 0 || low >= w.end || low < w.last) return _URC_END_OF_STACK;  // below: of another stack
  w.last = low;
  if (low <= w.variable)
    w.found.code[0] = code, w.count = 1;  // until a frame begins beyond it
  else if (w.count == 1 && w.own_code.holds(w.found.code[0]))
    w.found.code[0] = code;
  else
    w.found.code[w.count++] = code;
  return w.count < w.found.code.size() ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

callers callers_of(const void* variable, std::uintptr_t end) noexcept {
  static const range own_code = find_own_code();
  walk w{reinterpret_cast<std::uintptr_t>(variable), end, own_code};
  _Unwind_Backtrace(look, &w);
  return w.found;
}

}  // namespace godwit::base
