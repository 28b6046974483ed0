// For tests of requests to stop.
#pragma once

#include <godwit/cancel.hpp>

#include <utility>

namespace support {

/// Did f() throw cancelled?
template <class F>
bool stops(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const godwit::cancelled&) {
    return true;
  }
  return false;
}

}  // namespace support
