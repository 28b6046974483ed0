// See callers.hpp.
#include "base/callers.hpp"

#include <algorithm>
#include <cstddef>
#include <unwind.h>

namespace godwit::base {

namespace {

struct walk {
  std::uintptr_t variable, end;
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
  else
    w.found.code[w.count++] = code;
  return w.count < w.found.code.size() ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

callers callers_of(const void* variable, std::uintptr_t end) noexcept {
  walk w{reinterpret_cast<std::uintptr_t>(variable), end};
  _Unwind_Backtrace(look, &w);
  return w.found;
}

}  // namespace godwit::base
