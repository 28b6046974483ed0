// What inlined accesses to global memory call when the memory is not plainly this host's. Not an interface
// for users.
//
// None of these migrates the calling thread. Implemented in src/runtime/global_path.cpp on top of src/gas.
#pragma once

#include <godwit/detail/slow_path.hpp>

#include <cstddef>
#include <cstdint>

namespace godwit {

/// What became of a move (move.hpp). Of several parts that which comes last in this list.
enum class move_result : std::uint32_t {
  already_there,  ///< it was the worker's
  moved,
  busy,     ///< it was checked out for too long, or others move it all the time. It is where it was
  no_room,  ///< the worker's host has no budget for it (option global_limit). It is where it was
};

}  // namespace godwit

namespace godwit::detail {

/// Compiled with -fsanitize=thread, which does not follow fences: the library tells it of them.
#if defined(__clang__)
constexpr bool tells_of_fences = __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_THREAD__)
constexpr bool tells_of_fences = true;
#else
constexpr bool tells_of_fences = false;
#endif

/// Byte number in the global memory of a run; 0 is no place.
using global_address = std::uint64_t;

enum class access_mode : std::uint32_t { read, write, read_write };

enum class atomic_op : std::uint32_t {
  load,
  store,
  exchange,
  compare_exchange,
  fetch_add,
  fetch_and,
  fetch_or,
  fetch_xor,
  fetch_min_signed,
  fetch_max_signed,
  fetch_min_unsigned,
  fetch_max_unsigned,
};

/// How the blocks of an allocation are dealt out to homes; see distribution in global_memory.hpp.
struct spread {
  enum class kind : std::uint32_t { local, blocked, cyclic, user };
  kind what = kind::local;
  std::uint32_t home = ~0u;       ///< local: where; ~0: the calling worker
  std::uint64_t block_bytes = 0;  ///< 0: blocked: an equal part each; cyclic: 64 KiB
  /// user: the home of block @p block of @p blocks, called once for each by the allocating worker.
  std::uint32_t (*home_of)(const void* arg, std::uint64_t block, std::uint64_t blocks,
                           std::uint32_t homes) = nullptr;
  const void* arg = nullptr;
  bool movable = false;
  std::uint64_t move_bytes = 0;  ///< movable: what moves together; 0: block_bytes, or 64 KiB
};

/// Bytes are zero if fresh, else undefined. Throws global_bad_alloc, std::invalid_argument.
[[gnu::cold]] global_address global_allocate(std::uint64_t bytes, std::uint64_t alignment, const spread& how,
                                             place where);
/// Small objects: what global_allocate does for a local spread, shorter.
global_address global_allocate_local(std::uint64_t bytes, std::uint64_t alignment, place where);
/// Addresses for something else than global memory, the same on all hosts, until the run ends.
global_address global_reserve(std::uint64_t bytes);
/// @p bytes as allocated. 0 is nothing.
void global_free(global_address at, std::uint64_t bytes, place where);
/// Touch this worker's part of a fresh allocation.
void global_populate(global_address at, std::uint64_t bytes) noexcept;

[[gnu::cold]] void global_get(global_address from, void* to, std::size_t bytes);
[[gnu::cold]] void global_put(global_address to, const void* from, std::size_t bytes);
[[gnu::cold]] void global_copy(global_address to, global_address from, std::uint64_t bytes);
[[gnu::cold]] std::uint64_t global_atomic(atomic_op what, global_address at, unsigned width,
                                          std::uint64_t operand, std::uint64_t expected, bool relaxed);
[[gnu::cold]] void global_fence() noexcept;

/// Pieces of memory elsewhere, fetched or written in few messages.
struct global_piece {
  global_address at;
  std::uint64_t bytes;
  void* here;
};
void global_gather(const global_piece* pieces, std::size_t count);
void global_scatter(const global_piece* pieces, std::size_t count);

/// Asynchronous get and put: gives back a record that completes with the bytes (get) or nothing (put).
ref global_get_begin(global_address from, std::size_t bytes);
ref global_put_begin(global_address to, const void* from, std::size_t bytes);

/// A checkout. Its ticket is the address, and in the highest bits the way that it went, so that checkin
/// need not find out again. (As a member of its own it would cost the plain case a register.)
struct opened {
  static constexpr std::uint64_t cached = std::uint64_t{1} << 63;  ///< the host's cache holds copies open
  static constexpr std::uint64_t pinned = std::uint64_t{1} << 62;  ///< movable memory of this host is in use
  static constexpr std::uint64_t ordinary = 0;                     ///< no global memory: nothing to give back
  std::byte* data;
  std::uint64_t ticket;
};
/// Raw memory for [at, at + bytes). Throws what is said at checkout().
[[gnu::cold]] opened global_checkout(global_address at, std::uint64_t bytes, access_mode mode, place where);
/// The same of memory that is this host's, and stays here until then. Null: it is not, or, unless @p wait,
/// not now; with @p wait throws what is said at pin().
[[gnu::cold]] opened global_pin(global_address at, std::uint64_t bytes, access_mode mode, bool wait,
                                place where);
[[gnu::cold]] void global_checkin(std::uint64_t ticket, std::uint64_t bytes, access_mode mode) noexcept;
/// Ask for what is not here, without waiting. Then one of the two others, on the same worker.
[[gnu::cold]] void* global_checkout_begin(global_address at, std::uint64_t bytes, access_mode mode);
[[gnu::cold]] opened global_checkout_complete(void* begun, place where);
[[gnu::cold]] void global_checkout_abandon(void* begun) noexcept;
/// Null unless the whole range is memory of this host.
[[gnu::cold]] std::byte* global_try_local(global_address at, std::uint64_t bytes) noexcept;

/// on_move.hpp: what is called when a part has come to another worker.
struct arrived_part {
  global_address at;
  std::byte* data;
  std::uint64_t bytes;
  std::uint32_t from, to;
};
struct move_hook {
  static constexpr std::size_t closure_bytes = 48;
  void (*call)(const void* closure, const arrived_part& part) noexcept = nullptr;
  alignas(8) std::byte closure[closure_bytes] = {};
};

/// Of the whole allocation that @p at lies in; false as said at freeze().
bool global_freeze(global_address at, bool freeze, place where);
/// Gives back a record that completes with the move_result. Throws what is said at move().
ref global_move(global_address at, std::uint64_t bytes, std::uint32_t worker, place where);

/// Number of the worker that @p at belongs to.
std::uint32_t global_home(global_address at);
/// How many bytes from @p at on, @p bytes at most, have one home, and which.
std::uint64_t global_home_piece(global_address at, std::uint64_t bytes, std::uint32_t& home);
/// It can be moved. Local, but round trips the first time.
bool global_is_movable(global_address at);
/// And that has it now.
std::uint32_t global_owner(global_address at);
std::uint32_t global_likely_owner(global_address at);
/// The caller spins until another worker has done something: let the system run that one, and serve other
/// hosts meanwhile.
[[gnu::cold]] void global_pause() noexcept;

/// Ordinary memory that an algorithm was called with, as an address behind the end of global memory: with
/// global_base it is the pointer. Where not all workers of the run see that memory (or, if the algorithm
/// @p writes, the same memory), the run ends with the place of the call.
[[gnu::cold, gnu::noinline]] global_address ordinary_address(const void* at, bool writes) noexcept;

/// The plain case: all global memory is this host's, and nobody checks.
[[gnu::always_inline]] inline bool global_is_plain() noexcept {
  return hot_test<offsetof(hot_words, global_plain)>();
}
template <class T>
[[gnu::always_inline]] inline T* global_raw(global_address at) noexcept {
  return reinterpret_cast<T*>(hot_load<offsetof(hot_words, global_base), std::byte*>() + at);
}

}  // namespace godwit::detail
