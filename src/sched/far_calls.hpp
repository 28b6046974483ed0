// What a worker asks another host to do in one go, instead of word by word: this layer's calls
// (transport/far/calls.hpp).
//
// They are carried out at the victim's host, by its companion (ways server and assist) or by the victim
// itself (way am), with the very protocols that near workers use: ready_queue.hpp, deque.hpp.
// docs/protocols/far.md.
#pragma once

#include "base/random.hpp"
#include "sched/record.hpp"
#include "sched/scopes.hpp"
#include "stack/stack.hpp"
#include "transport/far/calls.hpp"

#include <godwit/detail/hot.hpp>

namespace godwit::sched {

/// What is called.
struct call_no {
  /// take a thread. argument: call_scope. Answer: see loot
  static constexpr std::uint64_t steal = transport::far::call_number("sched.steal");
  /// is there a thread to take? argument: call_scope. Answer: a sight; asks for more if not
  static constexpr std::uint64_t look = transport::far::call_number("sched.look");
  /// argument: ref, and how many refs of records of the same host follow (most_read_along). Answer: result 0
  /// if the first is not complete; else bit 0, and bit i for the i-th of the others if it is complete and
  /// its result all there; info: result_words of each [and the bytes of the first one's object]
  static constexpr std::uint64_t read_record = transport::far::call_number("sched.read_record");
  /// argument: ref, release_as. One consumer less; answer: ref of a result that the caller must free, or 0.
  /// Or owns_values: then all of it is the caller's, to be freed by a letter. Where frees are queued the
  /// caller frees the record too, if info != 0: it was the last one, and the record is complete
  static constexpr std::uint64_t release = transport::far::call_number("sched.release");
  /// cast: one consumer less of each of the refs that follow, which leave nothing but themselves. argument:
  /// how many
  static constexpr std::uint64_t release_read = transport::far::call_number("sched.release_read");
  /// argument: ref of a record whose result is there; info: completion. It is complete; answer: its state
  /// until then. If that is a waiter of a third host, the call goes on to there. Unless the waiter is of the
  /// asker's own host, it is the asker's now, and freed; info: the image, then its stack. Or it stays, to be
  /// made ready by a letter (worker::tell_home), and only the image comes
  static constexpr std::uint64_t complete = transport::far::call_number("sched.complete");
  /// argument: ref of a tally. One part less; answer: join_records::count_off
  static constexpr std::uint64_t count_off = transport::far::call_number("sched.count_off");
  /// argument: ref of a scope. Answer: cancel_answer
  static constexpr std::uint64_t ask_scopes = transport::far::call_number("sched.ask_scopes");
  /// argument: ref of a scope. A strand less; answer: what sched::count_strand_off gives back
  static constexpr std::uint64_t count_strand_off = transport::far::call_number("sched.count_strand_off");
  /// cast: a scope has been cancelled (tell_host)
  static constexpr std::uint64_t cancelled = transport::far::call_number("sched.cancelled");
  /// cast: set the target's poll word, wake it
  static constexpr std::uint64_t nudge = transport::far::call_number("sched.nudge");
  /// deliver: a letter, mailbox.hpp
  static constexpr std::uint64_t letter = transport::far::call_number("sched.letter");
  /// cast: a wave has come from the host above (waves.hpp)
  static constexpr std::uint64_t wave = transport::far::call_number("sched.wave");
  /// cast, to the host above: it is over here. argument: wave_answer
  static constexpr std::uint64_t wave_answer = transport::far::call_number("sched.wave_answer");
  /// cast: the run is over
  static constexpr std::uint64_t shut_down = transport::far::call_number("sched.shut_down");
};

/// Bits of the argument of release.
struct release_as {
  static constexpr std::uint64_t queued = 1;  ///< policy locked_free: who joins frees
  static constexpr std::uint64_t taken = 2;   ///< the caller has taken the value (OW2)
};
inline constexpr ref owns_values = ~ref{0};
/// Records in one read_record beside the first, and in one release_read.
inline constexpr std::uint64_t most_read_along = 31;

/// Bits of the argument of steal and look.
struct call_scope {
  static constexpr std::uint64_t whole_host = 1;    ///< any worker of the host, else only the target
  static constexpr std::uint64_t urgent = 2;        ///< interrupt workers that sit on private continuations
  static constexpr std::uint64_t skip_check = 4;    ///< lock without looking first
  static constexpr std::uint64_t ready_only = 8;    ///< only suspended threads that are ready
  static constexpr std::uint64_t hash_frames = 16;  ///< leave a hash of what is taken (options::check_frames)
  static constexpr std::uint64_t with_data = 32;    ///< also who was sent here and has not begun: see parcels
};

/// What goes with `complete`.
struct completion {
  std::uint64_t waiter;             ///< 0: the record is still to be completed. Else who waited there
  transport::shm::near_range near;  ///< the asker's host
  bool in_answer = false;           ///< a waiter comes only if all of it fits into the answer
};

/// parcels: threads that were sent to one part of movable memory and have not begun. A line with the
/// data_part, then the parcels, each at a multiple of 64 bytes; info bytes in all.
/// task: of a policy that steals children: its record, which holds the closure, is the loot's own_record.
/// later: nothing yet, but what stays here has been asked to make way.
/// all_idle: nothing, and no worker there has anything to do.
enum class loot_kind : std::uint64_t { nothing, fork, suspended, parcels, task, later, all_idle };
inline bool is_anything(loot_kind k) noexcept {
  return k != loot_kind::nothing && k != loot_kind::later && k != loot_kind::all_idle;
}

/// What a look sees.
enum class sight : std::uint64_t { nothing, work, all_idle };

/// What a successful steal brings, in front of the stack bytes [low, bytes_end). Everything that resuming
/// needs.
struct loot {
  std::uint64_t sp, fp, extra;
  std::uint64_t low, top, bytes_end;
  ref own_record;  ///< what the thread completes when it ends
  ref status;      ///< fork: record of the child that stayed; else: record it waited for, for traces
  std::uint64_t float_control;
  carried takes;
};

/// Of a continuation in the deque of a worker of this host that is being taken, under the deque's lock: from
/// here on it is a strand of its own.
inline carried carried_along(const transport::shm::segment& memory, const public_words& victims,
                             const spawn_slot& own) noexcept {
  const bool carries = (own.float_control & slot_carries) != 0;
  const ref scope = carries ? carried_by(*memory.at<record>(own.record)).scope : 0;
  add_strand(memory, scope);
  return {scope, victims.segment.load(std::memory_order_relaxed)};
}

/// Where a call is carried out.
struct call_site {
  const transport::shm::segment* memory;
  const public_words* words;  ///< common address
  node_words* node;           ///< of this host
  base::small_random* random;
  std::uint32_t holder;                              ///< what it writes into locks (base/lock.hpp)
  stack::range (*heap_in_use)() noexcept = nullptr;  ///< as in worker_hooks
  bool lazy = false;                                 ///< the run's policy is

  stack::range heap() const noexcept { return heap_in_use != nullptr ? heap_in_use() : stack::range{}; }
};

/// All of them, to be carried out at @p site, which stays there as long as @p table.
void enter_calls(transport::far::call_table& table, call_site& site);

/// Ask worker @p w of this host to make work public at its next spawn: poll, if it is not set. Local.
void ask_for_work(const transport::shm::segment& memory, worker_no w) noexcept;

/// Interrupt workers of this host that compute without spawning and sit on private continuations. @p hidden:
/// whoever runs a thread may have some, since nobody has looked for them (policy lazy).
void signal_hoarders_of(const transport::shm::segment& memory, const public_words* words, worker_no from,
                        worker_no to, worker_no except, bool hidden = false) noexcept;

/// Workers [@p from, @p to) that run a thread: where nobody looks at spawns (policy lazy).
inline void interrupt(const transport::shm::segment& memory, const public_words* words, worker_no from,
                      worker_no to) noexcept {
  signal_hoarders_of(memory, words, from, to, worker_no{~0u}, true);
}
/// All of this host.
inline void interrupt_host(const transport::shm::segment& memory, const public_words* words) noexcept {
  const auto& near = memory.near();
  interrupt(memory, words, worker_no{near.first}, worker_no{near.first + near.count});
}

/// Wake one, or all, of the workers of this host that sleep for lack of work.
void wake_one_of(node_words& node) noexcept;
void wake_all_of(node_words& node) noexcept;
/// Spares that rest look again whether they are to; @p bits: see spare_bit.
void wake_spares_of(node_words& node, std::uint32_t bits) noexcept;
/// Of the futex that spare @p number rests in: of 32, so others may wake with it.
inline std::uint32_t spare_bit(std::uint32_t number) noexcept { return 1u << number % 32; }

}  // namespace godwit::sched
