// A worker's side of the requests: post one, wait for its answer. See requests.hpp.
//
// Not thread-safe: one worker, one port. Every function that waits may be called only where a worker may
// sleep (never from the expose signal). Ordering: requests of one worker to one other worker take effect in
// the order of the calls; store, cast and small puts come back before they have taken effect, fence waits for
// them. (Way rma: a cast and a later load, store, get or put may change places unless a fence stands between
// them.) Cost: one round trip of the network for everything that gives a result.
#pragma once

#include "base/own_memory.hpp"
#include "transport/far/requests.hpp"

#include <span>

namespace godwit::transport::far {

/// How often who waits for an answer looks before it sleeps. Some microseconds: the companion may need this
/// very CPU.
inline constexpr int spins_before_sleep = 50;

class port {
 public:
  /// @p bell_of the words of the companion's first worker, @p idle called again and again while waiting (may
  /// be null), @p spin whether there is a CPU to spare for spinning.
  void init(const shm::segment& memory, worker_no me, words* mine, words* bell_of, void (*idle)(void*),
            void* idle_arg, bool spin) noexcept;
  bool present() const noexcept { return mine_ != nullptr; }

  std::uint64_t load(worker_no w, const word* at) noexcept;
  void store(worker_no w, const word* at, std::uint64_t v) noexcept;
  std::uint64_t exchange(worker_no w, const word* at, std::uint64_t v) noexcept;
  bool compare_exchange(worker_no w, const word* at, std::uint64_t& expected, std::uint64_t v) noexcept;
  std::uint64_t fetch_add(worker_no w, const word* at, std::uint64_t v) noexcept;
  /// Bytes that go to the own segment are put there directly; others pass through a buffer of 2 MiB.
  void get(worker_no w, void* to, const void* from, std::size_t n) noexcept;
  /// Called for each piece of a get, in their order: it lies at @p bytes until the call is over. Must not use
  /// the port; the next pieces are under way meanwhile.
  struct taker {
    void* argument;
    void (*f)(void* argument, std::size_t offset, const std::byte* bytes, std::size_t n);
  };
  void get_by_pieces(worker_no w, const void* from, std::size_t n, const taker& take) noexcept;
  void put(worker_no w, void* to, const void* from, std::size_t n) noexcept;
  void fence(worker_no w) noexcept;
  /// Carried out by a higher layer at @p w 's home. The entry is valid until the next request.
  const entry& call(worker_no w, std::uint64_t number, std::uint64_t argument, std::uint64_t argument2,
                    std::span<const std::byte> data = {}) noexcept;
  /// The same by datagram, to who has @p block; to @p w where nobody knows better (routed.hpp).
  const entry& call_by_block(worker_no w, std::uint64_t block, std::uint64_t number, std::uint64_t argument,
                             std::span<const std::byte> data) noexcept;
  void cast(worker_no w, std::uint64_t number, std::uint64_t argument, std::uint64_t argument2 = 0,
            std::span<const std::byte> data = {}) noexcept;
  /// Like cast, but worker @p w carries it out, when it looks at its inbox. Later requests may overtake it.
  void deliver(worker_no w, std::uint64_t number, std::span<const std::byte> data) noexcept;
  /// Room that the companion reaches, bounce_bytes of it, where answers to calls can be left. Until the next
  /// get or put.
  std::byte* bounce() noexcept {
    if (!memory_->in_turn()) return mine_->bounce;
    if (own_bounce_ == nullptr) own_bounce_ = base::own_room(bounce_bytes);
    return own_bounce_.get();
  }

  /// See atomic_function. @p width 4 or 8 bytes.
  std::uint64_t atomic(worker_no w, atomic_function f, const void* at, unsigned width, std::uint64_t a,
                       std::uint64_t expected) noexcept;
  /// One word of a worker elsewhere, and what an atomic needs and gives.
  struct far_word {
    worker_no w;
    std::uint64_t a, expected, result;
  };
  /// The 8-byte atomic @p f at all of @p where, and f's results there. They do not wait for each other: as
  /// many are under way as the ring has room for.
  void atomics(atomic_function f, const void* at, std::span<far_word> where) noexcept;
  /// The pages that lie wholly in these bytes of the window are given back at the hosts of @p where,
  /// likewise.
  void discard(std::span<const worker_no> where, const void* at, std::uint64_t bytes) noexcept;
  /// Bytes of all pieces, which must fit into one answer (inline_bytes). Valid until the next request.
  const std::byte* gather(worker_no w, const piece* pieces, std::size_t count) noexcept;
  /// @p packed: pieces, each followed by its bytes, padded to 8.
  void scatter(worker_no w, const std::byte* packed, std::size_t bytes) noexcept;

  // Requests that are not waited for: get, and put of at most inline_bytes. A ticket names one until forget;
  // at most most_tickets at a time, which leaves a place for who waits. When one has ended, the worker's poll
  // word is set. What a larger get brings goes to @p data: in the own segment or the window, until it has
  // ended.
  static constexpr std::uint32_t most_tickets = ring_entries - 1;
  std::uint64_t begin(op what, worker_no w, const void* at, const void* data, std::size_t bytes) noexcept;
  /// The answered entry, or null.
  const entry* ended(std::uint64_t ticket) const noexcept;
  /// The same when it has come. Until the next request.
  const entry& await(std::uint64_t ticket) noexcept;
  void forget(std::uint64_t ticket) noexcept;

  /// Do what is done while waiting for an answer.
  void idle() noexcept {
    if (idle_ != nullptr && !base::planted("far.does_not_serve_in_wait")) idle_(idle_arg_);
  }

  /// The worker does something else for a while, and nobody looks at an answer any more. If memory is scarce
  /// and no request is under way, the ring takes none.
  void rest() noexcept;
  /// What rest() looks at first.
  const void* looked_at() const noexcept { return &begun_; }

  std::uint64_t requests() const noexcept { return next_ - skipped_; }

 private:
  bool begin_again() noexcept;
  entry& prepare(op what, worker_no w, const void* at) noexcept;
  entry& prepare_call(op what, worker_no w, std::uint64_t number, std::uint64_t argument,
                      std::uint64_t argument2, std::span<const std::byte> data) noexcept;
  void post(entry& e) noexcept;
  void wait(entry& e) noexcept;
  template <class F>
  void wait_until(F&& done) noexcept;
  const entry& ask(entry& e) noexcept;
  template <class Prepare, class Take>
  void ask_all(std::size_t n, Prepare&& prepare_one, Take&& take) noexcept;
  std::uint64_t word_request(op what, worker_no w, const word* at, std::uint64_t a, std::uint64_t b) noexcept;

  const shm::segment* memory_ = nullptr;
  words* mine_ = nullptr;
  words* bell_ = nullptr;
  void (*idle_)(void*) = nullptr;
  void* idle_arg_ = nullptr;
  worker_no me_{};
  std::uint64_t next_ = 0;     ///< number of the next request: the ring's entries in turn
  std::uint64_t begun_ = 0;    ///< all before that one had ended when it was made, at the ring's begin
  std::uint64_t skipped_ = 0;  ///< numbers
  /// Answers of tickets whose place in the ring was needed before anybody asked for them.
  struct kept_answer {
    std::uint64_t ticket = 0;
    entry answer{};
  };
  base::own_list<kept_answer> kept_;
  base::own_bytes own_bounce_;  ///< where the segment has none (shm::plan_in_turn): once used
  bool spin_ = false;
};

/// Companion's and workers' sleep: wait while @p word is @p seen, @p timeout_us at most (0: for ever).
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint32_t timeout_us) noexcept;
void wake_sleepers(const std::atomic<std::uint32_t>& word) noexcept;
/// `deaf` of a companion; any other value: its OS thread, which sleeps until SIGURG comes.
inline constexpr std::uint32_t hears = 0, sleeps_on_bell = 1;
/// Wake a companion that may be asleep.
void ring_bell(words& of) noexcept;

}  // namespace godwit::transport::far
