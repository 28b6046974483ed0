// The matrix in global memory and its products. To be called inside a run.
#pragma once

#include "../loops.hpp"
#include "spmv.hpp"

namespace spmv {

namespace gw = godwit;

/// Compressed rows, dealt out in one part per home. A handle: copied into closures.
struct global_matrix {
  std::uint64_t rows = 0, entries = 0;
  gw::global_ptr<std::uint64_t> offsets;  ///< rows + 1
  gw::global_ptr<std::uint32_t> columns;
  gw::global_ptr<double> values;
};

global_matrix build(const problem& p);
void destroy(const global_matrix& a);

/// A^times x, in x or y, whichever is given back; the other one is overwritten. @p cache_bytes: the vector is
/// read as a whole on several hosts if it takes a quarter of that at most, else element by element.
gw::global_ptr<double> multiply(const global_matrix& a, gw::global_ptr<double> x, gw::global_ptr<double> y,
                                unsigned times, std::uint64_t cache_bytes);

}  // namespace spmv
