// See services.hpp.
#include "runtime/services.hpp"

#include "base/lock.hpp"
#include "gas/controls.hpp"
#include "gas/objects.hpp"
#include "heap/heap.hpp"

#include <atomic>

#include "runtime/run_common.hpp"
#include "transport/far/port.hpp"

#include <godwit/detail/hot.hpp>
#include <godwit/detail/policy_facts.hpp>

namespace godwit::runtime {

using transport::worker_no;

services::services(launch& what, const transport::shm::segment& memory, std::byte* window,
                   const family* workers)
    : workers_(workers),
      memory_(memory),
      random_(what.seed),
      site_{&memory_,
            &common_words(memory_)->worker,
            &host_words(memory_),
            &random_,
            base::outsider,
            what.job.host_count > 1 ? heap::in_use : nullptr,
            detail::facts_of(what.opts).spawns_lazily},
      places_(places_of(memory_, window, what.global_space, what.opts)) {
  sched::enter_calls(calls_, site_);
  gas::enter_calls(calls_, places_);
  gas::enter_object_calls(calls_, places_);
  gas::enter_control_calls(calls_, places_);
}

std::byte* services::carry_out(transport::far::entry& e, std::unique_ptr<std::byte[]>& room) noexcept {
  auto get = [](void* at, std::size_t bytes) noexcept {
    auto& r = *static_cast<std::unique_ptr<std::byte[]>*>(at);
    r.reset(new std::byte[bytes]);
    return r.get();
  };
  return calls_.carry_out(e, {get, &room});
}

bool services::runs(worker_no w) noexcept {
  if (base::planted("far.nobody_takes_over")) return true;
  return (workers_ == nullptr || workers_->alive() != 0) &&
         words_of(memory_, w).far.gone.load(std::memory_order_acquire) == 0;
}

void services::alert(worker_no w) noexcept {
  memory_.at(w, memory_.hot<detail::hot_words>())->poll.store(1, std::memory_order_relaxed);
  if (site_.lazy) sched::interrupt(memory_, site_.words, w, worker_no{transport::index(w) + 1});
  base::fence();
  if (site_.node->sleepers.load(std::memory_order_relaxed) != 0) sched::wake_all_of(*site_.node);
  transport::far::words& far = words_of(memory_, w).far;
  if (far.waiting.load(std::memory_order_relaxed) != 0) {
    far.answers.fetch_add(1, std::memory_order_release);
    transport::far::wake_sleepers(far.answers);
  }
}

void services::release_room(worker_no, std::byte* bytes) noexcept {
  reinterpret_cast<sched::object*>(bytes)[-1].freed.store(sched::freed_marked, std::memory_order_release);
}

}  // namespace godwit::runtime
