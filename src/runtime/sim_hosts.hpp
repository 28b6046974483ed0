// The hosts of a simulated run: which workers are on which, each one's own view of memory, and the companions
// that carry messages between them, each with a seat of the engine.
//
// A companion is the real one (transport/mpi/companion.hpp) on a simulated network (sim/network.hpp), with a
// CPU of its own: way server one per host, else one per worker. With one host there are none.
// docs/scale.md. Part of run_sim.cpp.
#pragma once

#include "runtime/companion_rest.hpp"
#include "runtime/services.hpp"
#include "sim/engine.hpp"
#include "sim/network.hpp"
#include "transport/mpi/companion.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace godwit::runtime {

class sim_hosts {
 public:
  /// So many workers spread over so many hosts, and how they reach each other.
  /// @p carriers: companions of each host that carry requests.
  sim_hosts(std::uint32_t workers, std::uint32_t hosts, transport::mpi::way how, std::uint32_t carriers,
            const sim::faults& f, std::uint64_t seed);

  const std::vector<transport::shm::near_range>& all() const noexcept { return hosts_; }
  bool several() const noexcept { return hosts_.size() > 1; }
  std::uint32_t companions() const noexcept { return static_cast<std::uint32_t>(ranks_.size()); }
  std::uint32_t host_of(std::uint32_t worker) const noexcept;
  /// The worker whose bell calls the companion of @p worker.
  transport::worker_no bell_of(std::uint32_t worker) const noexcept;

  /// Addresses of global memory for each of so many hosts.
  static std::uint64_t window_bytes(const options& opts, std::uint32_t hosts) noexcept;
  /// Make global memory: a window for each host.
  void make_windows(launch& what);
  std::byte* window_of(std::uint32_t host) const noexcept { return windows_ + stride_ * host; }
  /// What worker @p w sees of the run's @p memory.
  transport::shm::segment view_of(const transport::shm::segment& memory, std::uint32_t w) const noexcept;

  // Of so many workers each takes less.
  static constexpr std::size_t companion_stack_bytes = 64 << 10;
  /// Of no worker's ring fewer.
  std::uint32_t fewest_ring_halvings() const noexcept { return faults_.small ? 0 : ring_halvings; }
  /// Before they begin.
  void spare_memory(const transport::shm::segment& memory) noexcept;

  /// Companions get the seats of @p turns from @p first_seat on.
  void sit_down(launch& what, sim::engine& turns, const sim::machine& model, std::uint32_t first_seat);
  /// Worker @p w answers for itself no more, and leaves. When all have, so will the companions.
  void has_left(std::uint32_t w) noexcept;
  /// The address sanitizer: where the companion is whose turn it is.
  void announce() const noexcept;
  bool is_worker(std::uint32_t seat) const noexcept { return seat < first_seat_; }
  std::uint32_t host_of_seat(std::uint32_t seat) const noexcept { return host_of_seat_[seat]; }
  std::uint32_t rank_of_turn() const noexcept { return ranks_[turns_->turn() - first_seat_]->rank; }
  /// And its companions' frames are gone: other memory may come to lie there.
  void forget_frames() const noexcept;
  sim::traffic traffic() const noexcept { return network_ ? network_->traffic() : sim::traffic{}; }

 private:
  static constexpr std::uint32_t ring_halvings = 2;  // of requests under way: few, as all take turns
  struct seated_companion {
    sim_hosts* all = nullptr;
    std::uint32_t rank = 0;
    transport::shm::near_range serves;
    std::byte* stack = nullptr;
    detail::hot_words hot;
    transport::shm::segment memory;
    std::optional<services> for_others;
    transport::mpi::companion_setup setup;

    void forget_frames() const noexcept;
  };
  static void begin(void* arg);
  static void carry_messages(void* arg);
  void wait(transport::mpi::companion& mine, companion_rest& rest) noexcept;

  const transport::mpi::way how_;
  const sim::faults faults_;
  base::small_random random_;      // of the faults
  std::uint32_t slow_rank_ = ~0u;  // that companion takes slow_ns_ more each time; ~0: none does
  std::uint64_t slow_ns_ = 0;
  std::vector<transport::shm::near_range> hosts_;
  std::byte* windows_ = nullptr;
  std::uint64_t stride_ = 0;
  std::uint64_t windows_bytes_ = 0;
  std::vector<int> answers_for_;             // by worker: a rank
  std::vector<std::uint32_t> first_worker_;  // by rank
  std::vector<std::uint32_t> host_of_seat_;
  std::vector<std::unique_ptr<seated_companion>> ranks_;
  std::optional<sim::network> network_;
  sim::engine* turns_ = nullptr;
  bool naps_ = false;  // companions do
  std::uint32_t first_seat_ = 0;
  std::uint32_t workers_here_;  // that have not left
};

}  // namespace godwit::runtime
