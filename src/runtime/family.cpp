// See family.hpp. Test: tests/api/run_test.cpp, tests/api/fault_test.cpp.
#include "runtime/family.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <iterator>
#include <poll.h>
#include <stdexcept>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/valgrind.hpp"

namespace godwit::runtime {

namespace {

int interrupt_pipe_[2] = {-1, -1};
void on_interrupt(int signal) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal);
  static_cast<void>(!write(interrupt_pipe_[1], &byte, 1));
  errno = saved;
}

/// "at address 0x8 in function+0x1c (program+0x11f3)": the workers have the supervisor's own addresses.
std::string describe_fault(const sched::public_words& words) {
  const std::uint64_t code = words.fault_code.load(std::memory_order_acquire);
  if (code == 0) return "";
  char text[512];
  std::snprintf(text, sizeof text, " at address 0x%llx",
                static_cast<unsigned long long>(words.fault_address.load()));
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

std::string describe_death(const family::end& e, const sched::public_words& words) {
  const std::string who = "worker " + std::to_string(e.worker) + " (process " + std::to_string(e.pid) + ")";
  if (WIFSIGNALED(e.status))
    return "godwit: " + who + " was killed by signal " + std::to_string(WTERMSIG(e.status)) + " (" +
           strsignal(WTERMSIG(e.status)) + ")" + describe_fault(words) + "; the run is over";
  return "godwit: " + who + " left the run by exit(" + std::to_string(WEXITSTATUS(e.status)) +
         "): end the run by returning from the root thread instead";
}

}  // namespace

interrupt_guard::interrupt_guard() {
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

interrupt_guard::~interrupt_guard() {
  for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_[i], nullptr);
  close(interrupt_pipe_[0]);
  close(interrupt_pipe_[1]);
  interrupt_pipe_[0] = interrupt_pipe_[1] = -1;
}

int interrupt_guard::fd() const noexcept { return interrupt_pipe_[0]; }

int interrupt_guard::take() const noexcept {
  unsigned char byte = 0;
  return read(interrupt_pipe_[0], &byte, 1) == 1 ? byte : 0;
}

family::~family() {
  kill_all();
  for (member& m : members_)
    if (m.fd >= 0) close(m.fd);
}

void family::add(std::uint32_t worker, pid_t pid) {
  // Valgrind prints a page about a call that it does not know.
  const int fd = base::on_valgrind() ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0u));
  members_.push_back({worker, pid, fd, true});
  ++alive_;
}

void family::kill_all() noexcept {
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

void family::sleep(int stop_fd, int timeout_ms) const {
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

bool family::next_end(end& e) noexcept {
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

verdict judge(const family::end& e, const transport::shm::segment& memory) {
  const auto* words = reinterpret_cast<const sched::segment_words*>(memory.common() + memory.where().words);
  const sched::node_words& node = memory.at(transport::worker_no{memory.near().first}, words)->node;
  const bool over = node.shutdown.load(std::memory_order_acquire) != 0;
  if (over && WIFEXITED(e.status) && WEXITSTATUS(e.status) == 0) return {};
  if (node.failed.load(std::memory_order_acquire) == 2)
    return {base::status_failed, std::string("godwit: ") + node.message};
  return {WIFSIGNALED(e.status) ? 128 + WTERMSIG(e.status) : base::status_failed,
          describe_death(e, memory.at(transport::worker_no{e.worker}, words)->worker)};
}

}  // namespace godwit::runtime
