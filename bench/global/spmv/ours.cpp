// Blocks of rows are threads: one pass counts, one fills in, then each product is one pass.

#include "ours.hpp"

namespace spmv {

namespace {

constexpr std::uint64_t grain_rows = 2048;

/// Rows [from, to) at their place, which begins with entry @p at.
void fill(const problem& p, const global_matrix& a, std::uint64_t from, std::uint64_t to, std::uint64_t at,
          std::uint64_t n) {
  auto offsets = gw::checkout(a.offsets + static_cast<std::ptrdiff_t>(from), to - from, gw::access::write);
  auto columns = gw::checkout(a.columns + static_cast<std::ptrdiff_t>(at), n, gw::access::write);
  auto values = gw::checkout(a.values + static_cast<std::ptrdiff_t>(at), n, gw::access::write);
  row r;
  std::uint64_t done = 0;
  for (std::uint64_t i = from; i < to; ++i) {
    make_row(p, i, r);
    offsets[i - from] = at + done;
    std::copy(r.columns, r.columns + r.n, columns.begin() + done);
    std::copy(r.values, r.values + r.n, values.begin() + done);
    done += r.n;
  }
}

std::uint64_t count(const problem& p, std::uint64_t from, std::uint64_t to) {
  row r;
  std::uint64_t n = 0;
  for (std::uint64_t i = from; i < to; ++i) {
    make_row(p, i, r);
    n += r.n;
  }
  return n;
}

/// Numbers become the sums of those before them; gives back the sum of all.
std::uint64_t sum_up(gw::global_ptr<std::uint64_t> p, std::uint64_t n) {
  std::uint64_t sum = 0;
  for (std::uint64_t& x : gw::checkout(p, n, gw::access::read_write)) sum += std::exchange(x, sum);
  return sum;
}

template <class Value>
void rows(const std::uint64_t* offsets, const double* values, double* y, std::uint64_t n,
          const Value& value) {
  for (std::uint64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::uint64_t k = offsets[i] - offsets[0]; k < offsets[i + 1] - offsets[0]; ++k)
      sum += values[k] * value(k);
    y[i] = sum;
  }
}

void product(const global_matrix& a, gw::global_ptr<double> x, gw::global_ptr<double> y, bool whole,
             std::uint64_t from, std::uint64_t to) {
  const std::uint64_t n = to - from;
  auto offsets = gw::checkout(a.offsets + static_cast<std::ptrdiff_t>(from), n + 1, gw::access::read);
  const auto at = static_cast<std::ptrdiff_t>(offsets[0]);
  auto columns = gw::checkout(a.columns + at, offsets[n] - offsets[0], gw::access::read);
  auto values = gw::checkout(a.values + at, offsets[n] - offsets[0], gw::access::read);
  auto out = gw::checkout(y + static_cast<std::ptrdiff_t>(from), n, gw::access::write);
  const auto by_column = [&](const double* v) {
    rows(offsets.data(), values.data(), out.data(), n,
         [v, c = columns.data()](std::uint64_t k) { return v[c[k]]; });
  };
  if (const double* here = gw::try_local(x, a.rows)) return by_column(here);
  if (whole) return by_column(gw::checkout(x, a.rows, gw::access::read).data());
  std::vector<gw::global_ptr<double>> places(columns.size());
  std::vector<double> elements(columns.size());
  for (std::size_t k = 0; k < places.size(); ++k) places[k] = x + columns[k];
  gw::gather<double>(places, elements);
  rows(offsets.data(), values.data(), out.data(), n, [&](std::uint64_t k) { return elements[k]; });
}

}  // namespace

global_matrix build(const problem& p) {
  const auto spread = gw::distribution::blocked();
  const std::uint64_t blocks = (p.rows + grain_rows - 1) / grain_rows;
  const auto first = gw::allocate<std::uint64_t>(blocks + 1, spread);
  bench::each_piece(p.rows, grain_rows, [=](std::uint64_t from, std::uint64_t to) {
    gw::put(first + static_cast<std::ptrdiff_t>(from / grain_rows), count(p, from, to));
  });
  global_matrix a;
  a.rows = p.rows;
  a.entries = sum_up(first, blocks);
  gw::put(first + static_cast<std::ptrdiff_t>(blocks), a.entries);
  a.offsets = gw::allocate<std::uint64_t>(a.rows + 1, spread);
  a.columns = gw::allocate<std::uint32_t>(a.entries, spread);
  a.values = gw::allocate<double>(a.entries, spread);
  gw::put(a.offsets + static_cast<std::ptrdiff_t>(a.rows), a.entries);
  bench::each_piece(p.rows, grain_rows, [=](std::uint64_t from, std::uint64_t to) {
    std::uint64_t range[2];
    gw::get(first + static_cast<std::ptrdiff_t>(from / grain_rows), range, 2);
    fill(p, a, from, to, range[0], range[1] - range[0]);
  });
  gw::deallocate(first, blocks + 1);
  return a;
}

void destroy(const global_matrix& a) {
  gw::deallocate(a.offsets, a.rows + 1);
  gw::deallocate(a.columns, a.entries);
  gw::deallocate(a.values, a.entries);
}

gw::global_ptr<double> multiply(const global_matrix& a, gw::global_ptr<double> x, gw::global_ptr<double> y,
                                unsigned times, std::uint64_t cache_bytes) {
  const bool whole = a.rows * sizeof(double) <= cache_bytes / 4;
  for (unsigned t = 0; t < times; ++t) {
    bench::each_piece(a.rows, grain_rows,
                      [=](std::uint64_t from, std::uint64_t to) { product(a, x, y, whole, from, to); });
    std::swap(x, y);
  }
  return x;
}

}  // namespace spmv
