// Control objects where they lie: a state in global memory, a lock, and who waits. A step is carried out
// under the lock by a worker of the home's host, or for other hosts by whoever carries out their calls
// (transport/far/calls.hpp). Who waits is a number here, the record that the runtime completes
// (src/runtime/control_path.cpp): this layer knows no scheduler.
//
// docs/protocols/control.md (CO). Tests: tests/global/control_test.cpp.
#pragma once

#include "gas/places.hpp"

#include <godwit/detail/control_path.hpp>

#include <atomic>

namespace godwit::gas {

/// Who waits: what to ask, and whom to tell. W and R under the lock
struct waiter {
  std::uint64_t record;
  detail::control_step* step;
  std::uint64_t result_bytes;
  std::byte closure[detail::control_closure_bytes];
};
static_assert(sizeof(waiter) == 64);

/// Head of a control object; its state follows. All under the lock, by workers of this host and, for
/// others, by the companion.
struct alignas(64) control_words {
  static constexpr std::uint32_t live = 0x6c6f7274, dead = 0x64616564, own_room = 2;
  std::atomic<std::uint32_t> lock;  ///< W and R all who carry out a step
  std::uint32_t magic;              ///< W who makes and who frees it
  std::uint32_t alike;              ///< as control_make was told. W who makes it
  std::uint32_t count;              ///< of those that wait: a ring
  std::uint32_t first;              ///< place of the one who came first
  std::uint32_t capacity;           ///< of the ring
  global_address room;              ///< of the ring: `own`, or memory at the same home
  detail::place made;
  alignas(64) waiter own[own_room];

  std::byte* state() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

enum class control_asks : std::uint32_t {
  step,        ///< carry it out
  step_or_no,  ///< the same, but nobody waits
  more,        ///< let go on who else can
  free         ///< nobody may use it any more
};

/// What travels, with the closure's bytes behind it.
struct control_request {
  global_address at;
  detail::control_step* step;
  control_asks what;
  std::uint32_t closure_bytes;
  std::uint32_t result_bytes;
  std::uint32_t capacity;  ///< of room
  std::uint64_t record;    ///< step: to be completed
  global_address room;     ///< a larger ring, since the answer before was `full`; 0: none
};

enum class control_answers : std::uint32_t {
  done,
  waits,  ///< the record will be completed
  no,     ///< step_or_no: it would have to wait
  full,  ///< nothing has happened: there is no room for one more that waits. `capacity`: there is for so many
  in_use,  ///< free: somebody waits
  gone,    ///< there is no such object
  later    ///< nothing has happened, and a room that came along was not looked at: ask the same again
};

/// The answer: this, the result's bytes, and those that can go on: record, number of bytes, bytes; all of
/// them rounded up to words.
struct control_answer {
  control_answers what;
  std::uint32_t count;     ///< of those that can go on
  std::uint32_t more;      ///< there may be others: ask for more
  std::uint32_t bytes;     ///< of all this
  std::uint32_t capacity;  ///< full, or of `room`
  global_address room;     ///< a ring that is not needed any more; 0: none
  detail::place made;      ///< in_use
};

/// @p closure: of the request; may be written. @p out: at least transport::far::inline_bytes. Gives back
/// how many bytes of it are the answer. Local. @p window: where global memory is mapped. @p waits: for the
/// lock, however long; else the answer may be `later` (CO3).
std::size_t carry_out(std::byte* window, const control_request& request, std::byte* closure, std::byte* out,
                      bool waits) noexcept;

inline constexpr std::uint64_t control_call_number = transport::far::call_number("gas.control");
/// The call: argument the bytes of the payload, a control_request and its closure. Answer: info bytes. @p
/// site: its window counts.
void enter_control_calls(transport::far::call_table& table, place_site& site);

}  // namespace godwit::gas
