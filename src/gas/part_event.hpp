// What happens to parts of movable memory, and what other hosts' memory costs, for those who want to see it:
// the runtime makes events of the trace of it. Told by mover.cpp, allocator.cpp, part_wait (parts.hpp) and
// single_access.hpp; heard by src/runtime/global_path.cpp.
#pragma once

#include <cstdint>

namespace godwit::gas {

struct part_event {
  enum class kind {
    allocated,  ///< parts with one home; `to` is it, `count` how many
    freed,
    used,     ///< so often: `near` by its owner's host, `count` by others, most of these by that of `to`
    came,     ///< a part, from another host
    given,    ///< to another worker of its host
    busy,     ///< it stayed
    no_room,  ///< likewise
    moved,    ///< some parts came from other hosts together, `count` of them
    waited,   ///< an access, for parts on their way; `allocation` is an address of theirs
  };
  static constexpr std::uint32_t no_worker = 0xff'ffff;
  kind what;
  std::uint64_t allocation;
  std::uint64_t part = 0;  ///< its number in the allocation
  std::uint32_t from = no_worker, to = no_worker;
  std::uint64_t count = 0;
  std::uint64_t near = 0;
  std::uint64_t bytes = 0;     ///< came, moved: that travelled; allocated: of a part
  std::uint64_t since_ns = 0;  ///< of base::fast_ns
};

using part_note = void (*)(const part_event& e) noexcept;

/// An access to a single value of another host that was timed, on behalf of `count` of them.
struct access_event {
  enum class kind { get, put, atomic };
  kind what;
  std::uint64_t at;     ///< address
  std::uint32_t owner;  ///< worker
  std::uint32_t count;
  std::uint64_t since_ns = 0;   ///< of base::fast_ns
  const void* frame = nullptr;  ///< in the frame of the function that does it
};
using access_note = void (*)(const access_event& e) noexcept;

}  // namespace godwit::gas
