// See calls.hpp.
#include "transport/far/calls.hpp"

#include "base/check.hpp"

namespace godwit::transport::far {

void call_table::enter(std::uint64_t number, handler f, void* place) {
  for (const row& r : rows_)
    GODWIT_CHECK(r.number != number, "each call has a name, and so a number, of its own");
  rows_.push_back({number, f, place});
}

std::byte* call_table::carry_out(entry& e, const answer_room& room) const noexcept {
  e.head.result = e.head.info = e.head.bytes = e.head.local = e.head.more[1] = 0;
  for (const row& r : rows_)
    if (r.number == e.head.a) return r.f(r.place, e, room);
  base::fatal("a request of another host has the unknown number %llu",
              static_cast<unsigned long long>(e.head.a));
}

}  // namespace godwit::transport::far
