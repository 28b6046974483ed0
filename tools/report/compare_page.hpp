// A comparison as one HTML file that needs no network.
//
// Called by main.cpp. The parts come from page/ and vendor/echarts, as for page.hpp. Document:
// docs/report.md. Tests: tests/report/compare_test.cpp, browser_test.py.
#pragma once

#include "compare.hpp"

#include <iosfwd>

namespace godwit::report {

void write_comparison(std::ostream& out, const comparison& c);

}  // namespace godwit::report
