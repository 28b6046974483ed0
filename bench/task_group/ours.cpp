// The members as threads.

#include "task_group.hpp"

#include <godwit/godwit.hpp>

#include <vector>

namespace task_group {

namespace {

namespace gw = godwit;

std::uint64_t sum_of(const std::vector<std::uint64_t>& results) {
  std::uint64_t sum = 0;
  for (const std::uint64_t r : results) sum += r;
  return sum;
}

void halves(std::uint64_t* to, std::uint64_t first, std::uint64_t n, int steps) {
  if (n == 1) {
    to[first] = member(first, steps);
    return;
  }
  auto left = gw::spawn([=] { halves(to, first, n / 2, steps); });
  halves(to, first + n / 2, n - n / 2, steps);
  left.join();
}

void group_halves(std::uint64_t* to, std::uint64_t first, std::uint64_t n, int steps) {
  if (n == 1) {
    to[first] = member(first, steps);
    return;
  }
  const gw::task_group g;
  g.run([=] { group_halves(to, first, n / 2, steps); });
  group_halves(to, first + n / 2, n - n / 2, steps);
  g.wait();
}

}  // namespace

std::uint64_t by_loop(problem p) {
  std::vector<std::uint64_t> results(p.members);
  std::uint64_t* const to = results.data();
  const gw::task_group g;
  for (std::uint64_t i = 0; i < p.members; ++i) g.run([to, i, steps = p.steps] { to[i] = member(i, steps); });
  g.wait();
  return sum_of(results);
}

std::uint64_t by_recursion(problem p) {
  std::vector<std::uint64_t> results(p.members);
  halves(results.data(), 0, p.members, p.steps);
  return sum_of(results);
}

std::uint64_t by_halves(problem p) {
  std::vector<std::uint64_t> results(p.members);
  group_halves(results.data(), 0, p.members, p.steps);
  return sum_of(results);
}

std::uint64_t by_group(problem p) {
  std::vector<std::uint64_t> results(p.members);
  std::uint64_t* const to = results.data();
  const gw::owned<gw::group> g;
  for (std::uint64_t i = 0; i < p.members; ++i)
    g->spawn([to, i, steps = p.steps] { to[i] = member(i, steps); });
  g->wait();
  return sum_of(results);
}

}  // namespace task_group
