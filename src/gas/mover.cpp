// See mover.hpp and docs/protocols/move.md.
#include "gas/mover.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/lock.hpp"
#include "gas/routed.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace godwit::gas {

namespace {
constexpr std::uint32_t nobody = ~0u;
}  // namespace

move_result mover::pull(std::span<const byte_range> ranges, std::uint32_t to, std::uint64_t patience_ns) {
  GODWIT_ASSERT(net_.is_near(to), "a move is a pull: by the host that the part goes to");
  result_ = move_result::already_there;
  patience_ns_ = patience_ns;
  ++stats_.move_calls;
  wave_.reserve(most_in_wave);
  std::uint64_t under_way = 0;
  for (const byte_range& r : ranges) {
    const descriptor* d = blocks_.find_movable(r.at);
    if (d == nullptr) blocks_.bad_address(r.at, r.bytes, "move");
    const auto moved = reinterpret_cast<std::uint64_t>(&blocks_.moved_of(*d));
    GODWIT_ASSERT(wave_.empty() || moved == moved_, "the ranges are of one allocation");
    moved_ = moved;
    const auto [low, high] = blocks_.whole_parts(*d, r.at, r.bytes);
    blocks_.each_piece(low, high - low, [&](const piece& p) {
      if (reassign(p, to)) return;
      under_way += p.bytes;
      if (wave_.size() == most_in_wave || under_way > most_bytes_in_wave) {
        fly(to);
        under_way = p.bytes;
      }
      wave_.emplace_back(net_, p);
    });
  }
  fly(to);
  return result_;
}

void mover::pull_at_random(global_address at) {
  random_ = random_ * 6364136223846793005 + 1442695040888963407 + net_.me();
  if (random_ >> 61 != 0 || detail::open_checkouts() != 0) return;
  const descriptor* d = blocks_.find_movable(at);
  if (d == nullptr || at - blocks_.begin_of(*d) >= d->bytes) return;
  static_cast<void>(pull(at, 1, net_.me()));
}

bool mover::reassign(const piece& p, std::uint32_t to) {
  const place here = p.place(net_);
  if (!in(here.use(is_here), is_here)) return false;
  const std::uint32_t before = here.give_to(to, p.home);  // nobody freezes it: it is in use
  if (before != to) tell(p, before, to);
  here.end_use();
  if (before == to) return true;
  ++stats_.moves;
  note(p, before, to, part_event::kind::given);
  result_ = std::max(result_, move_result::moved);
  return true;
}

void mover::set_hook(global_address at, const detail::move_hook& hook) {
  const descriptor* d = blocks_.find_movable(at);
  if (d == nullptr) blocks_.bad_address(at, 1, "set on_move of");
  moved_words& words = blocks_.moved_of(*d);
  base::lock(words.hook_lock, base::holder());
  std::memcpy(words.closure, hook.closure, sizeof hook.closure);
  words.hook.store(reinterpret_cast<std::uint64_t>(hook.call), std::memory_order_relaxed);
  base::unlock(words.hook_lock, base::holder());
}

void mover::tell(const piece& p, std::uint32_t from, std::uint32_t to) const {
  auto& words = *reinterpret_cast<moved_words*>(moved_);
  if (words.hook.load(std::memory_order_relaxed) == 0) return;
  detail::move_hook hook;  // a copy: option rebalance moves at any time, also while another one is set
  base::lock(words.hook_lock, base::holder());
  std::memcpy(hook.closure, words.closure, sizeof hook.closure);
  hook.call = reinterpret_cast<decltype(hook.call)>(words.hook.load(std::memory_order_relaxed));
  base::unlock(words.hook_lock, base::holder());
  if (hook.call == nullptr) return;
  ++detail::hot().checkouts;  // it must neither spawn nor wait
  hook.call(hook.closure, {p.at, net_.at(p.at), p.bytes, from, to});
  --detail::hot().checkouts;
}

void mover::end(flight& f, std::uint32_t to, move_result how) {
  f.at = flight::step::ended;
  result_ = std::max(result_, how);
  if (how == move_result::moved) {
    ++stats_.moves;
    stats_.moved_bytes += f.p.bytes;
    ++came_;
    came_bytes_ += f.p.bytes;
    return note(f.p, f.from, to, part_event::kind::came);
  }
  const bool busy = how == move_result::busy;
  ++(busy ? stats_.moves_busy : stats_.moves_no_room);
  note(f.p, f.p.place(net_).owner(f.p.home).worker, to,
       busy ? part_event::kind::busy : part_event::kind::no_room);
}

void mover::note(const piece& p, std::uint32_t from, std::uint32_t to, part_event::kind what) const noexcept {
  if (!net_.seen()) return;
  const descriptor& d = *blocks_.find(p.at);
  const bool moved = what == part_event::kind::moved;
  net_.note({.what = what,
             .allocation = blocks_.begin_of(d),
             .part = (p.at - blocks_.begin_of(d)) / d.move_bytes,
             .from = from,
             .to = to,
             .count = moved ? came_ : 0,
             .bytes = moved                            ? came_bytes_
                      : what == part_event::kind::came ? p.bytes
                                                       : 0,
             .since_ns = what == part_event::kind::given ? 0 : since_ns_});
}

void mover::fly(std::uint32_t to) {
  if (wave_.empty()) return;
  since_ns_ = base::fast_ns();
  came_ = came_bytes_ = 0;
  const piece first = wave_.front().p;
  bring(to);
  stats_.move_ns += base::fast_ns() - since_ns_;
  note(first, part_event::no_worker, to, part_event::kind::moved);
}

void mover::bring(std::uint32_t to) {
  std::uint64_t since = base::now_ns();
  for (later more(net_); !wave_.empty();) {
    const std::uint64_t began = base::now_ns();
    for (flight& f : wave_)
      if (f.at == flight::step::waits) want(f, to);
    close(to);
    const bool came = land(to);
    const std::uint64_t now = base::now_ns();
    if (!came) stats_.move_wait_ns += now - began;
    std::erase_if(wave_, [](const flight& f) { return f.at == flight::step::ended; });
    const bool sent_on =
        std::any_of(wave_.begin(), wave_.end(), [](const flight& f) { return f.source.sent_on; });
    if (came || sent_on) since = now;  // that was no waiting for who uses a part
    if (sent_on) continue;
    if (now - since > patience_ns_) return give_up(to);
    if (wave_.empty()) return;
    more.wait();
    stats_.move_wait_ns += base::now_ns() - now;
  }
}

/// One puller of a host at a time: MV5
void mover::want(flight& f, std::uint32_t to) {
  const place here = f.p.place(net_);
  if (!here.change(only(place_state::elsewhere), place_state::wanted)) {
    if (reassign(f.p, to)) f.at = flight::step::ended;
    return;
  }
  if (budgets_.take_budget(net_.my_host(), f.p.bytes)) {
    f.at = flight::step::wanted;
  } else {
    static_cast<void>(here.change(only(place_state::wanted), place_state::elsewhere));
    end(f, to, move_result::no_room);
  }
}

template <class Whom, class Said>
void mover::call(place_call what, std::uint32_t to, Whom&& whom, Said&& said) {
  far_move moves[most_in_wave];
  flight* asked[most_in_wave];
  std::uint64_t left = 0;  // a bit per flight
  for (std::size_t i = 0; i < wave_.size(); ++i)
    if (whom(wave_[i]) != nobody) left |= std::uint64_t{1} << i;
  while (left != 0) {
    const std::uint32_t host = whom(wave_[static_cast<std::size_t>(std::countr_zero(left))]);
    std::size_t n = 0;
    for (std::size_t i = 0; i < wave_.size(); ++i) {
      flight& f = wave_[i];
      if ((left >> i & 1) == 0 || whom(f) != host) continue;
      left &= ~(std::uint64_t{1} << i);
      moves[n] = {
          f.source.name(net_), to,
          f.now.packed(),      reinterpret_cast<std::uint64_t>(net_.at(f.p.at)),
          f.p.bytes,           reinterpret_cast<std::uint64_t>(&blocks_.moved_of(*blocks_.find(f.p.at)))};
      asked[n++] = &f;
    }
    place_answer answers[most_in_wave];
    call_places(net_, host, what, {moves, n}, answers);
    for (std::size_t i = 0; i < n; ++i) said(*asked[i], answers[i]);
  }
}

/// The owners let nobody use them any more, and say who has them now.
void mover::close(std::uint32_t to) {
  for (flight& f : wave_)
    if (f.at == flight::step::wanted && f.source.host == net_.my_host()) f.source.follow(net_, {});
  call(
      place_call::close, to,
      [&](const flight& f) {
        return f.at == flight::step::wanted && f.source.host != net_.my_host() ? f.source.host : nobody;
      },
      [&](flight& f, const place_answer& said) {
        if (said.what == place_says::done) {
          f.at = flight::step::frozen;
          f.now = ownership::from(said.owner, f.p.home);
          f.from = said.before;
          return;
        }
        f.closing = said.what == place_says::later && said.owner == 0;
        f.source.follow(net_, said);
      });
}

/// What is frozen comes here, and is used again. False: nothing was.
bool mover::land(std::uint32_t to) {
  bool any = false;
  const auto frozen = [](const flight& f) { return f.at == flight::step::frozen; };
  for (auto next = wave_.begin(); next != wave_.end();) {
    const auto first = next++;
    if (!frozen(*first)) continue;
    for (const flight* last = &*first; next != wave_.end() && frozen(*next) &&
                                       next->source.host == last->source.host &&
                                       next->p.at == last->p.at + last->p.bytes;)
      last = &*next++;
    fetch({first, next});
    any = true;
  }
  if (any) settle(to);
  return any;
}

/// Parts that lie together, of one source.
void mover::fetch(std::span<const flight> together) {
  const auto change_all = [&](place_state from, place_state now) {
    for (const flight& f : together) {
      const bool changed = f.p.place(net_).change(only(from), now);
      GODWIT_ASSERT(changed, "MV5: who wants a part is the one that gets it");
      static_cast<void>(changed);
    }
  };
  struct landing {
    cache& copies;
    global_address at;
  } to{cache_, together.front().p.at};
  const std::uint64_t bytes = together.back().p.at + together.back().p.bytes - to.at;
  change_all(place_state::wanted, place_state::arriving);
  {
    const base::unexposed inside;
    net_.port().get_by_pieces(worker_no{net_.first_of(together.front().source.host)}, net_.at(to.at), bytes,
                              {&to, [](void* l, std::size_t offset, const std::byte* from, std::size_t n) {
                                 static_cast<landing*>(l)->copies.arrive(
                                     static_cast<landing*>(l)->at + offset, n, from);
                               }});
  }
  reinterpret_cast<moved_words*>(moved_)->bytes.fetch_add(bytes, std::memory_order_relaxed);
  for (const flight& f : together) {
    tell(f.p, f.from, f.now.worker);
    f.p.place(net_).learn(f.now);
  }
  if (net_.has_datagrams()) take_over(together);
  change_all(place_state::arriving, place_state::fresh);  // MV2, MV8
}

void mover::take_over(std::span<const flight> together) {
  const base::unexposed inside;
  namespace far = transport::far;
  const worker_no source{net_.first_of(together.front().source.host)}, own{net_.me()};
  std::byte text[far::inline_bytes];
  const auto tell = [&](std::uint64_t records, std::uint64_t bindings) {
    net_.port().call(own, far::take_over, records, bindings,
                     {text, records * sizeof(far::record) + bindings * sizeof(far::binding)});
  };
  std::uint64_t next = 0, records = 0;
  do {
    const far::entry& e = net_.port().call(source, far::give_records, next, 0);
    next = e.head.result;
    records = e.head.info / sizeof(far::record);
    std::memcpy(text, e.data, e.head.info);
    if (next != 0 || records > far::most_taken) {
      tell(records, 0);
      records = 0;
    }
  } while (next != 0);
  static_assert(most_in_wave <= far::most_bindings);
  const std::uint64_t life = blocks_.find(together.front().p.at)->life;
  std::byte* to = text + records * sizeof(far::record);
  for (const flight& f : together) {
    const far::binding b{block_of(net_, *f.p.words), life << 32 | (f.now.version & 0xffff'ffff)};
    std::memcpy(to, &b, sizeof b);
    to += sizeof b;
  }
  tell(records, together.size());
}

/// The homes learn who has them, then the sources that they have left.
void mover::settle(std::uint32_t to) {
  call(
      place_call::bind, to,
      [&](const flight& f) {
        const std::uint32_t home = net_.host_of(f.p.home);
        const bool knows = home == net_.my_host() || home == f.source.host;
        return f.at == flight::step::frozen && !knows ? home : nobody;
      },
      [](flight&, const place_answer&) {});
  for (flight& f : wave_)  // MV9
    if (f.at == flight::step::frozen)
      static_cast<void>(f.p.place(net_).change(only(place_state::fresh), place_state::owned));
  for (later more(net_);; more.wait()) {
    bool all = true;
    call(
        place_call::leave, to,
        [](const flight& f) { return f.at == flight::step::frozen ? f.source.host : nobody; },
        [&](flight& f, const place_answer& said) {
          if (said.what == place_says::done)
            end(f, to, move_result::moved);
          else
            all = false;
        });
    if (all) return;
  }
}

void mover::give_up(std::uint32_t to) {
  call(
      place_call::reopen, to, [](const flight& f) { return f.closing ? f.source.host : nobody; },  // MV7
      [](flight&, const place_answer&) {});
  for (flight& f : wave_) {
    if (f.at == flight::step::wanted) {
      budgets_.give_budget(net_.my_host(), f.p.bytes);
      static_cast<void>(f.p.place(net_).change(only(place_state::wanted), place_state::elsewhere));
    }
    end(f, to, move_result::busy);
  }
  wave_.clear();
}

}  // namespace godwit::gas
