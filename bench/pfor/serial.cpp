// PFor and RecPFor by plain recursion, and what they must give.

#include "pfor.hpp"

namespace pfor {

namespace {

std::uint64_t loop(std::uint32_t from, std::uint32_t to, std::uint32_t k, std::uint64_t rounds) {
  if (to - from == 1) return iteration(from, k, rounds);
  const std::uint32_t middle = from + (to - from) / 2;
  const std::uint64_t left = loop(from, middle, k, rounds);
  return left + loop(middle, to, k, rounds);
}

std::uint64_t loops(std::uint32_t from, std::uint32_t to, const problem& p) {
  std::uint64_t sum = 0;
  for (std::uint32_t k = 0; k < p.k; ++k) sum += loop(from, to, k, p.rounds);
  return sum;
}

std::uint64_t recursive(std::uint32_t from, std::uint32_t to, const problem& p) {
  if (to - from == 1) return iteration(from, p.k, p.rounds);
  const std::uint32_t middle = from + (to - from) / 2;
  std::uint64_t sum = loops(from, to, p);
  sum += recursive(from, middle, p);
  return sum + recursive(middle, to, p);
}

std::uint64_t levels(const problem& p) {
  std::uint64_t levels = 0;
  for (std::uint32_t n = p.n; n > 1; n /= 2) ++levels;
  return levels;
}

}  // namespace

std::uint64_t calls(const problem& p) {
  return p.what == kind::loops ? loops(0, p.n, p) : recursive(0, p.n, p);
}

std::uint64_t iterations(const problem& p) {
  const std::uint64_t loop_iterations = std::uint64_t{p.k} * p.n;
  return p.what == kind::loops ? loop_iterations : loop_iterations * levels(p) + p.n;
}

std::uint64_t expected(const problem& p) {
  std::uint64_t sum = 0, last = 0;
  for (std::uint32_t i = 0; i < p.n; ++i) {
    for (std::uint32_t k = 0; k < p.k; ++k) sum += number_of(i, k);
    last += number_of(i, p.k);
  }
  return p.what == kind::loops ? sum : sum * levels(p) + last;
}

}  // namespace pfor
