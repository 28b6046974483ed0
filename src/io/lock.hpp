// A lock for a few instructions, of workers that are OS threads. Not held over a suspension: it belongs to
// the OS thread.
#pragma once

#include "base/world.hpp"

#include <atomic>
#include <cstdint>

namespace godwit::events {

class spin_lock {
 public:
  void lock() noexcept {
    while (held_.exchange(1, std::memory_order_acquire) != 0) wait();
  }
  void unlock() noexcept { held_.store(0, std::memory_order_release); }

 private:
  void wait() noexcept {
    for (base::spin_wait w; held_.load(std::memory_order_relaxed) != 0;) w.turn();
  }
  std::atomic<std::uint32_t> held_{0};  // W and R all
};

}  // namespace godwit::events
