// As long as one lives the expose signal keeps its hands off: it may interrupt user code anywhere, but not
// the runtime's own bookkeeping, and not a request to another host. Nests.
#pragma once

#include <godwit/detail/hot.hpp>

#include <atomic>
#include <cstdint>

namespace godwit::base {

class unexposed {
 public:
  unexposed() noexcept : before_(detail::hot().in_runtime) {
    detail::hot().in_runtime = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~unexposed() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    detail::hot().in_runtime = before_;
  }
  unexposed(const unexposed&) = delete;
  unexposed& operator=(const unexposed&) = delete;

 private:
  std::uint32_t before_;
};

}  // namespace godwit::base
