// The input, its check, and what needs no runtime.
#include "quicksort.hpp"

#include <numeric>
#include <thread>

namespace quicksort {

namespace {
std::uint32_t mixed(std::uint64_t i) {
  i = (i + 1) * 0x9E3779B97F4A7C15ull;
  i = (i ^ i >> 32) * 0xD6E8FEB86659FD93ull;
  return static_cast<std::uint32_t>(i >> 32);
}
}  // namespace

std::vector<std::uint32_t> input(std::size_t n) {
  std::vector<std::uint32_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = mixed(i);
  return v;
}

bool is_right(const std::vector<std::uint32_t>& v) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < v.size(); ++i) sum += mixed(i);
  return std::is_sorted(v.begin(), v.end()) && std::accumulate(v.begin(), v.end(), std::uint64_t{0}) == sum;
}

void calls(std::uint32_t* first, std::uint32_t* last) {
  if (last - first <= leaf) {
    std::sort(first, last);
    return;
  }
  std::uint32_t* middle = partition(first, last);
  calls(first, middle);
  calls(middle, last);
}

void std_threads(std::uint32_t* first, std::uint32_t* last, unsigned workers) {
  if (workers <= 1 || last - first <= leaf) return calls(first, last);
  std::uint32_t* middle = partition(first, last);
  std::thread lower([=] { std_threads(first, middle, workers / 2); });
  std_threads(middle, last, workers - workers / 2);
  lower.join();
}

}  // namespace quicksort
