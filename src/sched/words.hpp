// The words that workers share. Each says who writes it and who reads it.
//
// All of them live in a worker's segment: public_words in each one's own, node_words in that of the first
// worker of a host, job_words in worker 0's. They are reached through the transport; by workers of the same
// host that is a CPU access.
#pragma once

#include "transport/far/requests.hpp"
#include "transport/transport.hpp"

#include <godwit/detail/rank_call.hpp>
#include <godwit/runtime.hpp>

#include <atomic>
#include <cstdint>

namespace godwit::sched {

using transport::ref;
using transport::word;
using transport::worker_no;

/// The part of movable memory that a thread was sent to (spawn_at, go_to), as long as it has not left that
/// host; without bytes: none, or it is not known.
struct data_part {
  std::uint64_t at = 0, bytes = 0;
  bool operator==(const data_part&) const = default;
};

/// One per worker.
struct public_words {
  // Deque; docs/protocols/deque.md. One line: a thief's look costs one transfer.
  alignas(64) word segment;  ///< carried.hpp, of all threads here. W owner under `lock`, R thieves under it
  word split;                ///< address of the first private slot. W owner, R thieves
  word top;                  ///< address of the oldest public slot. W thieves and owner under `lock`, R all
  word lock;                 ///< see base/lock.hpp. W all
  word spare_segment;        ///< for a thief of another host; 0: none. W owner, and who takes it under `lock`

  // Threads that are ready to run, any worker may take one: ready_queue.hpp; docs/protocols/join.md.
  alignas(64) word ready_lock;  ///< see base/lock.hpp. W all
  word ready_count;             ///< W under ready_lock, R all
  word ready_head;              ///< ref of an image. W/R under ready_lock
  word ready_tail;
  word ready_high;  ///< the last of those that come before the others, 0: none. W/R under ready_lock

  // docs/protocols/idle.md.
  alignas(64) word mailbox;  ///< ref of the newest message. W all (push by compare-exchange, owner takes all)
  /// Several hosts: its oldest continuation names the heap of this host, and another one wanted it. W owner
  /// (0), who steals from elsewhere (1)
  word put_aside;
  /// Several hosts: what is public names nothing of this host's heap from here on. W owner, before it makes a
  /// continuation public; R thieves of other hosts, word by word
  word heap_end;

  // Policy locked_free: objects of this worker's heap that others have given back, linked by `freed`.
  alignas(64) word free_lock;  ///< see base/lock.hpp. W all
  word free_head;              ///< ref of an object, 0: none. W under free_lock, R owner

  alignas(64) word live;  ///< offset of the first object of the owner's heap, for reports. W owner
  word pid;               ///< process id. W owner once, R workers of the host that send the expose signal
  // Why it dies of a signal. W owner when it does, R supervisor.
  word fault_address;    ///< of a fault in user code
  word fault_code;       ///< the instruction that did it
  word fault_sender;     ///< 1 + the process that sent the signal; 0: nobody did
  word fault_user;       ///< whose process that is
  word fault_frames[8];  ///< code that was executed and its callers, the innermost first; 0: no more
  word asleep;           ///< 1: it counts as idle and sleeps. W owner, R monitor. docs/protocols/monitor.md
  // Of the threads on this worker: see data_part. Each for itself, a wrong one is a bad choice. W owner, R
  // who takes threads. docs/protocols/parcels.md, with several hosts
  word data_at;
  word data_bytes;
  worker_stats stats;  ///< W owner, R supervisor after the worker's end
  // docs/cluster.md, on_rank.
  word rank_lock;     ///< of worker 0: 1 while a thread is in on_rank. W all, atomics
  word rank_answers;  ///< of worker 0: ranks that have done its step. W first workers, atomics; R that thread
  word rank_failed;   ///< of worker 0: the first rank that failed in it, plus one. W, R likewise
  detail::rank_call rank_call;  ///< of the first worker of a rank

  data_part data() const noexcept {
    return {data_at.load(std::memory_order_relaxed), data_bytes.load(std::memory_order_relaxed)};
  }
  void work_on(data_part d) noexcept {
    data_at.store(d.at, std::memory_order_relaxed);
    data_bytes.store(d.bytes, std::memory_order_relaxed);
  }
  /// A look, without the lock: can anything be stolen?
  bool shares_work() const noexcept {
    return top.load(std::memory_order_relaxed) < split.load(std::memory_order_relaxed);
  }
};

/// node_words::watch. `until_work`: the monitor sleeps until a worker leaves idleness.
enum watch_state : std::uint32_t { watching = 0, until_work = 1, for_a_while = 2 };

/// node_words::shutdown: the run is over; and the hosts below this one have been told. IN7
enum shutdown_state : std::uint64_t { shutdown_told = 1, shutdown_passed_on = 2 };

/// node_words::wave: the host above has asked; those below have been asked.
enum wave_state : std::uint64_t { wave_none = 0, wave_asked = 1, wave_passed_on = 2 };

// node_words::idle: the lower half is a count, as a signed number; the upper half changes for good whenever a
// worker leaves idleness.
inline std::int32_t idle_in(std::uint64_t idle) noexcept { return static_cast<std::int32_t>(idle); }
/// Are all @p workers idle, and is no letter under way?
inline bool is_full(std::uint64_t idle, std::uint32_t workers) noexcept {
  return idle_in(idle) == static_cast<std::int32_t>(workers);
}
/// What a worker that leaves idleness adds to it: one less.
inline constexpr std::uint64_t left_idleness = (std::uint64_t{1} << 32) - 1;

// node_words::answers: how many are missing, how many hosts have seen somebody leave idleness, and letters,
// modulo 2^32.
inline std::uint64_t answers_missing(std::uint64_t answers) noexcept { return answers & 0xffff; }
inline bool is_unclean(std::uint64_t answers) noexcept { return (answers >> 16 & 0xffff) != 0; }
inline std::uint64_t letters_in(std::uint64_t answers) noexcept { return answers >> 32; }
/// To be added to that of the host above, minus one.
inline std::uint64_t wave_answer(bool is_unclean, std::uint64_t letters) noexcept {
  return letters << 32 | (is_unclean ? 1u << 16 : 0u);
}

/// One per host, in the segment of its first worker. docs/protocols/idle.md, idle_nodes.md
struct node_words {
  /// idle workers of this host minus letters for them, and how often one has left idleness (idle_in). W all
  /// of the host
  alignas(64) word idle;
  // Several hosts: waves.hpp. `gate` is the lock of all but letters.
  alignas(64) word wave;  ///< wave_state. W under gate, and the host above by a cast; R all of the host
  word answers;           ///< of the hosts below. W under gate, and those by casts; R all of the host
  word gate;              ///< W all of the host
  word seen;              ///< `idle` when a wave was here. W, R under gate
  word letters;           ///< sent to other hosts minus those that have come from them. W all of the host
  word outside;           ///< threads that wait for something outside (park). W all
  word polling;           ///< a worker waits in event_source::collect. W all
  /// 0 or shutdown_state. W who finds that the run is over, the host above by a cast, and who tells the hosts
  /// below; R all of the host
  word shutdown;
  alignas(64) base::shared<std::uint32_t> wake;  ///< futex: changes at every wake-up. W all of the host
  alignas(64) word sleepers;                     ///< workers asleep or about to sleep. W all of the host
  /// 1: one looks at another host for all of this one, far_thief.hpp. W workers of the host
  alignas(64) word looks_far;
  // Spare workers, docs/protocols/monitor.md. All zero without.
  /// workers that may have work: the regular ones and spares that have been up. W monitor, R all
  word present;
  word up;       ///< spares that are to work; the others rest. W monitor, R spares
  word resting;  ///< spares that rest or are about to. W spares, R who wakes them
  /// futex: changes when a spare has something to see. W monitor, who ends the run
  base::shared<std::uint32_t> spare_wake;
  /// futex of the monitor: watch_state. W monitor, workers that begin to run or end
  base::shared<std::uint32_t> watch;
  // The segments of this host in serial order; docs/protocols/segments.md.
  alignas(64) word segments_lock;  ///< see base/lock.hpp. W all of the host
  ref first_segment;               ///< of the list; 0: it is empty. W/R under segments_lock
  ref last_segment;
  word merges_lock;  ///< of the values of segments that have ended: see base/lock.hpp. W all of the host
  word reducers;     ///< that live and were made on this host. W all of the host

  /// Twice the number of cancellations that this host has heard of. W who cancels, R all of the host, often
  alignas(64) word cancellations;
  alignas(64) word failed;  ///< 0, then 1 while the message is written, then 2. W the first that fails
  char message[2048];       ///< why the run ended. W the first that fails, R supervisors
};

/// One per job, in worker 0's segment.
struct job_words {
  alignas(64) word root_done;  ///< W the worker that ends the root thread, R who decides
};

/// At layout::host of a segment.
struct host_words {
  node_words node;  ///< used in the segment of a host's first worker only
  job_words job;    ///< used in worker 0's segment only
};

/// At layout::words.
struct segment_words {
  public_words worker;
  transport::far::words far;
};

/// Of both together.
inline constexpr std::size_t all_words_bytes = sizeof(host_words) + sizeof(segment_words);
/// The layout @p l, which has room for so many: they lie one after the other.
inline transport::shm::layout host_words_first(transport::shm::layout l) noexcept {
  l.host = l.words;
  l.words += sizeof(host_words);
  return l;
}

}  // namespace godwit::sched
