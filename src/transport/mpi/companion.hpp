// The companion: the process that the launcher started, carrying messages for the workers it forked.
//
// It takes requests (far/requests.hpp) out of the rings of the workers that it serves, sends them to the
// companion that answers for the target, and writes the answers back; and it answers what others send. One
// thread, nothing in here waits: turn() does what can be done now. Which companion serves whom is the *way*
// (docs/protocols/far.md):
//   server  the first rank of a host serves all its workers        assist  each rank serves its own
//   am      each rank passes requests on to the target worker      rma     bytes and words by MPI-3 RMA, the
//                                                                          rest as in assist
// Called by: src/runtime/run_mpi.cpp. Test: tests/mpi/far_suite.cpp.
#pragma once

#include "transport/far/requests.hpp"
#include "transport/mpi/arrivals.hpp"
#include "transport/mpi/component.hpp"
#include "transport/net/channel.hpp"

#include <deque>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace godwit::transport::mpi {

enum class way : std::uint32_t { rma, server, assist, am };
const char* name_of(way w) noexcept;

/// What the layers above do for a companion.
struct host_services {
  virtual ~host_services() = default;
  /// Carry out a call or cast on this host's memory. Room for bytes that do not fit into e.data comes from
  /// @p room. Gives back where the bytes are, null: in e.data.
  virtual std::byte* carry_out(far::entry& e, std::unique_ptr<std::byte[]>& room) noexcept = 0;
  /// Does worker @p w still look at its inbox (far::words::gone)? None does when all of the rank have ended.
  virtual bool runs(worker_no w) noexcept = 0;
  /// A request waits for worker @p w: in am any, else one that it has to carry out itself.
  virtual void alert(worker_no w) noexcept = 0;
  /// am: the bytes of an answer, which the worker allocated, have left.
  virtual void release_room(worker_no w, std::byte* bytes) noexcept = 0;
};

/// Who is where. The same in all companions but for `rank`, `served`, `window`.
struct companion_setup {
  const component* mpi = nullptr;
  int rank = 0;
  int size = 1;
  std::uint32_t epoch = 0;  ///< of the run: messages of others are dropped
  way how = way::server;
  bool rma_atomics = false;
  int largest_tag = 32767;  ///< world::largest_tag
  const shm::segment* memory = nullptr;
  far::words* words = nullptr;  ///< common address
  shm::near_range served;       ///< workers whose rings this companion empties
  // These stay where they are as long as the companion.
  std::span<const int> answers_for;  ///< by worker: the rank that carries out requests for its memory
  std::span<const std::uint32_t> first_worker;  ///< rma, by rank: its first worker, where its window begins
  std::size_t receives = 32;                    ///< posted for what others may send at any time
  rma_window window{};
  host_services* services = nullptr;
  net::channel* by_block = nullptr;  ///< for routed calls. Null: there are none
};

/// A job that failed: the first rank that says so.
struct failure {
  int status = 0;
  std::string message;
};

class companion final : net::channel_user {
 public:
  explicit companion(companion_setup setup);
  ~companion();
  companion(const companion&) = delete;
  companion& operator=(const companion&) = delete;

  /// Do all that can be done without waiting. True if anything happened.
  bool turn();
  /// Requests of our workers are unanswered: worth spinning.
  bool waiting() const noexcept { return unanswered_ != 0; }
  /// Messages of ours have not left yet.
  bool sending() const noexcept {
    return !sends_.empty() || !writes_.empty() || (setup_.by_block != nullptr && setup_.by_block->expects());
  }
  /// Sleep until a worker rings or, with @p messages, until one may have come; @p timeout_us at most. True:
  /// something may have come.
  bool sleep(std::uint32_t timeout_us, arrivals* messages = nullptr) noexcept;

  /// Tell all others that the run is over for @p why.
  void tell_failure(const failure& why);
  /// What another rank told; status 0: nothing.
  const failure& told() const noexcept { return told_; }

  /// What happened since the last question that says how soon something will come again.
  enum class mood {
    quiet,    ///< nothing; or our worker got its answer and needs the CPU more than we
    served,   ///< a request of another host was carried out: another may follow
    expects,  ///< one that will be followed by another
    wrote,    ///< a letter of our worker has left: nobody waits for an answer, but as a rule there is one
  };
  mood take_mood() noexcept { return std::exchange(mood_, mood::quiet); }

 private:
  enum class kind : std::uint32_t { request, reply, failed };
  struct message_head {
    kind what;
    std::uint32_t epoch;
    std::uint32_t asker = 0;  ///< worker
    std::uint32_t slot = 0;   ///< in its ring
    std::uint32_t data_tag = 0;
    std::uint32_t inline_bytes = 0;
    far::header head = {};
  };
  static_assert(sizeof(message_head) == 24 + sizeof(far::header));
  struct message : message_head {
    std::byte data[far::inline_bytes];
  };
  struct outgoing {
    operation op;
    std::unique_ptr<std::byte[]> text;  ///< a message_head, and as many bytes as it says
    std::unique_ptr<std::byte[]> room;  ///< bytes that leave from memory of our own
    std::byte* workers_room = nullptr;  ///< or from a worker's
    worker_no room_of{};
    std::shared_ptr<outgoing> part_of;  ///< what all pieces of a transfer have in common
  };
  struct transfer {
    message_head about;  ///< request (put) or reply (get, call) that the bytes belong to
    int from = 0;
    unsigned left = 0;  ///< pieces
  };
  struct incoming {
    operation op;
    std::shared_ptr<transfer> part_of;
  };
  struct mail {  ///< a request on its way through a worker: in am all, else op::deliver
    message text;
    int from;
  };
  struct inbox {
    std::uint32_t next = 0;  ///< entry to fill
    std::uint32_t oldest = 0;
    std::list<mail> inside;  // lists: an empty one takes no memory
    std::list<mail> backlog;
    bool gone = false;
    std::uint64_t alerted_ns = 0;  ///< the worker was told then
  };

  void carry_out_routed(far::entry& e) noexcept override;
  void answered(worker_no asker, std::uint32_t slot, const far::header& head,
                const std::byte* data) noexcept override;
  void check(int code, const char* what) const;
  far::words& words_of(worker_no w) const noexcept { return *setup_.memory->at(w, setup_.words); }
  template <class P>
  P* alias(worker_no w, std::uint64_t address) const noexcept {
    return setup_.memory->reach(w, reinterpret_cast<P*>(address));
  }

  std::uint32_t draw_tag(const far::header& h) const noexcept;
  far::entry* posted_by(std::uint32_t served) const noexcept;
  bool has_mail() const noexcept;
  bool take_requests();
  void start(worker_no w, far::entry& e, std::uint32_t slot);
  bool goes_by_rma(const far::header& h) const noexcept;
  void by_rma(worker_no w, far::entry& e, int target);
  void complete_writes();
  bool receive();
  void handle_request(const message& m, int from);
  static bool is_large_put(const message_head& m) noexcept;
  void handle_reply(const message& m, int from);
  bool send_on(const message& m, const far::entry& e);
  void answer(const message& m, int from, far::entry& e, std::byte* big, std::unique_ptr<std::byte[]> room,
              bool workers_room);
  void finish(worker_no asker, std::uint32_t slot);
  static message_head reply_to(const message_head& m) noexcept;
  /// @p data: the inline bytes that @p head speaks of.
  void send(int to, const message_head& head, const std::byte* data);
  void send_bytes(int to, int tag, const std::byte* from, std::size_t bytes, outgoing extra);
  void expect_bytes(int from, int tag, std::byte* to, std::size_t bytes, const message_head& about);
  bool serve_inboxes();
  void fill_inbox(inbox& box, worker_no w);
  void remind(inbox& box, worker_no w);
  void execute_here(const message& m, int from);
  template <class Operation, class F>
  bool take_complete(std::deque<Operation>& all, const char* what, F then);
  bool finish_sends();
  bool finish_receives();

  companion_setup setup_;
  struct posted {
    operation op;
    message text;
  };
  std::unique_ptr<posted[]> ring_;
  std::size_t ring_head_ = 0;
  std::deque<outgoing> sends_;
  std::deque<incoming> receives_;
  /// Way rma: writes without an answer that have not been flushed. Their entries are in use until then.
  struct write {
    int target;
    far::entry* from;
  };
  std::vector<write> writes_;
  std::uint64_t first_write_ns_ = 0;
  // So that a thief's next look need not wait for the request that it left with the victim before.
  static constexpr std::uint64_t flush_after_ns = 2'000;
  std::vector<far::entry*> next_;          ///< by served worker: where its next request will be
  std::vector<std::uint64_t> started_ns_;  ///< by served worker and ring entry: calls only
  std::vector<inbox> inboxes_;             ///< by served worker
  std::uint32_t unanswered_ = 0;
  mood mood_ = mood::quiet;
  failure told_;
};

}  // namespace godwit::transport::mpi
