// See begun.hpp.
#include "gas/begun.hpp"

#include <godwit/global_memory.hpp>

#include <memory>
#include <utility>

namespace godwit::gas {

begun_checkouts::room begun_checkouts::take_room(std::uint64_t bytes) {
  if (spare_.bytes >= bytes) return std::exchange(spare_, {});
  free_spare();
  return {memory_.allocate_local(bytes, 64, {}), bytes};
}

void begun_checkouts::free_spare() noexcept {
  if (spare_.at != 0) memory_.free(spare_.at, spare_.bytes, {});
  spare_ = {};
}

begun_checkout* begun_checkouts::begin(global_address at, std::uint64_t bytes, detail::access_mode mode) {
  auto b = std::make_unique<begun_checkout>();
  b->at = at;
  b->bytes = bytes;
  b->mode = mode;
  const bool here = bytes == 0 || blocks_.is_near(at, bytes);
  if (!here && mode != detail::access_mode::write) {
    cache& copies = access_.copies();
    if (const std::uint64_t units = copies.begin(b->fetch, at, bytes); units != 0) {
      try {
        b->room = take_room(units * unit_bytes);
        copies.ask(b->fetch, net_.at(b->room.at));
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
  if (b.room.at != 0) {
    free_spare();
    spare_ = b.room;
  }
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
