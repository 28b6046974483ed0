// A portfolio: several orders of trying search the same formula, and the first that has an answer ends the
// others. Random 3-SAT at the ratio where it is hardest.
//
//   example_sat_race 120 --godwit-workers=4
//
// The searches never spawn, so they ask whether they are to stop. docs/cancel.md
#include <godwit/godwit.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

namespace gw = godwit;

using clause = std::array<int, 3>;  // of variables 1..n; negative: not
std::vector<clause> formula;        // made before run: every worker has it
std::size_t variables = 0;

/// By trying and unit propagation, in an order of its own.
class search {
 public:
  explicit search(unsigned seed) : value_(variables + 1, 0), order_(variables) {
    std::iota(order_.begin(), order_.end(), 1);
    std::shuffle(order_.begin(), order_.end(), std::mt19937(seed));
  }
  /// An assignment (1 or -1 for each variable), or nothing: there is none.
  std::vector<int> answer() { return extend() ? value_ : std::vector<int>(); }

 private:
  int of(int literal) const {
    const int v = value_[static_cast<std::size_t>(std::abs(literal))];
    return literal > 0 ? v : -v;
  }
  void set(int literal) {
    value_[static_cast<std::size_t>(std::abs(literal))] = literal > 0 ? 1 : -1;
    set_.push_back(std::abs(literal));
  }
  /// False: a clause has no way to be true.
  bool propagate() {
    for (bool again = true; again;) {
      again = false;
      for (const clause& c : formula) {
        if (std::ranges::any_of(c, [&](int l) { return of(l) == 1; })) continue;
        const auto open = [&](int l) { return of(l) == 0; };
        const auto choices = std::ranges::count_if(c, open);
        if (choices == 0) return false;
        if (choices > 1) continue;
        set(*std::ranges::find_if(c, open));
        again = true;
      }
    }
    return true;
  }
  bool extend() {
    if (gw::is_cancelled()) throw gw::cancelled();
    const std::size_t before = set_.size();
    if (propagate()) {
      const auto next =
          std::ranges::find_if(order_, [&](int v) { return value_[static_cast<std::size_t>(v)] == 0; });
      if (next == order_.end()) return true;
      for (const int literal : {*next, -*next}) {
        const std::size_t mark = set_.size();
        set(literal);
        if (extend()) return true;
        undo(mark);
      }
    }
    undo(before);
    return false;
  }
  void undo(std::size_t to) {
    for (; set_.size() > to; set_.pop_back()) value_[static_cast<std::size_t>(set_.back())] = 0;
  }

  std::vector<int> value_, order_, set_;
};

bool satisfies(const std::vector<int>& values) {
  return std::ranges::all_of(formula, [&](const clause& c) {
    return std::ranges::any_of(
        c, [&](int l) { return (l > 0) == (values[static_cast<std::size_t>(std::abs(l))] > 0); });
  });
}

int main(int argc, char** argv) {
  variables = argc > 1 && argv[1][0] != '-' ? static_cast<std::size_t>(std::atoi(argv[1])) : 100;
  std::mt19937 random(5);
  for (std::size_t i = 0; i < variables * 426 / 100; ++i) {
    clause c{};
    for (int& l : c) l = (1 + static_cast<int>(random() % variables)) * (random() % 2 != 0 ? 1 : -1);
    formula.push_back(c);
  }
  return gw::run(argc, argv, [] {
    const auto by = [](unsigned seed) { return [seed] { return search(seed).answer(); }; };
    const std::vector<int> first = gw::race(by(1), by(2), by(3), by(4));
    const std::vector<int> again = gw::race(by(5), by(6));
    const bool right =
        first.empty() == again.empty() && (first.empty() || (satisfies(first) && satisfies(again)));
    std::cout << variables << " variables, " << formula.size()
              << " clauses: " << (first.empty() ? "no assignment" : "an assignment")
              << (right ? ", checked\n" : ", wrong\n");
  });
}
