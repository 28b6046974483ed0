// What the scheduler's protocols need of a transport: one-sided access to other workers' shared memory.
//
// A ref names an object: worker number << 40 | byte offset in that worker's segment, its top bit flipped.
// Implementations: shm/ (one host: everything is a load, a store or an atomic), far/fabric.hpp (all workers:
// shm inside the host, requests between hosts) and, in tests, plain memory shared by the threads of one
// process (tests/sched/). Nothing here assumes that a word can be reached by a CPU load.
#pragma once

#include "base/schedule_points.hpp"

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace godwit::transport {

/// Number of a worker in this run.
enum class worker_no : std::uint32_t {};
constexpr std::uint32_t index(worker_no w) noexcept { return static_cast<std::uint32_t>(w); }

/// Location of a 64-byte aligned object in some worker's segment; 0 is no location.
using ref = std::uint64_t;
inline constexpr unsigned ref_offset_bits = 40;
/// Flipped in refs, so that they are no addresses: who searches frames for pointers (sched/frames.hpp) would
/// take some for those.
inline constexpr ref ref_is_no_address = ref{1} << 63;
constexpr ref make_ref(worker_no w, std::uint64_t offset) noexcept {
  return (static_cast<ref>(index(w)) << ref_offset_bits | offset) ^ ref_is_no_address;
}
constexpr worker_no ref_worker(ref r) noexcept {
  return worker_no{static_cast<std::uint32_t>((r ^ ref_is_no_address) >> ref_offset_bits)};
}
constexpr std::uint64_t ref_offset(ref r) noexcept { return r & ((ref{1} << ref_offset_bits) - 1); }

using word = base::shared<std::uint64_t>;

// Words are addressed by a pointer into the *home* worker's own mapping, which is the same address in every
// worker (that is what the segment's common address is for); the worker number says whose word is meant.

/// Two neighbouring words.
struct word_pair_value {
  std::uint64_t first, second;
};

template <class T>
concept one_sided = requires(const T& t, worker_no w, const word* at, std::uint64_t v, std::uint64_t& e,
                             void* to, const void* from, std::size_t n) {
  { t.remote_load(w, at, std::memory_order_acquire) } -> std::same_as<std::uint64_t>;
  // Both words of at[0], at[1] for the price of one; the second is loaded first, both with acquire, where the
  // CPU does it. Across hosts nothing is promised about their order.
  { t.remote_load_pair(w, at) } -> std::same_as<word_pair_value>;
  t.remote_store(w, at, v, std::memory_order_release);
  { t.remote_exchange(w, at, v) } -> std::same_as<std::uint64_t>;
  { t.remote_compare_exchange(w, at, e, v) } -> std::same_as<bool>;
  { t.remote_fetch_add(w, at, v) } -> std::same_as<std::uint64_t>;
  t.remote_get(w, to, from, n);
  t.remote_put(w, to, from, n);
  t.remote_fence();
};

}  // namespace godwit::transport
