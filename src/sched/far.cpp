// Work from other hosts: when to look, how to take, and (way am) what others take from here. See worker.hpp.
//
// Shared memory first: a worker looks at another host only when a round over its own host found nothing, and
// then at most one look is under way. Looks in vain back off, because the victim's host pays for them.
//
// victims=uniform is the papers' rule instead, for comparison: every other worker is as likely a victim as
// any, a look concerns that one only, nothing is remembered, nobody pauses. The loop chooses near or far.
#include "sched/worker.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/check.hpp"
#include "context/context.hpp"
#include "sched/frames.hpp"

namespace godwit::sched {

using transport::index;
using transport::far::entry;
using transport::far::state;

namespace {
// A look in vain asks the victim to make its work public at its next spawn, so a second look follows soon.
// Then pairs of looks with pauses that double.
constexpr std::uint64_t first_pause_ns = 20'000;
constexpr std::uint64_t longest_pause_ns = 2'000'000;
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
constexpr std::uint64_t urgent_after_ns = 200'000;

bool uniform(const options& opts) noexcept { return opts.victims == "uniform"; }
/// Does a look concern all workers of the victim's host?
bool whole_host(const job_shape& shape, const options& opts) noexcept {
  return shape.whole_host_calls && !uniform(opts);
}
}  // namespace

/// Another host, each as likely as it has workers; unless victims=uniform, first the one where work was seen.
std::uint32_t worker::other_host() noexcept {
  if (!uniform(opts_)) {
    if (far_hint_ < shape_.host_count) return std::exchange(far_hint_, ~0u);
    if (far_failures_ % 2 == 1) return last_far_;  // it has been asked to make work public
  }
  const std::uint32_t others = workers_ - near_.count;
  std::uint32_t v = random_.below(others);
  if (v >= near_.first) v += near_.count;
  std::uint32_t low = 0, high = shape_.host_count;  // hosts are in the order of their workers
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (shape_.hosts[middle].first <= v ? low : high) = middle;
  }
  last_far_ = low;
  return low;
}

/// The far part of a round of a running worker.
void worker::look_far() noexcept {
  if (uniform(opts_)) {
    steal_far(other_host());
    return;
  }
  const bool hinted = far_hint_ != ~0u;
  if (!hinted && next_far_ns_ != 0 && base::fast_ns() < next_far_ns_) return;
  steal_far(other_host());
  ++far_failures_;
  next_far_ns_ = base::fast_ns() + pause_after(far_failures_);
}

/// The far part of a look of an idle worker: it may look, but not take (ID1).
bool worker::sees_far_work() noexcept {
  const std::uint64_t now = base::fast_ns();
  if (now < next_far_ns_) return false;
  const std::uint32_t host = other_host();
  GODWIT_ASSERT(host < shape_.host_count && host != shape_.my_host, "other hosts are asked for work");
  const worker_no victim{shape_.hosts[host].first + random_.below(shape_.hosts[host].count)};
  std::uint64_t scope = whole_host(shape_, opts_) ? call_scope::whole_host : 0;
  if (opts_.expose_signal && idle_since_ns_ != 0 && now - idle_since_ns_ > urgent_after_ns)
    scope |= call_scope::urgent;
  const auto& e = net_.far().call(victim, static_cast<std::uint64_t>(call_no::look), scope, 0);
  ++words_->stats.far_looks;
  count_transport(now, victim, call_no::look);
  if (e.head.result != 0) {
    far_hint_ = host;
    next_far_ns_ = 0;
    return true;
  }
  if (uniform(opts_)) return false;
  ++far_failures_;
  next_far_ns_ = base::fast_ns() + pause_after(far_failures_);
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

/// The papers' steal, one-sided operation by operation (Uni-address threads, figure 6). Does not come back if
/// it got something.
void worker::try_steal_by_words(worker_no victim) noexcept {
  std::uint64_t step[5] = {};
  const watched net{net_, step};
  const std::uint64_t before = base::fast_ns();
  loot got{};
  const auto outcome = steal(
      net, holder(), victim, words_, opts_.empty_check, [] {},
      [&](const spawn_slot& own, const spawn_slot& above, spawn_slot* place) {
        const std::uint64_t low = own.sp - context::fork_bytes_below;
        GODWIT_ASSERT(is_stack(low, above.sp, own.bytes_end), "a continuation's stack lies where stacks lie");
        context::sanitizer_forget(low, own.bytes_end);
        net.remote_get(victim, reinterpret_cast<void*>(low), reinterpret_cast<const void*>(low),
                       own.bytes_end - low);
        std::uint32_t control = 0;
        net_.remote_get(transport::ref_worker(own.record), &control, &home<record>(own.record)->float_control,
                        sizeof control);
        got = {own.sp, own.fp, own.extra, low, above.sp, own.bytes_end, above.record, own.record, control};
        // A store more than the papers' steal has; nobody waits for it.
        if (opts_.check_frames) {
          const std::uint64_t hash = frame_hash(own.sp, above.sp);
          net_.remote_put(victim, &place->frame_hash, &hash, sizeof hash);
        }
      });
  worker_stats& stats = words_->stats;
  const std::uint64_t now = count_transport(before, victim, call_no::steal);
  if (outcome != steal_outcome::taken) {
    ++stats.steals_failed;
    return;
  }
  ++stats.steals;
  count_far_steal(stats, now - before);
  stats.far_check_ns += step[watched::check];
  stats.far_lock_ns += step[watched::lock];
  stats.far_entry_ns += step[watched::entry];
  stats.far_stack_ns += step[watched::stack];
  stats.far_unlock_ns += step[watched::unlock];
  stats.stolen_bytes += got.bytes_end - got.low;
  acquire_writes();
  end_idle(now);
  if (trace_.on())
    note(trace::kind::steal, now, got.own_record, got.status, now - before, got.bytes_end - got.low,
         index(victim));
  wake_one();
  resume(got, loot_kind::fork);
}

void worker::steal_far(std::uint32_t host) noexcept {
  GODWIT_ASSERT(host < shape_.host_count && host != shape_.my_host, "other hosts are asked for work");
  GODWIT_ASSERT(!is_idle_ && deque_.empty(), "IN5: who steals counts as running, and its region is empty");
  const worker_no victim{shape_.hosts[host].first + random_.below(shape_.hosts[host].count)};
  std::uint64_t scope = whole_host(shape_, opts_) ? call_scope::whole_host : 0;
  if (!opts_.empty_check) scope |= call_scope::skip_check;
  if (opts_.check_frames) scope |= call_scope::hash_frames;
  if (!shape_.far_calls) {  // word by word: one-sided to the last step
    try_steal_by_words(victim);
    scope |= call_scope::ready_only;
  }
  const std::uint64_t before = base::fast_ns();
  const entry& e = net_.far().call(victim, static_cast<std::uint64_t>(call_no::steal), scope, 0);
  const auto kind = static_cast<loot_kind>(e.head.result);
  const std::uint64_t now = count_transport(before, victim, call_no::steal);
  if (kind == loot_kind::nothing) {
    ++words_->stats.steals_failed;
    ++words_->stats.far_failed;
    return;
  }
  loot got;
  std::memcpy(&got, e.data, sizeof got);
  GODWIT_ASSERT(kind == loot_kind::fork || kind == loot_kind::suspended, "a steal brings a thread");
  GODWIT_ASSERT(e.head.info == sizeof got && is_stack(got.low, got.top, got.bytes_end),
                "a stolen thread's stack lies where stacks lie");
  const std::size_t bytes = got.bytes_end - got.low;
  context::sanitizer_forget(got.low, got.bytes_end);
  if (e.head.info + bytes <= transport::far::inline_bytes)  // else the companion put them where they belong
    std::memcpy(reinterpret_cast<void*>(got.low), e.data + e.head.info, bytes);
  count_far_steal(words_->stats, now - before);
  words_->stats.far_carry_ns += e.head.more[2];
  words_->stats.far_serve_ns += e.head.more[3];
  words_->stats.stolen_bytes += bytes;
  far_hint_ = host;  // where there was one, there may be more
  if (kind == loot_kind::fork) {
    ++words_->stats.steals;
    wake_one();
  } else {
    ++words_->stats.resumes;
  }
  acquire_writes();
  end_idle(now);
  if (trace_.on())
    note(kind == loot_kind::fork ? trace::kind::steal : trace::kind::resume, now, got.own_record, got.status,
         now - before, bytes, index(victim));
  resume(got, kind);
}

/// Way am: requests of other hosts for this worker's memory, carried out here.
void worker::serve_inbox() noexcept {
  if (!shape_.serves_itself || far_words_ == nullptr) return;
  for (;;) {
    entry& e = far_words_->inbox[inbox_next_ % transport::far::inbox_entries];
    if (e.now.load(std::memory_order_acquire) != state::posted) return;  // FA1
    const section inside;
    const std::uint64_t before = base::fast_ns();
    GODWIT_ASSERT(e.head.target == me_, "an inbox holds requests for its worker");
    ++inbox_next_;
    if (e.head.what == transport::far::op::call || e.head.what == transport::far::op::cast) {
      const transport::far::answer_room room{
          [](void* w, std::size_t bytes) noexcept {
            auto& heap = static_cast<worker*>(w)->heap_;
            return reinterpret_cast<std::byte*>(heap.allocate(object_kind::bytes, sizeof(object) + bytes) +
                                                1);
          },
          this};
      if (std::byte* big = calls_.carry_out(e, room); big != nullptr) {
        // The companion sends it from there, then marks the object before it as freed.
        e.head.address = reinterpret_cast<std::uint64_t>(big);
        e.head.more[0] = 1;
      } else {
        e.head.more[0] = 0;
      }
    } else {
      transport::far::execute_on(*seg_, e.head, e.data);
    }
    e.now.store(state::done, std::memory_order_release);  // FA2
    transport::far::ring_bell(
        seg_->at(shape_.bell_of, reinterpret_cast<segment_words*>(seg_->common() + seg_->where().words))
            ->far);
    const std::uint64_t now = base::fast_ns();
    ++words_->stats.messages;
    words_->stats.message_ns += now - before;
    if (trace_.on()) note(trace::kind::message, now, 0, 0, now - before);
  }
}

}  // namespace godwit::sched
