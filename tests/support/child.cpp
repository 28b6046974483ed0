#include "support/child.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace support {

namespace {

/// Reap whatever of the group is ours; true when the group is gone.
bool group_gone(pid_t group) {
  while (waitpid(-group, nullptr, WNOHANG) > 0) {
  }
  return kill(-group, 0) != 0 && errno == ESRCH;
}
void drain(int fd, std::string& into) {
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
    into.append(buffer, static_cast<std::size_t>(n));
}

}  // namespace

std::string show(const outcome& o) {
  return "status " + std::to_string(o.status) + (o.timed_out ? " (timed out)" : "") + ", left behind " +
         std::to_string(o.left_behind) + ", " + std::to_string(o.seconds) + " s\nout: " + o.out +
         "\nerr: " + o.err;
}

outcome run_child(const std::function<int()>& body, const std::function<void(pid_t)>& during,
                  double limit_s) {
  using clock = std::chrono::steady_clock;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::fflush(nullptr);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out[1], 1);
    dup2(err[1], 2);
    if (const int null = open("/dev/null", O_RDONLY); null >= 0) dup2(null, 0);
    std::exit(body());
  }
  setpgid(pid, pid);
  close(out[1]);
  close(err[1]);
  for (const int fd : {out[0], err[0]}) fcntl(fd, F_SETFL, O_NONBLOCK);

  outcome o;
  auto start = clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(clock::now() - start).count(); };
  if (during) {
    during(pid);
    start = clock::now();
  }
  int status = 0;
  for (;;) {
    pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
    poll(fds, 2, 2);
    drain(out[0], o.out);
    drain(err[0], o.err);
    if (waitpid(pid, &status, WNOHANG) == pid) break;
    if (elapsed() > limit_s) {
      o.timed_out = true;
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      break;
    }
  }
  o.seconds = elapsed();
  o.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  // What died with its parent needs a moment to be seen dead.
  const auto ended = clock::now();
  while (!group_gone(pid) && clock::now() - ended < std::chrono::seconds(20)) usleep(1000);
  if (!group_gone(pid)) {
    o.left_behind = 1;
    kill(-pid, SIGKILL);
    while (!group_gone(pid)) usleep(1000);
  }
  drain(out[0], o.out);
  drain(err[0], o.err);
  close(out[0]);
  close(err[0]);
  return o;
}

int own_shared_memory() {
  int found = 0;
  if (std::FILE* f = std::fopen("/proc/self/maps", "r")) {
    char line[1024];
    while (std::fgets(line, sizeof line, f) != nullptr) found += std::strstr(line, "memfd:godwit") != nullptr;
    std::fclose(f);
  }
  for (int fd = 0; fd < 256; ++fd) {
    char link[64], target[256];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, target, sizeof target - 1);
    if (n > 0)
      found += std::string(target, static_cast<std::size_t>(n)).find("memfd:godwit") != std::string::npos;
  }
  return found;
}

}  // namespace support
