// See hosts.hpp.
#include "heap/hosts.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/check.hpp"
#include "heap/heap.hpp"
#include "heap/malloc.hpp"
#include "heap/part.hpp"

namespace godwit::heap {

namespace {

hosts* first_ = nullptr;           // of those that exist
hosts* running_ = nullptr;         // those of the run, while it is somebody's turn
constinit next_functions before_;  // what next_ was

}  // namespace

/// Of all heaps that are not `here`: malloc.cpp asks next_ about their blocks, as about those of the C library.
struct blocks_elsewhere {
  static void free(void* at) noexcept {
    if (hosts* const h = hosts::holding(at); h != nullptr)
      h->at_home(at, [at] { free_outside(at); });
    else
      before_.free(at);
  }
  static std::size_t usable_size(void* at) noexcept {
    hosts* const h = hosts::holding(at);
    if (h == nullptr) return before_.usable_size(at);
    std::size_t bytes = 0;
    h->at_home(at, [&] { bytes = usable_bytes(at); });
    return bytes;
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
  hosts* h = first_;
  while (h != nullptr && !h->addresses().holds(reinterpret_cast<std::uintptr_t>(at))) h = h->next_;
  return h;
}

hosts::hosts(std::uint32_t count, std::uint64_t bytes) : each_(bytes), heaps_(count) {
  window_.create(bytes * count);
}

hosts& hosts::begin(std::uint32_t count, std::uint64_t bytes, foreign_block* is_foreign) {
  GODWIT_CHECK(here.all == nullptr, "a process has the heaps of one run");
  find_code();
  blocks_elsewhere::come_first();
  hosts* h = first_;
  while (h != nullptr && h->heaps_.size() != count) h = h->next_;
  if (h == nullptr) {
    h = new hosts(count, bytes);
    h->next_ = first_;
    first_ = h;
  }
  h->is_foreign_ = is_foreign;
  return *h;
}

void hosts::end(hosts& h) noexcept {
  h.turn_of_nobody();
  bool stays = false;
  for (std::uint32_t i = 0; i < h.heaps_.size(); ++i) {
    common* const all = h.heaps_[i];
    if (all == nullptr) continue;
    use(all);
    if (all->fresh != 0 && heap::live_bytes() != 0) {
      stays = true;
      continue;
    }
    const std::byte* const used = all->spans + (all->fresh << span_bits);
    transport::shm::window::discard(h.base_of(i), static_cast<std::uint64_t>(used - h.base_of(i)));
    h.heaps_[i] = nullptr;
  }
  use(nullptr);
  if (stays) return;
  hosts** at = &first_;
  while (*at != &h) at = &(*at)->next_;
  *at = h.next_;
  delete &h;
}

void hosts::turn_of(std::uint32_t host, bool is_worker) noexcept {
  running_ = this;
  if (host != turn_) {
    turn_ = host;
    use(heaps_[host]);
  }
  if (is_worker && heaps_[host] == nullptr) {
    heaps_[host] = lay_out(base_of(host), each_, 1);
    use(heaps_[host]);
    static_cast<void>(add_workers(1));
  }
  mine = is_worker ? here.all->parts : nullptr;
}

void hosts::turn_of_nobody() noexcept {
  running_ = nullptr;
  turn_ = nobody_;
  mine = nullptr;
  use(nullptr);
}

template <class F>
void hosts::at_home(const void* at, F&& f) noexcept {
  const auto host = static_cast<std::uint32_t>((static_cast<const std::byte*>(at) - window_.base()) / each_);
  if (running_ == this) is_foreign_(at, host);
  common* const was = here.all;
  use(heaps_[host]);
  f();
  use(was);
}

stack::range hosts::addresses() const noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(window_.base());
  return {base, base + window_.bytes()};
}

}  // namespace godwit::heap
