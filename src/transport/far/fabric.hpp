// Near and far in one: what the scheduler's protocols run on. A worker of this host is reached by CPU
// accesses through the segment, any other by a request to the companion (port.hpp).
//
// On one host everything is near and the test is one compare that never fails. See transport.hpp for the
// concept.
#pragma once

#include "transport/far/port.hpp"

namespace godwit::transport {

class fabric {
 public:
  void init(const shm::segment& near) noexcept { near_ = &near; }
  bool is_near(worker_no w) const noexcept { return near_->reaches(w); }
  far::port& far() const noexcept { return far_; }

  std::uint64_t remote_load(worker_no w, const word* p, std::memory_order o) const noexcept {
    return is_near(w) ? near_->remote_load(w, p, o) : far_.load(w, p);
  }
  word_pair_value remote_load_pair(worker_no w, const word* p) const noexcept {
    if (is_near(w)) return near_->remote_load_pair(w, p);
    word_pair_value v;
    far_.get(w, &v, p, sizeof v);
    return v;
  }
  void remote_store(worker_no w, const word* p, std::uint64_t v, std::memory_order o) const noexcept {
    is_near(w) ? near_->remote_store(w, p, v, o) : far_.store(w, p, v);
  }
  std::uint64_t remote_exchange(worker_no w, const word* p, std::uint64_t v) const noexcept {
    return is_near(w) ? near_->remote_exchange(w, p, v) : far_.exchange(w, p, v);
  }
  bool remote_compare_exchange(worker_no w, const word* p, std::uint64_t& e, std::uint64_t v) const noexcept {
    return is_near(w) ? near_->remote_compare_exchange(w, p, e, v) : far_.compare_exchange(w, p, e, v);
  }
  std::uint64_t remote_fetch_add(worker_no w, const word* p, std::uint64_t v) const noexcept {
    return is_near(w) ? near_->remote_fetch_add(w, p, v) : far_.fetch_add(w, p, v);
  }
  void remote_get(worker_no w, void* to, const void* from, std::size_t n) const noexcept {
    is_near(w) ? near_->remote_get(w, to, from, n) : far_.get(w, to, from, n);
  }
  void remote_put(worker_no w, void* to, const void* from, std::size_t n) const noexcept {
    is_near(w) ? near_->remote_put(w, to, from, n) : far_.put(w, to, from, n);
  }
  /// Orders this worker's near accesses. Far ones to one worker are ordered by themselves.
  void remote_fence() const noexcept { near_->remote_fence(); }

 private:
  const shm::segment* near_ = nullptr;
  mutable far::port far_;
};
static_assert(one_sided<fabric>);

}  // namespace godwit::transport
