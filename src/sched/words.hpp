// The words that workers share. Each says who writes it and who reads it.
//
// All of them live in the home worker's segment (run_words in worker 0's) and are reached by others through
// the transport. On the shared-memory transport every access is a CPU access.
#pragma once

#include "transport/transport.hpp"

#include <godwit/runtime.hpp>

#include <atomic>
#include <cstdint>

namespace godwit::sched {

using transport::ref;
using transport::word;
using transport::worker_no;

/// One per worker.
struct public_words {
  // Deque; docs/protocols/deque.md. One line: a thief's look costs one transfer.
  alignas(64) word split;  ///< address of the first private slot. W owner, R thieves
  word top;                ///< address of the oldest public slot. W thieves and owner under `lock`, R all
  word lock;               ///< 0 free, 1 taken. W all

  // Suspended threads that are ready to run, FIFO, any worker may take one; docs/protocols/join.md.
  alignas(64) word ready_lock;  ///< W all
  word ready_count;             ///< W under ready_lock, R all
  word ready_head;              ///< ref of an image. W/R under ready_lock
  word ready_tail;

  // docs/protocols/idle.md.
  alignas(64) word mailbox;  ///< ref of the newest message. W all (push by compare-exchange, owner takes all)

  alignas(64) word live;  ///< offset of the first object of the owner's heap, for reports. W owner
  word pid;               ///< process id. W owner once, R workers that send the expose signal
  worker_stats stats;     ///< W owner, R supervisor after the worker's end
};

/// One per run, in worker 0's segment.
struct run_words {
  alignas(64) word idle;                        ///< number of idle workers minus letters on their way. W all
  alignas(64) word root_record;                 ///< join record of the root thread. W worker 0 once
  word root_done;                               ///< W the worker that ends the root thread
  word shutdown;                                ///< W the worker that finds everything done
  alignas(64) std::atomic<std::uint32_t> wake;  ///< futex: changes at every wake-up. W all
  alignas(64) word sleepers;                    ///< workers asleep or about to sleep. W all
  alignas(64) word failed;  ///< 0, then 1 while the message is written, then 2. W the first that fails
  word fault_address;       ///< of a segmentation fault in user code. W the worker that dies, R supervisor
  word fault_code;          ///< the instruction that did it
  char message[2048];       ///< why the run ended. W the first that fails, R supervisor
};

struct segment_words {
  public_words worker;
  run_words run;  ///< used in worker 0's segment only
};

}  // namespace godwit::sched
