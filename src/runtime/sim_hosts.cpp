// See sim_hosts.hpp.
#include "runtime/sim_hosts.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "context/context.hpp"
#include "runtime/placement.hpp"
#include "runtime/run_common.hpp"

namespace godwit::runtime {

using transport::index;
using transport::worker_no;
using transport::mpi::companion;
using transport::mpi::way;
using transport::shm::near_range;

namespace {
// Of addresses, all hosts together; but each has so many if the largest range that the process has is enough
// for that. (Programs lie at 85 TiB, libraries below 128 TiB.)
constexpr std::uint64_t most_window_bytes = std::uint64_t{1} << 44;
constexpr std::uint64_t least_window_bytes = std::uint64_t{1} << 34, largest_range = std::uint64_t{64} << 40;
constexpr std::uint32_t most_guarded = 10'000;  // hosts whose null addresses fault: each takes a mapping
constexpr std::size_t receives = 1;             // what comes meanwhile is kept by the network
constexpr std::uint32_t most_receives = 4;      // with the fault `small`
}  // namespace

sim_hosts::sim_hosts(std::uint32_t workers, std::uint32_t hosts, way how, std::uint32_t carriers,
                     const sim::faults& f, std::uint64_t seed)
    : how_(how), faults_(f), random_(seed * 6364136223846793005u + 5), workers_here_(workers) {
  for (std::uint32_t h = 0, first = 0; h < hosts; ++h) {
    const std::uint32_t count = workers / hosts + (h < workers % hosts ? 1 : 0);
    hosts_.push_back({first, count});
    first += count;
  }
  if (!several()) return;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    for (std::uint32_t i = 0; i < hosts_[h].count; ++i) {
      if (carrier_of(i, hosts_[h].count, carriers) == i) {
        first_worker_.push_back(hosts_[h].first + i);
        ranks_.push_back(std::make_unique<seated_companion>());
        ranks_.back()->serves = {hosts_[h].first + i, 0};
      }
      ++ranks_.back()->serves.count;
      answers_for_.push_back(static_cast<int>(ranks_.size() - 1));
    }
  }
  if (faults_.slow) {
    slow_rank_ = random_.below(companions());
    slow_ns_ = std::uint64_t{1} << (13 + random_.below(7));  // 8 us to half a millisecond
  }
}

std::uint32_t sim_hosts::host_of(std::uint32_t worker) const noexcept {
  const auto next = std::ranges::upper_bound(hosts_, worker, {}, &near_range::first);
  return static_cast<std::uint32_t>(next - hosts_.begin()) - 1;
}

worker_no sim_hosts::bell_of(std::uint32_t worker) const noexcept {
  return worker_no{several() ? first_worker_[static_cast<std::size_t>(answers_for_[worker])] : worker};
}

std::uint64_t sim_hosts::window_bytes(const options& opts, std::uint32_t hosts) noexcept {
  const std::uint64_t bytes = choose_global_bytes(opts);
  if (opts.global_bytes != options().global_bytes) return bytes;
  return std::min({bytes, std::bit_floor(largest_range / hosts),
                   std::max(std::bit_floor(most_window_bytes / hosts), least_window_bytes)});
}

void sim_hosts::make_windows(launch& what) {
  const auto hosts = static_cast<std::uint32_t>(hosts_.size());
  const std::uint64_t bytes = window_bytes(what.opts, hosts);
  what.global_space = plan_global(what.opts, bytes, what.job.workers);
  stride_ = std::bit_ceil(bytes);
  windows_bytes_ = stride_ * hosts;
  what.global.create(windows_bytes_);
  windows_ = what.global.base();
  for (std::uint32_t h = 0; h < hosts; ++h) {
    if (hosts <= most_guarded) transport::shm::window::forbid(window_of(h), gas::space::null_bytes);
    prepare_global(window_of(h), what.opts, hosts);
  }
}

transport::shm::segment sim_hosts::view_of(const transport::shm::segment& memory,
                                           std::uint32_t w) const noexcept {
  const std::uint32_t host = host_of(w);
  transport::shm::segment view = memory.seen_by(worker_no{w}, hosts_[host]);
  view.set_windows(windows_, windows_bytes_, stride_, window_of(host));
  return view;
}

void sim_hosts::spare_memory(const transport::shm::segment& memory) noexcept {
  if (!several()) return;
  for (std::uint32_t w = 0; w < workers_here_; ++w) {
    transport::far::words& far = words_of(memory, worker_no{w}).far;
    far.ring_halvings = faults_.small ? random_.below(ring_halvings + 1) : ring_halvings;
    far.inbox_halvings = faults_.small ? random_.below(4) : 0;
  }
}

void sim_hosts::sit_down(launch& what, sim::engine& turns, const sim::machine& model,
                         std::uint32_t first_seat) {
  if (!several()) return;
  turns_ = &turns;
  naps_ = model.nap_ns != 0;
  first_seat_ = first_seat;
  for (std::uint32_t w = 0; w < workers_here_; ++w) host_of_seat_.push_back(host_of(w));
  for (const auto& c : ranks_) host_of_seat_.push_back(host_of(c->serves.first));
  sim::network::setup net{.turns = &turns,
                          .model = &model,
                          .first_seat = first_seat,
                          .nodes = host_of(workers_here_ - 1) / model.hosts_per_node + 1,
                          .ranks = {},
                          .seed = what.opts.sim_seed,
                          .jitter_ns = what.opts.sim_jitter_ns,
                          .delay = faults_.delay};
  for (std::uint32_t rank = 0; rank < companions(); ++rank) {
    seated_companion& c = *ranks_[rank];
    const std::uint32_t first = c.serves.first, host = host_of(first);
    c.all = this;
    c.rank = rank;
    c.memory = view_of(what.memory, first);
    c.for_others.emplace(what, c.memory, window_of(host), nullptr);
    c.setup.mpi = &sim::network::functions();
    c.setup.rank = static_cast<int>(rank);
    c.setup.size = static_cast<int>(companions());
    c.setup.how = how_;
    c.setup.rma_atomics = what.opts.rma_atomics;
    c.setup.memory = &c.memory;
    c.setup.words = &common_words(c.memory)->far;
    c.setup.served = c.serves;
    c.setup.answers_for = answers_for_;
    c.setup.first_worker = first_worker_;
    c.setup.receives = faults_.small ? 1 + random_.below(most_receives) : receives;
    c.setup.services = &*c.for_others;
    c.stack = c.memory.companion_end() - companion_stack_bytes;
    net.ranks.push_back({host / model.hosts_per_node, c.memory.common()});
    turns.sit(first_seat + rank, &c.hot, begin, &c);
  }
  network_.emplace(std::move(net));
}

/// Address sanitizer: whatever has been on its stack is gone.
void sim_hosts::seated_companion::forget_frames() const noexcept {
  const auto low = reinterpret_cast<std::uintptr_t>(stack);
  if (stack != nullptr) context::sanitizer_forget(low, low + companion_stack_bytes);
}

void sim_hosts::forget_frames() const noexcept {
  for (const auto& c : ranks_) c->forget_frames();
}

/// On the stack between turns, which it leaves.
void sim_hosts::begin(void* arg) {
  auto& c = *static_cast<seated_companion*>(arg);
  c.forget_frames();  // of an earlier run at the same address
  c.all->announce();
  godwit_ctx_start(c.stack + companion_stack_bytes, carry_messages, arg);
}

void sim_hosts::carry_messages(void* arg) {
  auto& c = *static_cast<seated_companion*>(arg);
  sim_hosts& all = *c.all;
  {
    companion mine(std::move(c.setup));
    companion_rest rest(false);
    while (all.workers_here_ != 0) {
      if (mine.turn()) {
        if (c.rank == all.slow_rank_) all.turns_->nap_until(all.turns_->now_ns() + all.slow_ns_);
        rest.after_work(mine.take_mood(), mine.waiting(), all.turns_->now_ns());
      } else {
        all.wait(mine, rest);
      }
    }
  }
  all.turns_->leave();
}

/// As between real hosts (run_mpi.cpp); but who looks again at once is roused when there is something to see.
void sim_hosts::wait(companion& mine, companion_rest& rest) noexcept {
  const std::uint64_t now = turns_->now_ns();
  const std::uint32_t nap_us = naps_ ? rest.next_us(mine.waiting() || mine.sending(), now) : 0;
  if (nap_us != 0) {
    turns_->wait_by(sim::waiting::sleeps);
    mine.sleep(nap_us);
  } else {
    turns_->wait_by(naps_ ? sim::waiting::looks : sim::waiting::looks_first);
    network_->rouse_at_next();
    mine.sleep(naps_ ? static_cast<std::uint32_t>((rest.looks_until_ns() - now + 999) / 1000) : 0);
  }
}

void sim_hosts::has_left(std::uint32_t w) noexcept {
  --workers_here_;
  if (!several()) return;
  const std::uint64_t now = turns_->now_ns();
  if (workers_here_ != 0)
    return turns_->rouse(first_seat_ + static_cast<std::uint32_t>(answers_for_[w]), now);
  for (std::uint32_t rank = 0; rank < companions(); ++rank) turns_->rouse(first_seat_ + rank, now);
}

void sim_hosts::announce() const noexcept {
  if (!context::sanitized()) return;
  const seated_companion& c = *ranks_[turns_->turn() - first_seat_];
  context::sanitizer_on_stack(c.stack, companion_stack_bytes);
}

}  // namespace godwit::runtime
