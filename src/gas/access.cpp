// See access.hpp.
#include "gas/access.hpp"

#include <godwit/global_memory.hpp>

#include "base/check.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace godwit::gas {

using detail::access_mode;
using detail::atomic_op;
using detail::global_piece;
using detail::opened;

bool access::single_far_owner(global_address at, std::uint64_t bytes, std::uint32_t& owner) {
  if (check_.on()) check_.check_range(at, bytes, "access");
  if (!several_hosts_ || bytes == 0) return false;
  const piece p = blocks_.first_piece(at, bytes);
  owner = p.owner;
  return p.bytes == bytes && !net_.is_near(owner) && !cache_.has_dirty();
}

void access::get(global_address from, void* to, std::size_t bytes) {
  if (check_.on()) check_.check_range(from, bytes, "read");
  if (bytes == 0) return;  // `to` may be null
  const piece p = blocks_.first_piece(from, bytes);
  if (p.bytes != bytes) {
    const global_piece all{from, bytes, to};
    return gather(&all, 1);
  }
  if (net_.is_near(p.owner)) {
    std::memcpy(to, net_.at(from), bytes);
  } else if (!cache_.read(from, to, bytes)) {
    ++stats_->far_gets;
    net_.get(p.owner, to, from, bytes);
  }
}

void access::put(global_address to, const void* from, std::size_t bytes) {
  if (check_.on()) check_.check_range(to, bytes, "write");
  if (bytes == 0) return;
  const piece p = blocks_.first_piece(to, bytes);
  if (p.bytes != bytes) {
    const global_piece all{to, bytes, const_cast<void*>(from)};
    return scatter(&all, 1);
  }
  if (net_.is_near(p.owner)) {
    std::memcpy(net_.at(to), from, bytes);
    return;
  }
  // GL6. Before: a write-back that comes between would restore the old bytes. After: so would a fetch.
  cache_.written(to, from, bytes);
  ++stats_->far_puts;
  net_.put(p.owner, to, from, bytes);
  cache_.written(to, from, bytes);
}

void access::copy(global_address to, global_address from, std::uint64_t bytes) {
  if (check_.on()) {
    check_.check_range(from, bytes, "copy from");
    check_.check_range(to, bytes, "copy to");
  }
  if (!several_hosts_ || (blocks_.is_near(from, bytes) && blocks_.is_near(to, bytes))) {
    std::memmove(net_.at(to), net_.at(from), bytes);
    return;
  }
  constexpr std::uint64_t step = 256 << 10;
  std::vector<std::byte> buffer(std::min(bytes, step));
  const bool backwards = to > from;  // overlapping or not: the part that would be overwritten goes first
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t n = std::min(step, bytes - done);
    const std::uint64_t at = backwards ? bytes - done - n : done;
    get(from + at, buffer.data(), n);
    put(to + at, buffer.data(), n);
    done += n;
  }
}

std::uint64_t access::atomic(atomic_op what, global_address at, unsigned width, std::uint64_t operand,
                             std::uint64_t expected, bool relaxed) {
  if (check_.on()) check_.check_range(at, width, "change atomically");
  if (at % width != 0)
    base::fatal("worker %u: an atomic at global:0x%llx: it is not aligned to its %u bytes", net_.me(),
                static_cast<unsigned long long>(at), width);
  const auto function = static_cast<atomic_function>(what);
  if (!several_hosts_) return transport::far::apply_atomic(function, net_.at(at), width, operand, expected);
  GODWIT_ASSERT(width == 4 || width == 8, "an atomic is of a word");
  const std::uint32_t owner = blocks_.owner(at);
  if (!relaxed) release();
  const bool far = !net_.is_near(owner);
  if (far) {
    ++stats_->far_atomics;
    cache_.drop(at, width);
  }
  const std::uint64_t before = net_.atomic(owner, at, function, width, operand, expected);
  if (!relaxed)
    acquire();
  else if (far)
    cache_.drop(at, width);  // what was fetched meanwhile
  return before;
}

void access::fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  release();
  acquire();
}

void access::gather(const global_piece* pieces, std::size_t count) {
  std::vector<part> far;
  for (const global_piece& g : std::span(pieces, count)) {
    if (check_.on()) check_.check_range(g.at, g.bytes, "gather");
    blocks_.each_piece(g.at, g.bytes, [&](const piece& p) {
      auto* here = static_cast<std::byte*>(g.here) + (p.at - g.at);
      if (net_.is_near(p.owner))
        std::memcpy(here, net_.at(p.at), p.bytes);
      else if (!cache_.read(p.at, here, p.bytes))
        far.push_back({net_.host_of(p.owner), p.at, p.bytes, here});
    });
  }
  stats_->far_gets += fetch(net_, far);
}

void access::scatter(const global_piece* pieces, std::size_t count) {
  std::vector<part> far;
  for (const global_piece& g : std::span(pieces, count)) {
    if (check_.on()) check_.check_range(g.at, g.bytes, "scatter");
    blocks_.each_piece(g.at, g.bytes, [&](const piece& p) {
      auto* here = static_cast<std::byte*>(g.here) + (p.at - g.at);
      if (net_.is_near(p.owner))
        std::memcpy(net_.at(p.at), here, p.bytes);
      else
        far.push_back({net_.host_of(p.owner), p.at, p.bytes, here});
    });
  }
  for (const part& p : far) cache_.written(p.at, p.here, p.bytes);
  stats_->far_puts += write(net_, far);
  for (const part& p : far) cache_.written(p.at, p.here, p.bytes);  // GL6: what was fetched meanwhile
}

opened access::checkout(global_address at, std::uint64_t bytes, access_mode mode, detail::place where) {
  if (check_.on()) {
    check_.check_range(at, bytes, "check out");
    check_.note_checkout(at, bytes, mode != access_mode::read, where);
  }
  const bool cached = several_hosts_ && bytes != 0 && !blocks_.is_near(at, bytes);
  if (cached && !cache_.checkout(at, bytes, mode)) {
    if (check_.on()) check_.forget_checkout(at, bytes, mode != access_mode::read);
    throw global_bad_alloc("godwit: a checkout of " + std::to_string(bytes) + " bytes at " +
                           std::string(where.file) + ":" + std::to_string(where.line) +
                           " does not fit into the cache beside what is checked out there: " +
                           "check out less at a time, or raise --godwit-cache-bytes (GODWIT_CACHE_BYTES)");
  }
  ++detail::hot().checkouts;
  return {net_.at(at), at | (cached ? opened::cached : 0)};
}

void access::checkin(std::uint64_t ticket, std::uint64_t bytes, access_mode mode) noexcept {
  GODWIT_ASSERT(detail::hot().checkouts != 0, "what is checked in was checked out");
  --detail::hot().checkouts;
  const global_address at = ticket & ~opened::cached;
  if (check_.on()) check_.forget_checkout(at, bytes, mode != access_mode::read);
  if (ticket != at) cache_.checkin(at, bytes, mode);
}

std::byte* access::try_local(global_address at, std::uint64_t bytes) noexcept {
  if (check_.on()) check_.check_range(at, bytes, "look at");
  return blocks_.is_near(at, bytes) ? net_.at(at) : nullptr;
}

void access::populate(global_address at, std::uint64_t bytes) noexcept {
  // One byte per page: reads would map the zero page.
  blocks_.each_piece(at, bytes, [&](const piece& p) {
    for (global_address i = p.at; p.owner == net_.me() && i < p.at + p.bytes; i = (i | 4095) + 1) {
      auto* byte = reinterpret_cast<volatile std::byte*>(net_.at(i));
      *byte = *byte;
    }
  });
}

}  // namespace godwit::gas
