// See places.hpp and docs/protocols/move.md.
#include "gas/places.hpp"

#include "base/check.hpp"
#include "gas/reach.hpp"
#include "transport/far/routed.hpp"

#include <cstring>

namespace godwit::gas {

using transport::far::answer_room;
using transport::far::entry;
using transport::far::inline_bytes;
using transport::far::outcome;

void place::learn(ownership o) const noexcept {
  std::uint64_t known = w_->owner.load(std::memory_order_relaxed);
  while (known >> 24 < o.version &&
         !w_->owner.compare_exchange_weak(known, o.packed(), std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
}

std::uint32_t place::give_to(std::uint32_t worker, std::uint32_t home) const noexcept {
  std::uint64_t known = w_->owner.load(std::memory_order_relaxed);
  for (;;) {
    const ownership now = ownership::from(known, home);
    if (now.worker == worker) return worker;
    if (w_->owner.compare_exchange_weak(known, ownership{now.version + 1, worker}.packed(),
                                        std::memory_order_release, std::memory_order_relaxed))
      return now.worker;
  }
}

bool place::change(place_states from, place_state to, std::uint32_t mover) const noexcept {
  std::uint64_t now = w_->local.load(std::memory_order_relaxed);
  do
    if (!in(state_of(now), from)) return false;
  while (!w_->local.compare_exchange_weak(now, packed(to, mover, now & most_uses), std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  return true;
}

place::closing place::close(std::uint32_t mover) const noexcept {
  static_cast<void>(change(only(place_state::owned), place_state::closing, mover));
  if (base::planted("move.freezes_before_drain"))
    return change(only(place_state::closing), place_state::frozen, mover) ? closing::done : closing::refused;
  std::uint64_t now = packed(place_state::closing, mover, 0);
  const std::uint64_t mine = now;
  // MV3: a use that began before is counted, one that begins later sees that it is frozen.
  if (w_->local.compare_exchange_strong(now, packed(place_state::frozen, mover, 0), std::memory_order_acq_rel,
                                        std::memory_order_relaxed))
    return closing::done;
  return now >> state_at == mine >> state_at ? closing::in_use : closing::refused;
}

void place::reopen(std::uint32_t mover) const noexcept {
  std::uint64_t now = w_->local.load(std::memory_order_relaxed);
  do
    if (now >> state_at != packed(place_state::closing, mover, 0) >> state_at) return;
  while (!w_->local.compare_exchange_weak(now, packed(place_state::owned, 0, now & most_uses),
                                          std::memory_order_acq_rel, std::memory_order_relaxed));
}

void place::count_far(std::uint32_t host) const noexcept {
  more(w_->far);
  const std::uint32_t leads = w_->lead.load(std::memory_order_relaxed);
  if (w_->other.load(std::memory_order_relaxed) == host + 1) {
    more(w_->lead);
  } else if (leads != 0) {
    w_->lead.store(leads - 1, std::memory_order_relaxed);
  } else {
    w_->other.store(host + 1, std::memory_order_relaxed);
    w_->lead.store(1, std::memory_order_relaxed);
  }
}

void place::forget_heat(heat_then then, host_words& host) const noexcept {
  const auto lower = [then](std::atomic<std::uint32_t>& count) -> std::uint64_t {
    const std::uint32_t n = count.load(std::memory_order_relaxed), left = then == heat_then::goes ? 0 : n / 2;
    count.store(left, std::memory_order_relaxed);
    return n - left;
  };
  host.near_uses.fetch_add(lower(w_->near), std::memory_order_relaxed);
  host.far_uses.fetch_add(lower(w_->far), std::memory_order_relaxed);
  static_cast<void>(lower(w_->lead));
  if (then == heat_then::goes) w_->other.store(0, std::memory_order_relaxed);
}

part_state place::look(heat_then then, host_words& host) const noexcept {
  const std::uint64_t hint = w_->owner.load(std::memory_order_acquire);  // MV2
  const place_state s = use(still_here);
  if (!in(s, still_here))
    return {in(s, is_elsewhere) ? place_answer{place_says::elsewhere, 0, hint} : place_answer{}};
  const part_state seen{{place_says::done, 0, w_->owner.load(std::memory_order_acquire)},
                        w_->near.load(std::memory_order_relaxed),
                        w_->far.load(std::memory_order_relaxed),
                        w_->other.load(std::memory_order_relaxed),
                        w_->lead.load(std::memory_order_relaxed)};
  if (then != heat_then::stays) forget_heat(then, host);
  end_use();
  return seen;
}

namespace {

/// What a request for @p e 's target names by its address in the asker's window.
template <class T = std::byte>
T* named(const place_site& site, const entry& e, std::uint64_t address) noexcept {
  return site.memory->reach(e.head.target, reinterpret_cast<T*>(address));
}

/// A place as a request names it, at the host that the request came to.
struct asked {
  place_words& words;
  place here;
  std::uint64_t owner;  ///< before `local` is looked at: MV2
  std::uint32_t asker, hops;
  asked(const place_site& site, const entry& e, const far_place& p) noexcept
      : words(*named<place_words>(site, e, p.words)),
        here(words, site.memory->near().holds(transport::worker_no{p.home})),
        owner(words.owner.load(std::memory_order_acquire)),
        asker(p.asker),
        hops(p.hops) {}
};

place_answer refusal(const asked& p, place_state s) noexcept {
  if (in(s, is_elsewhere)) return {place_says::elsewhere, p.hops, p.owner};
  return {place_says::later, p.hops};
}

/// Carry out @p touch under a use.
template <class F>
place_answer touch_at(const asked& p, F&& touch) noexcept {
  const place_state s = p.here.use(still_here);
  if (!in(s, still_here) && !base::planted("move.touches_what_left")) return refusal(p, s);
  touch();
  p.here.count_far(p.asker);
  const std::uint64_t owner = p.hops != 0 ? p.words.owner.load(std::memory_order_acquire) : 0;
  p.here.end_use();
  return {place_says::done, p.hops, owner};
}

template <class T>
T payload_of(const entry& e, std::size_t at = 0) noexcept {
  T t;
  std::memcpy(static_cast<void*>(&t), e.data + at, sizeof t);
  return t;
}

void answer_with(entry& e, const place_answer& a) noexcept {
  std::memcpy(e.data, &a, sizeof a);
  e.head.info = sizeof a;
}

const place_site& site_of(void* place) noexcept { return *static_cast<const place_site*>(place); }

/// Instead of the answer @p a to @p e, whose payload begins with the asked-for part, the request goes on: to
/// who has the part, as far as is known here, or @p to_home. False: it does not, @p a is the answer.
bool go_on(const place_site& site, entry& e, const place_answer& a, bool to_home) noexcept {
  auto part = payload_of<far_place>(e);
  const transport::shm::near_range near = site.memory->near();
  to_home = to_home && !near.holds(transport::worker_no{part.home});
  const transport::worker_no next{to_home ? part.home : ownership::from(a.owner, part.home).worker};
  if (near.holds(next)) return false;  // it came and left since its owner was looked at
  ++part.hops;
  std::memcpy(e.data, &part, sizeof part);
  e.head.target = next;
  return true;
}

/// go_on as the way of the request has it. MV12: twice at most, the second time to its home. One that came by
/// the number of its part as often as need be, and its channel is told what was done: @p done if @p a says
/// so, or nothing yet (SW5).
bool send_on(const place_site& site, entry& e, const place_answer& a, outcome done) noexcept {
  if (transport::far::block_of(e.head) != 0) {
    const outcome o = a.what == place_says::done ? done : outcome::not_now;
    transport::far::outcome_of(e.head) = static_cast<std::uint64_t>(o);
    return a.what == place_says::elsewhere && go_on(site, e, a, false);
  }
  return a.what == place_says::elsewhere && a.hops < most_hops && go_on(site, e, a, a.hops == 1);
}

/// Bytes where the window has them; gives back whether it did.
std::byte* read(void* place, entry& e, const answer_room& room) noexcept {
  const place_site& site = site_of(place);
  const std::uint64_t count = e.head.b;
  GODWIT_ASSERT(count * sizeof(far_piece) <= inline_bytes, "the pieces came along");
  far_piece pieces[inline_bytes / sizeof(far_piece)];
  std::memcpy(static_cast<void*>(pieces), e.data, count * sizeof(far_piece));
  std::size_t filled = count * sizeof(place_answer);
  std::byte* big = nullptr;
  for (std::uint64_t i = 0; i < count; ++i) {
    const far_piece& p = pieces[i];
    const std::byte* from = named(site, e, p.address);
    const place_answer a = touch_at(asked(site, e, p.where), [&] {
      if (e.head.more[0] != 0) {  // large, and to be left where the asker says
        big = room(p.bytes);
        e.head.bytes = p.bytes;
        e.head.local = e.head.more[0];
        std::memcpy(big, from, p.bytes);
        return;
      }
      GODWIT_ASSERT(filled + p.bytes <= inline_bytes, "what is read fits into one answer");
      copy_bytes(e.data + filled, from, p.bytes);
      filled += whole_words(p.bytes);
    });
    if (count == 1 && e.head.more[0] == 0 && send_on(site, e, a, outcome::read)) return nullptr;
    std::memcpy(e.data + i * sizeof a, &a, sizeof a);
  }
  e.head.info = filled;
  return big;
}

std::byte* write(void* place, entry& e, const answer_room&) noexcept {
  const place_site& site = site_of(place);
  const std::uint64_t count = e.head.b;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto p = payload_of<far_piece>(e, at);
    at += sizeof p;
    GODWIT_ASSERT(at <= inline_bytes && p.bytes <= inline_bytes - at, "what is written came along");
    const place_answer a = touch_at(asked(site, e, p.where),
                                    [&] { copy_bytes(named(site, e, p.address), e.data + at, p.bytes); });
    at += whole_words(p.bytes);
    if (count == 1 && send_on(site, e, a, outcome::changed)) return nullptr;
    // A piece takes more room than its answer: what is still to be read lies behind.
    std::memcpy(e.data + i * sizeof a, &a, sizeof a);
  }
  static_assert(sizeof(place_answer) <= sizeof(far_piece));
  e.head.info = count * sizeof(place_answer);
  return nullptr;
}

std::byte* atomic(void* place, entry& e, const answer_room&) noexcept {
  const place_site& site = site_of(place);
  const auto a = payload_of<far_atomic>(e);
  const place_answer said = touch_at(asked(site, e, a.where), [&] {
    e.head.result = transport::far::apply_atomic(static_cast<transport::far::atomic_function>(a.function),
                                                 named(site, e, a.address), a.width, a.operand, a.expected);
  });
  if (!send_on(site, e, said, outcome::changed)) answer_with(e, said);
  return nullptr;
}

std::byte* use(void* place, entry& e, const answer_room&) noexcept {
  const asked p(site_of(place), e, payload_of<far_place>(e));
  const place_state s = p.here.use(still_here);
  if (in(s, still_here)) p.here.count_far(p.asker);
  answer_with(e, in(s, still_here) ? place_answer{place_says::done} : refusal(p, s));
  return nullptr;
}

std::byte* end_use(void* place, entry& e, const answer_room&) noexcept {
  asked(site_of(place), e, payload_of<far_place>(e)).here.end_use();
  answer_with(e, {place_says::done});
  return nullptr;
}

std::byte* owner(void* place, entry& e, const answer_room&) noexcept {
  const asked p(site_of(place), e, payload_of<far_place>(e));
  const place_state s = p.here.state();
  // Once more: it may have come here since p.owner was looked at.
  const place_answer said = in(s, still_here) ? place_answer{place_says::done, p.hops,
                                                             p.words.owner.load(std::memory_order_acquire)}
                                              : refusal(p, s);
  if (!send_on(site_of(place), e, said, outcome::read)) answer_with(e, said);
  return nullptr;
}

std::byte* state(void* place, entry& e, const answer_room&) noexcept {
  const place_site& site = site_of(place);
  const std::uint64_t count = e.head.b;
  GODWIT_ASSERT(count <= most_states_in_call, "the places came along, and their states fit");
  const auto then = static_cast<heat_then>(e.head.more[0]);
  far_place places[most_states_in_call];
  std::memcpy(static_cast<void*>(places), e.data, count * sizeof(far_place));
  for (std::uint64_t i = 0; i < count; ++i) {
    const part_state s = asked(site, e, places[i]).here.look(then, *site.host);
    std::memcpy(e.data + i * sizeof s, &s, sizeof s);
  }
  e.head.info = count * sizeof(part_state);
  return nullptr;
}

/// Carry out @p f for each move of a mover's call.
template <class F>
std::byte* each_move(void* place, entry& e, F&& f) noexcept {
  const place_site& site = site_of(place);
  const std::uint64_t count = e.head.b;
  GODWIT_ASSERT(count <= most_moves_in_call, "the moves came along");
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto m = payload_of<far_move>(e, i * sizeof(far_move));
    const place_answer a = f(site, asked(site, e, m.where), m);
    std::memcpy(e.data + i * sizeof a, &a, sizeof a);
  }
  static_assert(sizeof(place_answer) <= sizeof(far_move));
  e.head.info = count * sizeof(place_answer);
  return nullptr;
}

place_answer close_one(const asked& p, const far_move& m) noexcept {
  const place_state s = p.here.state();
  if (in(s, is_elsewhere)) return refusal(p, s);
  switch (p.here.close(m.mover)) {
    case place::closing::done: {
      const ownership before = p.here.owner(m.where.home);
      const ownership now{before.version + 1, m.mover};
      p.here.learn(now);  // MV2: after it is frozen
      return {place_says::done, 0, now.packed(), before.worker};
    }
    case place::closing::in_use:
      return {place_says::later, 0, 0};
    case place::closing::refused:
      break;
  }
  return {place_says::later, 0, 1};
}

std::byte* close(void* place, entry& e, const answer_room&) noexcept {
  return each_move(place, e, [](const place_site&, const asked& p, const far_move& m) noexcept {
    return close_one(p, m);
  });
}

/// MV7: if it is this mover's, and not frozen.
std::byte* reopen(void* place, entry& e, const answer_room&) noexcept {
  return each_move(place, e, [](const place_site&, const asked& p, const far_move& m) noexcept {
    p.here.reopen(m.mover);
    return place_answer{place_says::done};
  });
}

/// MV9
std::byte* bind(void* place, entry& e, const answer_room&) noexcept {
  return each_move(place, e, [](const place_site&, const asked& p, const far_move& m) noexcept {
    p.here.learn(ownership::from(m.owner, m.where.home));
    return place_answer{place_says::done};
  });
}

/// Its bytes are copies here.
place_answer left(const place_site& site, const entry& e, const far_move& m) noexcept {
  const asked p(site, e, m.where);
  GODWIT_ASSERT(p.here.state() == place_state::frozen, "MV8: who has left was frozen");
  p.here.forget_heat(heat_then::goes, *site.host);
  site.host->used_bytes.fetch_sub(m.bytes, std::memory_order_relaxed);
  named<moved_words>(site, e, m.moved)->bytes.fetch_sub(m.bytes, std::memory_order_relaxed);
  static_cast<void>(p.here.change(only(place_state::frozen), place_state::elsewhere));
  return {place_says::done};
}

/// MV8: copies first, then elsewhere, where this host's cache may use the place again. What lies together is
/// forgotten together.
std::byte* leave(void* place, entry& e, const answer_room&) noexcept {
  const place_site& site = site_of(place);
  const std::uint64_t count = e.head.b;
  GODWIT_ASSERT(count <= most_moves_in_call, "the moves came along");
  far_move moves[most_moves_in_call];
  std::memcpy(static_cast<void*>(moves), e.data, count * sizeof(far_move));
  const auto answer = [&](std::uint64_t i, const place_answer& a) {
    std::memcpy(e.data + i * sizeof a, &a, sizeof a);
  };
  for (std::uint64_t i = 0; i < count;) {
    std::uint64_t end = i, bytes = 0;
    do bytes += moves[end++].bytes;
    while (end < count && moves[end].address == moves[i].address + bytes);
    std::uint64_t gone = site.forget_copies(site, named(site, e, moves[i].address), bytes);
    for (; i < end && moves[i].bytes <= gone; gone -= moves[i++].bytes) answer(i, left(site, e, moves[i]));
    if (i < end) answer(i++, {place_says::later});
  }
  e.head.info = count * sizeof(place_answer);
  return nullptr;
}

}  // namespace

void enter_calls(transport::far::call_table& table, place_site& site) {
  auto enter = [&](place_call number, transport::far::call_table::handler f) {
    table.enter(static_cast<std::uint64_t>(number), f, &site);
  };
  enter(place_call::read, read);
  enter(place_call::write, write);
  enter(place_call::atomic, atomic);
  enter(place_call::use, use);
  enter(place_call::end_use, end_use);
  enter(place_call::owner, owner);
  enter(place_call::state, state);
  enter(place_call::close, close);
  enter(place_call::reopen, reopen);
  enter(place_call::bind, bind);
  enter(place_call::leave, leave);
}

}  // namespace godwit::gas
