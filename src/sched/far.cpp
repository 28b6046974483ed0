// Work from other hosts: when to look, how to take, and (way am) what others take from here. See worker.hpp.
//
// Shared memory first: a worker looks at another host only when a round over its own host found nothing, and then
// at most one look is under way. Looks in vain back off, because the victim's host pays for them.
#include "sched/worker.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "context/context.hpp"

namespace godwit::sched {

using transport::index;
using transport::far::entry;
using transport::far::state;

namespace {
constexpr std::uint64_t first_pause_ns = 20'000;
constexpr std::uint64_t longest_pause_ns = 2'000'000;
constexpr std::uint64_t urgent_after_ns = 200'000;
}  // namespace

/// Another host, each as likely as it has workers; first the one where work was seen.
std::uint32_t worker::other_host() noexcept {
  if (far_hint_ < shape_.host_count) return std::exchange(far_hint_, ~0u);
  const std::uint32_t others = workers_ - near_.count;
  std::uint32_t v = random_.below(others);
  if (v >= near_.first) v += near_.count;
  std::uint32_t low = 0, high = shape_.host_count;  // hosts are in the order of their workers
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (shape_.hosts[middle].first <= v ? low : high) = middle;
  }
  return low;
}

/// The far part of a round of a running worker.
void worker::look_far() noexcept {
  const bool hinted = far_hint_ != ~0u;
  if (!hinted && next_far_ns_ != 0 && base::now_ns() < next_far_ns_) return;
  steal_far(other_host());
  ++far_failures_;
  const unsigned doublings = std::min(far_failures_, 8u) - 1;
  next_far_ns_ = base::now_ns() + std::min(first_pause_ns << doublings, longest_pause_ns);
}

/// The far part of a look of an idle worker: it may look, but not take (I1).
bool worker::sees_far_work() noexcept {
  const std::uint64_t now = base::now_ns();
  if (now < next_far_ns_) return false;
  const std::uint32_t host = other_host();
  const worker_no victim{shape_.hosts[host].first + random_.below(shape_.hosts[host].count)};
  std::uint64_t scope = shape_.whole_host_calls ? call_scope::whole_host : 0;
  if (opts_.expose_signal && idle_since_ns_ != 0 && now - idle_since_ns_ > urgent_after_ns)
    scope |= call_scope::urgent;
  const auto& e = net_.far().call(victim, static_cast<std::uint64_t>(call_no::look), scope, 0);
  ++words_->stats.far_looks;
  if (e.head.result != 0) {
    far_hint_ = host;
    next_far_ns_ = 0;
    return true;
  }
  ++far_failures_;
  const unsigned doublings = std::min(far_failures_, 8u) - 1;
  next_far_ns_ = base::now_ns() + std::min(first_pause_ns << doublings, longest_pause_ns);
  return false;
}

void worker::steal_far(std::uint32_t host) noexcept {
  const worker_no victim{shape_.hosts[host].first + random_.below(shape_.hosts[host].count)};
  std::uint64_t scope = shape_.whole_host_calls ? call_scope::whole_host : 0;
  if (!opts_.empty_check) scope |= call_scope::skip_check;
  const std::uint64_t before = base::now_ns();
  if (!shape_.far_calls) {  // word by word: one-sided to the last step
    words_->stats.far_steals += 1;  // taken back below if it was in vain
    words_->stats.far_steal_ns -= before;
    try_steal(victim);
    words_->stats.far_steals -= 1;
    words_->stats.far_steal_ns += before;
    scope |= call_scope::ready_only;
  }
  const entry& e = net_.far().call(victim, static_cast<std::uint64_t>(call_no::steal), scope, 0);
  const auto kind = static_cast<loot_kind>(e.head.result);
  if (kind == loot_kind::nothing) {
    ++words_->stats.steals_failed;
    ++words_->stats.far_failed;
    return;
  }
  loot got;
  std::memcpy(&got, e.data, sizeof got);
  const std::size_t bytes = got.top - got.low;
  context::sanitizer_forget(got.low, got.top);
  if (e.head.info + bytes <= transport::far::inline_bytes)  // else the companion put them where they belong
    std::memcpy(reinterpret_cast<void*>(got.low), e.data + e.head.info, bytes);
  words_->stats.far_steals += 1;
  words_->stats.far_steal_ns += base::now_ns() - before;
  words_->stats.stolen_bytes += bytes;
  far_hint_ = host;  // where there was one, there may be more
  if (kind == loot_kind::fork) {
    ++words_->stats.steals;
    wake_one();
    if (opts_.check_frames)
      net_.remote_store(transport::ref_worker(got.status), &home<record>(got.status)->frame_hash,
                        hash_frame(got.sp, got.top), std::memory_order_relaxed);
  } else {
    ++words_->stats.resumes;
  }
  resume(got, kind);
}

/// Way am: requests of other hosts for this worker's memory, carried out here.
void worker::serve_inbox() noexcept {
  if (!shape_.serves_itself || far_words_ == nullptr) return;
  for (;;) {
    entry& e = far_words_->inbox[inbox_next_ % transport::far::inbox_entries];
    if (e.now.load(std::memory_order_acquire) != state::posted) return;  // R1
    const section inside;
    const std::uint64_t before = base::now_ns();
    ++inbox_next_;
    if (e.head.what == transport::far::op::call || e.head.what == transport::far::op::cast) {
      call_site site{seg_, words_, node_, opts_.check_frames, &random_,
                     [](void* w, std::size_t bytes) noexcept {
                       auto& heap = static_cast<worker*>(w)->heap_;
                       return reinterpret_cast<std::byte*>(
                           heap.allocate(object_kind::bytes, sizeof(object) + bytes) + 1);
                     },
                     this};
      if (std::byte* big = carry_out(site, e); big != nullptr) {
        // The companion sends it from there, then marks the object before it as freed.
        e.head.address = reinterpret_cast<std::uint64_t>(big);
        e.head.more[0] = 1;
      } else {
        e.head.more[0] = 0;
      }
    } else {
      transport::far::execute_on(*seg_, e.head, e.data);
    }
    e.now.store(state::done, std::memory_order_release);  // R2
    ++words_->stats.messages;
    words_->stats.message_ns += base::now_ns() - before;
  }
}

}  // namespace godwit::sched
