// See family.hpp. Test: tests/api/run_test.cpp, tests/api/fault_test.cpp.
#include "runtime/family.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <poll.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/valgrind.hpp"
#include "runtime/death.hpp"
#include "runtime/run_common.hpp"

namespace godwit::runtime {

namespace {

int interrupt_pipe_[2] = {-1, -1};
interrupt_guard* guard_ = nullptr;  // while a run is on
thread_local sigset_t mask_before_fork_;

void on_interrupt(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  interrupt_guard::what got{signal, 0, 0};
  if (info->si_code <= 0) {
    got.sender = static_cast<std::uint64_t>(info->si_pid) + 1;
    got.user = info->si_uid;
  }
  static_cast<void>(!write(interrupt_pipe_[1], &got, sizeof got));
  errno = saved;
}

/// What the process that ended, and has not been waited for, had become by exec. Empty: it had not, or the
/// system does not tell.
std::string program_of(pid_t pid) {
  const std::string text = base::first_line("/proc/" + std::to_string(pid) + "/stat");
  // "12 (name) Z parent group session terminal foreground flags ..."
  const char* open = std::strchr(text.c_str(), '(');
  const char* close = std::strrchr(text.c_str(), ')');
  unsigned flags = 0;
  if (open == nullptr || close == nullptr ||
      std::sscanf(close + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
    return {};
  constexpr unsigned forked_only = 0x40;  // PF_FORKNOEXEC
  return flags != 0 && (flags & forked_only) == 0 ? std::string(open + 1, close) : "";
}

std::string describe_death(const family::end& e, const sched::public_words& words) {
  const std::string who = "worker " + std::to_string(e.worker) + " (process " + std::to_string(e.pid) + ")";
  if (!e.known)
    return "godwit: " + who +
           " ended before the run did, and how is not known: the program ignores SIGCHLD, or another of its "
           "threads waits for all children: let it wait for its own ones, by their process ids";
  if (WIFSIGNALED(e.status)) {
    cause_of_death why;
    why.code = words.fault_code.load(std::memory_order_acquire);
    why.address = words.fault_address.load(std::memory_order_seq_cst);
    why.sender = words.fault_sender.load(std::memory_order_seq_cst);
    why.user = words.fault_user.load(std::memory_order_seq_cst);
    why.self = static_cast<std::uint64_t>(e.pid);
    for (std::size_t i = 0; i < std::size(why.frames); ++i)
      why.frames[i] = words.fault_frames[i].load(std::memory_order_seq_cst);
    char text[1024];
    describe_signal(text, sizeof text, WTERMSIG(e.status), why);
    return "godwit: " + who + text + describe_place(why) + "; the run is over";
  }
  const std::string ended = "exit(" + std::to_string(WEXITSTATUS(e.status)) + ")";
  if (!e.program.empty())
    return "godwit: " + who +
           " left the run: a thread called exec, and the program that took the worker's place (" + e.program +
           ") ended with " + ended +
           ": call exec in a child that fork made, or use posix_spawn, system or popen";
  return "godwit: " + who + " left the run by " + ended +
         ": end the run by returning from the root thread instead";
}

/// What the end of a worker means for the run.
verdict judge(const family::end& e, const transport::shm::segment& memory) {
  const sched::node_words& node = host_words(memory);
  const bool over = node.shutdown.load(std::memory_order_acquire) != 0;
  if (over && (!e.known || (WIFEXITED(e.status) && WEXITSTATUS(e.status) == 0))) return {};
  if (node.failed.load(std::memory_order_acquire) == 2)
    return {base::status_failed, std::string("godwit: ") + node.message};
  return {e.known && WIFSIGNALED(e.status) ? 128 + WTERMSIG(e.status) : base::status_failed,
          describe_death(e, words_of(memory, transport::worker_no{e.worker}).worker)};
}

}  // namespace

interrupt_guard::interrupt_guard() {
  if (pipe2(interrupt_pipe_, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::runtime_error(std::string("godwit: cannot make a pipe: ") + std::strerror(errno));
  for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], nullptr, &before_[i]);
  guard_ = this;  // another thread may fork from now on
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction now {};
    now.sa_sigaction = on_interrupt;
    now.sa_flags = SA_RESTART | SA_SIGINFO;
    sigemptyset(&now.sa_mask);
    sigaction(signals[i], &now, nullptr);
  }
}

interrupt_guard::~interrupt_guard() {
  restore_meanings();
  guard_ = nullptr;
  std::vector<int> left;
  what got{};
  while (read(interrupt_pipe_[0], &got, sizeof got) == sizeof got)
    if (got.signal != 0 && !heard_) left.push_back(got.signal);
  close(interrupt_pipe_[0]);
  close(interrupt_pipe_[1]);
  interrupt_pipe_[0] = interrupt_pipe_[1] = -1;
  for (const int signal : left) ::kill(getpid(), signal);
}

void interrupt_guard::restore_meanings() const noexcept {
  for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_[i], nullptr);
}

bool interrupt_guard::is_status_of_signal(int status) noexcept {
  return std::ranges::any_of(signals, [=](int signal) { return status == 128 + signal; });
}

void interrupt_guard::before_fork() noexcept {
  sigset_t stops;  // one that came before the child's meanings are restored would end the run
  sigemptyset(&stops);
  for (const int signal : signals) sigaddset(&stops, signal);
  pthread_sigmask(SIG_BLOCK, &stops, &mask_before_fork_);
}

void interrupt_guard::after_fork_in_parent() noexcept {
  pthread_sigmask(SIG_SETMASK, &mask_before_fork_, nullptr);
}

void interrupt_guard::after_fork_in_child(bool is_worker) noexcept {
  if (guard_ != nullptr && !is_worker) {
    std::exchange(guard_, nullptr)->restore_meanings();
    close(interrupt_pipe_[0]);
    close(interrupt_pipe_[1]);
    interrupt_pipe_[0] = interrupt_pipe_[1] = -1;
  }
  pthread_sigmask(SIG_SETMASK, &mask_before_fork_, nullptr);
}

int interrupt_guard::fd() const noexcept { return interrupt_pipe_[0]; }

interrupt_guard::what interrupt_guard::take() noexcept {
  what got{};
  if (read(interrupt_pipe_[0], &got, sizeof got) != sizeof got) return {};
  heard_ = heard_ || got.signal != 0;
  return got;
}

void wake_supervisor() noexcept {
  const interrupt_guard::what nothing{};
  if (write(interrupt_pipe_[1], &nothing, sizeof nothing) < 0 && errno != EAGAIN)
    base::fatal(
        "cannot wake the process that supervises this worker: %s: the program must leave descriptors "
        "open that are not its own",
        std::strerror(errno));
}

std::string interrupted(const interrupt_guard::what& got) {
  char sender[256] = "";
  if (got.sender != 0)
    describe_sender(sender, sizeof sender, got.sender, got.user, static_cast<std::uint64_t>(getpid()));
  return "godwit: interrupted by signal " + std::to_string(got.signal) + " (" + strsignal(got.signal) + ")" +
         sender;
}

void family::add(std::uint32_t worker, pid_t pid) {
  // Valgrind prints a page about a call that it does not know.
  const int fd = base::on_valgrind() ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0u));
  members_.push_back({worker, pid, fd});
}

/// By the descriptor: if somebody else has waited for it, its number may be another process's by now.
void family::kill(const member& m) noexcept {
  if (m.fd >= 0 && (syscall(SYS_pidfd_send_signal, m.fd, SIGKILL, nullptr, 0u) == 0 || errno == ESRCH))
    return;
  ::kill(m.pid, SIGKILL);
}

void family::kill_all() noexcept {
  for (const member& m : members_) kill(m);
  for (const member& m : members_) {
    while (waitpid(m.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (m.fd >= 0) close(m.fd);
  }
  members_.clear();
}

void family::sleep(int stop_fd, int timeout_ms) const {
  std::vector<pollfd> fds{{stop_fd, POLLIN, 0}};
  bool all = true;
  for (const member& m : members_) {
    if (m.fd >= 0)
      fds.push_back({m.fd, POLLIN, 0});
    else
      all = false;
  }
  if (!all && (timeout_ms < 0 || timeout_ms > 5))
    timeout_ms = 5;  // no pidfd here (old kernel, emulator): look often
  static_cast<void>(poll(fds.data(), fds.size(), timeout_ms));
}

std::optional<family::end> family::next_end() noexcept {
  for (auto m = members_.begin(); m != members_.end(); ++m) {
    siginfo_t ended{};
    // ECHILD: the program ignores SIGCHLD, or waits for all children elsewhere.
    bool known = waitid(P_PID, static_cast<id_t>(m->pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (known ? ended.si_pid != m->pid : errno != ECHILD) continue;
    std::string program = known ? program_of(m->pid) : "";
    int status = 0;
    known = known && waitpid(m->pid, &status, WNOHANG) == m->pid;
    if (m->fd >= 0) close(m->fd);
    const end e{m->worker, m->pid, status, std::move(program), known};
    members_.erase(m);
    return e;
  }
  return {};
}

verdict look_at(family& workers, interrupt_guard& stop, const transport::shm::segment& memory) {
  if (const auto got = stop.take(); got.signal != 0) return {128 + got.signal, interrupted(got)};
  while (const auto e = workers.next_end())
    if (verdict v = judge(*e, memory); v.status != 0) return v;
  return {};
}

}  // namespace godwit::runtime
