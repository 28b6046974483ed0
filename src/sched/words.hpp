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
  alignas(64) word split;  ///< address of the first private slot. W owner, R thieves
  word top;                ///< address of the oldest public slot. W thieves and owner under `lock`, R all
  word lock;               ///< see base/lock.hpp. W all

  // Suspended threads that are ready to run, FIFO, any worker may take one; docs/protocols/join.md.
  alignas(64) word ready_lock;  ///< see base/lock.hpp. W all
  word ready_count;             ///< W under ready_lock, R all
  word ready_head;              ///< ref of an image. W/R under ready_lock
  word ready_tail;

  // docs/protocols/idle.md.
  alignas(64) word mailbox;  ///< ref of the newest message. W all (push by compare-exchange, owner takes all)

  // Policy locked_free: objects of this worker's heap that others have given back, linked by `freed`.
  alignas(64) word free_lock;  ///< see base/lock.hpp. W all
  word free_head;              ///< ref of an object, 0: none. W under free_lock, R owner

  alignas(64) word live;  ///< offset of the first object of the owner's heap, for reports. W owner
  word pid;               ///< process id. W owner once, R workers of the host that send the expose signal
  // Why it dies of a signal. W owner when it does, R supervisor.
  word fault_address;  ///< of a fault in user code
  word fault_code;     ///< the instruction that did it
  word fault_sender;   ///< 1 + the process that sent the signal; 0: nobody did
  word fault_user;     ///< whose process that is
  word asleep;         ///< 1: it counts as idle and sleeps. W owner, R monitor. docs/protocols/monitor.md
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

/// node_words::shutdown: the run is over, and the hosts that this one is to tell have been told.
inline constexpr std::uint64_t shutdown_told = ~std::uint64_t{0};

/// One per host, in the segment of its first worker. docs/protocols/idle.md, idle_nodes.md
struct node_words {
  alignas(64) word idle;       ///< idle workers of this host minus letters between them. W all of the host
  alignas(64) word announced;  ///< this host counts in job_words::idle_nodes. W under gate, R all of the host
  word gate;                   ///< lock of announced. W all of the host
  word units;                  ///< of job_words::idle_nodes, prepaid for letters. W all of the host
  /// times a worker became running; policies that poll. W all of the host; R those, and calls from others
  word left_idleness;
  word outside;  ///< threads that wait for something outside (park). W all
  word polling;  ///< a worker waits in event_source::collect. W all
  /// 0; 1 + the host that found that the run is over; shutdown_told. IN7. W who finds it, by a cast if far,
  /// and who tells others; R all of the host
  word shutdown;
  alignas(64) base::shared<std::uint32_t> wake;  ///< futex: changes at every wake-up. W all of the host
  alignas(64) word sleepers;                     ///< workers asleep or about to sleep. W all of the host
  // Spare workers, docs/protocols/monitor.md. All zero without.
  /// workers that may have work: the regular ones and spares that have been up. W monitor, R all
  word present;
  word up;       ///< spares that are to work; the others rest. W monitor, R spares
  word resting;  ///< spares that rest or are about to. W spares, R who wakes them
  /// futex: changes when a spare has something to see. W monitor, who ends the run
  base::shared<std::uint32_t> spare_wake;
  /// futex of the monitor: watch_state. W monitor, workers that begin to run or end
  base::shared<std::uint32_t> watch;
  alignas(64) word failed;  ///< 0, then 1 while the message is written, then 2. W the first that fails
  char message[2048];       ///< why the run ended. W the first that fails, R supervisors
};

/// One per job, in worker 0's segment.
struct job_words {
  /// hosts that are idle minus units for letters between hosts (hosts_in); and how often one stopped being
  /// idle by a subtraction (host_left). W all, atomics
  alignas(64) word idle_nodes;
  alignas(64) word root_done;  ///< W the worker that ends the root thread, R who decides
};

/// The hosts in job_words::idle_nodes, minus units.
inline std::int32_t hosts_in(std::uint64_t idle_nodes) noexcept {
  return static_cast<std::int32_t>(idle_nodes);
}
/// What a host that is idle no more adds to it: minus one, and the whole changes for good (ID5).
inline constexpr std::uint64_t host_left = (std::uint64_t{1} << 32) - 1;

struct segment_words {
  node_words node;  ///< used in the segment of a host's first worker only
  job_words job;    ///< used in worker 0's segment only
  public_words worker;
  transport::far::words far;
};

}  // namespace godwit::sched
