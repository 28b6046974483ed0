// See each_worker.hpp.
#include "sched/each_worker.hpp"

#include <algorithm>
#include <span>

#include "sched/worker.hpp"

namespace godwit::sched {

namespace {

using transport::index;

/// A worker sends so many letters at most within its host: they lie in its heap.
constexpr std::uint32_t most_parts = 64;
/// A bit of what is above a tally: a record, to be completed. Objects begin at multiples of 64 bytes.
constexpr ref is_record = 1;

/// In front of the closure. Who gets it calls, and hands on to its part.
struct alignas(64) errand {
  void (*call)(const void*);
  std::uint64_t bytes;      ///< of the closure
  ref tally;                ///< of who sent it
  std::uint32_t near;       ///< so many workers of this host, from the one that gets it on, cyclically
  std::uint32_t from_host;  ///< the root of the tree of hosts
  bool hosts;               ///< the hosts below this one, too
};

/// A part is done: go on with what is above it.
void go_on(ref above) noexcept {
  this_worker().here().release_writes();  // EW2: what was written so far, then the count
  while (above != 0) {
    if ((above & is_record) != 0) return this_worker().finish(above - is_record);
    const ref tally = above;
    above = this_worker().records().count_off(tally);
    const base::unexposed inside;
    if (above != 0) this_worker().records().free(tally);
  }
}

/// The function of @p e. A spawn or a wait in it is found out: frames of this file could be stolen then, or
/// those of a worker without a thread.
void call_here(const errand& e, const std::byte* closure) noexcept {
  const base::unexposed inside;  // also where spawns are looked for by signal
  detail::hot_words& hot = detail::hot();
  hot.checkouts += detail::in_call;
  hot.poll.store(1, std::memory_order_relaxed);  // a spawn is looked at
  e.call(closure);
  hot.checkouts -= detail::in_call;
}

void receive(const void* letter) noexcept;

void send(worker_no to, errand e, const std::byte* closure) noexcept {
  this_worker().send(to, 0, receive, std::as_bytes(std::span(&e, 1)), {closure, e.bytes});
}

/// Hand @p e on to all of its part but this worker, then call. @p above: what is to go on when all have.
void carry_out(errand e, const std::byte* closure, ref above) noexcept {
  worker& me = this_worker();
  const site& here = me.here();
  const std::uint32_t others = e.near - 1, parts = std::min(others, most_parts);
  std::uint32_t below = 0;
  if (e.hosts) here.shape.each_host_below(e.from_host, [&](std::uint32_t) { ++below; });
  if (parts + below == 0) {
    call_here(e, closure);
    return go_on(above);
  }
  e.tally = me.records().make_tally(std::uint64_t{parts} + below + 1, above);  // EW1: all, before any is sent
  if (e.hosts)
    here.shape.each_host_below(e.from_host, [&](std::uint32_t host) {
      errand to_host = e;
      to_host.near = here.shape.hosts[host].count;
      send(worker_no{here.shape.hosts[host].first}, to_host, closure);
    });
  e.hosts = false;
  const std::uint32_t all = here.regular(), me_here = index(here.me) - here.near.first;
  const std::uint32_t before_first = me_here < all ? me_here : all - 1;  // a spare is behind them
  for (std::uint32_t i = 0, next = 1; i < parts; ++i) {
    const std::uint32_t end = 1 + static_cast<std::uint32_t>(std::uint64_t{others} * (i + 1) / parts);
    e.near = end - next;
    send(worker_no{here.near.first + (before_first + next) % all}, e, closure);
    next = end;
  }
  call_here(e, closure);
  go_on(e.tally);
}

void receive(const void* letter) noexcept {
  const auto& e = *static_cast<const errand*>(letter);  // EW1: its tally waits for this part
  carry_out(e, reinterpret_cast<const std::byte*>(&e + 1), e.tally);
}

}  // namespace

ref call_on_each_worker(void (*call)(const void*), const void* closure, std::size_t bytes) noexcept {
  worker& me = this_worker();
  const ref done = me.records().make();
  const site& here = me.here();
  const bool is_spare = index(here.me) - here.near.first >= here.regular();
  const std::uint32_t near = here.regular() + (is_spare ? 1 : 0);
  carry_out({call, bytes, 0, near, here.shape.my_host, !here.one_host()},
            static_cast<const std::byte*>(closure), done | is_record);
  return done;
}

}  // namespace godwit::sched
