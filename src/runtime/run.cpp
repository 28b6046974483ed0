// run: create the shared memory, fork the workers, supervise, collect. See include/godwit/runtime.hpp.
//
// The calling process is the supervisor: it sleeps until a worker ends, a signal arrives or a tick is due.
// Any
// worker that ends before the run is over ends the run: all others are killed, the reason is told once. The
// shared memory has no name and the workers die with the supervisor (parent-death signal), so nothing stays
// behind.
// Test: tests/api/run_test.cpp, tests/api/fault_test.cpp.
#include <godwit/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/check.hpp"
#include "base/cpus.hpp"
#include "base/options.hpp"
#include "base/pause.hpp"
#include "runtime/exception.hpp"
#include "runtime/worker_process.hpp"
#include "stack/stack.hpp"

namespace godwit {

namespace {

std::vector<worker_stats> last_stats_;
std::function<void()> tick_;
std::chrono::milliseconds tick_every_{0};

int interrupt_pipe_[2] = {-1, -1};
void on_interrupt(int signal) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal);
  static_cast<void>(!write(interrupt_pipe_[1], &byte, 1));
  errno = saved;
}

/// Catches the signals that mean "stop", for as long as a run is on.
class interrupt_guard {
 public:
  interrupt_guard() {
    if (pipe2(interrupt_pipe_, O_CLOEXEC | O_NONBLOCK) != 0)
      throw std::runtime_error(std::string("godwit: cannot make a pipe: ") + std::strerror(errno));
    for (std::size_t i = 0; i < std::size(signals); ++i) {
      struct sigaction now {};
      now.sa_handler = on_interrupt;
      now.sa_flags = SA_RESTART;
      sigemptyset(&now.sa_mask);
      sigaction(signals[i], &now, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) sigaction(signals[i], &before_[i], nullptr);
    }
  }
  ~interrupt_guard() {
    for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_[i], nullptr);
    close(interrupt_pipe_[0]);
    close(interrupt_pipe_[1]);
    interrupt_pipe_[0] = interrupt_pipe_[1] = -1;
  }
  interrupt_guard(const interrupt_guard&) = delete;
  interrupt_guard& operator=(const interrupt_guard&) = delete;
  int fd() const noexcept { return interrupt_pipe_[0]; }
  /// A pending stop signal, or 0.
  int take() const noexcept {
    unsigned char byte = 0;
    return read(interrupt_pipe_[0], &byte, 1) == 1 ? byte : 0;
  }

 private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(signals)]{};
};

/// The forked workers, as seen by the supervisor.
class family {
 public:
  struct member {
    std::uint32_t worker;
    pid_t pid;
    int fd;  // pidfd, -1 where the kernel has none
    bool alive;
  };
  ~family() {
    kill_all();
    for (member& m : members_)
      if (m.fd >= 0) close(m.fd);
  }
  void add(std::uint32_t worker, pid_t pid) {
    members_.push_back({worker, pid, static_cast<int>(syscall(SYS_pidfd_open, pid, 0u)), true});
    ++alive_;
  }
  std::size_t alive() const noexcept { return alive_; }
  void kill_all() noexcept {
    for (member& m : members_)
      if (m.alive) kill(m.pid, SIGKILL);
    for (member& m : members_)
      if (m.alive) {
        int status = 0;
        while (waitpid(m.pid, &status, 0) < 0 && errno == EINTR) {
        }
        m.alive = false;
        --alive_;
      }
  }
  /// Sleep until something may have happened, @p timeout_ms at most (-1: no limit).
  void sleep(int stop_fd, int timeout_ms) const {
    std::vector<pollfd> fds{{stop_fd, POLLIN, 0}};
    bool all = true;
    for (const member& m : members_) {
      if (!m.alive) continue;
      if (m.fd >= 0)
        fds.push_back({m.fd, POLLIN, 0});
      else
        all = false;
    }
    if (!all && (timeout_ms < 0 || timeout_ms > 5))
      timeout_ms = 5;  // no pidfd here (old kernel, emulator): look often
    static_cast<void>(poll(fds.data(), fds.size(), timeout_ms));
  }
  struct end {
    std::uint32_t worker;
    pid_t pid;
    int status;  // as from waitpid
  };
  /// One worker that has ended since the last call. False: none.
  bool next_end(end& e) noexcept {
    for (member& m : members_) {
      if (!m.alive) continue;
      int status = 0;
      if (waitpid(m.pid, &status, WNOHANG) != m.pid) continue;
      m.alive = false;
      --alive_;
      e = {m.worker, m.pid, status};
      return true;
    }
    return false;
  }

 private:
  std::vector<member> members_;
  std::size_t alive_ = 0;
};

/// "at address 0x8 in function+0x1c (program+0x11f3)": the workers have the supervisor's own addresses.
std::string describe_fault(const sched::run_words& run) {
  const std::uint64_t code = run.fault_code.load(std::memory_order_acquire);
  if (code == 0) return "";
  char text[512];
  std::snprintf(text, sizeof text, " at address 0x%llx",
                static_cast<unsigned long long>(run.fault_address.load()));
  std::string result = text;
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(code), &where) != 0 && where.dli_fname != nullptr) {
    const char* file = std::strrchr(where.dli_fname, '/');
    std::snprintf(text, sizeof text, ", in %s (%s+0x%llx)",
                  where.dli_sname != nullptr ? where.dli_sname : "code",
                  file != nullptr ? file + 1 : where.dli_fname,
                  static_cast<unsigned long long>(code - reinterpret_cast<std::uintptr_t>(where.dli_fbase)));
    result += text;
  }
  return result;
}

std::string describe_death(const family::end& e, const sched::run_words& run) {
  const std::string who = "worker " + std::to_string(e.worker) + " (process " + std::to_string(e.pid) + ")";
  if (WIFSIGNALED(e.status))
    return "godwit: " + who + " was killed by signal " + std::to_string(WTERMSIG(e.status)) + " (" +
           strsignal(WTERMSIG(e.status)) + ")" + describe_fault(run) + "; the run is over";
  return "godwit: " + who + " left the run by exit(" + std::to_string(WEXITSTATUS(e.status)) +
         "): end the run by returning from the root thread instead";
}

/// Wait for the end of the run; fills in status and message when it did not end well.
void supervise(family& workers, interrupt_guard& stop, const sched::run_words& run,
               detail::run_result& result) {
  auto next_tick = base::now_ns();
  while (workers.alive() != 0) {
    int timeout = -1;
    if (tick_) {
      const auto now = base::now_ns();
      if (now >= next_tick) {
        tick_();
        next_tick = now + static_cast<std::uint64_t>(tick_every_.count()) * 1'000'000;
      }
      timeout = static_cast<int>((next_tick - std::min(now, next_tick)) / 1'000'000 + 1);
    }
    workers.sleep(stop.fd(), timeout);
    if (const int signal = stop.take(); signal != 0) {
      result.status = 128 + signal;
      result.message = std::string("godwit: interrupted by signal ") + std::to_string(signal) + " (" +
                       strsignal(signal) + ")";
      workers.kill_all();
      return;
    }
    for (family::end e{}; workers.next_end(e);) {
      const bool over = run.shutdown.load(std::memory_order_acquire) != 0;
      if (over && WIFEXITED(e.status) && WEXITSTATUS(e.status) == 0) continue;
      if (run.failed.load(std::memory_order_acquire) == 2) {
        result.status = base::status_failed;
        result.message = std::string("godwit: ") + run.message;
      } else {
        result.status = WIFSIGNALED(e.status) ? 128 + WTERMSIG(e.status) : base::status_failed;
        result.message = describe_death(e, run);
      }
      workers.kill_all();
      return;
    }
  }
}

void print_stats(const std::vector<worker_stats>& all) {
  std::fprintf(
      stderr,
      "godwit: worker   steals   failed  suspends  resumes  exposed  signals  sleeps  stack KiB  heap KiB\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const worker_stats& s = all[i];
    std::fprintf(stderr, "godwit: %6zu %8llu %8llu %9llu %8llu %8llu %8llu %7llu %10llu %9llu\n", i,
                 static_cast<unsigned long long>(s.steals), static_cast<unsigned long long>(s.steals_failed),
                 static_cast<unsigned long long>(s.suspends), static_cast<unsigned long long>(s.resumes),
                 static_cast<unsigned long long>(s.exposures), static_cast<unsigned long long>(s.signals),
                 static_cast<unsigned long long>(s.sleeps),
                 static_cast<unsigned long long>(s.stack_high_bytes >> 10),
                 static_cast<unsigned long long>(s.heap_high_bytes >> 10));
  }
}

detail::run_result run_with(const options& opts, detail::root_task& root) {
  detail::run_result result;
  runtime::launch what;
  what.opts = opts;
  what.cpus = base::usable_cpu_count();
  what.workers = opts.workers != 0 ? opts.workers : what.cpus;
  what.seed = opts.seed != 0 ? opts.seed : base::now_ns() ^ static_cast<std::uint64_t>(getpid()) << 32;
  what.root = &root;
  what.supervisor = getpid();
  what.main_stack = stack::system_stack();
  if (opts.bind == "cores") what.bind_to = base::usable_cpus();
  if (opts.seed == 0 &&
      (opts.delay_us != 0 || opts.force_steal == "random"))  // so that a failure can be repeated
    std::fprintf(stderr, "godwit: seed %llu\n", static_cast<unsigned long long>(what.seed));

  interrupt_guard stop;
  what.memory.create(what.workers,
                     transport::shm::plan(sizeof(detail::hot_words), sizeof(sched::segment_words),
                                          opts.stack_bytes, opts.heap_bytes));
  struct unmap {
    transport::shm::segment& s;
    ~unmap() { s.destroy(); }
  } unmap_at_end{what.memory};
  const auto* words =
      reinterpret_cast<const sched::segment_words*>(what.memory.common() + what.memory.where().words);
  const sched::run_words& run = what.memory.at(transport::worker_no{0}, words)->run;

  runtime::flush_output();  // or every worker would write it again
  {
    family workers;
    // Worker 0, which starts the root thread, comes last: the others are looking for work by then.
    for (std::uint32_t i = what.workers; i-- > 0;) {
      const pid_t pid = fork();
      if (pid == 0) runtime::worker_main(what, transport::worker_no{i});
      if (pid < 0) {
        result.status = base::status_failed;
        result.message = "godwit: cannot fork worker " + std::to_string(i) + ": " + std::strerror(errno) +
                         ": raise the limit on processes (ulimit -u) or lower --godwit-workers";
        break;
      }
      workers.add(i, pid);
    }
    if (result.status == 0) supervise(workers, stop, run, result);
  }
  if (tick_) tick_();

  last_stats_.clear();
  for (std::uint32_t i = 0; i < what.workers; ++i)
    last_stats_.push_back(what.memory.at(transport::worker_no{i}, words)->worker.stats);
  if (opts.stats) print_stats(last_stats_);
  if (result.status != 0) return result;

  const auto* root_record = what.memory.at<sched::record>(run.root_record.load());
  const std::byte* bytes =
      root_record->result == 0
          ? root_record->small
          : reinterpret_cast<const std::byte*>(what.memory.at<sched::object>(root_record->result) + 1);
  result.threw = root_record->kind == detail::outcome::error;
  result.bytes.assign(bytes, bytes + root_record->result_bytes);
  return result;
}

}  // namespace

const std::vector<worker_stats>& last_run_stats() noexcept { return last_stats_; }

void on_tick(std::chrono::milliseconds interval, std::function<void()> f) {
  tick_ = std::move(f);
  tick_every_ = std::max(interval, std::chrono::milliseconds(1));
}

namespace detail {

run_result run_workers(int argc, char** argv, const options& defaults, root_task& root) {
  if (godwit_hot_.workers != 0) base::fatal("run was called inside a run: use spawn or invoke there");
  run_result result;
  static std::atomic<bool> busy{false};
  if (busy.exchange(true)) {
    result.status = base::status_failed;
    result.message = "godwit: another thread of this process is inside run: one run at a time";
    return result;
  }
  struct leave {
    ~leave() { busy.store(false); }
  } leave_at_end;
  try {
    return run_with(base::parse_options(argc, argv, defaults), root);
  } catch (const base::help_requested& help) {
    std::fputs(help.text.c_str(), stdout);
    std::exit(0);
  } catch (const std::invalid_argument& e) {
    result.status = 2;
    result.message = e.what();
  } catch (const std::runtime_error& e) {
    result.status = base::status_failed;
    result.message = e.what();
  }
  return result;
}

int report(const run_result& result) {
  if (result.status != 0) {
    std::fprintf(stderr, "%s\n", result.message.c_str());
    return result.status;
  }
  if (!result.threw) return 0;
  try {
    reader r(result.bytes.data(), result.bytes.size());
    throw_encoded(r);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "godwit: the root thread ended with an exception: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "godwit: the root thread ended with an exception that is not a std::exception\n");
  }
  return 1;
}

void throw_failure(const run_result& result) {
  if (result.status == 2) throw std::invalid_argument(result.message);
  if (result.status != 0) throw run_error(result.message, result.status);
  reader r(result.bytes.data(), result.bytes.size());
  throw_encoded(r);
}

}  // namespace detail
}  // namespace godwit
