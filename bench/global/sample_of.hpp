// A phase of a run as the harness's sample. Apart from parts.hpp, because the harness's headers take long to
// compile. Used by the main.cpp of bench/global/*.
#pragma once

#include "../common/harness.hpp"
#include "parts.hpp"

namespace parts {

/// @p whole with the time of a phase of it.
inline bench::sample only(const phase& p, bench::sample whole, bool correct) {
  whole.seconds = p.seconds;
  whole.cpu_seconds = p.cpu_seconds;
  whole.correct = correct;
  return whole;
}

}  // namespace parts
