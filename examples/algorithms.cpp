// The algorithms of the standard library on global memory: generate, sort, scan, reduce.
//
//   example_algorithms --godwit-workers=4
//
// The array lies at all workers, and they all take part in each call. The largest number that is no duplicate
// is found by a reduction over positions. docs/algorithms.md
#include <godwit/godwit.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>

namespace gw = godwit;

constexpr std::uint64_t count = 1'000'000;

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    gw::global_array<std::uint64_t> numbers(count, gw::distribution::blocked());
    gw::generate(numbers, [](std::uint64_t i) { return i * 2'654'435'761u % 999'983; });
    gw::sort(numbers);

    // how many different numbers stand up to each position: a scan over "is the first of its kind"
    gw::global_array<std::uint64_t> rank(count, gw::distribution::blocked());
    const auto sorted = numbers.span();
    gw::for_each(gw::indices(count), [sorted, ranks = rank.span()](std::uint64_t i) {
      ranks[i] = i == 0 || sorted[i] != sorted[i - 1] ? 1 : 0;
    });
    gw::inclusive_scan(rank, rank.data(), std::plus<>());

    const auto larger = [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); };
    const std::uint64_t largest = gw::transform_reduce(
        gw::indices(count), std::uint64_t{0}, larger, [sorted](std::uint64_t i) -> std::uint64_t {
          const bool alone =
              (i == 0 || sorted[i] != sorted[i - 1]) && (i + 1 == count || sorted[i] != sorted[i + 1]);
          return alone ? sorted[i] : 0;
        });
    const std::uint64_t sum = gw::reduce(numbers);
    const std::uint64_t different = rank.back();
    std::cout << different << " different numbers, sum " << sum << ", largest without a twin " << largest
              << '\n';
  });
}
