// Small objects in global memory: what global_new and global_delete do where nobody else has a part in it.
//
// Each worker has lists of free blocks, one for each size, that nobody else touches; src/gas/arena.hpp fills
// them. An object has a header of 16 bytes in front of it, of which half is the same for all live objects of
// one size. So one comparison finds out that an object is alive, was allocated with this size, and begins
// here. What is not so simple (the list is empty, the object is another worker's, there is a mistake) is for
// global_allocate_local and global_free. Nothing here migrates the calling thread.
// Tests: tests/global/objects_test.cpp, tests/gas/arena_test.cpp.
#pragma once

#include <godwit/detail/global_path.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace godwit::detail {

/// In front of every local object.
struct object_header {
  static constexpr std::uint32_t live = 0x9e110b1e, dead = 0xdeadb10c;
  static constexpr std::uint32_t wide = 0;
  struct mark {
    std::uint32_t magic;  ///< live until the first who frees it. W who frees (atomic), R all
    std::uint32_t bytes;  ///< as asked for; wide: see gas::wide_part
  };
  std::uint64_t next;  ///< while returned: address of the next one. W who frees, R owner
  mark is;
};
static_assert(sizeof(object_header) == 16);

/// A block that is free. Its first word is the first of a header: the object's mark stays readable.
struct free_block {
  free_block* next;
};

/// An object of so many bytes needs the block of a size that grows by 16 bytes.
inline constexpr std::size_t largest_listed = 1024 - sizeof(object_header);
/// Number of that size's list.
constexpr std::size_t list_for(std::size_t bytes) noexcept {
  return (sizeof(object_header) + bytes + 15) / 16 - 1;
}

template <class T>
concept small_object = sizeof(T) <= largest_listed && alignof(T) <= sizeof(object_header);

/// Room for one T at the calling worker, which lies there in all workers. Null: global_allocate_local knows.
template <small_object T>
[[gnu::always_inline]] inline void* take_object() noexcept {
  auto* const mine = hot_load<offsetof(hot_words, objects), local_objects*>();
  free_block*& list = mine->free[list_for(sizeof(T))];
  free_block* const b = list;
  if (b == nullptr) [[unlikely]]
    return nullptr;
  list = b->next;
  auto* const header = reinterpret_cast<object_header*>(b);
  header->is = {object_header::live, sizeof(T)};
  return header + 1;
}

/// global_free, kept out of inlined code: its last argument would be made up in memory each time.
[[gnu::noinline, gnu::cold]] inline void free_elsewhere(global_address at, std::uint64_t bytes,
                                                        const char* file, const char* function,
                                                        unsigned line) {
  global_free(at, bytes, {file, function, line});
}

/// Give it back. False: global_free knows.
template <small_object T>
[[gnu::always_inline]] inline bool give_object(global_address at) noexcept {
  using mark = object_header::mark;
  auto* const mine = hot_load<offsetof(hot_words, objects), local_objects*>();
  if (at - mine->begin >= mine->bytes) [[unlikely]]
    return false;
  std::byte* const object = global_raw<std::byte>(at);
  mark is;
  __builtin_memcpy(&is, object - sizeof is, sizeof is);  // perhaps not aligned: then it is no object
  if (std::bit_cast<std::uint64_t>(is) != std::bit_cast<std::uint64_t>(mark{object_header::live, sizeof(T)}))
      [[unlikely]]
    return false;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // uses of the object stay before this
  object_header* const header = reinterpret_cast<object_header*>(object) - 1;
  header->is.magic = object_header::dead;
  auto* const b = reinterpret_cast<free_block*>(header);
  free_block*& list = mine->free[list_for(sizeof(T))];
  b->next = list;
  list = b;
  return true;
}

}  // namespace godwit::detail
