// See world.hpp.
#include "base/world.hpp"

#include <cerrno>
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
}  // namespace

void give_way() noexcept { sched_yield(); }

void nap(std::uint64_t ns) noexcept {
  const timespec time = time_of(ns);
  nanosleep(&time, nullptr);
}

void nap_until(std::uint64_t deadline_ns) noexcept {
  const timespec until = time_of(deadline_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void wait_on(const wait_word& word, std::uint32_t seen, std::uint64_t limit_ns, reach who) noexcept {
  const timespec limit = time_of(limit_ns);
  futex(word, FUTEX_WAIT | in(who), seen, limit_ns != no_limit ? &limit : nullptr, 0);
}

int wake(const wait_word& word, int most, reach who) noexcept {
  return static_cast<int>(futex(word, FUTEX_WAKE | in(who), static_cast<std::uint32_t>(most), nullptr, 0));
}

void wait_for_bits(const wait_word& word, std::uint32_t seen, std::uint32_t bits) noexcept {
  futex(word, FUTEX_WAIT_BITSET, seen, nullptr, bits);
}

void wake_bits(const wait_word& word, std::uint32_t bits) noexcept {
  futex(word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, bits);
}

std::uint64_t cpu_ns_of(pthread_t os_thread) noexcept {
  clockid_t clock;
  timespec t{};
  if (pthread_getcpuclockid(os_thread, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

void interrupt(pid_t os_thread, int signal) noexcept { syscall(SYS_tkill, os_thread, signal); }

}  // namespace godwit::base
