// See first_touches.hpp.
#include "sched/first_touches.hpp"

#include <algorithm>
#include <unistd.h>

namespace godwit::sched {

namespace {
constexpr std::uint32_t pieces = 3;
// Of so many workers at the start: the worker of the root thread may not be idle before it steals.
constexpr std::uint32_t at_once = 2;
}  // namespace

void first_touches::init() noexcept {
  if (here_.shape.in_process || here_.crowded) return;
  end_ = std::min(here_.near.count, neighbours + 1) * pieces;
  while (next_ < std::min(end_, at_once * pieces)) next();
}

void first_touches::next() noexcept {
  const transport::shm::layout& l = here_.memory->where();
  const std::uint32_t own = index(here_.me) - here_.near.first;
  const worker_no w{here_.near.first + (own + next_ / pieces) % here_.near.count};
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto touch = [&](std::uint64_t from, std::uint64_t most, std::uint64_t room) {
    const volatile std::byte* at = here_.memory->at(w, here_.memory->common() + from);
    for (std::uint64_t i = 0; i < std::min(most, room); i += page) static_cast<void>(at[i]);
  };
  switch (next_++ % pieces) {
    case 0: {
      const std::uint64_t most = std::min(bytes, l.stack_bytes);
      return touch(l.stack + l.stack_bytes - most, most, most);
    }
    case 1:
      return touch(l.slots, page, l.slots_bytes);
    default:
      return touch(l.heap, bytes, l.heap_bytes);
  }
}

}  // namespace godwit::sched
