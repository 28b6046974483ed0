// For the tests of elements that own something: a value that holds global memory and says who destroyed it,
// and how much memory is in use.
#pragma once

#include <godwit/godwit.hpp>

#include <cstdint>
#include <utility>

#include "container_runs.hpp"

namespace container_runs {

/// Destroyed values, counted at the worker that did it.
class witness_counts {
 public:
  witness_counts() : at_(gw::worker_count(), gw::distribution::local(), 0) {}
  gw::global_ptr<std::uint64_t> data() { return at_.data(); }
  std::uint64_t of(std::uint32_t worker) { return at_[worker]; }
  std::uint64_t all() {
    std::uint64_t n = 0;
    for (std::uint32_t w = 0; w < gw::worker_count(); ++w) n += of(w);
    return n;
  }

 private:
  gw::global_array<std::uint64_t> at_;
};

/// Default-constructed or moved from it is nobody, and destroying it is not counted.
struct witness {
  witness() noexcept = default;
  witness(int i, gw::global_ptr<std::uint64_t> c) : id(i), counts(c) {
    if (i % 5 != 0) held.reserve(room);
    for (int k = 0; k < i % 5; ++k) held.push_back(i + k);
  }
  witness(witness&& o) noexcept
      : id(o.id), counts(std::exchange(o.counts, nullptr)), held(std::move(o.held)) {}
  witness& operator=(witness&& o) noexcept {
    witness w(std::move(o));
    std::swap(id, w.id);
    std::swap(counts, w.counts);
    held.swap(w.held);
    return *this;
  }
  ~witness() {
    if (counts != nullptr) gw::atomic_fetch_add(counts + gw::worker_id(), std::uint64_t{1});
  }

  bool empty() const noexcept { return counts == nullptr && held.empty(); }
  /// What it was made as, and @p more elements.
  bool is(int i, std::uint64_t more = 0) const {
    bool right = id == i && counts != nullptr && held.size() == static_cast<std::uint64_t>(i % 5) + more;
    for (std::uint64_t k = 0; right && k < held.size(); ++k) right = held[k] == i + static_cast<int>(k);
    return right;
  }

  static constexpr std::uint64_t room = 5000;  ///< so many are an allocation that used_bytes() counts at once
  int id = -1;
  gw::global_ptr<std::uint64_t> counts;
  gw::global_vector<int> held;
};

/// Bytes allocated, the sum of what all workers say of their hosts; small objects by the chunk. The calling
/// thread may go on at another worker.
inline std::uint64_t used_bytes() {
  gw::global_array<std::uint64_t> used(gw::worker_count(), gw::distribution::local(), 0);
  // Who allocates takes back what others have freed. (global_new does so only where its list is empty.)
  gw::on_each_worker([] { gw::deallocate(gw::allocate<int>(1), 1); });
  gw::on_each_worker(
      [u = used.data()] { gw::put(u + gw::worker_id(), gw::global_memory_usage().used_bytes); });
  std::uint64_t sum = 0;
  for (std::uint32_t w = 0; w < gw::worker_count(); ++w) sum += used[w];
  return sum;
}

/// What may be counted though nothing is left: chunks, and with check_global what was freed lately.
inline std::uint64_t slack_bytes() {
  const std::uint64_t workers = gw::worker_count(), room = 64 << 10;
  const std::uint64_t before = gw::global_memory_usage().used_bytes;
  gw::deallocate(gw::allocate<std::byte>(room), room);
  // What was freed lately may be too much with this, and half of it given back now.
  const bool kept = gw::global_memory_usage().used_bytes != before;
  return workers * workers * ((256 << 10) + (kept ? 4 << 20 : 0));
}

}  // namespace container_runs

template <>
inline constexpr bool godwit::relocatable<container_runs::witness> = true;
