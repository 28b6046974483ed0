// The network between simulated hosts, as companions see it: a table of functions like that of an MPI library
// (transport/mpi/component.hpp), in virtual time.
//
// Messages (LogGP): the CPU that sends takes o; they leave a node one after the other, g and G per byte
// apart, pass the wire and the switches of the topology, and come in one after the other likewise. So a node
// that many send to is a place where they queue. Of one rank to another none overtakes, whatever the jitter.
// One-sided operations take effect at half of their time, one after the other at each target, and leave its
// CPU alone; what is not flushed by then takes effect when its rank flushes. Ranks are who calls: each has a
// seat of the engine, and a node.
// docs/scale.md. Made by runtime/sim_hosts.cpp. Test: tests/sim/network_test.cpp.
#pragma once

#include "base/random.hpp"
#include "sim/engine.hpp"
#include "sim/machine.hpp"
#include "transport/mpi/component.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace godwit::sim {

/// What went over the network.
struct traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t one_sided = 0;
  std::uint64_t queued_ns = 0;  ///< that messages and one-sided operations waited for others at their target
};

class network {
 public:
  struct rank {
    std::uint32_t node = 0;       ///< whose network card and place it shares
    std::byte* window = nullptr;  ///< memory that one-sided operations reach
  };
  struct setup {
    engine* turns = nullptr;
    const machine* model = nullptr;
    std::uint32_t first_seat = 0;  ///< of rank 0; the others follow
    std::uint32_t nodes = 1;
    std::vector<rank> ranks;
    std::uint64_t seed = 1;
    std::uint64_t jitter_ns = 0;  ///< each message takes up to so much longer
    bool delay = false;           ///< see faults.hpp
  };
  explicit network(setup s);
  ~network();
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  /// Its functions are those of the newest network, and called by whose turn it is: a rank. Those that
  /// companions do not call are null.
  static const transport::mpi::component& functions() noexcept;
  /// Before whose turn it is waits: who gets the next message that comes to its node will be roused for it.
  void rouse_at_next() noexcept;
  const sim::traffic& traffic() const noexcept { return traffic_; }

 private:
  friend struct calls;

  struct message {
    std::uint64_t arrival = 0;  ///< at its node; it may have to queue there
    std::uint64_t order = 0;
    int from = 0, to = 0, tag = 0;
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> data;
  };
  struct receive {
    int from, tag;
    std::byte* to;
    std::size_t room;
    bool done = false;
    int source = 0, tag_found = 0;
    std::size_t bytes = 0;
  };
  struct node {
    std::uint64_t out_free = 0, in_free = 0, one_sided_free = 0;
    std::vector<message> coming;  ///< a heap: the first to arrive in front
  };
  /// A one-sided operation that is under way to its target.
  struct operation_to {
    int target;
    std::uint64_t arrival, back;  ///< when it is there, and how long the way back takes
    std::size_t bytes;
    std::uint64_t displacement;
    std::function<void(std::byte*)> effect;
  };
  struct endpoint {
    rank where;
    std::vector<operation_to> under_way;  ///< in the order of their beginning
    std::vector<receive*> posted;         ///< in their order
    std::deque<message> unexpected;       ///< likewise
    std::uint64_t back_at = 0;            ///< its one-sided operations are complete then
  };

  std::uint32_t caller() const noexcept { return setup_.turns->turn() - setup_.first_seat; }
  std::uint64_t ready(const node& h, const message& m) const noexcept;
  std::uint64_t delayed(std::uint64_t ns, std::uint32_t from, std::uint32_t to) noexcept;
  void come_in(std::uint32_t node_number) noexcept;
  static void complete(receive& r, const message& m) noexcept;
  static bool fits(const receive& r, const message& m) noexcept;
  void send(const void* data, std::size_t bytes, int to, int tag);
  receive* post(void* data, std::size_t bytes, int from, int tag);
  bool look(receive* r) noexcept;
  void cancel(receive* r) noexcept;
  void one_sided(int target, std::uint64_t displacement, std::size_t bytes,
                 std::function<void(std::byte*)> effect) noexcept;
  void take_effect(const operation_to& o) noexcept;
  void flush(int target) noexcept;

  const setup setup_;
  std::vector<node> nodes_;
  std::vector<endpoint> ranks_;
  std::unordered_map<std::uint64_t, std::uint64_t> last_arrival_;  // by pair of ranks; with jitter or delay
  base::small_random random_;
  // The fault `delay`: some messages are slow, or all between some ranks, by so much.
  bool links_are_slow_ = false;
  std::uint64_t slow_factor_ = 1000;
  std::uint64_t order_ = 0;
  sim::traffic traffic_;
};

}  // namespace godwit::sim
