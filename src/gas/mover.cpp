// See mover.hpp and docs/protocols/move.md.
#include "gas/mover.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <algorithm>
#include <memory>

namespace godwit::gas {

namespace {
/// Of waiting for those who use a part, or move it: MV6.
constexpr std::uint64_t patience_ns = 100'000'000;
}  // namespace

move_result mover::pull(global_address at, std::uint64_t bytes, std::uint32_t to) {
  GODWIT_ASSERT(net_.is_near(to), "a move is a pull: by the host that the part goes to");
  auto result = move_result::already_there;
  blocks_.each_piece(at, bytes, [&](const piece& p) {
    const move_result one = pull_one(blocks_.place_at(*p.words), to);
    if (one == move_result::moved) ++stats_.moves;
    result = std::max(result, one);
  });
  return result;
}

void mover::pull_at_random(global_address at) {
  random_ = random_ * 6364136223846793005 + 1442695040888963407 + net_.me();
  if (random_ >> 61 != 0 || detail::hot().checkouts != 0 || !blocks_.find_movable(at)) return;
  static_cast<void>(pull(at, 1, net_.me()));
}

move_result mover::pull_one(const piece& p, std::uint32_t to) {
  const place here = p.place(net_);
  const std::uint64_t since = base::now_ns();
  if (const auto done = reassign(p, to); done) return *done;
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(p.bytes);  // now: later there is no way back
  // One puller of a host at a time: MV5
  for (later more(net_); !here.change(only(place_state::elsewhere), place_state::wanted); more.wait()) {
    if (const auto done = reassign(p, to); done) return *done;
    if (base::now_ns() - since > patience_ns) return move_result::busy;
  }
  const auto give_up = [&](move_result why) {
    static_cast<void>(here.change(only(place_state::wanted), place_state::elsewhere));
    return why;
  };
  if (!budgets_.take_budget(net_.my_host(), p.bytes)) return give_up(move_result::no_room);
  part source(net_, p, nullptr);
  const ownership now = freeze(p, to, source, since);
  if (now.version == 0) {
    budgets_.give_budget(net_.my_host(), p.bytes);
    return give_up(move_result::busy);
  }
  const bool arriving = here.change(only(place_state::wanted), place_state::arriving);
  GODWIT_ASSERT(arriving, "MV5: who wants a part is the one that gets it");
  static_cast<void>(arriving);
  {
    const base::unexposed inside;
    net_.port().get(worker_no{net_.first_of(source.host)}, bytes.get(), net_.at(p.at), p.bytes);
  }
  cache_.arrive(p, bytes.get());
  blocks_.moved_of(*blocks_.find(p.at)).bytes.fetch_add(p.bytes, std::memory_order_relaxed);
  here.learn(now);
  static_cast<void>(here.change(only(place_state::arriving), place_state::fresh));  // MV2, MV8
  settle(p, source, now);
  return move_result::moved;
}

/// Of a part that is this host's: to another of its workers. Nothing: it is not, or not now.
std::optional<move_result> mover::reassign(const piece& p, std::uint32_t to) {
  const place here = p.place(net_);
  if (!in(here.use(is_here), is_here)) return std::nullopt;
  const bool changed = here.give_to(to, p.home);  // nobody freezes it: it is in use
  here.end_use();
  return changed ? move_result::moved : move_result::already_there;
}

/// The owner of @p p lets nobody use it any more, and says who has it now. Version 0: it could not be had in
/// time.
ownership mover::freeze(const piece& p, std::uint32_t to, part& source, std::uint64_t since) {
  const far_move request{source.name(), to, 0, 0, 0, 0};
  bool closing = false;  // by us, at source.host
  for (later more(net_);; source.sent_on ? void() : more.wait()) {
    if (source.host != net_.my_host()) {
      const place_answer said = call(source, place_call::close, request);
      if (said.what == place_says::done) return ownership::from(said.owner, p.home);
      closing = said.what == place_says::later && said.owner == 0;
      source.follow(net_, said);
    } else {
      source.follow(net_, {});
    }
    if (base::now_ns() - since <= patience_ns) continue;
    if (closing) call(source, place_call::reopen, request);  // MV7
    return {};
  }
}

place_answer mover::call(const part& to, place_call what, const far_move& m) {
  return call_place(net_, to.host, what, m);
}

/// The home learns who has it, then the source that it has left.
void mover::settle(const piece& p, const part& source, ownership now) {
  const far_move request{
      source.name(), now.worker,
      now.packed(),  reinterpret_cast<std::uint64_t>(net_.at(p.at)),
      p.bytes,       reinterpret_cast<std::uint64_t>(&blocks_.moved_of(*blocks_.find(p.at)))};
  const std::uint32_t home = net_.host_of(p.home);
  if (home != net_.my_host() && home != source.host) {
    part at_home = source;
    at_home.host = home;
    static_cast<void>(call(at_home, place_call::bind, request));
  }
  static_cast<void>(p.place(net_).change(only(place_state::fresh), place_state::owned));  // MV9
  for (later more(net_); call(source, place_call::leave, request).what != place_says::done;) more.wait();
}

}  // namespace godwit::gas
