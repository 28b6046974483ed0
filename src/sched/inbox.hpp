// What other hosts ask of a worker itself: letters, and in way am all requests for its memory.
// docs/protocols/far.md. Test: tests/sched/parts_test.cpp.
#pragma once

#include "base/random.hpp"
#include "sched/account.hpp"
#include "sched/far_calls.hpp"
#include "sched/site.hpp"

namespace godwit::sched {

class far_inbox {
 public:
  far_inbox(const site& here, heap& own, account& counts, base::small_random& random) noexcept
      : here_(here), heap_(own), account_(counts), random_(random) {}

  void init();
  /// What it carries out, to which other layers may add their calls.
  transport::far::call_table& calls() noexcept { return calls_; }
  /// Cheap when there are none.
  void serve() noexcept {
    if (serves_)
      while (serve_next()) {
      }
  }
  /// The first one. False: there is none.
  bool serve_one() noexcept { return serves_ && serve_next(); }

 private:
  bool serve_next() noexcept;
  void keep_region() const noexcept;

  const site& here_;
  heap& heap_;
  account& account_;
  base::small_random& random_;
  call_site site_{};
  transport::far::call_table calls_;
  std::uint32_t next_ = 0;
  bool serves_ = false;
};

}  // namespace godwit::sched
