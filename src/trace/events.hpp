// What a worker writes down while it runs: the kinds of events and their fields.
//
// Events are written at scheduler decisions only -- steals, suspensions, resumes, ends, idleness -- never at
// a spawn that nobody steals (but for samples) -- and where global memory is fetched or written back. Threads
// are named by the location (ref) of their join record, which is theirs from the moment when they could be
// separated from their parent. A record may serve a later thread again. Who runs on a worker: the *bottom*
// thread of its stack region, with its unstolen descendants above it. A steal takes the bottom thread away:
// from then on the child that its continuation was waiting above is the victim's bottom thread. Written by:
// src/sched. Read by: the writers of this folder, tools/report. Documents: docs/tracing.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::trace {

enum class kind : std::uint16_t {
  // The worker gets a thread to run. duration_ns is what getting it took, time_ns its end.
  /// the root thread begins, or one that was created or sent. a: thread. Behind it `callers` if it was sent:
  /// where
  start = 1,
  /// a continuation came from worker `other`. a: thread; b: the child it leaves there; bytes: of stack;
  /// detail: its level there (see name), 0: not known. Behind it `callers`: where it had spawned that child
  steal,
  /// a suspended thread came from worker `other`. a: thread; b: the record it waited for, 0: it yielded.
  /// Behind it `callers` if it had not waited but spawned
  resume,
  /// child stealing: an unstarted thread begins. a: thread; other: from whom; detail: 1 on top of a join.
  /// Behind it `callers`: where it was spawned.
  /// Or a child whose parent has just left (suspend with detail 4) is the bottom thread. detail: 2
  task,
  // It loses one.
  /// a thread is done, its parent is not here (child stealing: always). a: thread; detail: 1 a waiter follows
  /// at once (greedy join)
  end,
  suspend,  ///< a thread leaves. a: thread; b: the record it waits for, 0: none; bytes: copied out;
            ///< other: its level (see name);
            ///< detail: 1 its parent goes on in place, so the worker stays busy; 2 it stays where it is
            /// and < waits below tasks put on top of it (run to completion), a resume of it follows.
            ///< 4 it is the bottom thread and its child stays: a `task` of that follows.
            ///< Unless it yields, behind it: `waits` if it is no join, and its place, as `place` or `callers`
  /// where in the program. a, b: file, function (addresses in the program's image); other: line
  place,
  cancel,  ///< the suspension just written was undone: what it waited for was there already. a: thread
  // It has none.
  /// was without a thread. duration_ns: for how long, up to time_ns (more than 2^32 ns: several events);
  /// detail: idle_cause
  idle,
  sleep,  ///< slept. duration_ns, up to time_ns; lies inside an idle
  // Anything else.
  expose,    ///< made continuations public. a: where the oldest spawned; bytes: how many; detail: 1 by signal
  complete,  ///< a record is complete without an end of a thread (a letter's answer). a: record
  far_call,  ///< a request to another host. other: target worker; detail: far_request; duration_ns
  message,   ///< carried out a request of another host, or a letter. duration_ns
  clock,     ///< a: nanoseconds to add to this worker's clock to get that of the first rank, from here on
  /// bytes of global memory went from or to other hosts. detail: global_access; bytes; duration_ns
  global,
  // Movable memory (docs/moving.md). Its parts are named by the address of their allocation and a number;
  // where a worker is told, too, by part_and_worker.
  /// an allocation begins, or goes on: parts of it that have one home. a: allocation; b: the first of them,
  /// and the home (no_worker: not said); other: how many, 0: it was freed; bytes: of a part
  parts,
  /// a part was given to a worker, or stayed. a: allocation; b: part, and to whom; other: from whom; bytes:
  /// that came from another host; duration_ns: since it was wanted; detail: part_result
  part,
  /// parts came from other hosts together; behind them. a: allocation; b: one of them, and to whom; other:
  /// how many; bytes; duration_ns
  moves,
  part_wait,  ///< an access waited for parts on their way. a: address, 0: of what is dirty; duration_ns
  /// accesses to a part since it came to its owner, told when it is freed or at the end. a: allocation; b:
  /// part, and a worker of the host that made most of those by others; bytes: by the owner's host; other: by
  /// others
  heat,
  /// a thread that another host would have taken, but that names the heap of this one, goes on here. a:
  /// thread. Behind it, where: as `place` or `callers`
  stay,
  // Waits for something else than the end of a thread.
  /// of the suspension before it. a: what for, as people call it (address in the program's image: "mutex")
  waits,
  /// a thread that no record wakes can go on, because of what runs here. a: thread. Behind it `callers` if it
  /// is a thread that runs here
  wake,
  /// where in the program, where that is a header that others include: who called. a, b: addresses that calls
  /// come back to, the innermost first; one or several of these events
  callers,
  /// an access to a single value of another host: one that was timed, for several like it. a: address; other:
  /// its owner; bytes: for how many; duration_ns: of this one; detail: single_access. Behind it `callers`
  access,
  // What the program calls it (include/godwit/annotate.hpp). Threads in a worker's stack region have levels:
  // a child's is one above its parent's, modulo 2^16.
  /// what runs at this level is called so. a: text (address in the program's image); b: the scope, an
  /// address; detail: the level
  name,
  name_ends,  ///< b: the scope
  /// the operating system kept what the worker ran. a: the time up to here that was looked at, in ns; b: of
  /// it; detail: system_kind; other: for kernel, page faults
  system,
  /// of the time before, spawns were looked at. a: where the last one was, 0: none; b: that time, in ns;
  /// other: how many
  spawns,
  count_
};

inline constexpr std::uint32_t no_worker = 0xff'ffff;
constexpr std::uint64_t part_and_worker(std::uint64_t part, std::uint32_t worker) noexcept {
  return part << 24 | worker;
}
constexpr std::uint64_t part_of(std::uint64_t b) noexcept { return b >> 24; }
constexpr std::uint32_t worker_of(std::uint64_t b) noexcept {
  return static_cast<std::uint32_t>(b & no_worker);
}

/// What became of a part that was to be moved.
enum class part_result : std::uint16_t {
  came,   ///< from another host
  given,  ///< to another worker of its host
  busy,   ///< stayed: in use for too long, or others moved it
  no_room
};

/// What another host was asked for.
enum class far_request : std::uint16_t { steal = 1, look };

/// Why a worker had nothing to run.
enum class idle_cause : std::uint16_t {
  no_work,    ///< its last thread ended and nobody had anything to steal
  join,       ///< its last thread waits at an outstanding join
  transport,  ///< waited for an answer from another host that brought a thread
  wait,       ///< its last thread waits for something else: another thread, time, a descriptor
};

/// What an access to a single value was.
enum class single_access : std::uint16_t { get, put, atomic };

/// How the operating system kept a thread.
enum class system_kind : std::uint16_t {
  waits,   ///< it waited in a system call
  aside,   ///< others had the CPU
  kernel,  ///< the kernel worked for it: system calls, page faults
};
inline constexpr std::size_t system_kinds = 3;

/// What the cache of global memory did.
enum class global_access : std::uint16_t {
  fetch,       ///< read from their homes
  write_back,  ///< changed ones written to their homes
  evict,       ///< a unit left to make room; contains its write-back
};

struct event {
  std::uint64_t time_ns;  ///< CLOCK_MONOTONIC of the worker's host
  std::uint64_t a;
  std::uint64_t b;
  std::uint32_t duration_ns;  ///< 0: a point in time
  std::uint32_t bytes;
  std::uint32_t other;  ///< a worker, or a line
  std::uint16_t what;   ///< kind
  std::uint16_t detail;
};
static_assert(sizeof(event) == 40);

}  // namespace godwit::trace
