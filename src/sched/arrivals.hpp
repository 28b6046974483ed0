// Threads that were sent to this very worker, in the order in which they came, until it has no other thread:
// nobody else takes them. Owner only. docs/protocols/parcels.md; filled by continuation_arrive.hpp.
#pragma once

#include "sched/site.hpp"

namespace godwit::sched {

class arrivals {
 public:
  explicit arrivals(const site& here) noexcept : here_(here) {}

  bool empty() const noexcept { return first_ == 0; }
  /// @p r: an image of this host.
  void push(ref r) noexcept {
    here_.at<image>(r)->next = 0;
    (first_ == 0 ? first_ : here_.at<image>(last_)->next) = r;
    last_ = r;
  }
  /// 0: there is none.
  ref pop() noexcept {
    const ref r = first_;
    if (r != 0) first_ = here_.at<image>(r)->next;
    return r;
  }

 private:
  const site& here_;
  ref first_ = 0, last_ = 0;
};

}  // namespace godwit::sched
