// What a worker and each of its parts see of the run: its place in it, the words that it shares with others,
// and the way to them.
#pragma once

#include "base/lock.hpp"
#include "context/exceptions.hpp"
#include "sched/record.hpp"
#include "sched/words.hpp"
#include "stack/pool.hpp"
#include "trace/ring.hpp"
#include "transport/far/fabric.hpp"

#include "seams/park.hpp"
#include <godwit/options.hpp>

#include <algorithm>
#include <span>

namespace godwit::sched {

/// What src/runtime supplies.
struct worker_hooks {
  void (*exit_worker)() noexcept;  ///< everything is done: flush, report, _exit
  /// An exception left a thread whose future was dropped: nobody will see it otherwise.
  void (*unseen_error)(const detail::payload& error) noexcept;
  // What lies above the scheduler and must see threads come and go (global memory). Null: nothing does. May
  // ask other hosts.
  /// what was written so far must be visible to who acquires later
  void (*on_release)() noexcept = nullptr;
  bool (*must_release)() noexcept = nullptr;     ///< on_release would have to communicate
  void (*on_acquire)() noexcept = nullptr;       ///< a thread arrived that may know of writes elsewhere
  const detail::event_source* events = nullptr;  ///< substrate threads: what threads may wait for outside
  /// threads that were sent to memory: may this one begin here? False: it has been sent on
  /// True: what of its memory is here goes to @p data.
  bool (*may_begin)(const parcel& what, data_part& data) noexcept = nullptr;
  /// some that another host gave away (loot_kind::parcels), with the part that they were sent to: bring that,
  /// and let them arrive. False: it did not come, and they have been sent on
  bool (*take_in)(const data_part& data, std::span<const closure_line> parcels) noexcept = nullptr;
  /// complete what has been answered; true: something has not been yet
  bool (*serve)() noexcept = nullptr;
  // Several hosts, with a heap each; null otherwise.
  stack::range (*heap_in_use)() noexcept = nullptr;         ///< words that name this host's heap are there
  bool (*is_free)(std::uintptr_t word) noexcept = nullptr;  ///< names memory there that is free for sure
  void (*on_idle)() noexcept = nullptr;  ///< again and again while the worker is without work
  /// By the one worker that finds that the run is over, before the others hear of it
  void (*on_end)() noexcept = nullptr;
};

/// The hosts of a run and how workers reach each other's. Inherited by every worker.
struct job_shape {
  std::uint32_t workers = 0;
  const transport::shm::near_range* hosts = nullptr;  ///< the workers of each host; one host: [0, workers)
  std::uint32_t host_count = 1;
  std::uint32_t my_host = 0;
  const transport::shm::near_range& host_of(worker_no w) const {
    const std::span all(hosts, host_count);
    return std::ranges::upper_bound(all, transport::index(w), {}, &transport::shm::near_range::first)[-1];
  }
  // A tree of all hosts, each of which has up to most_below below it. A host's companion gets so many
  // messages at once. (Where schedules are tested there are few hosts: a chain.)
  static constexpr std::uint32_t most_below = base::has_schedule_points ? 1 : 16;
  /// f(host) for each that is directly below this one in the tree whose root is host @p root.
  template <class F>
  void each_host_below(std::uint32_t root, F&& f) const {
    const std::uint64_t me = (my_host + host_count - root) % host_count, first = me * most_below + 1;
    for (std::uint64_t i = first; i < first + most_below && i < host_count; ++i)
      f(static_cast<std::uint32_t>((root + i) % host_count));
  }
  /// Which this one is below in the tree whose root is host 0, unless it is that.
  std::uint32_t host_above() const { return (my_host - 1) / most_below; }
  const transport::shm::near_range* ranks = nullptr;  ///< the workers of each; null: there is one
  std::uint32_t rank_count = 1;
  const char* no_rank_calls = nullptr;  ///< why on_rank calls nothing in this rank; null: it does
  worker_no bell_of{};                  ///< the worker whose bell calls the companion that serves this one
  /// what threads of several hosts allocate: a part for each, side by side. Empty: each worker has its own
  stack::range hosts_heaps;
  /// The part of the host of @p w. Several hosts.
  stack::range heap_of(worker_no w) const {
    const std::uint64_t each = (hosts_heaps.high - hosts_heaps.low) / host_count;
    const std::uintptr_t low = hosts_heaps.low + static_cast<std::uint64_t>(&host_of(w) - hosts) * each;
    return {low, low + each};
  }
  bool whole_host_calls = true;   ///< a steal from another host may ask any of its workers
  bool steals_by_call = true;     ///< steal from another host by one call, else word by word
  stack::pool* stacks = nullptr;  ///< workers are threads of one process, and these their threads' stacks
  /// workers are threads of one process (then stacks too, but for child stealing)
  bool in_process = false;
  /// in_process: and they take turns on one OS thread (substrate sim), their stacks at the common address
  bool takes_turns = false;
  bool own_stacks = false;     ///< policy iso: every thread has a stack, and an address, of its own
  bool lazy_spawns = false;    ///< policy lazy: slots are filled when somebody asks for them
  bool serves_itself = false;  ///< requests of other hosts are carried out by the workers (way am)
  /// in_process: of the workers, the last so many rest until the monitor wakes them
  std::uint32_t spares = 0;
};

/// What a worker needs to know to begin.
struct worker_setup {
  transport::shm::segment* memory = nullptr;
  worker_no me{};
  std::uint32_t cpus = 0;  ///< that the workers of this host may use
  std::uint64_t seed = 0;
  const job_shape* job = nullptr;
  const options* opts = nullptr;
  worker_hooks hooks;
  trace::ring_memory* trace = nullptr;  ///< where to write events; null: nowhere
};

struct site {
  void init(const worker_setup& setup) noexcept;

  transport::shm::segment* memory = nullptr;
  worker_no me{};
  std::uint32_t workers = 0;
  transport::shm::near_range near;
  job_shape shape;
  options opts;
  worker_hooks hooks{};
  public_words* words = nullptr;         ///< common address: own words; with words_of: anybody's
  node_words* node = nullptr;            ///< this host's
  const job_words* job = nullptr;        ///< common address, in worker 0
  transport::far::words* far = nullptr;  ///< own
  mutable transport::fabric net;
  context::exception_place exceptions;  ///< of this worker's OS thread. docs/protocols/exceptions.md
  ref root = 0;                         ///< the root thread's record
  std::uintptr_t region_low = 0;        ///< where threads run that have no stack of their own
  std::uintptr_t region_high = 0;
  /// Substrate sim: while the scheduler is at work, the region is in use from here on.
  mutable std::uintptr_t used_from = 0;
  bool crowded = false;  ///< more workers than CPUs: give the CPU away while spinning
  /// what leaves its worker at every spawn
  choice::force_steal forced = choice::force_steal::none;
  bool uniform = false;                 ///< options::victims: the papers' rule
  base::lock_turn lock_turn = nullptr;  ///< another worker has the lock: it may wait for us

  /// What this worker writes into locks (base/lock.hpp).
  std::uint32_t holder() const noexcept { return base::holder_of(transport::index(me)); }
  bool one_host() const noexcept { return shape.host_count == 1; }

  // Workers of this host. Spares come last.
  std::uint32_t regular() const noexcept { return near.count - shape.spares; }
  public_words* words_of(worker_no w) const noexcept { return memory->at(w, words); }
  detail::hot_words* hot_of(worker_no w) const noexcept {
    return memory->at(w, memory->hot<detail::hot_words>());
  }
  host_words* own_host_words() const noexcept {
    return reinterpret_cast<host_words*>(memory->common() + memory->where().host);
  }
  segment_words* all_words_of(worker_no w) const noexcept {
    return memory->at(w, reinterpret_cast<segment_words*>(memory->common() + memory->where().words));
  }

  // Objects.
  bool is_near(ref r) const noexcept { return one_host() || net.is_near(transport::ref_worker(r)); }
  template <class T>
  [[gnu::always_inline]] T* at(ref r) const noexcept {  // is_near(r)
    return memory->at<T>(r);
  }
  /// The object at its home's common address: what remote operations take.
  template <class T>
  T* home(ref r) const noexcept {
    return reinterpret_cast<T*>(memory->common() + transport::ref_offset(r));
  }
  ref ref_of(const object* o) const noexcept {
    GODWIT_ASSERT(memory->owns(o, sizeof *o), "only objects of the own heap are named by their place there");
    return transport::make_ref(me, memory->offset_of(o));
  }
  /// The image of a thread; it may lie on the thread's own stack, where stacks stay.
  ref ref_of_image(const image* im) const noexcept {
    return shape.stacks != nullptr ? memory->ref_of_any(im) : ref_of(im);
  }

  /// Of the thread whose stack @p sp lies in; null where workers are processes.
  detail::thread_block* block_of(std::uintptr_t sp) const noexcept {
    return shape.stacks != nullptr ? static_cast<detail::thread_block*>(shape.stacks->block_of(sp)) : nullptr;
  }
  /// For assertions: do these describe the stack bytes of a thread, and its ancestors' frames with it?
  bool is_stack(std::uint64_t low, std::uint64_t top, std::uint64_t bytes_end) const noexcept {
    if (shape.stacks != nullptr)
      return shape.stacks->owns(low) && shape.stacks->end_of(low) == top && bytes_end == top;
    return region_low <= low && low < top && top <= bytes_end && bytes_end <= region_high;
  }

  void release_writes() const noexcept {
    if (hooks.on_release != nullptr) hooks.on_release();
  }
  void acquire_writes() const noexcept {
    if (hooks.on_acquire != nullptr) hooks.on_acquire();
  }
  /// Whatever names this stays on this host. Empty: nothing does.
  stack::range heap_in_use() const noexcept {
    return hooks.heap_in_use != nullptr ? hooks.heap_in_use() : stack::range{};
  }
  bool serve_others() const noexcept { return hooks.serve != nullptr && hooks.serve(); }
};

/// The first record of worker 0's heap is the root thread's.
inline ref root_record(const transport::shm::layout& l) noexcept {
  return transport::make_ref(worker_no{0}, l.heap);
}

}  // namespace godwit::sched
