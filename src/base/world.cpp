// See world.hpp.
#include "base/world.hpp"

#include "base/random.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace godwit::base {

namespace {
timespec time_of(std::uint64_t ns) noexcept {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}
long futex(const wait_word& word, int op, std::uint32_t value, const timespec* limit,
           std::uint32_t bits) noexcept {
  return syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), op, value, limit, nullptr, bits);
}
int in(reach who) noexcept { return who == reach::this_process ? FUTEX_PRIVATE_FLAG : 0; }

std::uint64_t counted_ns_per_tick_;  // what use_world keeps of the fast clock
}  // namespace

world* made_world;

void use_world(world* made) noexcept {
  // The fast clock counts ticks of the CPU: only the system's world knows what they mean.
  if (made_world == nullptr) counted_ns_per_tick_ = fast_clock_.ns_per_tick;
  made_world = made;
  fast_clock_.ns_per_tick = made == nullptr ? counted_ns_per_tick_ : 0;
}

std::uint64_t system_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t now_ns() noexcept { return made_world == nullptr ? system_ns() : made_world->now_ns(); }

std::uint64_t fresh_seed() noexcept {
  if (made_world != nullptr) return made_world->fresh_seed();
  return system_ns() ^ static_cast<std::uint64_t>(getpid()) << 32;
}

void give_way() noexcept {
  if (made_world != nullptr) return made_world->pause();
  sched_yield();
}

void nap(std::uint64_t ns) noexcept {
  if (made_world != nullptr) return made_world->nap_until(made_world->now_ns() + ns);
  const timespec time = time_of(ns);
  nanosleep(&time, nullptr);
}

void nap_until(std::uint64_t deadline_ns) noexcept {
  if (made_world != nullptr) return made_world->nap_until(deadline_ns);
  const timespec until = time_of(deadline_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void wait_on(const wait_word& word, std::uint32_t seen, std::uint64_t limit_ns, reach who) noexcept {
  if (made_world != nullptr) return made_world->wait_on(word, seen, limit_ns);
  const timespec limit = time_of(limit_ns);
  futex(word, FUTEX_WAIT | in(who), seen, limit_ns != no_limit ? &limit : nullptr, 0);
}

int wake(const wait_word& word, int most, reach who) noexcept {
  if (made_world != nullptr) return made_world->wake(word, most);
  return static_cast<int>(futex(word, FUTEX_WAKE | in(who), static_cast<std::uint32_t>(most), nullptr, 0));
}

void wait_for_bits(const wait_word& word, std::uint32_t seen, std::uint32_t bits) noexcept {
  if (made_world != nullptr) return made_world->wait_on(word, seen, no_limit);
  futex(word, FUTEX_WAIT_BITSET, seen, nullptr, bits);
}

void wake_bits(const wait_word& word, std::uint32_t bits) noexcept {
  if (made_world != nullptr) return static_cast<void>(made_world->wake(word, all_of_them));
  futex(word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, bits);
}

std::uint64_t cpu_ns_of(pthread_t os_thread) noexcept {
  if (made_world != nullptr) return 0;
  clockid_t clock;
  timespec t{};
  if (pthread_getcpuclockid(os_thread, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

void interrupt(pid_t os_thread, int signal) noexcept {
  if (made_world != nullptr && signal == SIGURG) return made_world->interrupt(os_thread, signal);
  syscall(SYS_tkill, os_thread, signal);
}

}  // namespace godwit::base
