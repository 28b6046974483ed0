// The addresses of distributed allocations: which granules of the shared part are taken. Worker 0's host says
// so, under one lock.
//
// Fresh granules are handed out as long as there are any, so that addresses that were freed are noticed
// rather than reused. Then freed ones, searched for extent by extent from where the last search ended. The
// words are in the directory's entries (extent_of in words.hpp). Called by allocator.hpp.
// Document: docs/decisions/0010-global-memory.md. Test: tests/gas/extents_test.cpp.
#pragma once

#include "gas/directory.hpp"

namespace godwit::gas {

class extents {
 public:
  extents(const reach& net, const space& where, const directory& entries) noexcept
      : net_(net), where_(where), entries_(entries) {}

  struct taken {
    bool found = false;  ///< there are so many
    bool reused = false;
    std::uint64_t first = 0;
  };
  /// @p count granules at a multiple of @p alignment bytes. A few round trips; more when nothing is fresh.
  taken take(std::uint64_t count, std::uint64_t alignment) noexcept;
  /// As taken.
  void give(std::uint64_t first, std::uint64_t count) noexcept;
  /// When nobody allocates, at worker 0.
  void check_invariants() const;

 private:
  /// Free granules [begin, end), in which the wanted ones begin at `first`.
  struct gap {
    std::uint64_t begin, end, first;
  };
  bool search(std::uint64_t from, std::uint64_t next, std::uint64_t count, std::uint64_t alignment,
              gap& found) const noexcept;
  std::uint64_t align(std::uint64_t granule, std::uint64_t alignment) const noexcept;
  void mark(std::uint64_t first, const extent_of& e) noexcept {
    net_.remote_store(0, entries_.entry(first)->extent, e.packed());
  }
  void lock() noexcept;
  void unlock() noexcept { net_.remote_store(0, net_.host().shared_lock, 0); }

  const reach& net_;
  const space& where_;
  const directory& entries_;
};

}  // namespace godwit::gas
