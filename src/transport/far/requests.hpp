// Requests of workers for memory of other hosts: plain data in shared memory.
//
// A worker never talks to the network. It writes a request into a ring in its own segment; the *companion*
// (the process that the launcher started, src/transport/mpi) takes it from there, has it carried out on the
// other host and writes the answer back. The same entry, in a worker's inbox, is how requests of others reach
// a worker in the `am` way. docs/protocols/far.md. Test: tests/transport/far_test.cpp.
#pragma once

#include "transport/shm/segment.hpp"

#include <atomic>
#include <cstddef>

namespace godwit::transport::far {

enum class op : std::uint32_t {
  load,              ///< result = the word
  store,             ///< word = a. No answer
  exchange,          ///< result = the word, which becomes a
  compare_exchange,  ///< result = the word; it becomes b if it was a
  fetch_add,         ///< result = the word, to which a is added
  get,               ///< bytes from address
  put,               ///< bytes to address. No answer up to inline_bytes
  fence,             ///< answered when all earlier requests to this worker have taken effect
  call,  ///< number a, with inline bytes: what a higher layer does at the home; answer: result and bytes
  cast,  ///< likewise without an answer
  /// result = the word of `bytes` (4, 8) bytes before; function `info` with a, for compare-exchange b
  /// expected
  atomic,
  gather,   ///< `bytes` of inline `piece`s; answer: what lies there, `info` bytes inline
  scatter,  ///< `bytes` of inline pieces, each followed by what to write there (padded to 8 bytes)
  discard,  ///< `a` bytes at address need no memory any more: whole pages of them read as zero
  deliver,  ///< like cast, but carried out by the target worker itself, whatever the way, and in its time
};

/// What `atomic` does to the word.
enum class atomic_function : std::uint64_t {
  load,
  store,
  exchange,
  compare_exchange,
  fetch_add,
  fetch_and,
  fetch_or,
  fetch_xor,
  min_signed,
  max_signed,
  min_unsigned,
  max_unsigned,
};
std::uint64_t apply_atomic(atomic_function f, void* at, unsigned width, std::uint64_t a,
                           std::uint64_t expected) noexcept;

/// Of gather and scatter.
struct piece {
  std::uint64_t address;
  std::uint64_t bytes;
};

/// What travels besides inline bytes. 96 bytes, the same in every process of a job.
struct header {
  op what = op::fence;
  worker_no target{};         ///< whose memory
  std::uint64_t address = 0;  ///< common address
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t bytes = 0;   ///< get, put: how many. Answer of a call: bytes to be left at `local`
  std::uint64_t result = 0;  ///< of the words
  /// common address in the asker's own segment to read from or write to; 0: inline
  std::uint64_t local = 0;
  std::uint64_t info = 0;  ///< answer of a call: bytes in front of those, which stay inline
  /// call: [0] a second argument, [2] of a routed call its block (routed.hpp); of the answer [1] non-zero if
  /// another request will follow soon, [2] ns between request and answer at the companion, [3] of those the
  /// ns of the execution
  std::uint64_t more[4] = {};
};
static_assert(sizeof(header) == 96);

inline constexpr std::size_t inline_bytes = 3992;  // most stolen stacks fit

enum class state : std::uint32_t {
  free,    ///< ring: W worker after an answer, companion where there is none; inbox: W companion
  posted,  ///< the other side may take it
  taken,   ///< under way
  done,    ///< answered; the asker has not seen it yet
};

/// One request in a ring. W by turns, as `now` says: asker (free, done), server (posted, taken).
struct alignas(64) entry {
  base::shared<state> now{state::free};  ///< W and R asker and server, by turns
  std::uint32_t begins = 0;              ///< 1: all before it had ended (FA4). W asker
  header head;
  std::byte data[inline_bytes];
};
static_assert(sizeof(entry) == 4096);

/// Small puts are answered only if `info` asks for it.
constexpr bool has_answer(const header& h) noexcept {
  return !(h.what == op::store || h.what == op::cast || h.what == op::deliver ||
           (h.what == op::put && h.bytes <= inline_bytes && h.info == 0));
}

inline constexpr std::uint32_t ring_entries = 16;
inline constexpr std::uint32_t inbox_entries = 8;
inline constexpr std::size_t bounce_piece = 512 << 10;  ///< of what goes through the bounce buffer
inline constexpr std::size_t bounce_pieces = 4;
inline constexpr std::size_t bounce_bytes = bounce_piece * bounce_pieces;

/// One per worker, in its segment.
struct words {
  std::uint32_t entries() const noexcept { return ring_entries >> ring_halvings; }
  std::uint32_t slot_of(std::uint64_t request) const noexcept {
    return static_cast<std::uint32_t>(request) & (entries() - 1);
  }
  entry& entry_of(std::uint64_t request) noexcept { return ring[slot_of(request)]; }
  std::uint32_t inbox_size() const noexcept { return inbox_entries >> inbox_halvings; }
  entry& inbox_entry(std::uint64_t request) noexcept {
    return inbox[static_cast<std::uint32_t>(request) & (inbox_size() - 1)];
  }

  // The worker sleeps on this while it waits for an answer. W companion (adds 1 at every answer), R worker
  alignas(64) base::shared<std::uint32_t> answers{0};
  base::shared<std::uint32_t> waiting{0};  ///< the worker may be asleep on `answers`. W worker, R companion
  /// the worker looks at its inbox no more. W worker, its last act; R companion
  base::shared<std::uint32_t> gone{0};
  // A companion sleeps on its first worker's bell. W workers that it serves (add 1), R companion
  alignas(64) base::shared<std::uint32_t> bell{0};
  /// not 0: the companion may be asleep, and how it is woken. W companion, R workers
  base::shared<std::uint32_t> deaf{0};
  /// the ring has ring_entries, halved so often: where memory is scarce. W once, before others
  std::uint32_t ring_halvings = 0;
  std::uint32_t inbox_halvings = 0;        ///< likewise the inbox's inbox_entries
  alignas(64) entry inbox[inbox_entries];  ///< am: W companion and worker by turns
  // The simulator's memory ends behind what is used of the ring: bytes_without_bounce.
  alignas(64) entry ring[ring_entries];  ///< W worker and companion by turns
  /// for bytes that come from or go to private memory. W by turns
  alignas(64) std::byte bounce[bounce_bytes];
};
/// Of words whose ring is halved so often.
constexpr std::size_t bytes_without_bounce(std::uint32_t ring_halvings) noexcept {
  return offsetof(words, ring) + (ring_entries >> ring_halvings) * sizeof(entry);
}

/// Carry out a request that only touches words and bytes, on memory that @p memory reaches (also the window).
/// Everything here is sequentially consistent, so that the requests of one worker to another order like its
/// program. Bytes of get are left where they are: answered by address.
void execute_on(const shm::segment& memory, header& head, std::byte* data) noexcept;
/// Bytes of the request that travel inline.
constexpr std::uint64_t inline_of_request(const header& h) noexcept {
  switch (h.what) {
    case op::put:
      return h.bytes <= inline_bytes ? h.bytes : 0;
    case op::gather:
    case op::scatter:
    case op::call:
    case op::cast:
    case op::deliver:
      return h.bytes;
    default:
      return 0;
  }
}

}  // namespace godwit::transport::far
