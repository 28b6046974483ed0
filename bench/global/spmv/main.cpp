// global_spmv: sparse matrices in global memory: built in parallel, then applied again and again, beside
// plain serial code. Every run's result is the serial one bit by bit.

#include <cmath>
#include <cstdio>
#include <cstring>

#include "../timed_parts.hpp"
#include "ours.hpp"

namespace {

using namespace spmv;

std::vector<double> right;  ///< made before the run, so that all workers have it

enum part : std::size_t { building, multiplying, part_count };
using times = bench::parts<part_count>;

std::vector<double> first_vector(const problem& p) {
  std::vector<double> x(p.rows);
  for (std::uint64_t i = 0; i < p.rows; ++i) x[i] = first(p, i);
  return x;
}

times serial(const problem& p) {
  times t;
  const plain_matrix a = t.time(building, [&] { return build_serial(p); });
  const auto x = first_vector(p);
  t.correct = t.time(multiplying, [&] { return multiply_serial(a, x, p.times); }) == right;
  return t;
}

bool is_right(gw::global_ptr<double> x) {
  auto have = gw::checkout(x, right.size(), gw::access::read);
  return std::memcmp(have.data(), right.data(), have.size() * sizeof(double)) == 0;
}

times ours(const problem& p, std::uint64_t cache_bytes) {
  times t;
  const auto a = t.time(building, [=] { return build(p); });
  const auto x = gw::allocate<double>(p.rows, gw::distribution::blocked());
  const auto y = gw::allocate<double>(p.rows, gw::distribution::blocked());
  bench::each_piece(p.rows, 4096, [=](std::uint64_t from, std::uint64_t to) {
    auto part = gw::checkout(x + static_cast<std::ptrdiff_t>(from), to - from, gw::access::write);
    for (std::uint64_t i = from; i < to; ++i) part[i - from] = first(p, i);
  });
  const auto result = t.time(multiplying, [=] { return multiply(a, x, y, p.times, cache_bytes); });
  t.correct = is_right(result);
  gw::deallocate(x, p.rows);
  gw::deallocate(y, p.rows);
  destroy(a);
  return t;
}

void compare(bench::program& program, const problem& p) {
  const plain_matrix a = build_serial(p);
  right = multiply_serial(a, first_vector(p), p.times);
  const std::string name = p.what == kind::poisson ? "poisson" : "random";
  const std::uint64_t cache_bytes = godwit::resolve_options().cache_bytes;
  const auto all = bench::measure_parts(
      program, bench::ways_of<part_count>(
                   program, [p] { return serial(p); }, [p, cache_bytes] { return ours(p, cache_bytes); }));
  const std::string what =
      name + ", " + bench::grouped(p.rows) + " rows, " + bench::grouped(a.columns.size()) + " entries: ";
  const bench::ordered_json parameters = {
      {"kind", name}, {"rows", p.rows}, {"entries", a.columns.size()}, {"times", p.times}, {"seed", p.seed}};
  program.show(what + "build", parameters, all[building]);
  bench::show_ratios(program, name + ".build", "build", all[building]);
  program.show(what + std::to_string(p.times) + " products", parameters, all[multiplying]);
  bench::show_ratios(program, name + ".product", "product", all[multiplying]);
}

}  // namespace

int main(int argc, char** argv) {
  problem p;
  std::vector<std::string> kinds = {"poisson", "random"};
  bench::program program("global_spmv", "Sparse matrix-vector products in global memory.", argc, argv);
  program.option("--kind", kinds, "poisson (5-point Laplacian of a square), random, or both",
                 bench::one_of({"poisson", "random"}));
  program.option("--size", p.rows,
                 "Rows; poisson: the largest square below (default 2000000; with --quick 200000)",
                 bench::between(1, std::uint64_t{1} << 32));
  program.option("--per-row", p.per_row, "random: entries of a row on average",
                 bench::between(1, most_per_row / 2));
  program.option("--times", p.times, "Products, one after the other", bench::between(1, 100000));
  program.option("--seed", p.seed, "Of the random matrix and the vector");
  program.parse();
  if (p.rows == 0) p.rows = program.options().quick ? 200'000 : 2'000'000;
  try {
    for (const auto& name : kinds) {
      problem one = p;
      one.what = name == "poisson" ? kind::poisson : kind::random;
      if (one.what == kind::poisson) {
        one.side = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(p.rows)));
        one.rows = one.side * one.side;
      }
      compare(program, one);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_spmv: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
