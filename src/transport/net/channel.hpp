// The companion's channel of datagrams: calls to who has a block, wherever that is, each carried out once.
//
// Datagrams may be lost, doubled and overtake each other, and the block may move meanwhile. A call is sent
// again until it is answered. Who can carry it out does so once (records that travel with the blocks: SW2);
// who cannot yet keeps it, and who has given the block away sends it on. So it has one kind of answer: it is
// done. The switch (relay.hpp, switch_xdp.c) is asked for nothing: it only has rules, which may be old.
//
// Not here: what calls do (gas/places.cpp), where a move of a block tells its new place (gas/mover.cpp).
// Called by: transport/mpi/companion.cpp. Document: docs/protocols/switch.md. Model: models/switch.pml. Test:
// tests/transport/channel_test.cpp.
#pragma once

#include "transport/far/routed.hpp"
#include "transport/net/openflow.hpp"
#include "transport/net/packet.h"
#include "transport/net/socket.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace godwit::transport::net {

/// What the companion does for its channel.
struct channel_user {
  virtual ~channel_user() = default;
  /// Carry out the routed call @p e here: see far::outcome.
  virtual void carry_out_routed(far::entry& e) noexcept = 0;
  /// The request of our worker @p asker in its ring's @p slot has this answer.
  virtual void answered(worker_no asker, std::uint32_t slot, const far::header& head,
                        const std::byte* data) noexcept = 0;
};

struct channel_setup {
  std::uint32_t run = 0;  ///< the same on all hosts, and of no run before
  std::uint32_t my_host = 0;
  const shm::near_range* hosts = nullptr;  ///< with their workers. Stays where it is
  std::uint32_t host_count = 0;
  std::uint32_t workers = 0;
  /// Who has rules: nobody, and calls go to the host of their target; a switch that is told in band; or one
  /// that is told by OpenFlow, at `rules_at`.
  enum class told { nobody, in_band, openflow } who = told::nobody;
  std::vector<address> at;  ///< in_band: of the switch; else of each host
  address rules_at;
  std::uint32_t faults = 0;  ///< see godwit_packet
  /// Of memory that is given out again: all that was sent before is of no use. W all hosts
  const word* life = nullptr;
};

class channel {
 public:
  explicit channel(channel_setup setup);

  std::uint16_t port() const noexcept { return socket_.port(); }
  /// Where the others are, before anything is sent.
  void goes_to(std::vector<address> at) { setup_.at = std::move(at); }
  /// Tell the switch where this host is. False: it does not answer for so long. openflow: after clear_rules
  /// of one host.
  bool greet(std::uint64_t patience_ns);
  /// openflow: forget the rules of earlier runs. False: as greet.
  bool clear_rules(std::uint64_t patience_ns);
  /// Why the run cannot go on; empty: it can.
  const std::string& problem() const noexcept { return problem_; }

  /// Is this request of a worker for the channel?
  static bool takes(far::header& h) noexcept {
    return h.what == far::op::call && (far::block_of(h) != 0 || h.a == far::take_over);
  }
  /// Take it: it is answered by channel_user::answered.
  void ask(worker_no asker, far::entry& e, std::uint32_t slot);
  /// Do what can be done without waiting. True: something was.
  bool turn(channel_user& user);
  /// Something is to be looked at again soon.
  bool expects() const noexcept { return !calls_.empty() || !take_overs_.empty() || !kept_.empty(); }

  /// Enters what others ask this host's channel.
  void enter_calls(far::call_table& table);

  /// Counts of this host, all its workers together.
  struct counts {
    std::uint64_t sent = 0, resent = 0, received = 0, doubled = 0, sent_on = 0;
  };
  const counts& counted() const noexcept { return counts_; }

 private:
  static constexpr std::size_t packet_bytes = sizeof(godwit_packet) + sizeof(far::header) + far::routed_bytes;
  static_assert(packet_bytes <= 1400, "a datagram is one frame");
  /// What is sent, and again until it is answered.
  struct packet {
    godwit_packet head{};
    far::header call{};
    std::byte data[far::routed_bytes];
  };
  static_assert(sizeof(packet) == packet_bytes);
  struct again {
    std::uint64_t at_ns = 0, pause_ns = first_pause_ns;
    unsigned times = 0;
  };
  struct call {
    packet text;
    again next;
  };
  struct rebind {
    packet text;
    again next;
    worker_no mover;
  };
  struct take_over {  ///< of one of our movers
    worker_no mover{};
    std::uint32_t slot = 0, left = 0;
  };
  static constexpr std::uint64_t first_pause_ns = 1'000'000, most_pause_ns = 64'000'000;

  std::uint16_t host_of(worker_no w) const noexcept;
  std::uint64_t life() const noexcept { return setup_.life->load(std::memory_order_acquire); }
  bool has_switch() const noexcept { return setup_.who != channel_setup::told::nobody; }
  bool by_openflow() const noexcept { return setup_.who == channel_setup::told::openflow; }
  bool rules_are_set(std::uint64_t patience_ns);
  void send(packet& p);
  void send_again(packet& p, again& next, std::uint64_t now);
  void receive(packet& p, channel_user& user);
  void serve(packet& p, channel_user& user);
  void give_answer(const packet& asked, const far::header& head, const std::byte* data, std::uint64_t bytes);
  void keep(const packet& p);
  void merge(const far::record& r) noexcept;
  void begin_take_over(worker_no mover, far::entry& e, std::uint32_t slot);
  void is_bound(std::uint64_t number) noexcept;
  static std::byte* give_records(void* own, far::entry& e, const far::answer_room& room) noexcept;

  channel_setup setup_;
  socket socket_;
  bool greeted_ = false;
  std::vector<std::uint64_t> numbers_;  ///< by worker of the run: of its last call
  std::vector<call> calls_;             ///< SW1: unanswered ones of our workers, one each at most
  std::vector<far::record> records_;    ///< SW2, by worker of the run
  std::vector<packet> kept_;            ///< SW5: that cannot be carried out here yet, one for each asker
  std::vector<rebind> rebinds_;
  std::uint32_t rebind_number_ = 0;
  openflow rules_;
  link_address own_link_;
  int service_ = 0;  ///< of the socket
  std::string problem_;
  std::vector<take_over> take_overs_;
  counts counts_;
};

}  // namespace godwit::transport::net
