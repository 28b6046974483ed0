// Time lines and series as text for the page: variable-length numbers in base64, and less detail where there
// is much.
//
// Every piece of a time line that is longer than some threshold is kept as it is; neighbours shorter than
// that are put together into one piece that says how much of it was what. The threshold is the smallest with
// which the result fits the size that is allowed: 0 for small traces. Read by page/data.js. Test:
// tests/report/page_test.cpp.
#pragma once

#include "analysis.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace godwit::report {

struct encoded_timeline {
  std::string bytes;               ///< per worker: number of pieces, then the pieces (see encode.cpp)
  std::uint64_t threshold_ns = 0;  ///< pieces shorter than this were put together; 0: all are exact
  std::uint64_t pieces = 0;
};
/// At most about @p most_bytes; what lies in [from, to) only.
encoded_timeline encode_timeline(const std::vector<std::vector<segment>>& timeline, std::size_t most_bytes,
                                 std::uint64_t from, std::uint64_t to);

struct encoded_series {
  std::string bytes;         ///< count, then per step: time since the last one, 256 x mean, most
  std::uint64_t bin_ns = 0;  ///< width of the bins that steps were averaged over; 0: exact
};
encoded_series encode_steps(const steps& series, std::size_t most_steps, std::uint64_t end);

std::string base64(const std::string& bytes);

}  // namespace godwit::report
