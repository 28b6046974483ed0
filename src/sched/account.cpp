// See account.hpp.
#include "sched/account.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/code_place.hpp"
#include "base/unexposed.hpp"
#include "context/exceptions.hpp"

namespace godwit::sched {

using trace::idle_cause;
using trace::kind;

namespace {
constexpr std::uint64_t longest = ~std::uint32_t{0};  // of event::duration_ns
}

void account::init(worker_stats& stats, trace::ring_memory* events, bool new_thread) noexcept {
  stats_ = &stats;
  events_.init(events);
  started_ns_ = base::fast_ns();
  cpu_then_ns_ = base::system_time_of_caller().cpu_ns;
  if (!new_thread) aside_then_ns_ = base::put_aside_ns();
}

void account::note(kind what, std::uint64_t now, std::uint64_t a, std::uint64_t b, std::uint64_t duration,
                   std::uint64_t bytes, std::uint32_t other, std::uint16_t detail) noexcept {
  if (what == kind::end || what == kind::suspend) {
    note_system(now);
    if (spawns_.on()) note_spawns(now);
  }
  events_.emit({now, a, b, static_cast<std::uint32_t>(std::min(duration, longest)),
                static_cast<std::uint32_t>(std::min(bytes, longest)), other, static_cast<std::uint16_t>(what),
                detail});
}

void account::note_system(std::uint64_t now) noexcept {
  const system_use::interval all = system_.end(now);
  constexpr std::uint64_t least_ns = 1000;
  for (std::uint16_t i = 0; i < all.of_it.size(); ++i) {
    const bool kernel = i == static_cast<std::uint16_t>(trace::system_kind::kernel);
    const auto faults = static_cast<std::uint32_t>(kernel ? std::min(all.faults, longest) : 0);
    if (all.of_it[i] >= least_ns || faults != 0)
      note(kind::system, now, all.ns, all.of_it[i], 0, 0, faults, i);
  }
}

void account::sample_spawns(std::uint64_t now) noexcept {
  if (spawns_.begin(now)) context::look_at_spawns();
}

void account::note_spawn(std::uintptr_t where) noexcept {
  const base::unexposed inside;  // the caller is a thread, and the signal's handler may write an event, too
  if (spawns_.spawned(where))
    note_spawns(base::fast_ns());
  else
    context::look_at_spawns();
}

void account::note_spawns(std::uint64_t now) noexcept {
  spawns_.end();
  note(kind::spawns, now, spawns_.where(), now - std::min(now, spawns_.since_ns()), 0, 0, spawns_.count());
}

void account::waits_at(const detail::place& where, std::uintptr_t end) noexcept {
  callers_ = {};
  if (where.line == 0 || base::in_library_header(where.file)) callers_ = base::callers_of(&where, end);
}

void account::note_wait(std::uint64_t now, const char* what, const detail::place& where) noexcept {
  if (what != nullptr) note(kind::waits, now, reinterpret_cast<std::uintptr_t>(what));
  if (callers_.code[0] == 0) note_place(now, where);
  note_callers(now, callers_);
  callers_ = {};
}

void account::note_place(std::uint64_t now, const detail::place& where) noexcept {
  const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  note(kind::place, now, address(where.file), address(where.function), 0, 0, where.line);
}

void account::note_callers(std::uint64_t now, const base::callers& who) noexcept {
  for (std::size_t i = 0; i < who.code.size() && who.code[i] != 0; i += 2)
    note(kind::callers, now, who.code[i], who.code[i + 1]);
}

void account::begin_idle(idle_cause cause) noexcept {
  idle_from_ns_ = base::fast_ns();
  idle_transport_ns_ = 0;
  idle_cause_ = cause;
}

/// What time without a thread counts as.
std::uint64_t& account::idle_of(worker_stats& stats) const noexcept {
  return idle_cause_ == idle_cause::join   ? stats.idle_join_ns
         : idle_cause_ == idle_cause::wait ? stats.idle_wait_ns
                                           : stats.idle_no_work_ns;
}

worker_stats account::as_of(std::uint64_t now) const noexcept {
  if (stats_ == nullptr) return {};
  worker_stats stats = *stats_;
  if (stats.life_ns != 0) return stats;  // it has ended
  stats.life_ns = now - started_ns_;
  idle_of(stats) += idle_ns(now);
  return stats;
}

/// For so long it has had no thread.
std::uint64_t account::idle_ns(std::uint64_t now) const noexcept {
  const std::uint64_t from = __atomic_load_n(&idle_from_ns_, __ATOMIC_RELAXED);
  return from < now ? now - from : 0;
}

std::vector<trace::event> account::idle_until(std::uint64_t now) const {
  std::vector<trace::event> pieces;
  for (std::uint64_t left = idle_ns(now); left != 0;) {
    const std::uint64_t piece = std::min(left, longest);
    left -= piece;
    pieces.push_back({now - left, 0, 0, static_cast<std::uint32_t>(piece), 0, 0,
                      static_cast<std::uint16_t>(kind::idle), static_cast<std::uint16_t>(idle_cause_)});
  }
  return pieces;
}

void account::end_idle(std::uint64_t now) noexcept {
  if (!is_idle()) return;
  const std::uint64_t all = now - idle_from_ns_;
  const std::uint64_t transport = std::min(idle_transport_ns_, all);
  idle_of(*stats_) += all - transport;
  stats_->idle_transport_ns += transport;
  if (traced()) {
    // Where most of the time waited for another host, say so: the pieces are far_call events.
    const auto cause = static_cast<std::uint16_t>(transport > all / 2 ? idle_cause::transport : idle_cause_);
    for (std::uint64_t from = idle_from_ns_; from < now; from += longest) {
      const std::uint64_t to = std::min(now, from + longest);
      note(kind::idle, to, 0, 0, to - from, 0, 0, cause);
    }
    system_.begin(now, all);
    sample_spawns(now);
  }
  idle_from_ns_ = has_thread;
}

std::uint64_t account::count_transport(std::uint64_t since, worker_no target, trace::far_request what,
                                       bool brought) noexcept {
  const std::uint64_t now = base::fast_ns();
  if (brought && is_idle()) idle_transport_ns_ += now - since;
  if (traced())
    note(kind::far_call, now, 0, 0, now - since, 0, transport::index(target),
         static_cast<std::uint16_t>(what));
  return now;
}

void account::count_outstanding(std::uint64_t ready_ns, std::uint64_t now) noexcept {
  if (ready_ns == 0) return;
  ++stats_->outstanding_resumed;
  stats_->outstanding_ns += now > ready_ns ? now - ready_ns : 0;
}

void account::finish() noexcept {
  const std::uint64_t now = base::fast_ns();
  end_idle(now);
  stats_->life_ns = now - started_ns_;
  stats_->cpu_ns = base::system_time_of_caller().cpu_ns - cpu_then_ns_;
  // a new thread may have waited for its first turn, before this life
  const std::uint64_t off = stats_->life_ns - std::min(stats_->life_ns, stats_->cpu_ns);
  stats_->aside_ns = std::min(base::put_aside_ns() - aside_then_ns_, off);
}

}  // namespace godwit::sched
