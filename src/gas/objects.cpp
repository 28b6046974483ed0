// See objects.hpp.
#include "gas/objects.hpp"

#include "gas/arena.hpp"
#include "gas/words.hpp"

#include <algorithm>
#include <cstring>

namespace godwit::gas {

using transport::far::answer_room;
using transport::far::entry;

freed look_at(const object_header* header, std::uint64_t bytes) noexcept {
  if (reinterpret_cast<std::uintptr_t>(header) % sizeof *header != 0) return {freed_as::no_object};
  const std::uint32_t magic = __atomic_load_n(&header->is.magic, __ATOMIC_ACQUIRE);
  if (magic == object_header::dead) return {freed_as::twice};
  if (magic != object_header::live) return {freed_as::no_object};
  std::uint64_t allocated = header->is.bytes;
  if (allocated == object_header::wide) allocated = (reinterpret_cast<const wide_part*>(header) - 1)->bytes;
  const bool right = allocated == std::max<std::uint64_t>(bytes, 1);
  return {right ? freed_as::done : freed_as::other_size, allocated};
}

bool kill(object_header* header) noexcept {
  std::uint32_t alive = object_header::live;
  return __atomic_compare_exchange_n(&header->is.magic, &alive, object_header::dead, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

void link(const returned& r) noexcept {
  word& list = r.home->returned;
  std::uint64_t head = list.load(std::memory_order_relaxed);
  do r.header->next = head;
  while (!list.compare_exchange_weak(head, r.at, std::memory_order_release, std::memory_order_relaxed));
}

namespace {

std::byte* free_here(void* place, entry& e, const answer_room&) noexcept {
  const transport::shm::segment& memory = *static_cast<const place_site*>(place)->memory;
  returned r;
  std::memcpy(&r, e.data, sizeof r);
  r.header = memory.reach(e.head.target, r.header);
  r.home = memory.reach(e.head.target, r.home);
  freed f = look_at(r.header, r.bytes);
  const bool is_freed = e.head.b != 0 && f.how == freed_as::done;
  if (is_freed && !kill(r.header)) f.how = freed_as::twice;
  if (is_freed && f.how == freed_as::done) link(r);
  std::memcpy(e.data, &f, sizeof f);
  e.head.info = sizeof f;
  return nullptr;
}

}  // namespace

void enter_object_calls(transport::far::call_table& table, place_site& site) {
  table.enter(free_call, free_here, &site);
}

}  // namespace godwit::gas
