// PFor and RecPFor in godwit. What a thread needs of the problem travels with it: the paper's threads have
// arguments of that size, too.

#include <godwit/godwit.hpp>

#include "pfor.hpp"

namespace pfor {

namespace {

template <class P>
std::uint64_t loop(std::uint32_t from, std::uint32_t to, std::uint32_t k, std::uint64_t rounds) {
  if (to - from == 1) return iteration(from, k, rounds);
  const std::uint32_t middle = from + (to - from) / 2;
  auto left = P::spawn([=] { return loop<P>(from, middle, k, rounds); });
  const std::uint64_t right = loop<P>(middle, to, k, rounds);
  return left.join() + right;
}

template <class P>
std::uint64_t loops(std::uint32_t from, std::uint32_t to, std::uint32_t k, std::uint64_t rounds) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < k; ++i) sum += loop<P>(from, to, i, rounds);
  return sum;
}

template <class P>
std::uint64_t recursive(std::uint32_t from, std::uint32_t to, std::uint32_t k, std::uint64_t rounds) {
  if (to - from == 1) return iteration(from, k, rounds);
  const std::uint32_t middle = from + (to - from) / 2;
  std::uint64_t sum = loops<P>(from, to, k, rounds);
  auto left = P::spawn([=] { return recursive<P>(from, middle, k, rounds); });
  sum += recursive<P>(middle, to, k, rounds);
  return sum + left.join();
}

template <class P>
std::uint64_t root(const problem& p) {
  return p.what == kind::loops ? loops<P>(0, p.n, p.k, p.rounds) : recursive<P>(0, p.n, p.k, p.rounds);
}

}  // namespace

std::uint64_t (*threads_under(const std::string& policy))(const problem& p) {
  return godwit::with_policy(godwit::choice::named{policy}, [](auto p) { return &root<decltype(p)>; });
}

}  // namespace pfor
