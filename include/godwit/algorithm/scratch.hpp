// Global memory that an algorithm needs for a while; freed also when an exception passes. Not for users.
// Used by scan, search, sort, partition and shuffle.
#pragma once

#include <godwit/global_memory.hpp>
#include <godwit/global_span.hpp>

#include <cstdint>

namespace godwit::detail {

/// Room for @p n objects, uninitialised: small ones here, large ones dealt out to all. Lies in one frame;
/// plain bytes, so that frame may migrate.
template <class T>
class scratch {
 public:
  explicit scratch(std::uint64_t n)
      : data_(allocate<T>(n, n * sizeof(T) <= 65536 ? distribution::local() : distribution::cyclic(),
                          alignof(T) < 64 ? 64 : alignof(T))),
        n_(n) {}
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { deallocate(data_, n_); }
  global_ptr<T> data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return n_; }

 private:
  global_ptr<T> data_;
  std::uint64_t n_;
};

}  // namespace godwit::detail
