// The members as plain calls.

#include "task_group.hpp"

#include <vector>

namespace task_group {

namespace {
[[gnu::noinline]] void call(std::uint64_t* to, std::uint64_t i, int steps) { *to = member(i, steps); }
}  // namespace

std::uint64_t calls(problem p) {
  std::vector<std::uint64_t> results(p.members);
  for (std::uint64_t i = 0; i < p.members; ++i) call(&results[i], i, p.steps);
  std::uint64_t sum = 0;
  for (const std::uint64_t r : results) sum += r;
  return sum;
}

}  // namespace task_group
