// Members of continuation_worker: the longest chain of strands (options::span). Here a strand is what a
// thread does between two calls of the runtime. Included by continuation.cpp alone, which instantiates them.
#pragma once

#include "sched/continuation.hpp"

#include <algorithm>

namespace godwit::sched {

template <class P>
std::uint64_t continuation_worker<P>::span_of(ref r) const noexcept {
  return here_.is_near(r) ? chain_of(here_.at<record>(r)->span_ns) : 0;
}

template <class P>
void continuation_worker<P>::strand_begins(std::uint64_t span) noexcept {
  span_ns_ = span;
  strand_from_ns_ = base::fast_ns();
}

template <class P>
std::uint64_t continuation_worker<P>::span_now() const noexcept {
  if constexpr (P::spans) return span_ns_ + base::fast_ns() - strand_from_ns_;
  return 0;
}

template <class P>
std::uint64_t continuation_worker<P>::strand_ends() noexcept {
  const std::uint64_t time = base::fast_ns() - strand_from_ns_;
  here_.words->stats.work_ns += time;
  return span_ns_ + time;
}

template <class P>
void continuation_worker<P>::joined(ref r) noexcept {
  if constexpr (P::spans) strand_begins(std::max(strand_ends(), span_of(r)));
}

}  // namespace godwit::sched
