// See far_thief.hpp.
#include "sched/far_thief.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "context/context.hpp"
#include "sched/deque.hpp"
#include "sched/frames.hpp"
#include "sched/lazy_spawns.hpp"

namespace godwit::sched {

using transport::far::entry;

namespace {
// A look in vain asks the victim to make its work public at its next spawn, so a second look follows soon,
// unless all workers there are idle. Then pairs of looks with pauses that double.
constexpr std::uint64_t first_pause_ns = 20'000;
constexpr std::uint64_t longest_pause_ns = 2'000'000;
constexpr std::uint64_t turn_pause_ns = 10'000;  // while another worker of this host looks; doubles, too
std::uint64_t pause_after(std::uint32_t failures) noexcept {
  if (failures % 2 == 1) return first_pause_ns;
  return std::min(first_pause_ns << std::min(failures / 2, 10u), longest_pause_ns);
}
/// Quarters of octaves of microseconds, without floating point.
void count_far_steal(worker_stats& stats, std::uint64_t ns) noexcept {
  ++stats.far_steals;
  stats.far_steal_ns += ns;
  std::uint32_t bucket = 0;
  std::uint64_t limit = 1000;  // the upper end of the bucket before
  for (; bucket + 1 < std::size(stats.far_steal_times) && ns >= limit + limit * 189 / 1000; ++bucket)
    limit += limit * 189 / 1000;
  ++stats.far_steal_times[bucket];
}
constexpr std::uint64_t urgent_after_ns = 200'000, urgent_every_ns = 50'000;

}  // namespace

/// A worker of another host, each as likely as any; but first the one where work was seen, and, unless
/// victims=uniform, the one that has been asked to make work public.
worker_no far_thief::victim() noexcept {
  if (hint_ != nobody) return last_ = std::exchange(hint_, nobody);
  if (!here_.uniform) {
    if (failures_ % 2 == 1) return last_;
    if (std::exchange(starts_, false) && here_.shape.my_host != 0)
      return last_ = worker_no{here_.shape.hosts[here_.shape.host_above()].first};
  }
  std::uint32_t v = random_.below(here_.workers - here_.near.count);
  if (v >= here_.near.first) v += here_.near.count;
  return last_ = worker_no{v};
}

/// Of a look: all workers of the victim's host, or that one; and which threads.
std::uint64_t far_thief::scope() const noexcept {
  const bool with_data = here_.opts.rebalance && here_.hooks.take_in != nullptr;
  return (here_.shape.whole_host_calls && !here_.uniform ? call_scope::whole_host : 0) |
         (with_data ? call_scope::with_data : 0);
}

void far_thief::may_have_more(worker_no victim) noexcept {
  if (!here_.uniform) hint_ = victim;
}

void far_thief::in_vain(bool all_idle) noexcept {
  failures_ += all_idle && failures_ % 2 == 0 ? 2 : 1;
  came_back_ = 0;
  next_ns_ = base::fast_ns() + pause_after(failures_);
}

/// What names its host's heap makes way at its worker's next spawn: for a look or two.
void far_thief::come_back(worker_no victim) noexcept {
  constexpr std::uint32_t most = 3;
  if (++came_back_ > most) return in_vain(false);
  hint_ = victim;
  next_ns_ = base::fast_ns() + first_pause_ns;
}

void far_thief::refused() noexcept {
  next_ns_ = base::fast_ns() + std::min(turn_pause_ns << std::min(refusals_++, 10u), longest_pause_ns);
}

/// The right to look at another host, while it lives. Who does not get it pauses.
class far_thief::turn {
 public:
  explicit turn(far_thief& of) noexcept
      : looks_(of.here_.shape.whole_host_calls && !of.here_.uniform ? &of.here_.node->looks_far : nullptr) {
    mine_ = looks_ == nullptr || (looks_->load(std::memory_order_relaxed) == 0 &&
                                  looks_->exchange(1, std::memory_order_acquire) == 0);
    if (mine_)
      of.refusals_ = 0;
    else
      of.refused();
  }
  ~turn() {
    if (looks_ != nullptr && mine_) looks_->store(0, std::memory_order_release);
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  bool is_mine() const noexcept { return mine_; }

 private:
  word* const looks_;
  bool mine_;
};

void far_thief::thread_left() noexcept { next_ns_ = base::fast_ns() + first_pause_ns; }

far_catch far_thief::look() noexcept {
  if (here_.uniform) return steal_from(victim());
  if ((!has_seen_work() || came_back_ != 0) && next_ns_ != 0 && base::fast_ns() < next_ns_) return {};
  const turn our_look(*this);
  if (!our_look.is_mine()) return {};
  const far_catch got = steal_from(victim());
  if (got.kind == loot_kind::later)
    come_back(got.victim);
  else if (!is_anything(got.kind))
    in_vain(got.kind == loot_kind::all_idle);
  return got;
}

bool far_thief::sees_work(std::uint64_t idle_since_ns) noexcept {
  const std::uint64_t now = base::fast_ns();
  if (now < next_ns_) return false;
  const turn our_look(*this);
  if (!our_look.is_mine()) return false;
  const worker_no v = victim();
  const bool urgent = here_.opts.expose_signal && idle_since_ns != 0 &&
                      now - idle_since_ns > urgent_after_ns && now - last_urgent_ns_ > urgent_every_ns;
  if (urgent) last_urgent_ns_ = now;
  bool found = false, all_idle = false;
  if (!here_.shape.steals_by_call && !urgent) {
    const seen_words seen = look_by_words(v);
    found = seen.fork || seen.ready;
  } else {
    const entry& e = here_.net.far().call(v, call_no::look, scope() | (urgent ? call_scope::urgent : 0), 0);
    found = e.head.result == static_cast<std::uint64_t>(sight::work);
    all_idle = e.head.result == static_cast<std::uint64_t>(sight::all_idle);
  }
  ++here_.words->stats.far_looks;
  account_.count_transport(now, v, trace::far_request::look, found);
  if (found) {
    hint_ = v;
    next_ns_ = 0;
    return true;
  }
  if (!here_.uniform) in_vain(all_idle);
  return false;
}

namespace {
/// The fabric with a stop watch: which step of steal() a request belongs to is known by its kind.
struct watched {
  const transport::fabric& net;
  std::uint64_t* step;  ///< of the current step

  template <class F>
  auto timed(std::uint64_t& sum, F&& f) const {
    struct stop {
      std::uint64_t& sum;
      std::uint64_t start = base::fast_ns();
      ~stop() { sum += base::fast_ns() - start; }
    } watch{sum};
    return f();
  }
  enum { check, lock, entry, stack, unlock };
  mutable bool locked = false;

  std::uint64_t remote_load(worker_no w, const word* p, std::memory_order o) const {
    return timed(step[entry], [&] { return net.remote_load(w, p, o); });
  }
  transport::word_pair_value remote_load_pair(worker_no w, const word* p) const {
    return timed(step[locked ? entry : check], [&] { return net.remote_load_pair(w, p); });
  }
  void remote_store(worker_no w, const word* p, std::uint64_t v, std::memory_order o) const {
    timed(step[o == std::memory_order_release ? unlock : entry], [&] { net.remote_store(w, p, v, o); });
  }
  std::uint64_t remote_exchange(worker_no w, const word* p, std::uint64_t v) const {
    return net.remote_exchange(w, p, v);
  }
  bool remote_compare_exchange(worker_no w, const word* p, std::uint64_t& e, std::uint64_t v) const {
    locked = true;
    return timed(step[lock], [&] { return net.remote_compare_exchange(w, p, e, v); });
  }
  std::uint64_t remote_fetch_add(worker_no w, const word* p, std::uint64_t v) const {
    return net.remote_fetch_add(w, p, v);
  }
  void remote_get(worker_no w, void* to, const void* from, std::size_t n) const {
    timed(step[n == 2 * sizeof(spawn_slot) ? entry : stack], [&] { net.remote_get(w, to, from, n); });
  }
  void remote_put(worker_no w, void* to, const void* from, std::size_t n) const {
    net.remote_put(w, to, from, n);
  }
  void remote_fence() const { net.remote_fence(); }
};
static_assert(transport::one_sided<watched>);
}  // namespace

far_thief::seen_words far_thief::look_by_words(worker_no victim) noexcept {
  const public_words& theirs = *here_.words;  // the same place in each worker's memory
  // The deque's line and the queue's: a guess, whatever they say together.
  constexpr std::size_t split = 0,
                        top = (offsetof(public_words, top) - offsetof(public_words, split)) / sizeof(word),
                        ready = (offsetof(public_words, ready_count) - offsetof(public_words, split)) /
                                sizeof(word);
  static_assert(ready == 8, "neighbouring lines");
  std::uint64_t seen[ready + 1];
  here_.net.remote_get(victim, seen, &theirs.split, sizeof seen);
  const seen_words found{seen[top] < seen[split], seen[ready] != 0};
  if (!found.fork && !found.ready) ask_by_words(victim);
  return found;
}

void far_thief::ask_by_words(worker_no victim) noexcept {
  constexpr std::uint32_t yes = 1;
  auto* hot = here_.memory->hot<detail::hot_words>();
  here_.net.remote_put(victim, &hot->poll, &yes, sizeof yes);
}

/// The papers' steal, one-sided operation by operation (Uni-address threads, figure 6).
far_catch far_thief::steal_by_words(worker_no victim, std::uint64_t since) noexcept {
  std::uint64_t step[5] = {};
  const watched net{here_.net, step};
  far_catch caught{.victim = victim};
  loot& got = caught.got;
  caught.since = since;
  step[watched::check] = base::fast_ns() - since;
  const auto outcome = steal(
      net, here_.holder(), victim, here_.words, false, [] {},
      [&](const spawn_slot& own, const spawn_slot& above, spawn_slot* place, ref segment) {
        if (own.sp == 0) {
          got.own_record = own.record;
          return own.extra == 0;
        }
        if (segment != 0) return false;  // a part of it would have to be made there
        const bool lazy = here_.shape.lazy_spawns;
        const std::uint64_t low = own.sp - (lazy ? lazy_spawns::bytes_below : context::fork_bytes_below);
        GODWIT_ASSERT(here_.is_stack(low, above.sp, own.bytes_end),
                      "a continuation's stack lies where stacks lie");
        context::sanitizer_forget(low, own.bytes_end);
        here_.used_from = low;
        net.remote_get(victim, reinterpret_cast<void*>(low), reinterpret_cast<const void*>(low),
                       own.bytes_end - low);
        lazy_site more{};
        if (lazy) {
          net.remote_get(victim, &more, lazy_site_of(own), sizeof more);
          lazy_spawns::put_below(reinterpret_cast<std::byte*>(low), own, more, own.record);
        }
        const auto stays_for = [&](const stack::range& heap) {
          return names_heap(own, own.bytes_end, heap) || names_heap(more, heap);
        };
        stack::range heap = here_.shape.heap_of(victim);  // all that it may become
        if (!base::planted("stay.thief_does_not_search") && stays_for(heap)) {
          heap.high = here_.net.remote_load(victim, &here_.words->heap_end, std::memory_order_relaxed);
          if (stays_for(heap)) return false;
        }
        got = {lazy ? low : own.sp, own.fp,     own.extra,         low, above.sp, own.bytes_end,
               above.record,        own.record, own.float_control, {}};
        if ((own.float_control & slot_carries) != 0) {
          net.remote_get(transport::ref_worker(own.record), &got.takes,
                         here_.home<record>(own.record)->result.small, sizeof got.takes);
          const ref scope = got.takes.scope;
          net.remote_fetch_add(transport::ref_worker(scope), &here_.home<record>(scope)->references,
                               1);  // CA3
        }
        // A store more than the papers' steal has; nobody waits for it.
        if (here_.opts.check_frames) {
          const std::uint64_t hash = frame_hash(own.sp, above.sp);
          here_.net.remote_put(victim, &place->frame_hash, &hash, sizeof hash);
        }
        return true;
      });
  worker_stats& stats = here_.words->stats;
  caught.now = account_.count_transport(caught.since, victim, trace::far_request::steal,
                                        outcome == steal_outcome::taken);
  if (outcome != steal_outcome::taken) {
    if (outcome == steal_outcome::stays) {
      here_.net.remote_store(victim, &here_.words->put_aside, 1, std::memory_order_relaxed);
      ask_by_words(victim);
      caught.kind = loot_kind::later;
    }
    ++stats.steals_failed;
    return caught;
  }
  caught.kind = got.sp == 0 ? loot_kind::task : loot_kind::fork;
  ++stats.steals;
  count_far_steal(stats, caught.now - caught.since);
  stats.far_check_ns += step[watched::check];
  stats.far_lock_ns += step[watched::lock];
  stats.far_entry_ns += step[watched::entry];
  stats.far_stack_ns += step[watched::stack];
  stats.far_unlock_ns += step[watched::unlock];
  stats.stolen_bytes += got.bytes_end - got.low;
  return caught;
}

/// PA5: none of them is anybody else's until their part is here.
bool far_thief::take_parcels(const entry& e) noexcept {
  alignas(closure_line) closure_line room[transport::far::inline_bytes / sizeof(closure_line)];
  GODWIT_ASSERT(
      e.head.info <= sizeof room && (e.head.info & (sizeof(closure_line) - 1)) == 0 && e.head.info != 0,
      "parcels come in whole lines");
  std::memcpy(room, e.data, e.head.info);
  data_part data;
  std::memcpy(&data, room, sizeof data);
  return here_.hooks.take_in(data, {room + 1, e.head.info / sizeof(closure_line) - 1});
}

far_catch far_thief::steal_from(worker_no victim) noexcept {
  far_catch caught{.victim = victim};
  std::uint64_t what = scope();
  if (!here_.opts.empty_check) what |= call_scope::skip_check;
  if (here_.opts.check_frames) what |= call_scope::hash_frames;
  if (!here_.shape.steals_by_call) {  // word by word: one-sided to the last step
    const std::uint64_t since = base::fast_ns();
    const seen_words seen = here_.opts.empty_check ? look_by_words(caught.victim) : seen_words{true, true};
    if (seen.fork)
      if (const far_catch got = steal_by_words(caught.victim, since); got.kind != loot_kind::nothing)
        return got;
    if (!seen.ready) {
      if (!seen.fork) ++here_.words->stats.steals_failed;
      ++here_.words->stats.far_failed;
      return caught;
    }
    what |= call_scope::ready_only;
  }
  caught.since = base::fast_ns();
  const entry& e = here_.net.far().call(caught.victim, call_no::steal, what, 0);
  caught.kind = static_cast<loot_kind>(e.head.result);
  const bool brought = is_anything(caught.kind);
  caught.now = account_.count_transport(caught.since, caught.victim, trace::far_request::steal, brought);
  worker_stats& stats = here_.words->stats;
  if (!brought) {
    ++stats.steals_failed;
    ++stats.far_failed;
    return caught;
  }
  if (caught.kind == loot_kind::parcels) {
    if (!take_parcels(e)) caught.kind = loot_kind::nothing;
    return caught;
  }
  if (caught.kind == loot_kind::task) {
    std::memcpy(&caught.got.own_record, e.data, sizeof caught.got.own_record);
    count_far_steal(stats, caught.now - caught.since);
    stats.far_carry_ns += e.head.more[2];
    stats.far_serve_ns += e.head.more[3];
    ++stats.steals;
    may_have_more(victim);
    return caught;
  }
  GODWIT_ASSERT(caught.is_thread(), "a steal brings a thread, or such as have not begun");
  loot& got = caught.got;
  std::memcpy(&got, e.data, sizeof got);
  GODWIT_ASSERT(e.head.info == sizeof got && here_.is_stack(got.low, got.top, got.bytes_end),
                "a stolen thread's stack lies where stacks lie");
  const std::size_t bytes = got.bytes_end - got.low;
  context::sanitizer_forget(got.low, got.bytes_end);
  here_.used_from = got.low;
  if (e.head.info + bytes <= transport::far::inline_bytes)
    std::memcpy(reinterpret_cast<void*>(got.low), e.data + e.head.info, bytes);
  else  // the companion put them where they belong
    here_.memory->bring_stacks(got.low, got.bytes_end);
  count_far_steal(stats, caught.now - caught.since);
  stats.far_carry_ns += e.head.more[2];
  stats.far_serve_ns += e.head.more[3];
  stats.stolen_bytes += bytes;
  may_have_more(victim);
  ++(caught.kind == loot_kind::fork ? stats.steals : stats.resumes);
  return caught;
}

}  // namespace godwit::sched
