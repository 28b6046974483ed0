// Who moves parts of movable memory to this worker's host: docs/protocols/move.md, Move. A move is a pull:
// it is done by a worker of the host that the parts go to, from beginning to end.
//
// Parts that are not this host's fly in waves: what is asked of one source, or told to one home, goes in one
// message, and bytes that lie together come together. Each part by itself is moved as if it were alone.
//
// Called by src/runtime/global_path.cpp. Tests: tests/global/move_test.cpp.
#pragma once

#include "gas/allocator.hpp"
#include "gas/cache.hpp"

#include <godwit/detail/global_path.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace godwit::gas {

/// Bytes of global memory.
struct byte_range {
  global_address at;
  std::uint64_t bytes;
};

class mover {
 public:
  mover(const reach& net, directory& blocks, allocator& budgets, cache& copies, worker_stats& stats) noexcept
      : net_(net), blocks_(blocks), budgets_(budgets), cache_(copies), stats_(stats) {}

  /// Everything movable in the range to worker @p to, which is of this host. The result that says most:
  /// no_room before busy before moved before already_there. Cost: a part of this host's some ns; up to
  /// `most_in_wave` parts of another one, four round trips and their bytes.
  move_result pull(global_address at, std::uint64_t bytes, std::uint32_t to) {
    const byte_range all{at, bytes};
    return pull({&all, 1}, to, usual_patience_ns);
  }
  /// The same for several ranges of one allocation. @p patience_ns: how long it waits for who uses a part.
  move_result pull(std::span<const byte_range> ranges, std::uint32_t to, std::uint64_t patience_ns);

  /// on_move: from now on @p hook is called by moves to this host.
  void set_hook(global_address at, const detail::move_hook& hook);

  /// Now and then the part that @p at lies in, if it is movable and this thread holds nothing.
  void pull_at_random(global_address at);

 private:
  static constexpr std::size_t most_in_wave = std::min<std::size_t>(64, most_moves_in_call);
  static constexpr std::uint64_t most_bytes_in_wave = 8 << 20;
  /// Of waiting for those who use a part, or move it: MV6.
  static constexpr std::uint64_t usual_patience_ns = 100'000'000;

  /// A part that is to come here.
  struct flight {
    enum class step { waits, wanted, frozen, ended };
    piece p;
    part source;
    step at = step::waits;
    bool closing = false;    ///< by us, at source.host
    ownership now{};         ///< frozen: since then
    std::uint32_t from = 0;  ///< frozen: the worker that had it
    flight(const reach& net, const piece& what) noexcept : p(what), source(net, what, nullptr) {
      source.guess_from(net, p.place(net).owner(p.home));
    }
  };

  // The steps of docs/protocols/move.md, for all of a wave that have come so far.
  void fly(std::uint32_t to);
  void bring(std::uint32_t to);
  void want(flight& f, std::uint32_t to);
  void close(std::uint32_t to);
  bool land(std::uint32_t to);
  void fetch(std::span<const flight> together);
  /// SW2, SW4: what their source remembers of datagrams comes here, then the switch learns where they are.
  void take_over(std::span<const flight> together);
  void settle(std::uint32_t to);
  void give_up(std::uint32_t to);
  /// This host's own, to another of its workers. False: it is not this host's, or not now.
  bool reassign(const piece& p, std::uint32_t to);
  /// on_move: call what there is to call.
  void tell(const piece& p, std::uint32_t from, std::uint32_t to) const;
  void end(flight& f, std::uint32_t to, move_result how);
  /// For who wants to see it. Of what came together: the first.
  void note(const piece& p, std::uint32_t from, std::uint32_t to, part_event::kind what) const noexcept;
  /// One message to each host that @p whom names for some flights; then @p said(flight, answer) for these.
  template <class Whom, class Said>
  void call(place_call what, std::uint32_t to, Whom&& whom, Said&& said);

  const reach& net_;
  directory& blocks_;
  allocator& budgets_;
  cache& cache_;
  worker_stats& stats_;
  std::vector<flight> wave_;  ///< has room: nothing is allocated while parts are under way
  move_result result_{};
  std::uint64_t moved_ = 0;                  ///< address of the allocation's moved_words
  std::uint64_t since_ns_ = 0;               ///< the wave's beginning
  std::uint64_t came_ = 0, came_bytes_ = 0;  ///< with it
  std::uint64_t patience_ns_ = 0;
  std::uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace godwit::gas
