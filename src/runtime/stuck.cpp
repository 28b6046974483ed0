// See stuck.hpp.
#include "runtime/stuck.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <dirent.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "runtime/death.hpp"

namespace godwit::runtime {

namespace {

constexpr std::uint64_t least_interval_ns = 500'000'000;
constexpr std::uint64_t interval_per_worker_ns = 20'000'000;  // a look takes some 10 us per worker
constexpr unsigned looks = 3;
constexpr std::size_t most_words = 256;  // of a stack that are looked at

std::size_t threads_of(const std::string& process) {
  DIR* folder = opendir((process + "/task").c_str());
  if (folder == nullptr) return ~std::size_t{0};
  std::size_t n = 0;
  while (const dirent* entry = readdir(folder)) n += entry->d_name[0] != '.';
  closedir(folder);
  return n;
}

/// How often the thread has stopped to run, by itself or for others. False: the system does not tell.
bool stops_of(pid_t tid, std::uint64_t& stops) {
  unsigned found = 0;
  stops = 0;
  for (const std::string& line : base::lines_of("/proc/" + std::to_string(tid) + "/status"))
    if (unsigned long long n = 0; std::sscanf(line.c_str(), "voluntary_ctxt_switches: %llu", &n) == 1 ||
                                  std::sscanf(line.c_str(), "nonvoluntary_ctxt_switches: %llu", &n) == 1) {
      stops += n;
      ++found;
    }
  return found == 2;
}

constexpr std::uint64_t bit(int signal) noexcept { return std::uint64_t{1} << (signal - 1); }

}  // namespace

stuck_watch::stuck_watch(std::uint32_t workers)
    : every_ns_(std::max(least_interval_ns, workers * interval_per_worker_ns)),
      next_ns_(base::now_ns() + every_ns_) {}

int stuck_watch::sleep_ms(int timeout_ms) const {
  const std::uint64_t now = base::now_ns();
  const int mine = static_cast<int>((next_ns_ - std::min(now, next_ns_)) / 1'000'000 + 1);
  return timeout_ms < 0 ? mine : std::min(mine, timeout_ms);
}

bool stuck_watch::due() {
  const std::uint64_t now = base::now_ns();
  if (now < next_ns_) return false;
  next_ns_ = now + every_ns_;
  return true;
}

bool stuck_watch::waits(pid_t tid, std::uint32_t worker, wait& how) {
  const std::string text = base::first_line("/proc/" + std::to_string(tid) + "/syscall");
  int number = -1;
  unsigned long long word = 0, op = 0, value = 0, limit = 0, sp = 0;
  if (std::sscanf(text.c_str(), "%d %llx %llx %llx %llx %*x %*x %llx", &number, &word, &op, &value, &limit,
                  &sp) != 6)
    return false;
  if (number != SYS_futex || limit != 0) return false;
  const unsigned long long what = op & FUTEX_CMD_MASK;
  if (what != FUTEX_WAIT && what != FUTEX_WAIT_BITSET && what != FUTEX_LOCK_PI) return false;
  how = {worker, tid, word, sp, (op & FUTEX_PRIVATE_FLAG) == 0, 0};
  // Behind the look: who has run since stops once more before it waits again.
  return stops_of(tid, how.runs);
}

bool stuck_watch::at_once(const std::vector<wait>& seen) {
  return std::ranges::all_of(seen, [](const wait& w) {
    wait now{};
    return waits(w.tid, w.worker, now) && now == w && now.runs == w.runs;
  });
}

bool stuck_watch::nobody_else(pid_t pid, std::size_t threads, bool in_process) {
  const std::string process = "/proc/" + std::to_string(pid);
  if (threads_of(process) > threads) return false;
  unsigned long long caught = ~0ull;  // where the system does not tell
  for (const std::string& line : base::lines_of(process + "/status"))
    std::sscanf(line.c_str(), "SigCgt: %llx", &caught);
  std::uint64_t ours = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGABRT) | bit(SIGURG);
  if (!in_process) ours |= bit(SIGINT) | bit(SIGTERM) | bit(SIGHUP);
  ours |= bit(32) | bit(33);  // of the C library
  return (caught & ~ours) == 0;
}

bool stuck_watch::seen(const std::vector<wait>& now) {
  times_ = !now.empty() && now == before_ ? times_ + 1 : 1;
  before_ = now;
  return !now.empty() && times_ >= looks;
}

std::string describe_stuck(const stuck_watch::wait& w, const std::uint64_t* stack, std::size_t bytes) {
  const std::size_t words = std::min(bytes / sizeof *stack, most_words);
  std::string place;
  Dl_info library{}, code{};
  if (dladdr(reinterpret_cast<void*>(&std::fopen), &library) != 0)
    for (std::size_t i = 0; i < words && place.empty(); ++i) {
      // The first address of code that is not the C library's: where it was called, as a rule.
      if (dladdr(reinterpret_cast<void*>(stack[i]), &code) == 0 || code.dli_fbase == library.dli_fbase)
        continue;
      char text[512];
      describe_code(text, sizeof text, stack[i]);
      place = std::string(", called in ") + text;
    }
  return "godwit: deadlock: worker " + std::to_string(w.worker) +
         " waits for ever in the C library (std::mutex, std::condition_variable...)" + place +
         ": nobody is left who could let it go. A std::mutex that a thread holds when it suspends, at a "
         "spawn, join or yield, " +
         "stays locked for that worker: unlock it before, or use godwit::mutex on substrate threads";
}

}  // namespace godwit::runtime
