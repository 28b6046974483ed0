// Small and large objects in the local area of one home. Only the home's worker allocates and frees here;
// what others free reaches it through home_words::returned.
//
// Small ones (16 KiB at most) come from lists of free blocks by size class, which are filled from chunks and
// keep what they have. Chunks and large objects come from a map of free ranges of the area, joined and given
// back to the system. All bookkeeping but headers is private to the process.
// See docs/decisions/0010-global-memory.md. Test: tests/gas/arena_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace godwit::gas {

/// In front of every object. `next` links returned objects.
struct object_header {
  static constexpr std::uint32_t live = 0x9e110b1e, dead = 0xdeadb10c;
  std::uint64_t next;   ///< while returned: address of the next one. W who frees, R owner
  std::uint32_t front;  ///< bytes between the start of the block and the object
  std::uint32_t magic;  ///< live until the first who frees it. W who frees (atomic), R all
  std::uint64_t bytes;  ///< as asked for
  std::uint64_t block_bytes;
};
static_assert(sizeof(object_header) == 32);

/// What the area's memory may cost: asked before a chunk is taken.
struct budget {
  std::function<bool(std::uint64_t bytes)> take;  ///< false: the limit is reached
  std::function<void(std::uint64_t bytes)> give;
  std::function<void(std::byte* at, std::uint64_t bytes)> discard;
};

class arena {
 public:
  void init(std::byte* begin, std::uint64_t bytes, const budget& limits) {
    ranges_.init(begin, bytes, limits);
  }

  /// Null: neither addresses nor budget for it. @p alignment a power of two.
  void* allocate(std::uint64_t bytes, std::uint64_t alignment);
  void free(void* object) noexcept;
  static object_header* header_of(void* object) noexcept { return static_cast<object_header*>(object) - 1; }

  std::uint64_t live_bytes() const noexcept { return live_bytes_; }
  std::uint64_t live_objects() const noexcept { return live_objects_; }
  /// Walks all lists; ends the run if they are broken.
  void check_invariants() const;

 private:
  /// Free ranges of the area, best fit, joined with their neighbours.
  class ranges {
   public:
    void init(std::byte* begin, std::uint64_t bytes, const budget& limits);
    /// A block whose byte @p front is aligned. Null: none. Whole grains; give() wants the same @p bytes.
    std::byte* take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t front);
    void give(std::byte* at, std::uint64_t bytes);
    void check_invariants() const;

   private:
    void insert(std::uintptr_t at, std::uint64_t bytes);
    void erase(std::map<std::uintptr_t, std::uint64_t>::iterator i);
    std::map<std::uintptr_t, std::uint64_t> by_place_;
    std::set<std::pair<std::uint64_t, std::uintptr_t>> by_size_;
    budget limits_;
    std::vector<std::pair<std::uintptr_t, std::uint64_t>> kept_;  ///< given back, but not yet to the system
    std::uint64_t kept_bytes_ = 0;
  };

  ranges ranges_;
  /// Blocks of one size.
  struct block {
    block* next;
  };
  struct size_class {
    block* free = nullptr;
    std::byte* fresh = nullptr;  ///< of the newest chunk: not used yet
    std::byte* end = nullptr;
    std::uint64_t next_chunk = 0;
  };
  std::byte* take_block(std::uint64_t room, std::uint64_t& got);
  static constexpr unsigned class_count = 80;  ///< steps of 16 bytes up to 1 KiB, then four per doubling
  size_class classes_[class_count];
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_objects_ = 0;
};

}  // namespace godwit::gas
