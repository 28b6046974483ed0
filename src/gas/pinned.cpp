// Members of access: where memory is, for threads that go there, and checkouts of memory that is this host's.
// docs/protocols/move.md. Called by src/runtime/parcels.cpp. Test: tests/global/spawn_at_test.cpp.
#include "gas/access.hpp"

namespace godwit::gas {

using detail::access_mode;
using detail::opened;

standing access::where_is(global_address at, std::uint64_t told, bool ask_home) {
  const piece p = blocks_.first_piece(at, 1);
  if (p.words == nullptr)
    return net_.is_near(p.owner) ? standing{} : standing{standing::elsewhere, p.owner, 0};
  if (!several_hosts_) return {};
  const place here = p.place(net_);
  if (told != 0) here.learn(ownership::from(told, p.home));  // MV1
  const ownership known = here.owner(p.home);                // MV2: before the state
  const place_state s = here.state();
  if (in(s, still_here)) {
    const auto [low, end] = blocks_.whole_parts(*blocks_.find(at), at, 1);
    return {standing::here, known.worker, known.packed(), low, end - low};
  }
  if (!in(s, is_elsewhere)) return {standing::soon, known.worker, known.packed()};
  // PA4
  if (ask_home && !net_.is_near(p.home)) return {standing::elsewhere, p.home, known.packed()};
  // Who believes that it is ours has been told so before it came.
  return {net_.is_near(known.worker) ? standing::soon : standing::elsewhere, known.worker, known.packed()};
}

opened access::pin(global_address at, std::uint64_t bytes, access_mode mode, detail::place where,
                   standing& not_here) {
  if (check_.on()) check_.check_range(at, bytes, "pin");
  if (mode != access_mode::read && bytes != 0) refuse_frozen(at, where);
  const bool fixed_here = !several_hosts_ || bytes == 0 || blocks_.is_near(at, bytes);
  if (!fixed_here && !use_all(at, bytes)) {
    not_here = {};
    blocks_.each_piece(at, bytes, [&](const piece& p) {
      if (not_here.what != standing::elsewhere)
        if (const standing s = where_is(p.at, 0, false); s.what != standing::here) not_here = s;
    });
    if (not_here.what == standing::here) not_here.what = standing::soon;  // it was not, a moment ago
    return {nullptr, 0};
  }
  if (check_.on()) check_.note_checkout(at, bytes, mode != access_mode::read, where);
  ++detail::hot().checkouts;
  return {net_.at(at), at | (fixed_here ? 0 : opened::pinned)};
}

}  // namespace godwit::gas
