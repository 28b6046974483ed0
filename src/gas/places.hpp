// Places: where the bytes of a movable part of memory may lie. Each host has one for each part, at the same
// address in its window, and one of them holds the bytes: its host owns the part.
//
// Who wants to touch the bytes comes to a place and is let in, told to wait, or sent on. Here are the words,
// the way in, and what is carried out for other hosts (calls, transport/far/calls.hpp); who goes from host to
// host until it is done: parts.hpp, and who moves parts: mover.hpp. Protocol: docs/protocols/move.md (MV).
// Models: models/move.pml, models/move_cache.pml. Tests: tests/global/move_test.cpp.
#pragma once

#include "base/check.hpp"
#include "gas/words.hpp"
#include "transport/far/calls.hpp"

#include <cstdint>

namespace godwit::gas {

/// Who has a part, as of its version: it has moved so often. Newer is better.
struct ownership {
  std::uint64_t version = 0;
  std::uint32_t worker = 0;

  std::uint64_t packed() const noexcept { return version << 24 | worker; }
  /// 0: it was never moved, and is @p home's.
  static ownership from(std::uint64_t w, std::uint32_t home) noexcept {
    return w == 0 ? ownership{0, home} : ownership{w >> 24, static_cast<std::uint32_t>(w & 0xff'ffff)};
  }
};

/// tools/gdb/godwit_gdb/memory.py knows their order, and how the words are packed.
enum class place_state : std::uint32_t {
  untouched,  ///< owned where the home is, else elsewhere
  elsewhere,
  wanted,    ///< elsewhere, and a worker of this host is about to pull it: MV5
  arriving,  ///< nobody touches the bytes but who pulls it
  fresh,     ///< owned, but the home does not know it yet: MV9
  owned,
  closing,  ///< a mover waits until it is not used
  frozen,   ///< its bytes are being read, or have left; then the cache is to be told
};

/// A set of states.
using place_states = unsigned;
constexpr place_states operator|(place_state x, place_state y) noexcept {
  return 1u << static_cast<unsigned>(x) | 1u << static_cast<unsigned>(y);
}
constexpr place_states operator|(place_states x, place_state y) noexcept {
  return x | 1u << static_cast<unsigned>(y);
}
constexpr place_states only(place_state s) noexcept { return 1u << static_cast<unsigned>(s); }
constexpr bool in(place_state s, place_states set) noexcept {
  return (set >> static_cast<unsigned>(s) & 1) != 0;
}
/// The bytes are here and may be used.
inline constexpr place_states is_here = place_state::fresh | place_state::owned;
/// The same for who holds other memory already (MV6), and for other hosts.
inline constexpr place_states still_here = is_here | place_state::closing;
/// Another host has them.
inline constexpr place_states is_elsewhere = place_state::elsewhere | place_state::wanted;

/// What a place says to another host.
enum class place_says : std::uint32_t { done, later, elsewhere };
struct place_answer {
  place_says what = place_says::later;
  std::uint32_t hops = 0;    ///< far_place::hops when it came to who answers
  std::uint64_t owner = 0;   ///< elsewhere, and done if it was sent on: as in place_words
  std::uint32_t before = 0;  ///< close, done: the worker that had it
};

/// What is known of a part where it is.
struct part_state {
  place_answer place;  ///< done: with the owner
  std::uint32_t near = 0, far = 0;
  std::uint32_t other = 0, lead = 0;  ///< as in place_words
};

/// What becomes of the counts of a part that somebody looks at. Counts that go are added to host_words.
enum class heat_then : std::uint64_t { stays, is_halved, goes };

/// A part's place on this host.
class place {
 public:
  /// @p home_here: the part's home is a worker of this host.
  place(place_words& words, bool home_here) noexcept : w_(&words), home_here_(home_here) {}

  place_state state() const noexcept { return state_of(w_->local.load(std::memory_order_acquire)); }
  /// One use more, if the state is one of @p allowed: then end_use. Gives back the state. Two atomics. MV3
  place_state use(place_states allowed) const noexcept {
    const place_state s = state_of(w_->local.fetch_add(1, std::memory_order_acq_rel));
    if (!in(s, allowed)) end_use();
    return s;
  }
  void end_use() const noexcept {
    [[maybe_unused]] const std::uint64_t before = w_->local.fetch_sub(1, std::memory_order_release);
    GODWIT_ASSERT((before & most_uses) != 0, "MV3: a use that ends has begun");
  }

  // Accesses are counted while they use the place (heat.hpp).
  void count_near() const noexcept { more(w_->near); }
  void count_far(std::uint32_t host) const noexcept;
  /// Owner and accesses, if it is here. @p host: of this one.
  part_state look(heat_then then, host_words& host) const noexcept;
  /// Half of the counts, or all.
  void forget_heat(heat_then then, host_words& host) const noexcept;

  ownership owner(std::uint32_t home) const noexcept {
    return ownership::from(w_->owner.load(std::memory_order_acquire), home);
  }
  /// Believe it if it is newer. MV1
  void learn(ownership o) const noexcept;
  /// To another worker of this host, while it is in use here. Gives back who had it before.
  std::uint32_t give_to(std::uint32_t worker, std::uint32_t home) const noexcept;

  /// From one of @p from to @p to, whatever its uses. False: it is in none of them. @p mover: who closes it.
  bool change(place_states from, place_state to, std::uint32_t mover = 0) const noexcept;
  enum class closing { done, in_use, refused };
  /// Owned -> closing -> frozen for worker @p mover; asked again and again while it is in use. MV3
  closing close(std::uint32_t mover) const noexcept;
  /// What close began for @p mover is given up. MV7
  void reopen(std::uint32_t mover) const noexcept;
  std::uint32_t uses() const noexcept {
    return static_cast<std::uint32_t>(w_->local.load(std::memory_order_acquire) & most_uses);
  }

 private:
  static void more(std::atomic<std::uint32_t>& count) noexcept {
    const std::uint32_t n = count.load(std::memory_order_relaxed);
    count.store(n + (n != ~0u ? 1 : 0), std::memory_order_relaxed);
  }
  // local: uses, state, the mover that closes
  static constexpr std::uint64_t most_uses = (std::uint64_t{1} << 32) - 1;
  static constexpr unsigned state_at = 32, mover_at = 36;
  place_state state_of(std::uint64_t local) const noexcept {
    const auto s = static_cast<place_state>(local >> state_at & 15);
    if (s != place_state::untouched) return s;
    return home_here_ ? place_state::owned : place_state::elsewhere;
  }
  static std::uint64_t packed(place_state s, std::uint32_t mover, std::uint64_t uses) noexcept {
    return std::uint64_t{mover} << mover_at | static_cast<std::uint64_t>(s) << state_at | uses;
  }

  place_words* w_;
  bool home_here_;
};

/// A part, as messages name it. Addresses are those of the window, the same on all hosts.
struct far_place {
  std::uint64_t words;
  std::uint32_t home;
  std::uint32_t asker : 24;  ///< host
  std::uint32_t hops : 8;    ///< the request was sent on, or its asker, so often: MV12
};
/// MV12: a request for a single small piece goes on by itself so far.
inline constexpr std::uint32_t most_hops = 2;

/// Room of so many bytes among others in a message: words stay aligned.
constexpr std::uint64_t whole_words(std::uint64_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

/// Bytes of a part to be read or written by another host.
struct far_piece {
  far_place where;
  std::uint32_t bytes;
  std::uint64_t address;
};

enum class place_call : std::uint64_t {
  /// argument: number of `far_piece`s in the payload; argument2: where large bytes of the only one go, or 0.
  /// Answer: a place_answer each, then the bytes of those that are done, each rounded up to words
  read = transport::far::call_number("gas.read"),
  /// argument: number of pieces, each with its bytes behind it, rounded up to words. Answer: a place_answer
  /// each
  write = transport::far::call_number("gas.write"),
  atomic = transport::far::call_number("gas.atomic"),  ///< payload: far_atomic. Answer: place_answer; result
  /// for bytes that do not fit into a message: a use of the place, until it is given back. Payload:
  /// far_place. Answer: place_answer
  use = transport::far::call_number("gas.use"),
  end_use = transport::far::call_number("gas.end_use"),
  owner = transport::far::call_number("gas.owner"),  ///< the same; done: with the owner
  /// argument: number of far_places in the payload. argument2: a heat_then. Answer: a part_state each
  state = transport::far::call_number("gas.state"),
  // Of movers. argument: number of `far_move`s in the payload. Answer: a place_answer each
  /// done, with the new owner; elsewhere; later: it is closing for us, but in use; later, with an owner: it
  /// is another mover's, or the home does not know yet who has it
  close = transport::far::call_number("gas.close"),
  reopen = transport::far::call_number("gas.reopen"),  ///< what close began is given up
  bind = transport::far::call_number("gas.bind"),      ///< at the home: it learns the owner
  leave = transport::far::call_number("gas.leave"),    ///< the bytes are where they belong. later: again
};

struct far_atomic {
  far_place where;
  std::uint32_t function, width;
  std::uint64_t address, operand, expected;
};
struct far_move {
  far_place where;
  std::uint32_t mover;
  std::uint64_t owner;    ///< bind: the new one, packed
  std::uint64_t address;  ///< leave: the bytes, and how many, and the allocation's moved_words
  std::uint64_t bytes;
  std::uint64_t moved;
};

inline constexpr std::size_t most_states_in_call = transport::far::inline_bytes / sizeof(part_state);
inline constexpr std::size_t most_moves_in_call = transport::far::inline_bytes / sizeof(far_move);

/// Where they are carried out.
struct place_site {
  const transport::shm::segment* memory = nullptr;
  host_words* host = nullptr;
  /// These bytes of the window are copies from now on, no longer the host's own memory: the first so many.
  /// Fewer than all: the next are in use; again.
  std::uint64_t (*forget_copies)(const place_site& site, std::byte* at,
                                 std::uint64_t bytes) noexcept = nullptr;
  std::byte* window = nullptr;
  void* units = nullptr;  ///< of the host's cache
  std::uint64_t unit_count = 0;
};
void enter_calls(transport::far::call_table& table, place_site& site);

}  // namespace godwit::gas
