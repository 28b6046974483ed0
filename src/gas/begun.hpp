// Checkouts that are begun, and completed later: what has to be fetched from other hosts is under way
// meanwhile.
//
// The bytes come into memory of this worker, and into the cache when the checkout is completed, if they are
// still good; then it is an ordinary checkout, which finds them there. So no unit is locked in between.
// Called by src/runtime/global_path.cpp. Protocol: docs/protocols/global.md, Begun checkouts. Test:
// tests/global/begun_test.cpp.
#pragma once

#include "gas/access.hpp"
#include "gas/allocator.hpp"

namespace godwit::gas {

/// One of them. Its worker's alone: the thread must not leave before it is over.
struct begun_checkout {
  global_address at;
  std::uint64_t bytes;
  detail::access_mode mode;
  begun_fetch fetch;
  struct room {
    global_address at = 0;
    std::uint64_t bytes = 0;
  } room;  ///< where answers come to
};

class begun_checkouts {
 public:
  begun_checkouts(const reach& net, directory& blocks, gas::allocator& memory, gas::access& access) noexcept
      : net_(net), blocks_(blocks), memory_(memory), access_(access) {}

  // global_path.hpp says what these do.
  begun_checkout* begin(global_address at, std::uint64_t bytes, detail::access_mode mode);
  detail::opened complete(begun_checkout* b, detail::place where);
  void abandon(begun_checkout* b) noexcept;
  /// What is kept for the next ones.
  void free_spare() noexcept;

 private:
  using room = struct begun_checkout::room;
  /// Throws global_bad_alloc.
  room take_room(std::uint64_t bytes);
  void end(begun_checkout& b) noexcept;

  const reach& net_;
  directory& blocks_;
  gas::allocator& memory_;
  gas::access& access_;
  room spare_;  ///< the last one that was given back: its pages are there
};

}  // namespace godwit::gas
