// Small and large objects in the local area of one home. Only the home's worker allocates and frees here;
// what others free reaches it through home_words::returned.
//
// Small ones (16 KiB at most) come from lists of free blocks by size class, which are filled from chunks and
// keep what they have; of the sizes up to 1 KiB inlined code takes and gives them (global_objects.hpp).
// Chunks and large objects come from a map of free ranges of the area, joined and given back to the system.
// All bookkeeping but headers is private to the process.
// See docs/decisions/0010-global-memory.md. Test: tests/gas/arena_test.cpp.
#pragma once

#include <godwit/detail/global_objects.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace godwit::gas {

using detail::free_block;
using detail::object_header;

/// In front of the header of an object that is large, or aligned to more than 16 bytes.
struct wide_part {
  std::uint64_t bytes;        ///< as asked for
  std::uint64_t block_bytes;  ///< more than largest_small: a range
  std::uint64_t front;        ///< bytes between the start of the block and the object
};

/// What the area's memory may cost: asked before a chunk is taken.
struct budget {
  std::function<bool(std::uint64_t bytes)> take;  ///< false: the limit is reached
  std::function<void(std::uint64_t bytes)> give;
  std::function<void(std::byte* at, std::uint64_t bytes)> discard;
  std::function<void(std::byte* at, std::uint64_t bytes)> populate;  ///< it will be written soon
};

class arena {
 public:
  void init(std::byte* begin, std::uint64_t bytes, const budget& limits) {
    limits_ = limits;
    ranges_.init(begin, bytes, limits);
  }

  /// Null: neither addresses nor budget for it. @p alignment a power of two.
  void* allocate(std::uint64_t bytes, std::uint64_t alignment);
  void free(void* object) noexcept;
  static object_header* header_of(void* object) noexcept { return static_cast<object_header*>(object) - 1; }
  /// As asked for.
  static std::uint64_t bytes_of(void* object) noexcept;
  /// For inlined code: its free blocks. Whoever owns the arena says where it lies.
  detail::local_objects& objects() noexcept { return objects_; }

  /// Walks all lists.
  std::uint64_t live_objects() const;
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
  budget limits_;
  /// Where blocks of one size come from when its list is empty: the newest chunk.
  struct size_class {
    std::byte* fresh = nullptr;  ///< not used yet
    std::byte* ready = nullptr;  ///< populated until here
    std::byte* end = nullptr;
    std::uint64_t next_chunk = 0;
    std::uint64_t blocks = 0;  ///< made of all chunks
  };
  /// steps of 16 bytes up to 1 KiB, then four per doubling
  static constexpr unsigned class_count = detail::local_objects::lists;
  bool refill(unsigned number);
  std::byte* take_block(std::uint64_t room);
  static wide_part wide_part_of(const void* object) noexcept;
  std::byte* allocate_wide(std::uint64_t bytes, std::uint64_t alignment);

  detail::local_objects objects_;
  /// Of class_count; null as long as there has been no small object. (Simulated workers are many.)
  std::unique_ptr<size_class[]> classes_;
  std::uint64_t live_ranges_ = 0;  ///< objects
};

}  // namespace godwit::gas
