// The serial code. See spmv.hpp.

#include "spmv.hpp"

namespace spmv {

plain_matrix build_serial(const problem& p) {
  plain_matrix a;
  a.offsets.assign(1, 0);
  a.offsets.reserve(p.rows + 1);
  row r;
  for (std::uint64_t i = 0; i < p.rows; ++i) {
    make_row(p, i, r);
    a.columns.insert(a.columns.end(), r.columns, r.columns + r.n);
    a.values.insert(a.values.end(), r.values, r.values + r.n);
    a.offsets.push_back(a.columns.size());
  }
  return a;
}

std::vector<double> multiply_serial(const plain_matrix& a, std::vector<double> x, unsigned times) {
  std::vector<double> y(x.size());
  for (unsigned t = 0; t < times; ++t) {
    for (std::uint64_t i = 0; i < y.size(); ++i) {
      double sum = 0;
      for (std::uint64_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) sum += a.values[k] * x[a.columns[k]];
      y[i] = sum;
    }
    x.swap(y);
  }
  return x;
}

}  // namespace spmv
