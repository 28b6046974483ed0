// The engine of the simulator: workers that take turns on one OS thread, in virtual time.
//
// It is a base::world. Each *seat* has a clock of its own; whose time is least has its turn, and a turn ends
// where the caller waits, or where its time passes that of the next. So everything that others can see
// happens in the order of virtual time, and the same seed gives the same run. A thread that computes on its
// own (charge) may be ahead of the others by a *lead*; before it does what others can see, they catch up. All
// seats' threads lie in the same region of addresses: its bytes are copied to where the seat keeps them and
// back as turns change.
//
// Knows no scheduler: what is special about the one whose turn it is comes by setup and seats.
// docs/decisions/0019-sim.md. Made by runtime/run_sim.cpp. Test: tests/sim/run_test.cpp.
#pragma once

#include "base/random.hpp"
#include "base/world.hpp"
#include "context/exceptions.hpp"
#include "sim/faults.hpp"
#include "sim/machine.hpp"
#include "sim/queue.hpp"
#include "sim/user_clock.hpp"

#include <godwit/detail/hot.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace godwit::sim {

/// Bytes [low, high) of the region.
struct bytes_in_use {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
};

struct engine_setup {
  std::uint32_t seats = 0;
  const machine* model = nullptr;
  std::uint64_t seed = 1;
  user_clock* clock = nullptr;  ///< says what user code takes; null: the program does (godwit::sim::charge)
  std::uint64_t jitter_ns = 0;  ///< each wait takes up to so much longer
  std::uint64_t lead_ns = 0;    ///< see above
  std::uint64_t limit_ns = base::no_limit;  ///< of virtual time: a run that is not over then has failed
  sim::faults faults = {};
  /// Of whose turn it is: the bytes of the region that are in use. @p sp: where it stands.
  bytes_in_use (*in_use)(std::uintptr_t sp) noexcept = nullptr;
  /// It computes (charge), and others will have their turns meanwhile.
  void (*on_charge)() noexcept = nullptr;
  /// It has been interrupted (base::interrupt).
  void (*on_interrupt)() noexcept = nullptr;
  /// Fault crash: whose turn it is has been dead for a while, and is missed. Does not come back.
  void (*on_death)() noexcept = nullptr;
  /// The address sanitizer is told where the one goes on whose turn it is: call it when a seat begins, too.
  void (*on_turn)(std::uintptr_t sp) noexcept = nullptr;
  /// @p seat has its turn from now on. Between turns.
  void (*on_change)(std::uint32_t seat) noexcept = nullptr;
};

/// How a seat waits.
enum class waiting : std::uint8_t {
  looks_first,  ///< for machine::spin_ns, then it sleeps
  looks,
  sleeps  ///< from the start, and is not roused; to its end it lasts machine::nap_ns longer than asked
};

/// What a run was like.
struct tally {
  std::uint64_t end_ns = 0;       ///< virtual time of the last one that left
  std::uint64_t events = 0;       ///< ends of turns, and looks in vain that ended none
  std::uint64_t switches = 0;     ///< changes of turn
  std::uint64_t hash = 0;         ///< of all events: who, and when
  std::uint64_t late = 0;         ///< requests that met a thread whose time was ahead
  std::uint64_t late_ns = 0;      ///< sum of how much, at most
  std::uint64_t late_max_ns = 0;  ///< the largest
  std::uint64_t charged_ns = 0;   ///< by the program, all seats together
};

class engine final : public base::world {
 public:
  explicit engine(const engine_setup& setup);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Who sits at @p number begins by begin(arg), on a stack that it leaves for its own, when its first turn
  /// comes. @p region, @p kept: where the region begins, and where its bytes are kept; null: it does not use
  /// it. @p beside: a line that it reads in every turn besides @p hot; null: there is none.
  void sit(std::uint32_t number, detail::hot_words* hot, void (*begin)(void*), void* arg,
           std::byte* region = nullptr, std::byte* kept = nullptr, const void* beside = nullptr) noexcept;
  /// All take turns until each has left.
  void run() noexcept;
  /// Whose turn it is has nothing to do any more. Does not come back. (Not marked so: the address sanitizer
  /// would clear marks of the wrong stack.)
  void leave() noexcept;

  /// Whose turn it is computes for so long.
  void charge(std::uint64_t ns) noexcept;
  /// The same for what is no thread: others need not see anything of it yet.
  void take(std::uint64_t ns) noexcept;
  /// Whose turn it is.
  std::uint32_t turn() const noexcept { return turn_; }
  /// Whose turn it is waits so from now on.
  void wait_by(waiting how) noexcept { seats_[turn_].how = how; }
  bool hears(std::uint32_t seat) const noexcept { return seats_[seat].how != waiting::sleeps; }
  /// Something comes to @p seat at that time: if it waits then and hears, it waits no longer; once.
  void rouse(std::uint32_t seat, std::uint64_t at_ns) noexcept;
  const sim::tally& tally() const noexcept { return tally_; }
  /// What others may remember it by, in base::interrupt.
  static constexpr pid_t name_of(std::uint32_t seat) noexcept { return static_cast<pid_t>(seat) + 1; }

  // base::world
  std::uint64_t now_ns() noexcept override;
  void pause() noexcept override;
  void nap_until(std::uint64_t deadline_ns) noexcept override;
  void wait_on(const base::wait_word& word, std::uint32_t seen, std::uint64_t limit_ns) noexcept override {
    wait(word, seen, limit_ns, setup_.model->spin_ns);
  }
  void look_on(const base::wait_word& word, std::uint32_t seen, std::uint64_t limit_ns) noexcept override {
    wait(word, seen, limit_ns, std::max(setup_.model->spin_ns, limit_ns));
  }
  int wake(const base::wait_word& word, int most) noexcept override;
  void interrupt(pid_t who, int signal) noexcept override;
  std::uint64_t fresh_seed() noexcept override { return setup_.seed; }
  void spend(base::step what) noexcept override;
  void catch_up() noexcept override;
  void access() noexcept override;
  bool put_off(void* word, unsigned bytes, std::uint64_t value) noexcept override;
  bool own_store(const void* word, std::uint64_t& value) const noexcept override;
  void settle() noexcept override;

 private:
  static constexpr std::uint32_t nobody = ~0u;
  /// A store that others do not see yet.
  struct late_store {
    void* word;
    unsigned bytes;
    std::uint64_t value;
    void carry_out() const noexcept;
  };
  /// For one word.
  struct waiters {
    std::uint32_t first = nobody, last = nobody;
  };
  struct alignas(64) seat {
    // What every turn needs, in two lines.
    detail::hot_words* hot = nullptr;
    std::uintptr_t sp = 0;        // where it goes on
    std::uint64_t now = 0;        // its time, or until when it waits
    std::uintptr_t distance = 0;  // from the region to where its bytes are kept; 0: it does not use it
    bytes_in_use used;
    waiters* waits_among = nullptr;
    const void* beside = nullptr;  // see sit
    bytes_in_use touched;          // of the region: whole pages that take memory where it is kept
    context::exception_state exceptions;
    std::vector<late_store> late_stores;  // in their order
    waiting how = waiting::looks_first;
    bool has_begun = false;
    bool charging = false;  // its turn ended inside charge
    bool interrupted = false;
    bool left = false;
    // What some need.
    void (*begin)(void*) = nullptr;
    void* arg = nullptr;
    std::uint64_t since = 0;                                          // it waits
    std::uint64_t looks_for = 0;                                      // of that, unless it waits otherwise
    std::uint64_t paused_from = 0, paused_until = ~std::uint64_t{0};  // it has done nothing else
    std::uint64_t rouse_at = base::no_limit;                          // see rouse
    std::uint32_t next = nobody, before = nobody;                     // of those that wait for the same word
  };

  void measure() noexcept;
  void count_event() noexcept;
  void stall() noexcept;
  void crash() noexcept;
  bool one_of(std::uint32_t n) noexcept { return random_.below(n) == 0; }
  void pass(std::uint64_t ns) noexcept;
  std::uint64_t later(std::uint64_t ns) noexcept;
  void wait(const base::wait_word& word, std::uint32_t seen, std::uint64_t limit_ns,
            std::uint64_t looks_for) noexcept;
  void end_turn(bool comes_back) noexcept;
  void fetch_ahead() const noexcept;
  void keep(seat& s, std::uintptr_t sp) noexcept;
  static void give_back_unused(seat& s) noexcept;
  void sit_down() noexcept;
  waiters& waiters_for(const base::wait_word& word) noexcept;
  void no_longer_waits(std::uint32_t number) noexcept;
  std::uint64_t waking_ns(const seat& s, std::uint64_t at_ns) const noexcept;
  [[noreturn]] void all_sleep() noexcept;
  [[noreturn]] void too_long() noexcept;

  const engine_setup setup_;
  std::vector<seat> seats_;
  queue due_;
  std::unordered_map<const void*, waiters> waiters_;  // by word; there are few, and they stay
  base::small_random random_;
  sim::tally tally_;
  std::uint32_t turn_ = 0;
  std::uint32_t stalls_left_ = 0, events_to_stall_ = 0, events_to_crash_ = 0;
  std::uint32_t here_ = 0;  // seats that have not left
  std::uintptr_t way_back_ = 0;
  bool running_ = false;        // seats take turns
  std::byte* stack_ = nullptr;  // between two turns
  context::exception_state* exceptions_;
  std::uint64_t measured_from_ = 0;
};

}  // namespace godwit::sim
