// A sort written out: halves are sorted by two threads, and merged by a recursion that is parallel, too.
//
//   example_merge_sort [N] --godwit-workers=4
//
// Leaves check out what they work on and use the standard library there. (gw::sort does all this for you:
// algorithms.cpp.) docs/global-memory.md
#include <godwit/godwit.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <utility>

namespace gw = godwit;

using span = gw::global_span<std::uint32_t>;
constexpr std::uint64_t leaf = 4096;

/// How many elements of s are less than value.
std::uint64_t less_than(span s, std::uint32_t value) {
  std::uint64_t low = 0, high = s.size();
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    (s[middle] < value ? low : high) = s[middle] < value ? middle + 1 : middle;
  }
  return low;
}

void merge(span a, span b, span out) {
  if (a.size() < b.size()) std::swap(a, b);
  if (out.size() <= leaf) {
    const auto x = a.checkout(gw::access::read), y = b.checkout(gw::access::read);
    std::ranges::merge(x, y, out.checkout(gw::access::write).begin());
    return;
  }
  const std::uint64_t i = a.size() / 2, k = less_than(b, a[i]);
  gw::invoke([=] { merge(a.first(i), b.first(k), out.first(i + k)); },
             [=] { merge(a.subspan(i), b.subspan(k), out.subspan(i + k)); });
}

/// Sorts s; the result is in s, or in its copy `other` if `there`.
void sort(span s, span other, bool there) {
  if (s.size() <= leaf) {
    const auto here = s.checkout(gw::access::read_write);
    std::ranges::sort(here);
    if (there) std::ranges::copy(here, other.checkout(gw::access::write).begin());
    return;
  }
  const std::uint64_t half = s.size() / 2;
  gw::invoke([=] { sort(s.first(half), other.first(half), !there); },
             [=] { sort(s.subspan(half), other.subspan(half), !there); });
  const span from = there ? s : other, to = there ? other : s;
  merge(from.first(half), from.subspan(half), to);
}

int main(int argc, char** argv) {
  gw::take_options(argc, argv);
  const std::uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
  return gw::run(argc, argv, [n] {
    gw::global_array<std::uint32_t> numbers(n, gw::distribution::blocked());
    gw::global_array<std::uint32_t> other(n, gw::distribution::blocked());
    gw::generate(numbers, [](std::uint64_t i) { return static_cast<std::uint32_t>(i * 2'654'435'761u); });
    const std::uint64_t before = gw::transform_reduce(numbers, std::uint64_t{0}, std::plus<>(),
                                                      [](std::uint32_t x) { return std::uint64_t{x}; });
    sort(numbers.span(), other.span(), false);
    const std::uint64_t after = gw::transform_reduce(numbers, std::uint64_t{0}, std::plus<>(),
                                                     [](std::uint32_t x) { return std::uint64_t{x}; });
    const bool good = gw::is_sorted(numbers) && before == after;
    std::cout << n << " numbers are " << (good ? "sorted\n" : "NOT sorted\n");
  });
}
