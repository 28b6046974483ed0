// See begun.hpp.
#include "gas/begun.hpp"

#include <godwit/global_memory.hpp>

#include <memory>

namespace godwit::gas {

begun_checkout* begun_checkouts::begin(global_address at, std::uint64_t bytes, detail::access_mode mode) {
  auto b = std::make_unique<begun_checkout>();
  b->at = at;
  b->bytes = bytes;
  b->mode = mode;
  const bool here = bytes == 0 || blocks_.is_near(at, bytes);
  if (!here && mode != detail::access_mode::write) {
    cache& copies = access_.copies();
    if (const std::uint64_t units = copies.begin(b->fetch, at, bytes); units != 0) {
      b->room_bytes = units * unit_bytes;
      try {
        b->room = memory_.allocate_local(b->room_bytes, 64, {});
        copies.ask(b->fetch, net_.at(b->room));
      } catch (const global_bad_alloc&) {  // then all of it is fetched when it is completed
        copies.end(b->fetch);
      }
    }
  }
  ++detail::hot().checkouts;
  return b.release();
}

void begun_checkouts::end(begun_checkout& b) noexcept {
  access_.copies().end(b.fetch);
  if (b.room != 0) memory_.free(b.room, b.room_bytes, {});
  GODWIT_ASSERT(detail::hot().checkouts != 0, "what is over was begun");
  --detail::hot().checkouts;
}

detail::opened begun_checkouts::complete(begun_checkout* begun, detail::place where) {
  const std::unique_ptr<begun_checkout> b(begun);
  struct over {
    begun_checkouts& all;
    begun_checkout& b;
    ~over() { all.end(b); }
  } const at_the_end{*this, *b};
  access_.copies().settle(b->fetch);
  return access_.checkout(b->at, b->bytes, b->mode, where, b->fetch.wanted);
}

void begun_checkouts::abandon(begun_checkout* begun) noexcept {
  const std::unique_ptr<begun_checkout> b(begun);
  end(*b);
}

}  // namespace godwit::gas
