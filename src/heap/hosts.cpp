// See hosts.hpp.
#include "heap/hosts.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "heap/heap.hpp"
#include "heap/malloc.hpp"
#include "heap/part.hpp"
#include "transport/shm/memory_file.hpp"
#include "transport/shm/window.hpp"

namespace godwit::heap {

namespace {

constexpr std::uint64_t most_of_each = std::uint64_t{64} << 30, least_of_each = 1 << 20;

// Never destroyed: variables of the process may own blocks to its end. Frees of all other memory look here.
std::byte* memory_ = nullptr;
std::uint64_t memory_bytes_ = 0;
hosts* last_ = nullptr;            // of those that exist
constinit std::mutex list_;        // last_ and next_, which frees of all OS threads read
constinit next_functions before_;  // what next_ was
/// Those of the run whose turns the calling OS thread carries out, while it is somebody's.
[[gnu::tls_model("initial-exec")]] constinit thread_local hosts* running_ = nullptr;

}  // namespace

/// Of all heaps that are not `here`: malloc.cpp asks next_ about their blocks, as about the C library's.
struct blocks_elsewhere {
  static void free(void* at) noexcept {
    if (hosts* const h = hosts::holding(at); h != nullptr)
      h->free_later(at);
    else
      before_.free(at);
  }
  static std::size_t usable_size(void* at) noexcept {
    hosts* const h = hosts::holding(at);
    return h == nullptr ? before_.usable_size(at) : bytes_of_run(run_in(*h->home_of(at), at));
  }
  static void* realloc(void* at, std::size_t bytes) noexcept {
    if (hosts::holding(at) == nullptr) return before_.realloc(at, bytes);
    void* const to = bytes != 0 ? std::malloc(bytes) : nullptr;
    if (to != nullptr) std::memcpy(to, at, std::min(bytes, usable_size(at)));
    if (to != nullptr || bytes == 0) free(at);
    return to;
  }
  static void come_first() noexcept {
    if (next_.free == free) return;
    std::free(std::malloc(1));  // so that next_ has been found
    before_ = next_;
    next_.free = free;
    next_.realloc = realloc;
    next_.usable_size = usable_size;
  }
};

hosts* hosts::holding(const void* at) noexcept {
  if (static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - memory_) >= memory_bytes_)
    return nullptr;
  const std::lock_guard hold(list_);
  hosts* h = last_;
  while (h != nullptr && !h->addresses().holds(reinterpret_cast<std::uintptr_t>(at))) h = h->next_;
  return h;
}

hosts& hosts::begin(std::uint32_t count, std::uint64_t bytes, foreign_block* is_foreign) {
  GODWIT_CHECK(here.all == nullptr, "a process has the heaps of one run");
  find_code();
  blocks_elsewhere::come_first();
  if (memory_ == nullptr) {
    memory_ = transport::shm::map_of_process(bytes);
    if (memory_ == nullptr)
      throw std::runtime_error(
          "godwit: the threads' heap: no " + std::to_string(bytes >> 20) +
          " MiB of addresses for simulated hosts: use --godwit-heap=private (GODWIT_HEAP)");
    memory_bytes_ = bytes;
  }
  hosts* h = last_;
  while (h != nullptr && h->heaps_.size() != count) h = h->next_;
  if (h == nullptr) {
    std::byte* const base = last_ != nullptr ? last_->end_of_all() : memory_;
    // Half of what is left: blocks may be left, and a run of another number of hosts follow.
    const auto left = static_cast<std::uint64_t>(memory_ + memory_bytes_ - base) / 2;
    const std::uint64_t each = std::min(most_of_each, std::bit_floor(left / count));
    if (each < least_of_each)
      throw std::runtime_error("godwit: the threads' heap: too few addresses for " + std::to_string(count) +
                               " simulated hosts: use --godwit-heap=private (GODWIT_HEAP), or fewer hosts");
    h = new hosts(count, base, each);
    h->next_ = last_;
    const std::lock_guard hold(list_);
    last_ = h;
  }
  h->is_foreign_ = is_foreign;
  h->free_now();
  return *h;
}

void hosts::end(hosts& h) noexcept {
  h.turn_of_nobody();
  h.free_now();
  bool stays = false;
  for (std::uint32_t i = 0; i < h.heaps_.size(); ++i) {
    common* const all = h.heaps_[i].at.all;
    if (all == nullptr) continue;
    use(h.heaps_[i].at);
    if (all->fresh != 0 && heap::live_bytes() != 0) {
      stays = true;
      continue;
    }
    const std::byte* const used = all->spans + (all->fresh << span_bits);
    transport::shm::window::discard(h.base_of(i), static_cast<std::uint64_t>(used - h.base_of(i)));
    h.heaps_[i] = {};
  }
  use({});
  if (stays) return;
  {
    const std::lock_guard hold(list_);
    hosts** at = &last_;
    while (*at != &h) at = &(*at)->next_;
    *at = h.next_;
  }
  delete &h;
}

void hosts::turn_of(std::uint32_t host, bool is_worker) noexcept {
  running_ = this;
  heap_of_host& heap = heaps_[host];
  if (host != turn_) {
    turn_ = host;
    use(heap.at);
  }
  if (is_worker && heap.at.all == nullptr) {
    common* const all = lay_out(base_of(host), each_, 1);
    heap = {place_of(all), all->parts};
    use(heap.at);
    static_cast<void>(add_workers(1));
  }
  mine = is_worker ? heap.of_workers : nullptr;
}

void hosts::turn_of_nobody() noexcept {
  running_ = nullptr;
  turn_ = nobody_;
  mine = nullptr;
  use({});
}

/// Of @p at, if that is no mistake of whose turn it is.
common* hosts::home_of(const void* at) const noexcept {
  const auto host = static_cast<std::uint32_t>((static_cast<const std::byte*>(at) - base_) / each_);
  if (running_ == this) is_foreign_(at, host);
  return heaps_[host].at.all;
}

void hosts::free_later(void* at) noexcept {
  static_cast<void>(home_of(at));
  auto* const b = static_cast<block*>(at);
  b->next = freed_.load(std::memory_order_relaxed);
  while (!freed_.compare_exchange_weak(b->next, b, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void hosts::free_now() noexcept {
  for (block* b = freed_.exchange(nullptr, std::memory_order_acquire); b != nullptr;) {
    block* const next = b->next;
    use(place_of(home_of(b)));
    free_outside(b);
    b = next;
  }
  use({});
}

stack::range hosts::addresses() const noexcept {
  return {reinterpret_cast<std::uintptr_t>(base_), reinterpret_cast<std::uintptr_t>(end_of_all())};
}

}  // namespace godwit::heap
