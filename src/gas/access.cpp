// See access.hpp.
#include "gas/access.hpp"

#include <godwit/global_memory.hpp>

#include "base/check.hpp"
#include "base/thread_sanitizer.hpp"
#include "gas/routed.hpp"
#include "gas/single_access.hpp"
#include "gas/translations.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace godwit::gas {

using detail::access_mode;
using detail::atomic_op;
using detail::global_piece;
using detail::opened;

template <class F>
bool access::touch_here(const piece& p, F&& touch, bool counts) {
  if (p.words == nullptr) {
    if (!net_.is_near(p.owner)) return false;
    touch();
    return true;
  }
  if (!several_hosts_) {  // all its places are one
    touch();
    return true;
  }
  const place here = p.place(net_);
  const place_states allowed = detail::open_checkouts() != 0 ? still_here : is_here;  // MV6
  if (!in(here.use(allowed), allowed)) return false;
  touch();
  if (counts) here.count_near();
  here.end_use();
  return true;
}

void access::add_far(std::vector<part>& far, const piece& p, std::byte* here) {
  far.emplace_back(net_, p, here);
}

void access::look_up(std::vector<part>& far) {
  for (part& p : far)
    if (p.words != nullptr) net_.hints().look_up(net_, p);
}

void access::fetch_all(std::vector<part>& far) {
  if (far.size() == 1 && is_routed(net_, far[0])) {
    ++stats_->far_gets;
    return get_routed(net_, far[0]);
  }
  look_up(far);
  for (part_wait more(net_);; more.wait_for(far)) {
    std::vector<part> left;
    stats_->far_gets += fetch(net_, far, left);
    std::erase_if(left, [&](const part& p) {
      return touch_here(p.as_piece(net_.first_of(p.host)),
                        [&] { copy_bytes(p.here, net_.at(p.at), p.bytes); });
    });
    if (left.empty()) return;
    far = std::move(left);
  }
}

void access::write_all(std::vector<part>& far) {
  if (far.size() == 1 && is_routed(net_, far[0])) {
    ++stats_->far_puts;
    return put_routed(net_, far[0]);
  }
  look_up(far);
  for (part_wait more(net_);; more.wait_for(far)) {
    std::vector<part> left;
    stats_->far_puts += write(net_, far, left);
    std::erase_if(left, [&](const part& p) {
      return touch_here(p.as_piece(net_.first_of(p.host)),
                        [&] { copy_bytes(net_.at(p.at), p.here, p.bytes); });
    });
    if (left.empty()) return;
    far = std::move(left);
  }
}

void access::refuse_frozen(global_address at, const detail::place& where) {
  if ((several_hosts_ || check_.on()) && blocks_.is_frozen(at)) blocks_.is_read_only(at, where);
}

bool access::single_far_owner(global_address at, std::uint64_t bytes, std::uint32_t& owner) {
  if (check_.on()) check_.check_range(at, bytes, "access");
  if (!several_hosts_ || bytes == 0) return false;
  const piece p = blocks_.first_piece(at, bytes);
  owner = p.owner;
  return p.bytes == bytes && p.words == nullptr && !net_.is_near(owner) && !cache_.has_dirty();
}

void access::get(global_address from, void* to, std::size_t bytes) {
  if (check_.on()) check_.check_range(from, bytes, "read");
  if (bytes == 0) return;  // `to` may be null
  const piece p = blocks_.first_piece(from, bytes);
  if (p.bytes == bytes && touch_here(p, [&] { copy_bytes(to, net_.at(from), bytes); })) return;
  const bool one = p.bytes == bytes && p.words == nullptr;
  if (one && cache_.read(from, to, bytes)) return;
  std::optional<single_access> timed;
  if (p.bytes == bytes) timed.emplace(net_, singles_, access_event::kind::get, from, p.owner);
  if (!one) {
    const global_piece all{from, bytes, to};
    return gather(&all, 1);
  }
  ++stats_->far_gets;
  net_.get(p.owner, to, from, bytes);
}

void access::put(global_address to, const void* from, std::size_t bytes) {
  if (check_.on()) check_.check_range(to, bytes, "write");
  if (bytes == 0) return;
  const piece p = blocks_.first_piece(to, bytes);
  if (p.frozen) blocks_.is_read_only(to, {});
  if (p.bytes == bytes && touch_here(p, [&] { copy_bytes(net_.at(to), from, bytes); })) return;
  std::optional<single_access> timed;
  if (p.bytes == bytes) timed.emplace(net_, singles_, access_event::kind::put, to, p.owner);
  if (p.bytes != bytes || p.words != nullptr) {
    const global_piece all{to, bytes, const_cast<void*>(from)};
    return scatter(&all, 1);
  }
  // GL6. Before: a write-back that comes between would restore the old bytes. After: so would a fetch.
  const part all(net_, p, const_cast<std::byte*>(static_cast<const std::byte*>(from)));
  cache_.written(all);
  ++stats_->far_puts;
  net_.put(p.owner, to, from, bytes);
  cache_.written(all);
}

void access::copy(global_address to, global_address from, std::uint64_t bytes) {
  if (check_.on()) {
    check_.check_range(from, bytes, "copy from");
    check_.check_range(to, bytes, "copy to");
  }
  if (bytes == 0) return;  // what lies there is nobody's business
  refuse_frozen(to, {});
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
  if (what != atomic_op::load) refuse_frozen(at, {});
  const auto function = static_cast<atomic_function>(what);
  if (!several_hosts_) {
    std::byte* const word = net_.at(at);
    if (!relaxed && what != atomic_op::load) base::happens_before(word);
    const std::uint64_t before = transport::far::apply_atomic(function, word, width, operand, expected);
    if (!relaxed && what != atomic_op::store) base::happens_after(word);
    return before;
  }
  GODWIT_ASSERT(width == 4 || width == 8, "an atomic is of a word");
  const piece p = blocks_.first_piece(at, width);
  if (!relaxed) release();
  if (p.words != nullptr) return atomic_on_movable(p, function, width, operand, expected, relaxed);
  const bool far = !net_.is_near(p.owner);
  std::optional<single_access> timed;
  if (far) {
    ++stats_->far_atomics;
    cache_.drop(at, width);
    timed.emplace(net_, singles_, access_event::kind::atomic, at, p.owner);
  }
  const std::uint64_t before = net_.atomic(p.owner, at, function, width, operand, expected);
  if (!relaxed)
    acquire();
  else if (far)
    cache_.drop(at, width);  // what was fetched meanwhile
  return before;
}

std::uint64_t access::atomic_on_movable(const piece& p, atomic_function f, unsigned width,
                                        std::uint64_t operand, std::uint64_t expected, bool relaxed) {
  std::uint64_t before = 0;
  const auto here = [&] {
    return touch_here(
        p, [&] { before = transport::far::apply_atomic(f, net_.at(p.at), width, operand, expected); });
  };
  if (cache_.has_dirty()) cache_.drop(p.at, width);
  const bool far = !here();
  if (far) {
    cache_.drop(p.at, width);
    const single_access timed(net_, singles_, access_event::kind::atomic, p.at, p.owner);
    part at(net_, p, nullptr);
    const bool routed = is_routed(net_, at);
    if (routed) {
      ++stats_->far_atomics;
      before = atomic_routed(net_, at, f, width, operand, expected);
    } else {
      net_.hints().look_up(net_, at);
    }
    for (part_wait more(net_); !routed;) {
      const bool ask = at.host != net_.my_host();
      if (ask) ++stats_->far_atomics;
      const place_answer said =
          ask ? atomic_at(net_, at, f, width, operand, expected, before) : place_answer{};
      if (said.what == place_says::done) break;
      at.follow(net_, said);
      if (!at.sent_on) more.wait(p.at);
      if (here()) break;
    }
  }
  if (!relaxed)
    acquire();
  else if (far)
    cache_.drop(p.at, width);  // what was fetched meanwhile
  return before;
}

void access::fence() noexcept {
  static constexpr char all_fences = 0;
  base::happens_before(&all_fences);
  base::fence();
  base::happens_after(&all_fences);
  release();
  acquire();
}

void access::gather(const global_piece* pieces, std::size_t count) {
  std::vector<part> far;
  for (const global_piece& g : std::span(pieces, count)) {
    if (check_.on()) check_.check_range(g.at, g.bytes, "gather");
    blocks_.each_piece(g.at, g.bytes, [&](const piece& p) {
      auto* here = static_cast<std::byte*>(g.here) + (p.at - g.at);
      // A word of movable memory is what it is at its owner: others may write it at any time.
      const auto which = p.words != nullptr && p.bytes <= sizeof(word) ? cache::copies::own_writes
                                                                       : cache::copies::new_enough;
      if (!touch_here(p, [&] { copy_bytes(here, net_.at(p.at), p.bytes); }) &&
          !cache_.read(p.at, here, p.bytes, which))
        add_far(far, p, here);
    });
  }
  fetch_all(far);
}

void access::scatter(const global_piece* pieces, std::size_t count) {
  std::vector<part> far;
  for (const global_piece& g : std::span(pieces, count)) {
    if (check_.on()) check_.check_range(g.at, g.bytes, "scatter");
    if (g.bytes != 0) refuse_frozen(g.at, {});
    blocks_.each_piece(g.at, g.bytes, [&](const piece& p) {
      auto* here = static_cast<std::byte*>(g.here) + (p.at - g.at);
      if (!touch_here(p, [&] { copy_bytes(net_.at(p.at), here, p.bytes); })) add_far(far, p, here);
    });
  }
  for (const part& p : far) cache_.written(p);
  std::vector<part> under_way = far;
  write_all(under_way);
  for (const part& p : far) cache_.written(p);  // GL6: what was fetched meanwhile
}

opened access::checkout(global_address at, std::uint64_t bytes, access_mode mode, detail::place where,
                        std::uint64_t wanted) {
  if (check_.on()) {
    check_.check_range(at, bytes, "check out");
    check_.note_checkout(at, bytes, mode != access_mode::read, where);
  }
  if (mode != access_mode::read && bytes != 0) refuse_frozen(at, where);
  const bool fixed_here = !several_hosts_ || bytes == 0 || blocks_.is_near(at, bytes);
  const bool pinned = !fixed_here && use_all(at, bytes);
  const bool cached = !fixed_here && !pinned;
  if (cached && !cache_.checkout(at, bytes, mode, wanted)) {
    if (check_.on()) check_.forget_checkout(at, bytes, mode != access_mode::read);
    throw global_bad_alloc("godwit: a checkout of " + std::to_string(bytes) + " bytes at " +
                           std::string(where.file) + ":" + std::to_string(where.line) +
                           " does not fit into the cache beside what is checked out there: " +
                           "check out less at a time, or raise --godwit-cache-bytes (GODWIT_CACHE_BYTES)");
  }
  ++detail::hot().checkouts;
  return {net_.at(at), at | (cached ? opened::cached : 0) | (pinned ? opened::pinned : 0)};
}

bool access::use_all(global_address at, std::uint64_t bytes) {
  const place_states allowed = detail::open_checkouts() != 0 ? still_here : is_here;  // MV6
  std::uint64_t pinned = 0;
  blocks_.each_piece(at, bytes, [&](const piece& p) {
    if (p.at != at + pinned || p.words == nullptr || !in(p.place(net_).use(allowed), allowed)) return;
    p.place(net_).count_near();
    pinned += p.bytes;
  });
  if (pinned == bytes) return true;
  unpin(at, pinned);
  return false;
}

void access::unpin(global_address at, std::uint64_t bytes) {
  blocks_.each_piece(at, bytes, [&](const piece& p) { p.place(net_).end_use(); });
}

void access::checkin(std::uint64_t ticket, std::uint64_t bytes, access_mode mode) noexcept {
  GODWIT_ASSERT(detail::hot().checkouts != 0, "what is checked in was checked out");
  --detail::hot().checkouts;
  const global_address at = ticket & ~(opened::cached | opened::pinned);
  if (check_.on()) check_.forget_checkout(at, bytes, mode != access_mode::read);
  if ((ticket & opened::cached) != 0) cache_.checkin(at, bytes, mode);
  if ((ticket & opened::pinned) != 0) unpin(at, bytes);
}

std::uint32_t access::owner(global_address at) {
  const piece p = blocks_.first_piece(at, 1);
  if (p.words == nullptr) return p.owner;
  std::uint32_t owner = 0;
  const auto here = [&] {
    return touch_here(
        p, [&] { owner = p.place(net_).owner(p.home).worker; }, false);
  };
  if (here()) return owner;
  std::byte nothing;
  part asked(net_, p, &nothing);
  if (is_routed(net_, asked)) return owner_routed(net_, asked);
  net_.hints().look_up(net_, asked);
  for (part_wait more(net_);;) {
    const place_answer said = owner_at(net_, asked);
    if (said.what == place_says::done) return ownership::from(said.owner, p.home).worker;
    asked.follow(net_, said);
    if (!asked.sent_on) more.wait(p.at);
    if (here()) return owner;
  }
}

std::uint32_t access::likely_owner(global_address at) {
  const piece p = blocks_.first_piece(at, 1);
  if (p.words == nullptr || !several_hosts_) return p.owner;
  const place here = p.place(net_);
  if (in(here.state(), still_here)) return here.owner(p.home).worker;  // behind the state: now it is exact
  return net_.hints().guess(net_, part(net_, p, nullptr));
}

std::byte* access::try_local(global_address at, std::uint64_t bytes) noexcept {
  if (check_.on()) check_.check_range(at, bytes, "look at");
  return blocks_.is_near(at, bytes) ? net_.at(at) : nullptr;
}

void access::populate(global_address at, std::uint64_t bytes) noexcept {
  // One byte per page: reads would map the zero page.
  blocks_.each_piece(at, bytes, [&](const piece& p) {
    if (p.owner != net_.me()) return;
    touch_here(p, [&] {
      for (global_address i = p.at; i < p.at + p.bytes; i = (i | 4095) + 1) {
        auto* byte = reinterpret_cast<volatile std::byte*>(net_.at(i));
        *byte = *byte;
      }
    });
  });
}

}  // namespace godwit::gas
