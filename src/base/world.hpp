// The door to what the operating system knows of time and of other OS threads: clocks, pauses, naps, futexes,
// signals between workers, seeds. Nothing else in src/ calls these (tests/layers_check.cmake). So one place
// decides how the library waits, and a program may decide it instead: class world. Not here: blocking calls
// of users (src/io), which suspend a thread. Test: tests/sched/world_test.cpp, workers in virtual time.
#pragma once

#include "base/clock.hpp"
#include "base/cpu.hpp"

#include <atomic>
#include <climits>
#include <cstdint>
#include <pthread.h>
#include <sys/types.h>

namespace godwit::base {

using wait_word = std::atomic<std::uint32_t>;

/// What a worker does that takes time, where time is made.
enum class step : std::uint8_t {
  look,     ///< at a worker of its host that may have something to steal
  steal,    ///< take it
  suspend,  ///< a thread, whose stack is copied away
  resume,   ///< one that was suspended
  access,   ///< to global memory of its host, by a call
  count_
};

/// Time and waiting as a program has made them itself (a simulator, a test), in place of the operating
/// system's. Workers may then be anything that takes turns: whoever has to wait comes here.
class world {
 public:
  virtual std::uint64_t now_ns() noexcept = 0;
  /// The caller has looked in vain for what another worker does in an instant.
  virtual void pause() noexcept = 0;
  virtual void nap_until(std::uint64_t deadline_ns) noexcept = 0;
  /// See the functions below. Those that wait for certain bits are woken with all others.
  virtual void wait_on(const wait_word& word, std::uint32_t seen, std::uint64_t limit_ns) noexcept = 0;
  /// Where each look takes a turn, who would look all the time waits instead, and sees what ends that as who
  /// looks does.
  virtual void look_on(const wait_word& word, std::uint32_t seen, std::uint64_t limit_ns) noexcept {
    wait_on(word, seen, limit_ns);
  }
  virtual int wake(const wait_word& word, int most) noexcept = 0;
  /// By SIGURG, a request of one worker to another.
  virtual void interrupt(pid_t os_thread, int signal) noexcept = 0;
  virtual std::uint64_t fresh_seed() noexcept = 0;
  /// The caller's time goes on by what @p what takes. Others need not see anything of it yet.
  virtual void spend(step what) noexcept { static_cast<void>(what); }
  /// What the caller does next is seen by others: their time must have come as far as its own.
  virtual void catch_up() noexcept {}
  /// Builds with schedule points (schedule_points.hpp): the caller is about to look at or change what others
  /// see.
  virtual void access() noexcept {}
  /// The same builds: a word that others see is to become @p value, of @p bytes bytes. True: it will, some
  /// time before settle, and after those that were put off before; until then only its writer knows, by
  /// own_store.
  virtual bool put_off(void* word, unsigned bytes, std::uint64_t value) noexcept {
    static_cast<void>(word), static_cast<void>(bytes), static_cast<void>(value);
    return false;
  }
  /// What the caller has last put off for @p word; false: nothing.
  virtual bool own_store(const void* word, std::uint64_t& value) const noexcept {
    static_cast<void>(word), static_cast<void>(value);
    return false;
  }
  /// All that the caller has put off is seen by others now.
  virtual void settle() noexcept {}

 protected:
  ~world() = default;
};

/// @p made decides from here on; null: the operating system does, as at first. Not while workers run.
void use_world(world* made) noexcept;
extern world* made_world;  ///< null: the operating system

/// A look in vain: somebody else will do it in an instant.
inline void pause() noexcept {
  if (made_world == nullptr) [[likely]]
    spin_pause();
  else
    made_world->pause();
}

/// The CPU goes to whoever else is ready.
void give_way() noexcept;
void nap(std::uint64_t ns) noexcept;
void nap_until(std::uint64_t deadline_ns) noexcept;  ///< of now_ns()

/// A wait for what another worker does in an instant: call turn() until it has happened. Every now and then
/// it gives the CPU away, because the other one may have lost its own.
class spin_wait {
 public:
  void turn() noexcept {
    if (++turns_ % turns_before_give_way == 0)
      give_way();
    else
      pause();
  }

 private:
  static constexpr unsigned turns_before_give_way = 64;
  unsigned turns_ = 0;
};
/// What is done in each turn of a wait for a lock.
using lock_turn = void (*)(spin_wait&) noexcept;
inline void turn_of(spin_wait& wait) noexcept { wait.turn(); }

enum class reach { processes, this_process };  ///< where the others are that wait on a word, or wake
inline constexpr std::uint64_t no_limit = ~std::uint64_t{0};
inline constexpr int all_of_them = INT_MAX;

/// Sleep as long as @p word is @p seen and nobody wakes, @p limit_ns at most. May come back early.
void wait_on(const wait_word& word, std::uint32_t seen, std::uint64_t limit_ns = no_limit,
             reach who = reach::processes) noexcept;
/// Wake @p most of those that sleep on @p word. Gives back how many there were.
int wake(const wait_word& word, int most, reach who = reach::processes) noexcept;
/// The same for those that wait for one of @p bits.
void wait_for_bits(const wait_word& word, std::uint32_t seen, std::uint32_t bits) noexcept;
void wake_bits(const wait_word& word, std::uint32_t bits) noexcept;

/// CPU time of an OS thread of this process, in nanoseconds; 0: not known.
std::uint64_t cpu_ns_of(pthread_t os_thread) noexcept;

/// Send @p signal to one OS thread of any process.
void interrupt(pid_t os_thread, int signal) noexcept;

}  // namespace godwit::base
