// One fault against each rule but the formatter's. It names nowhere.cpp, which is not there.
#pragma once

#include <atomic>

namespace part {

std::atomic<int> ready;
// This line of a comment is longer than a line of Godwit may be, by some columns, which somebody did not see at all.
struct words {
  std::atomic<int> nobody_says_who_writes;
  std::atomic<int> said;  ///< W owner, R all
};
int only_declared(int);
inline int never_called() { return 1; }
inline int called(words& w) {
  // AA1, AA2, AA3
  w.said.store(1, std::memory_order_release);
  return w.nobody_says_who_writes.load();  // AA1
}

}  // namespace part
