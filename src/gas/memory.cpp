// Access. See memory.hpp.
#include "gas/memory.hpp"
#include "gas/pieces.hpp"

#include <godwit/global_memory.hpp>

#include "base/check.hpp"

#include <algorithm>

namespace godwit::gas {

using detail::access_mode;
using detail::atomic_op;

void memory::init(const memory_setup& setup) {
  reach_.init(setup.reach);
  where_ = setup.where;
  me_ = setup.reach.me;
  stats_ = setup.stats;
  host_ = reach_.at<host_words>(space::words_low);
  GODWIT_ASSERT(me_ < where_.homes && setup.reach.workers == where_.homes, "each worker is a home");
  GODWIT_ASSERT(where_.local_low < where_.shared_low && where_.shared_low < where_.bytes,
                "local memory lies below distributed memory");
  several_hosts_ = setup.reach.host_count > 1;
  checks_ = setup.opts->check_global == "on";
#ifndef NDEBUG
  checks_ = checks_ || setup.opts->check_global == "auto";
#endif
  if (several_hosts_) {
    const piece_visitor pieces{
        [](void* self, global_address at, std::uint64_t bytes, piece_visitor::each* f, void* to) {
          return static_cast<memory*>(self)->visit_pieces(
              at, bytes, [&](std::uint32_t owner, global_address a, std::uint64_t n) { f(to, owner, a, n); });
        },
        this};
    cache_.init({&reach_, host_, reach_.at<unit>(where_.units_low), cache::units_of(setup.opts->cache_bytes),
                 pieces, setup.stats, setup.note});
  }
  const budget limits{
      [](void* self, std::uint64_t bytes) noexcept {
        auto* m = static_cast<memory*>(self);
        return m->take_budget(m->reach_.my_host(), bytes);
      },
      [](void* self, std::uint64_t bytes) noexcept {
        auto* m = static_cast<memory*>(self);
        m->give_budget(m->reach_.my_host(), bytes);
      },
      [](std::byte* at, std::uint64_t bytes) noexcept { transport::shm::window::discard(at, bytes); }, this};
  heap_.init(reach_.at(where_.local_begin(me_)), where_.local_bytes(), limits);
}

std::uint32_t memory::home(global_address at) {
  if (where_.is_local(at)) return where_.local_home(at);
  const descriptor* d = find(at);
  if (d == nullptr) bad_address(at, 1, "ask for the home of");
  // The last block's for what lies behind it: an end is an address, too.
  return home_of_block(*d, std::min((at - begin_of(*d)) / d->block_bytes, d->blocks - 1));
}

/// Has the whole range one owner? Looks at the first block only.
bool memory::is_one_piece(global_address at, std::uint64_t bytes) {
  if (where_.is_local(at)) return true;
  const descriptor* d = find(at);
  return d == nullptr || (at - begin_of(*d)) % d->block_bytes + bytes <= d->block_bytes;
}

std::uint32_t memory::owner(global_address at) {
  std::uint32_t found = 0;
  each_piece(at, 1, [&](std::uint32_t o, global_address, std::uint64_t) { found = o; });
  return found;
}

bool memory::is_near(global_address at, std::uint64_t bytes) {
  if (!several_hosts_) return true;
  bool near = true;
  each_piece(at, bytes, [&](std::uint32_t owner, global_address, std::uint64_t) {
    near = near && reach_.is_near(owner);
  });
  return near;
}

bool memory::single_far_owner(global_address at, std::uint64_t bytes, std::uint32_t& owner) {
  if (checks_) check_range(at, bytes, "access");
  if (!several_hosts_) return false;
  unsigned pieces = 0;
  each_piece(at, bytes, [&](std::uint32_t o, global_address, std::uint64_t) {
    owner = o;
    ++pieces;
  });
  return pieces == 1 && !reach_.is_near(owner) && !cache_.has_dirty();
}

void memory::get(global_address from, void* to, std::size_t bytes) {
  if (checks_) check_range(from, bytes, "read");
  if (bytes == 0) return;  // `to` may be null
  if (!several_hosts_) {
    std::memcpy(to, reach_.at(from), bytes);
    return;
  }
  if (!is_one_piece(from, bytes)) {
    const detail::global_piece all{from, bytes, to};
    return gather(&all, 1);
  }
  each_piece(from, bytes, [&](std::uint32_t owner, global_address at, std::uint64_t n) {
    auto* here = static_cast<std::byte*>(to) + (at - from);
    if (reach_.is_near(owner)) {
      std::memcpy(here, reach_.at(at), n);
    } else if (!cache_.read(at, here, n)) {
      ++stats_->far_gets;
      reach_.get(owner, here, at, n);
    }
  });
}

void memory::put(global_address to, const void* from, std::size_t bytes) {
  if (checks_) check_range(to, bytes, "write");
  if (bytes == 0) return;
  if (!several_hosts_) {
    std::memcpy(reach_.at(to), from, bytes);
    return;
  }
  if (!is_one_piece(to, bytes)) {
    const detail::global_piece all{to, bytes, const_cast<void*>(from)};
    return scatter(&all, 1);
  }
  each_piece(to, bytes, [&](std::uint32_t owner, global_address at, std::uint64_t n) {
    const auto* here = static_cast<const std::byte*>(from) + (at - to);
    if (reach_.is_near(owner)) {
      std::memcpy(reach_.at(at), here, n);
      return;
    }
    // Before: a write-back that comes between would restore the old bytes. After: so would a fetch.
    cache_.written(at, here, n);
    ++stats_->far_puts;
    reach_.put(owner, at, here, n);
    cache_.written(at, here, n);
  });
}

void memory::copy(global_address to, global_address from, std::uint64_t bytes) {
  if (checks_) {
    check_range(from, bytes, "copy from");
    check_range(to, bytes, "copy to");
  }
  if (!several_hosts_ || (is_near(from, bytes) && is_near(to, bytes))) {
    std::memmove(reach_.at(to), reach_.at(from), bytes);
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

std::uint64_t memory::atomic(atomic_op what, global_address at, unsigned width, std::uint64_t operand,
                             std::uint64_t expected, bool relaxed) {
  if (checks_) check_range(at, width, "change atomically");
  if (at % width != 0)
    base::fatal("worker %u: an atomic at global:0x%llx: it is not aligned to its %u bytes", me_,
                static_cast<unsigned long long>(at), width);
  if (!several_hosts_)
    return transport::far::apply_atomic(static_cast<atomic_function>(what), reach_.at(at), width, operand,
                                        expected);
  GODWIT_ASSERT(width == 4 || width == 8, "an atomic is of a word");
  std::uint32_t owner = 0;
  each_piece(at, width, [&](std::uint32_t o, global_address, std::uint64_t) { owner = o; });
  if (!relaxed) release();
  const bool far = !reach_.is_near(owner);
  if (far) {
    ++stats_->far_atomics;
    cache_.drop(at, width);
  }
  const std::uint64_t before =
      reach_.atomic(owner, at, static_cast<atomic_function>(what), width, operand, expected);
  if (!relaxed)
    acquire();
  else if (far)
    cache_.drop(at, width);  // what was fetched meanwhile
  return before;
}

void memory::fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  release();
  acquire();
}

void memory::gather(const detail::global_piece* pieces, std::size_t count) {
  if (checks_)
    for (std::size_t i = 0; i < count; ++i) check_range(pieces[i].at, pieces[i].bytes, "gather");
  // by host
  std::unordered_map<std::uint32_t, std::vector<std::pair<transport::far::piece, std::byte*>>> far;
  for (std::size_t i = 0; i < count; ++i) {
    auto take = [&](std::uint32_t owner, global_address at, std::uint64_t n) {
      auto* here = static_cast<std::byte*>(pieces[i].here) + (at - pieces[i].at);
      if (reach_.is_near(owner))
        std::memcpy(here, reach_.at(at), n);
      else if (cache_.read(at, here, n))
        return;
      else if (n > transport::far::inline_bytes / 4)
        reach_.get(owner, here, at, n);
      else
        far[reach_.host_of(owner)].push_back({{reinterpret_cast<std::uint64_t>(reach_.at(at)), n}, here});
    };
    if (several_hosts_)
      each_piece(pieces[i].at, pieces[i].bytes, take);
    else
      take(me_, pieces[i].at, pieces[i].bytes);
  }
  using transport::far::piece;
  constexpr std::size_t most = transport::far::inline_bytes / sizeof(piece);
  for (const auto& [host, list] : far)
    for (std::size_t begin = 0; begin < list.size();) {
      piece batch[most];
      std::size_t n = 0, bytes = 0;
      while (begin + n < list.size() && n < most &&
             bytes + list[begin + n].first.bytes <= transport::far::inline_bytes) {
        batch[n] = list[begin + n].first;
        bytes += batch[n++].bytes;
      }
      GODWIT_ASSERT(n != 0, "a batch takes at least one piece");
      ++stats_->far_gets;
      const base::section inside;
      const std::byte* answer = reach_.port().gather(worker_no{reach_.first_of(host)}, batch, n);
      for (std::size_t i = 0; i < n; ++i) {
        std::memcpy(list[begin + i].second, answer, batch[i].bytes);
        answer += batch[i].bytes;
      }
      begin += n;
    }
}

void memory::scatter(const detail::global_piece* pieces, std::size_t count) {
  if (checks_)
    for (std::size_t i = 0; i < count; ++i) check_range(pieces[i].at, pieces[i].bytes, "scatter");
  struct packed {
    std::byte bytes[transport::far::inline_bytes];
    std::size_t used = 0;
  };
  std::unordered_map<std::uint32_t, packed> far;  // by host
  auto send = [&](std::uint32_t host, packed& p) {
    if (p.used == 0) return;
    ++stats_->far_puts;
    const base::section inside;
    reach_.port().scatter(worker_no{reach_.first_of(host)}, p.bytes, p.used);
    p.used = 0;
  };
  for (std::size_t i = 0; i < count; ++i) {
    auto give = [&](std::uint32_t owner, global_address at, std::uint64_t n) {
      const auto* here = static_cast<const std::byte*>(pieces[i].here) + (at - pieces[i].at);
      const std::size_t room = sizeof(transport::far::piece) + (n + 7) / 8 * 8;
      if (reach_.is_near(owner)) {
        std::memcpy(reach_.at(at), here, n);
        return;
      }
      cache_.written(at, here, n);
      if (room > transport::far::inline_bytes / 4) {
        reach_.put(owner, at, here, n);
      } else {
        packed& p = far[reach_.host_of(owner)];
        if (p.used + room > sizeof p.bytes) send(reach_.host_of(owner), p);
        const transport::far::piece head{reinterpret_cast<std::uint64_t>(reach_.at(at)), n};
        std::memcpy(p.bytes + p.used, &head, sizeof head);
        std::memcpy(p.bytes + p.used + sizeof head, here, n);
        p.used += room;
        GODWIT_ASSERT(p.used <= sizeof p.bytes, "what is packed has room");
      }
    };
    if (several_hosts_)
      each_piece(pieces[i].at, pieces[i].bytes, give);
    else
      give(me_, pieces[i].at, pieces[i].bytes);
  }
  for (auto& [host, p] : far) send(host, p);
  for (std::size_t i = 0; several_hosts_ && i < count; ++i)  // GL6: what was fetched meanwhile
    each_piece(pieces[i].at, pieces[i].bytes, [&](std::uint32_t owner, global_address at, std::uint64_t n) {
      if (!reach_.is_near(owner))
        cache_.written(at, static_cast<const std::byte*>(pieces[i].here) + (at - pieces[i].at), n);
    });
}

std::byte* memory::checkout(global_address at, std::uint64_t bytes, access_mode mode, detail::place where) {
  if (checks_) {
    check_range(at, bytes, "check out");
    note_checkout(at, bytes, mode != access_mode::read, where);
  }
  if (several_hosts_ && bytes != 0 && !is_near(at, bytes) && !cache_.checkout(at, bytes, mode)) {
    if (checks_) forget_checkout(at, bytes, mode != access_mode::read);
    throw global_bad_alloc("godwit: a checkout of " + std::to_string(bytes) + " bytes at " +
                           std::string(where.file) + ":" + std::to_string(where.line) +
                           " does not fit into the cache beside what is checked out there: " +
                           "check out less at a time, or raise --godwit-cache-bytes (GODWIT_CACHE_BYTES)");
  }
  ++detail::hot().checkouts;
  return reach_.at(at);
}

void memory::checkin(global_address at, std::uint64_t bytes, access_mode mode) noexcept {
  GODWIT_ASSERT(detail::hot().checkouts != 0, "what is checked in was checked out");
  --detail::hot().checkouts;
  if (checks_) forget_checkout(at, bytes, mode != access_mode::read);
  if (several_hosts_ && bytes != 0 && !is_near(at, bytes)) cache_.checkin(at, bytes, mode);
}

std::byte* memory::try_local(global_address at, std::uint64_t bytes) noexcept {
  if (checks_) check_range(at, bytes, "look at");
  return is_near(at, bytes) ? reach_.at(at) : nullptr;
}

void memory::populate(global_address at, std::uint64_t bytes) noexcept {
  // One byte per page: reads would map the zero page.
  each_piece(at, bytes, [&](std::uint32_t owner, global_address a, std::uint64_t n) {
    if (owner != me_) return;
    for (global_address i = a; i < a + n; i = (i | 4095) + 1) {
      auto* p = reinterpret_cast<volatile std::byte*>(reach_.at(i));
      *p = *p;
    }
  });
}

void memory::usage(std::uint64_t& used, std::uint64_t& limit) const noexcept {
  used = host_->used_bytes.load(std::memory_order_relaxed);
  limit = host_->limit_bytes.load(std::memory_order_relaxed);
}

void memory::bad_address(global_address at, std::uint64_t bytes, const char* doing) const {
  if (at < space::null_bytes)
    base::fatal(
        "worker %u: tried to %s %llu bytes at global:0x%llx: a null global_ptr, or one that is an offset to "
        "null: allocate first, "
        "or give it a value",
        me_, doing, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(at));
  base::fatal(
      "worker %u: tried to %s %llu bytes at global:0x%llx, which belong to no live allocation: freed "
      "already, of an "
      "earlier run, or beyond the end of one",
      me_, doing, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(at));
}

}  // namespace godwit::gas
