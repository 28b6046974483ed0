// A group of threads: a search whose threads add threads, and one wait for all of them.
//
//   example_task_group --godwit-workers=4
//
// A right-truncatable prime is one that remains prime when its last digits are taken away: 7393 is one, since
// 739, 73 and 7 are primes. Base 10 has 83 of them; others have many more. Each prime that is found adds a
// thread for each digit that may follow, to the group that root waits for: nobody joins a single thread, and
// no function waits for what it has added. docs/writing-programs.md#groups-of-threads
#include <godwit/godwit.hpp>

#include <cstdint>
#include <iostream>

namespace gw = godwit;

using number = std::uint64_t;

bool is_prime(number n) {
  if (n < 4) return n > 1;
  if (n % 2 == 0 || n % 3 == 0) return false;
  for (number d = 5; d <= n / d; d += 6)
    if (n % d == 0 || n % (d + 2) == 0) return false;
  return true;
}

struct search {
  number base;
  gw::global_ptr<number> count, largest;

  /// @p n is a right-truncatable prime.
  void found(number n, const gw::task_group& g) const {
    gw::atomic_fetch_add(count, 1);
    gw::atomic_fetch_max(largest, n);
    for (number digit = 0; digit < base; ++digit)
      g.run([s = *this, m = n * base + digit, &g] {
        if (is_prime(m)) s.found(m, g);
      });
  }
};

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    gw::global_array<number> results(2);
    for (const number base : {8, 10, 12}) {
      gw::fill(results, 0);
      const search s{base, results.data(), results.data() + 1};
      {
        const gw::task_group g;
        for (number digit = 2; digit < base; ++digit)
          if (is_prime(digit)) g.run([s, digit, &g] { s.found(digit, g); });
        g.wait();
      }
      const number count = results[0], largest = results[1];
      std::cout << "base " << base << ": " << count << " right-truncatable primes, the largest is " << largest
                << '\n';
    }
  });
}
