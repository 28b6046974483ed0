// Peers that are libraries of threads: each run in a process of its own, given up after a while. See
// harness.hpp.

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <type_traits>

#include "godwit_run.hpp"

namespace bench {

namespace {

static_assert(std::is_trivially_copyable_v<sample>);

sample in_a_process(const std::function<bool(unsigned)>& compute, const std::function<bool()>& is_right,
                    unsigned workers, int limit_s) {
  int ends[2];
  if (pipe(ends) != 0)
    throw std::system_error(errno, std::generic_category(), "a pipe to another library's run");
  const pid_t child = fork();
  if (child < 0)
    throw std::system_error(errno, std::generic_category(), "a process for another library's run");
  if (child == 0) {
    auto [ok, timing] = run_plain([&] { return compute(workers); });
    timing.correct = ok && (!is_right || is_right());
    const bool sent = write(ends[1], &timing, sizeof timing) == sizeof timing;
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(limit_s) * 1'000'000'000;
  pollfd ready{ends[0], POLLIN, 0};
  int got = 0;
  do {
    const std::uint64_t now = now_ns();
    got = poll(&ready, 1, now < end ? static_cast<int>((end - now) / 1'000'000 + 1) : 0);
  } while (got < 0 && errno == EINTR);
  sample one;
  if (got <= 0) {
    one.gave_up = true;
    kill(child, SIGKILL);
  } else if (read(ends[0], &one, sizeof one) != sizeof one) {
    one = {};
    one.correct = false;  // it ended before it had a result
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return one;
}

}  // namespace

void add_library_peer(std::vector<variant>& to, const program& p, const std::string& name,
                      const std::function<bool(unsigned workers)>& compute,
                      const std::function<void()>& prepare, const std::function<bool()>& is_right) {
  const int limit_s = p.options().peer_limit_s;
  add_timed_peer(to, p, name, true, [=](unsigned w) {
    if (prepare) prepare();
    return in_a_process(compute, is_right, w, limit_s);
  });
}

}  // namespace bench
