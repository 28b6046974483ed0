// A run as one HTML page that needs nothing else: data, program and chart library are all inside.
//
// Called by main.cpp. The parts come from page/ and vendor/echarts, built into the executable (embed.S).
// Document: docs/report.md. Tests: tests/report/page_test.cpp, browser_test.py.
#pragma once

#include "summary.hpp"

#include <iosfwd>
#include <string>

namespace godwit::report {

struct page_options {
  std::size_t most_bytes = std::size_t{16} << 20;  ///< about: of the whole page
  double from_s = 0, to_s = -1;                    ///< the time line's part to keep; to_s < 0: up to the end
};

/// @p a: null for counters only. @p file: its name, for the title.
void write_page(std::ostream& out, const recording& r, const analysis* a, const std::string& file,
                const page_options& options);

}  // namespace godwit::report
