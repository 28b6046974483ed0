// The functions of global_path.hpp: thin calls into this worker's gas::memory. And what global memory and the
// scheduler have to tell each other: neither knows the other.
#include "runtime/global.hpp"

#include <godwit/global_memory.hpp>
#include <godwit/move.hpp>
#include <godwit/sim.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include "base/check.hpp"
#include "base/world.hpp"
#include "gas/controls.hpp"
#include "gas/objects.hpp"
#include "heap/heap.hpp"

namespace godwit {

namespace runtime {

namespace {

/// An access that nobody waits for yet.
struct pending_access {
  std::uint64_t ticket;
  detail::ref record;
  std::uint32_t bytes;  ///< of the value to publish; 0: put
};

/// What one worker has.
struct workers_memory final : gas::memory {
  using gas::memory::memory;
  std::deque<pending_access> pending;
  gas::place_site places;  ///< way am: where it carries out what others ask
};

// Of a worker that is a process; where several are in one they have one each. hot_words::memory is the
// caller's.
std::optional<workers_memory> memory_;
workers_memory* own_memory() noexcept {
  return static_cast<workers_memory*>(static_cast<gas::memory*>(detail::hot().memory));
}
// Counted where run is called, before the fork, so that two runs never have the same number.
std::uint32_t run_ = 0;

/// Asynchronous accesses that have been answered: complete their records. True: some have not been.
bool serve_pending() noexcept {
  std::deque<pending_access>& pending = own_memory()->pending;
  while (!pending.empty()) {
    auto& port = own_memory()->net.port();
    const pending_access p = pending.front();
    const auto* e = port.ended(p.ticket);
    if (e == nullptr) return true;
    pending.pop_front();
    sched::this_worker().records().publish(p.record, detail::outcome::value, e->data, p.bytes);
    port.forget(p.ticket);
    own_memory()->access.acquire();
    sched::this_worker().finish(p.record);
  }
  return false;
}

/// Memory that can be had without swapping: of the machine, or of the control group if that is less.
std::uint64_t available_memory() {
  std::uint64_t best = ~std::uint64_t{0};
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  for (std::uint64_t kib; info >> key >> kib;) {
    if (key == "MemAvailable:") best = kib << 10;
    std::getline(info, unit);
  }
  std::uint64_t limit = 0, used = 0;
  std::ifstream max("/sys/fs/cgroup/memory.max"), now("/sys/fs/cgroup/memory.current");
  if (max >> limit && now >> used && limit > used) best = std::min(best, limit - used);
  return best == ~std::uint64_t{0} ? std::uint64_t{1} << 40 : best;
}

/// What happens to parts, as events of the trace.
void note_part(const gas::part_event& e) noexcept {
  using what = gas::part_event::kind;
  using trace::kind;
  static_assert(gas::part_event::no_worker == trace::no_worker);
  sched::worker& w = sched::this_worker();
  const std::uint64_t b = trace::part_and_worker(e.part, e.to);
  const auto count = static_cast<std::uint32_t>(e.count);
  const auto part = [&](trace::part_result how) {
    w.note_parts(kind::part, e.since_ns, e.allocation, b, e.bytes, e.from, static_cast<std::uint16_t>(how));
  };
  switch (e.what) {
    case what::allocated:
    case what::freed:
      return w.note_parts(kind::parts, 0, e.allocation, b, e.bytes, count);
    case what::used:
      return w.note_parts(kind::heat, 0, e.allocation, b, e.near, count);
    case what::came:
      return part(trace::part_result::came);
    case what::given:
      return part(trace::part_result::given);
    case what::busy:
      return part(trace::part_result::busy);
    case what::no_room:
      return part(trace::part_result::no_room);
    case what::moved:
      return w.note_parts(kind::moves, e.since_ns, e.allocation, b, e.bytes, count);
    case what::waited:
      return w.note_parts(kind::part_wait, e.since_ns, e.allocation);
  }
}

/// What single accesses to other hosts cost, likewise.
void note_access(const gas::access_event& e) noexcept {
  using from = gas::access_event::kind;
  static_assert(static_cast<int>(from::atomic) == static_cast<int>(trace::single_access::atomic));
  sched::this_worker().note_access(static_cast<trace::single_access>(e.what), e.since_ns, e.at, e.owner,
                                   e.count, e.frame);
}

/// For an access to what begins at @p at.
gas::memory& memory_at(detail::global_address at, const char* what) {
  gas::memory& memory = memory_of(what);
  memory.before_access(at);
  if (detail::simulated) [[unlikely]] {  // in its turn; and who looks again and again lets time pass
    base::made_world->spend(base::step::access);
    base::made_world->catch_up();
  }
  return memory;
}

}  // namespace

gas::memory& memory_of(const char* what) {
  gas::memory* memory = own_memory();
  if (memory == nullptr) [[unlikely]]
    base::fatal("%s was called outside godwit::run: global memory exists only inside one", what);
  return *memory;
}

const gas::descriptor& movable_range(gas::memory& m, gas::global_address at, std::uint64_t bytes,
                                     const char* doing) {
  const gas::descriptor* d = m.directory.find_movable(at);
  if (d == nullptr) {
    m.directory.each_piece(at, bytes, [](const gas::piece&) {});
    throw std::invalid_argument("godwit: " + std::string(doing) +
                                ": memory that is not movable: allocate it with distribution::movable");
  }
  const gas::global_address end = m.directory.begin_of(*d) + d->bytes;
  if (const std::uint64_t rest = end - std::min(at, end); bytes > rest)
    throw std::invalid_argument("godwit: " + std::string(doing) + ": " + std::to_string(bytes) +
                                " bytes, where the allocation has " + std::to_string(rest));
  return *d;
}
namespace {
/// Of a host, but its translations, which lie behind them.
std::uint64_t words_bytes(std::uint32_t workers) noexcept {
  return sizeof(gas::host_words) + std::uint64_t{workers} * sizeof(gas::home_words);
}
gas::translation_setup translations_of(const options& opts, std::byte* window,
                                       std::uint32_t workers) noexcept {
  const bool shared = opts.translations != 0 && opts.translations_lock != choice::translations_lock::none;
  return {opts.translations, opts.translations_replace, opts.translations_lock,
          shared ? window + gas::space::words_low + words_bytes(workers) : nullptr};
}
}  // namespace

std::uint64_t choose_global_bytes(const options& opts) noexcept {
  if (opts.global_bytes != options().global_bytes) return opts.global_bytes;
  const std::uint64_t most = transport::shm::window::largest(opts.global_bytes);
  return most != 0 ? most : opts.global_bytes;  // then making it says why not
}

gas::space plan_global(const options& opts, std::uint64_t bytes, std::uint32_t workers) {
  ++run_;
  std::uint64_t words = words_bytes(workers);
  if (opts.translations_lock != choice::translations_lock::none)
    words += gas::translation_table::bytes_of(opts.translations);
  const std::uint64_t units = gas::cache::table_bytes(gas::cache::units_of(opts.cache_bytes));
  const gas::space s = gas::plan_space(bytes, workers, words, units, sizeof(gas::descriptor));
  if (s.homes == 0)
    throw std::invalid_argument("godwit: " + std::to_string(bytes >> 20) +
                                " MiB of addresses for global memory are too few for " +
                                std::to_string(workers) +
                                " workers and the tables: raise --godwit-global-bytes (GODWIT_GLOBAL_BYTES)");
  return s;
}

void prepare_global(std::byte* window, const options& opts, std::uint32_t hosts) {
  auto* words = reinterpret_cast<gas::host_words*>(window + gas::space::words_low);
  words->limit_bytes.store(opts.global_limit != 0 ? opts.global_limit : available_memory() / 10 * 9 / hosts,
                           std::memory_order_relaxed);
  words->epoch.store(1, std::memory_order_relaxed);
}

const transport::word* life_of(std::byte* window) noexcept {
  return &reinterpret_cast<gas::host_words*>(window + gas::space::words_low)->life;
}

bool tells_heat(const options& opts) noexcept {
  return opts.stats || !opts.stats_json.empty() || !opts.trace.empty();
}

gas::heat_sums heat_of(std::byte* window) noexcept {
  return gas::heat_sums::of(*reinterpret_cast<gas::host_words*>(window + gas::space::words_low));
}

gas::place_site places_of(const transport::shm::segment& memory, std::byte* window, const gas::space& where,
                          const options& opts) noexcept {
  return gas::site_of_host(memory, window, where, gas::cache::units_of(opts.cache_bytes));
}

void start_global(std::byte* window, const gas::space& where, const options& opts,
                  const sched::job_shape& job) {
  sched::worker& w = sched::this_worker();
  if (!job.takes_turns) transport::shm::window::forbid(window, gas::space::null_bytes);
  bool check = opts.check_global == choice::check_global::on;
#ifndef NDEBUG
  check = check || opts.check_global == choice::check_global::automatic;
#endif
  const gas::reach_setup reach{&w.here().net,
                               window,
                               transport::index(w.here().me),
                               job.workers,
                               job.hosts,
                               job.host_count,
                               job.my_host,
                               &w.here().words->stats,
                               opts.trace.empty() ? nullptr : note_part,
                               tells_heat(opts),
                               nullptr,
                               opts.directory,
                               opts.trace.empty() ? nullptr : note_access};
  gas::cache_setup copies{reinterpret_cast<gas::unit*>(window + where.units_low),
                          gas::cache::units_of(opts.cache_bytes), &w.here().words->stats, nullptr};
  static_assert(static_cast<int>(gas::cache_event::evict) == static_cast<int>(trace::global_access::evict));
  if (!opts.trace.empty())
    copies.note = [](gas::cache_event what, std::uint64_t since_ns, std::uint64_t bytes) noexcept {
      sched::this_worker().note_global(static_cast<trace::global_access>(what), since_ns, bytes);
    };
  const bool force = opts.force_move != choice::force_move::none;
  const gas::translation_setup known = translations_of(opts, window, job.workers);
  workers_memory* memory = job.in_process
                               ? new workers_memory(reach, where, check, force, opts.rebalance, copies, known)
                               : &memory_.emplace(reach, where, check, force, opts.rebalance, copies, known);
  if (job.serves_itself) {
    memory->places = places_of(*w.here().memory, window, where, opts);
    gas::enter_calls(w.calls(), memory->places);
    gas::enter_object_calls(w.calls(), memory->places);
    gas::enter_control_calls(w.calls(), memory->places);
  }
  detail::hot().memory = static_cast<gas::memory*>(memory);
  detail::hot().run = run_;
  detail::hot().global_base = window;
  detail::hot().checkouts = 0;
  const bool plain = job.host_count == 1 && !memory->checks.on() && !job.takes_turns;
  detail::hot().global_plain = plain ? 1 : 0;
  detail::hot().objects = plain ? &memory->allocator.objects() : &detail::no_objects;
}

void end_global() noexcept {
  workers_memory* memory = own_memory();
  if (memory == nullptr) return;
  memory->begun.free_spare();
#ifndef NDEBUG
  if (sched::this_worker().here().node->failed.load(std::memory_order_acquire) == 0)
    memory->check_invariants();
#endif
  if (memory->checks.on())
    if (const std::string text = memory->allocator.leaks(); !text.empty())
      std::fprintf(stderr, "%s\n", text.c_str());
  if (memory_) return;  // the process ends
  detail::hot().memory = nullptr;
  detail::hot().objects = &detail::no_objects;
  delete memory;
}

void hook_global(sched::worker_hooks& hooks, const options& opts) noexcept {
  hooks.on_release = []() noexcept { own_memory()->access.release(); };
  hooks.must_release = []() noexcept { return own_memory()->access.must_release(); };
  hooks.on_acquire = []() noexcept { own_memory()->access.acquire(); };
  hooks.serve = serve_pending;
  if (tells_heat(opts)) hooks.on_end = []() noexcept { own_memory()->note_heat_of_rest(); };
  if (opts.rebalance)
    hooks.on_idle = []() noexcept {
      heap::tidy();  // if there is one
      own_memory()->balance.look();
    };
}

}  // namespace runtime

global_usage global_memory_usage() noexcept {
  global_usage u{0, 0};
  if (auto* m = runtime::own_memory()) m->allocator.usage(u.used_bytes, u.limit_bytes);
  return u;
}

namespace detail {

using runtime::memory_at;
using runtime::memory_of;
using runtime::ordinary;

global_address global_allocate(std::uint64_t bytes, std::uint64_t alignment, const spread& how, place where) {
  return memory_of("allocate").allocator.allocate(bytes, alignment, how, where);
}
global_address global_allocate_local(std::uint64_t bytes, std::uint64_t alignment, place where) {
  return memory_of("allocate").allocator.allocate_local(bytes, alignment, where);
}
global_address global_reserve(std::uint64_t bytes) { return memory_of("map_file").allocator.reserve(bytes); }
void global_free(global_address at, std::uint64_t bytes, place where) {
  gas::memory* m = runtime::own_memory();
  if (m == nullptr) return;  // the run is over, and its memory with it
  m->free(at, bytes, where);
}
void global_populate(global_address at, std::uint64_t bytes) noexcept {
  memory_of("allocate").access.populate(at, bytes);
}
void global_get(global_address from, void* to, std::size_t bytes) {
  if (const std::byte* at = ordinary(from)) return static_cast<void>(std::memcpy(to, at, bytes));
  memory_at(from, "get").access.get(from, to, bytes);
}
void global_put(global_address to, const void* from, std::size_t bytes) {
  if (std::byte* at = ordinary(to)) return static_cast<void>(std::memcpy(at, from, bytes));
  memory_at(to, "put").access.put(to, from, bytes);
}
void global_copy(global_address to, global_address from, std::uint64_t bytes) {
  if (std::byte* at = ordinary(to)) return global_get(from, at, bytes);
  if (const std::byte* at = ordinary(from)) return global_put(to, at, bytes);
  memory_at(to, "copy").access.copy(to, from, bytes);
}
std::uint64_t global_atomic(atomic_op what, global_address at, unsigned width, std::uint64_t operand,
                            std::uint64_t expected, bool relaxed) {
  return memory_at(at, "an atomic").access.atomic(what, at, width, operand, expected, relaxed);
}
void global_fence() noexcept { memory_of("fence").access.fence(); }
void global_gather(const global_piece* pieces, std::size_t count) {
  memory_of("gather").access.gather(pieces, count);
}
void global_scatter(const global_piece* pieces, std::size_t count) {
  memory_of("scatter").access.scatter(pieces, count);
}

namespace {
/// Near or in several parts: at once. Else a request that is answered some time.
ref begin_access(bool write, global_address at, std::byte* bytes, std::size_t n) {
  gas::memory& m = memory_at(at, "an asynchronous access");
  sched::worker& w = sched::this_worker();
  if (write && n != 0) m.access.refuse_frozen(at, {});
  std::uint32_t owner = 0;
  const bool one_far = m.access.single_far_owner(at, n, owner);
  if (!one_far) {
    if (write)
      m.access.put(at, bytes, n);
    else
      m.access.get(at, bytes, n);
    return w.records().make_completed(outcome::value, bytes, write ? 0 : n);
  }
  const base::unexposed inside;
  while (runtime::own_memory()->pending.size() >= transport::far::port::most_tickets) {
    m.net.port().await(runtime::own_memory()->pending.front().ticket);
    runtime::serve_pending();
  }
  using transport::far::op;
  if (write) m.access.forget_copies(at, n);
  const ref record = w.records().make();
  const std::uint64_t ticket =
      m.net.port().begin(write ? op::put : op::get, transport::worker_no{owner}, m.net.at(at), bytes, n);
  runtime::own_memory()->pending.push_back({ticket, record, write ? 0 : static_cast<std::uint32_t>(n)});
  return record;
}
}  // namespace

ref global_get_begin(global_address from, std::size_t bytes) {
  std::byte room[transport::far::inline_bytes];
  return begin_access(false, from, room, bytes);
}
ref global_put_begin(global_address to, const void* from, std::size_t bytes) {
  return begin_access(true, to, const_cast<std::byte*>(static_cast<const std::byte*>(from)), bytes);
}

opened global_checkout(global_address at, std::uint64_t bytes, access_mode mode, place where) {
  if (std::byte* here = ordinary(at)) {
    ++hot().checkouts;
    return {here, opened::ordinary};
  }
  return memory_at(at, "checkout").access.checkout(at, bytes, mode, where);
}
void global_checkin(std::uint64_t ticket, std::uint64_t bytes, access_mode mode) noexcept {
  if (ticket == opened::ordinary) [[unlikely]]
    --hot().checkouts;
  else if (auto* m = runtime::own_memory())
    m->access.checkin(ticket, bytes, mode);
}
void* global_checkout_begin(global_address at, std::uint64_t bytes, access_mode mode) {
  return memory_at(at, "checkout_begin").begun.begin(at, bytes, mode);
}
opened global_checkout_complete(void* begun, place where) {
  auto* const b = static_cast<gas::begun_checkout*>(begun);
  return memory_at(b->at, "checkout_begin").begun.complete(b, where);
}
void global_checkout_abandon(void* begun) noexcept {
  if (auto* m = runtime::own_memory()) m->begun.abandon(static_cast<gas::begun_checkout*>(begun));
}
std::byte* global_try_local(global_address at, std::uint64_t bytes) noexcept {
  return memory_of("try_local").access.try_local(at, bytes);
}
std::uint32_t global_home(global_address at) {
  return ordinary(at) != nullptr ? hot().worker : memory_of("home_of").directory.home(at);
}
std::uint64_t global_home_piece(global_address at, std::uint64_t bytes, std::uint32_t& home) {
  const gas::piece p = memory_of("home_of").directory.first_piece(at, bytes);
  home = p.words != nullptr ? p.home : p.owner;
  return p.bytes;
}
bool global_is_movable(global_address at) {
  return memory_of("owner_of").directory.find_movable(at) != nullptr;
}
void global_pause() noexcept {
  if (auto* m = runtime::own_memory(); m != nullptr && m->net.several_hosts()) {
    const base::unexposed inside;
    m->net.port().idle();
  }
  base::give_way();
}
std::uint32_t global_owner(global_address at) { return memory_of("owner_of").access.owner(at); }
std::uint32_t global_likely_owner(global_address at) {
  return memory_of("likely_owner_of").access.likely_owner(at);
}

bool global_freeze(global_address at, bool freeze, place where) {
  const char* const doing = freeze ? "freeze" : "thaw";
  if (open_checkouts() != 0) checkout_held(doing, where.file, where.line);
  gas::memory& m = memory_of(doing);
  gas::descriptor* d = m.directory.find(at);
  if (d == nullptr) {
    static_cast<void>(m.directory.first_piece(at, 1));  // local memory, or none
    return false;
  }
  m.access.release();  // what this host has written is home
  if (freeze)
    m.directory.freeze(*d);
  else
    m.directory.thaw(*d);
  return true;
}

namespace {
/// The call of a letter that asks a worker of another host to pull.
struct pull_request {
  global_address at;
  std::uint64_t bytes;
  std::uint32_t to;
  ref record;
  static void carry_out(const void* closure) {
    const auto& r = *static_cast<const pull_request*>(closure);
    const move_result result = memory_of("move").mover.pull(r.at, r.bytes, r.to);
    sched::this_worker().records().publish(r.record, outcome::value, &result, sizeof result);
  }
};
}  // namespace

ref global_move(global_address at, std::uint64_t bytes, std::uint32_t worker, place where) {
  if (open_checkouts() != 0) checkout_held("move", where.file, where.line);
  gas::memory& m = memory_of("move");
  if (worker >= hot_workers())
    throw std::invalid_argument("godwit: move: there is no worker " + std::to_string(worker) +
                                ": the run has " + std::to_string(hot_workers()));
  static_cast<void>(runtime::movable_range(m, at, bytes, "move"));
  sched::worker& w = sched::this_worker();
  if (m.net.is_near(worker) || bytes == 0) {
    const move_result result = bytes == 0 ? move_result::already_there : m.mover.pull(at, bytes, worker);
    return w.records().make_completed(outcome::value, &result, sizeof result);
  }
  const ref record = w.records().make();
  const pull_request request{at, bytes, worker, record};
  w.send(transport::worker_no{worker}, record, pull_request::carry_out, &request, sizeof request);
  return record;
}

}  // namespace detail
}  // namespace godwit
