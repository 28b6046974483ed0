// Results on another host that come along with the one that a thread joins: those of its other children
// there. Which these are, it reads from the futures in the thread's stack. And what was read is given back
// together.
// docs/protocols/join.md (Read along, RA). Model: models/read_along.pml. Tests: read_along_test.cpp,
// far_calls_test.cpp.
#pragma once

#include "base/own_memory.hpp"
#include "sched/far_calls.hpp"
#include "sched/site.hpp"

namespace godwit::sched {

class read_along {
 public:
  explicit read_along(const site& here) noexcept : here_(here) {}

  /// A thread has come, to an empty region: what its futures name may have been something else before.
  /// RA1
  void thread_came() noexcept { copies_.clear(); }
  /// What has come along of @p r; null: nothing.
  const result_words* copy_of(ref r) const noexcept;
  /// Read @p r, of another host, and along with it what unmoved futures in @p frames name there (RA3).
  /// Gives back the answer to read_record, until the next request. One round trip.
  const transport::far::entry& ask(ref r, const stack::range& frames) noexcept;

  /// One consumer less of @p r, of another host, which was read and leaves nothing but itself. Local: its
  /// host hears of it with others.
  void release(ref r) noexcept;
  /// Now. Local, a request for each host.
  void send_releases() noexcept;

 private:
  struct copy {
    ref of;
    result_words result;
  };
  std::size_t look_for(ref r, const stack::range& frames, ref (&found)[most_read_along]) const noexcept;

  const site& here_;
  base::own_vector<copy> copies_;
  base::own_vector<ref> released_;
};

}  // namespace godwit::sched
