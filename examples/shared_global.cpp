// An object of main that all threads change and that main has afterwards: a table of known results.
//
//   example_shared_global --godwit-workers=4
//
// A plain global variable would be a copy in each worker. Workers of one host only.
// docs/heap.md#what-main-makes-for-all-workers
#include <godwit/godwit.hpp>

#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace gw = godwit;

struct table {
  std::mutex lock;  // held for a moment, never across a spawn or join
  std::map<std::pair<int, int>, long> ways;
};
gw::shared_global<table> known;

std::optional<long> look_up(std::pair<int, int> at) {
  const std::lock_guard guard(known->lock);
  const auto found = known->ways.find(at);
  return found == known->ways.end() ? std::nullopt : std::optional(found->second);
}

/// In how many ways n can be written as a sum of numbers of at most `largest`.
long partitions(int n, int largest) {
  if (n == 0) return 1;
  if (n < 0 || largest == 0) return 0;
  if (const auto before = look_up({n, largest})) return *before;
  auto [with, without] = gw::invoke([=] { return partitions(n - largest, largest); },
                                    [=] { return partitions(n, largest - 1); });
  const std::lock_guard guard(known->lock);
  return known->ways[{n, largest}] = with + without;
}

int main(int argc, char** argv) {
  const int status = gw::run(argc, argv, [] {
    const long p = partitions(100, 100);
    std::cout << "100 has " << p << " partitions\n";
  });
  std::cout << (known->ways.size() > 4000 ? "thousands of results" : "too few results")
            << " are in the table\n";
  return status;
}
