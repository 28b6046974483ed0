// What far_checks.hpp tests, and what it needs for that: one worker's access to the memory of others
// (`place`), the bytes that it works on, and calls for companions to carry out. Filled in by far_suite.cpp.
#pragma once

#include "base/clock.hpp"
#include "transport/far/requests.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <unistd.h>

namespace far_checks {

using namespace godwit::transport;
using godwit::base::now_ns;
using std::byte;
using std::size_t;
using std::uint32_t;
using std::uint64_t;

inline constexpr size_t KiB = 1 << 10, MiB = 1 << 20, huge_bytes = 64 * MiB;
inline constexpr uint32_t most_workers = 8, room_count = 32;

/// Bytes of an answer that a worker gives itself (am).
struct room {
  alignas(64) word used;
  alignas(64) byte bytes[MiB + KiB];
};

/// By producer, in the consumer's memory.
struct link {
  word data, flags[5], ack, scratch;
  byte small[1024];
  byte large[20000];
};

/// In each worker's segment, at the same common address. Fresh memory: all zero.
struct area {
  alignas(64) word arrived;  // barrier: at worker 0, W all others
  alignas(64) word go;       // W worker 0
  alignas(64) word busy, started, finished;
  alignas(64) word counter, sum, lock;
  alignas(64) uint64_t locked[520];  // by lock
  word casts[most_workers];          // by asker
  word cells[most_workers][16];
  link links[most_workers];
  alignas(64) byte storm[most_workers][8 * KiB];
  alignas(64) byte landing[most_workers][MiB + 8 * KiB];
  alignas(64) byte published[MiB + 8 * KiB];  // W owner
  alignas(64) byte own[huge_bytes + 4 * KiB];
  alignas(64) byte huge[huge_bytes + 4 * KiB];
  room rooms[room_count];
};

/// One worker's access to the others: what is under test.
struct place {
  virtual ~place() = default;
  virtual uint64_t load(worker_no w, const word* at) = 0;
  virtual void store(worker_no w, word* at, uint64_t v) = 0;
  virtual uint64_t exchange(worker_no w, word* at, uint64_t v) = 0;
  virtual bool compare_exchange(worker_no w, word* at, uint64_t& expected, uint64_t v) = 0;
  virtual uint64_t fetch_add(worker_no w, word* at, uint64_t v) = 0;
  virtual void get(worker_no w, void* to, const void* from, size_t n) = 0;
  virtual void put(worker_no w, void* to, const void* from, size_t n) = 0;
  virtual void fence(worker_no w) = 0;
  virtual bool calls(worker_no) const { return false; }
  virtual const far::entry& call(worker_no, uint64_t number, uint64_t a, uint64_t b) = 0;
  virtual void cast(worker_no, uint64_t number, uint64_t a) = 0;
  virtual void poll() {}  ///< what a worker does now and then
  /// Way am: a request for this word waits for this worker, which has not looked.
  virtual bool asked_for(const word*) const { return false; }
};

struct setting {
  std::string name;  ///< "am apart"
  uint32_t me = 0, workers = 0;
  uint32_t step = 1;              ///< to the next worker to work with, on another host if possible
  bool serves_itself = false;     ///< requests wait for this worker
  bool no_near_atomics = false;   ///< words that others change by atomics are not written by CPUs
  uint64_t rounds_percent = 100;  ///< more rounds where they cost little
  uint64_t seed = 1;
};

// ---------------------------------------------------------------- bytes that can be recognised

inline uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  return x ^ x >> 27;
}
inline void fill(byte* to, size_t n, uint64_t seed) {
  uint64_t x = mix(seed + 1);
  size_t i = 0;
  for (; i + 8 <= n; i += 8, x += 0x9E3779B97F4A7C15ull) std::memcpy(to + i, &x, 8);
  std::memcpy(to + i, &x, n - i);
}
inline bool matches(const byte* at, size_t n, uint64_t seed) {
  uint64_t x = mix(seed + 1);
  size_t i = 0;
  for (; i + 8 <= n; i += 8, x += 0x9E3779B97F4A7C15ull)
    if (std::memcmp(at + i, &x, 8) != 0) return false;
  return std::memcmp(at + i, &x, n - i) == 0;
}
inline bool all_are(const byte* at, size_t n, byte value) {
  return std::all_of(at, at + n, [=](byte b) { return b == value; });
}

// ---------------------------------------------------------------- the calls of this suite's "higher layer"

enum call_no : uint64_t { produce = 1, count, slow };

/// produce: argument = info << 32 | bytes, argument2 = where the bytes belong at the asker. count: argument =
/// asker.
template <class Room>
byte* carry_out(const shm::segment& memory, area* common, far::entry& e, Room&& get_room) {
  const uint64_t number = e.head.a, argument = e.head.b, where = e.head.more[0];
  e.head.result = ~argument;
  e.head.bytes = e.head.info = e.head.local = 0;
  if (number == count) memory.at(e.head.target, common)->casts[argument].fetch_add(1);
  if (number == slow) usleep(10'000);
  if (number != produce) return nullptr;
  e.head.info = argument >> 32;
  e.head.bytes = argument & 0xffff'ffff;
  e.head.local = where;
  fill(e.data, e.head.info, argument + 1);
  const bool fits = e.head.info + e.head.bytes <= far::inline_bytes;
  byte* to = fits ? e.data + e.head.info : get_room(e.head.bytes);
  fill(to, e.head.bytes, argument + 2);
  return fits ? nullptr : to;
}

}  // namespace far_checks
