// echo: throughput of an echo server with a godwit thread per connection, over that of hand-written loops.
// Server and load generator are two processes on this machine; variants take turns, and ratios are taken
// inside a round. Besides messages per second it reports messages per second of the server's CPU time, which
// other programs on the machine disturb less. `--cost`: what a read that waits costs; and what 10,000 waiting
// threads cost a computation on the same worker.
#include "echo.hpp"

#include <godwit/godwit.hpp>
#include <godwit/io.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "../common/clock.hpp"
#include "../common/harness.hpp"

namespace {

namespace gw = godwit;
using namespace echo;

struct sample {
  bool available = false;
  double per_second = 0, per_cpu_second = 0;
};

sample measure(const std::function<int(int)>& serve, load l) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0, "bind");
  check(listen(listener, 4096) == 0, "listen");
  socklen_t n = sizeof at;
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &n);
  l.port = ntohs(at.sin_port);
  std::fflush(nullptr);
  const pid_t server = fork();
  if (server == 0) _exit(serve(listener) & 0xff);
  close(listener);
  l.server = server;
  const outcome got = generate(l);
  int status = 0;
  waitpid(server, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0 && got.wrong == 0, "the server");
  const double messages = static_cast<double>(got.messages);
  return {true, messages / got.seconds, messages / got.server_cpu_seconds};
}

/// Two threads of one worker pass a byte to and fro: every read waits.
void cost_of_a_read(bench::program& program) {
  constexpr int rounds = 200'000;
  double waiting = 0, plain = 0;
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = 1;
  gw::run<void>(
      [&] {
        int a[2], b[2];
        check(socketpair(AF_UNIX, SOCK_STREAM, 0, a) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0,
              "socketpair");
        char c = 0;
        std::uint64_t start = bench::now_ns();
        for (int i = 0; i < 2 * rounds; ++i) {
          static_cast<void>(!::write(a[1], &c, 1));
          static_cast<void>(!::read(a[0], &c, 1));
        }
        plain = static_cast<double>(bench::now_ns() - start) / (2 * rounds);
        auto other = gw::spawn([&] {
          char d;
          for (int i = 0; i < rounds; ++i) {
            gw::io::read(a[0], &d, 1);
            gw::io::write(b[1], &d, 1);
          }
        });
        start = bench::now_ns();
        for (int i = 0; i < rounds; ++i) {
          gw::io::write(a[1], &c, 1);
          gw::io::read(b[0], &c, 1);
        }
        waiting = static_cast<double>(bench::now_ns() - start) / (2 * rounds);
        other.join();
      },
      o);
  program.figure("read_waits", "write + read that waits, local socket, 1 worker", waiting, "ns",
                 "time / pairs, two threads in turns");
  program.figure("read_plain", "write + read that need not wait", plain, "ns",
                 "time / pairs, plain calls of one thread");
}

long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

/// Seconds of fib on one worker while @p threads wait for input.
double computing_beside(unsigned threads) {
  double seconds = 0;
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = 1;
  gw::run<void>(
      [&] {
        std::vector<int> fds;
        std::vector<gw::future<void>> waiting;
        for (unsigned i = 0; i < threads; ++i) {
          int s[2];
          check(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0, "socketpair");
          waiting.push_back(gw::spawn([fd = s[0]] {
            char c;
            gw::io::read(fd, &c, 1);
            gw::io::close(fd);
          }));
          fds.push_back(s[1]);
        }
        const std::uint64_t start = bench::now_ns();
        for (int i = 0; i < 4; ++i) {
          long value = fib(32);
          bench::keep(value);
        }
        seconds = static_cast<double>(bench::now_ns() - start) * 1e-9;
        for (const int fd : fds) ::close(fd);
        for (auto& t : waiting) t.join();
      },
      o);
  return seconds;
}

void costs(bench::program& program, unsigned threads) {
  cost_of_a_read(program);
  std::vector<double> alone, beside, over;
  for (int i = 0; i < program.options().reps; ++i) {
    alone.push_back(computing_beside(0));
    beside.push_back(computing_beside(threads));
    over.push_back(beside.back() / alone.back());
  }
  program.figure("fib_alone", "fib(32), 4 times, 1 worker", alone, "s", "wall time");
  program.figure("fib_beside", "the same beside " + bench::grouped(threads) + " threads that wait for input",
                 beside, "s", "wall time");
  program.figure("fib_beside_over_alone", "beside over alone", over, "x", "median over the rounds");
}

void compare(bench::program& program, const load& l, unsigned servers) {
  const unsigned n = l.connections;
  const std::vector<std::pair<const char*, std::function<int(int)>>> variants = {
    {"threads", [=](int fd) { return serve_with_threads(fd, n, servers); }},
    {"epoll level", [=](int fd) { return serve_with_epoll(fd, n, servers, false); }},
    {"epoll edge", [=](int fd) { return serve_with_epoll(fd, n, servers, true); }},
#if BENCH_HAS_URING
    {"io_uring", [=](int fd) { return serve_with_uring(fd, n); }},
#endif
  };
  std::vector<std::vector<sample>> all(variants.size());
  std::vector<double> ratio, cpu_ratio;
  for (int r = 0; r < program.options().reps; ++r) {
    for (std::size_t v = 0; v < variants.size(); ++v) all[v].push_back(measure(variants[v].second, l));
    const auto best = [&](auto get) { return std::max(get(all[1].back()), get(all[2].back())); };
    ratio.push_back(all[0].back().per_second / best([](const sample& s) { return s.per_second; }));
    cpu_ratio.push_back(all[0].back().per_cpu_second /
                        best([](const sample& s) { return s.per_cpu_second; }));
  }
  const unsigned active = l.active == 0 ? n : l.active;
  std::FILE* const to = program.out();
  std::fprintf(to, "echo: %u connections, %u at a time, %zu bytes, %u server threads; medians of %d\n", n,
               active, l.bytes, servers, program.options().reps);
  std::fprintf(to, "%-12s %14s %22s\n", "", "messages/s", "per s of server's CPU");
  bench::ordered_json rows = bench::ordered_json::array();
  for (std::size_t v = 0; v < variants.size(); ++v) {
    std::vector<double> a, b;
    for (const sample& s : all[v]) a.push_back(s.per_second), b.push_back(s.per_cpu_second);
    std::fprintf(to, "%-12s %14.0f %22.0f\n", variants[v].first, bench::median(a), bench::median(b));
    rows.push_back({{"server", variants[v].first},
                    {"messages_per_s", bench::median(a)},
                    {"per_s_of_servers_cpu", bench::median(b)}});
  }
  program.json()["measurements"].push_back({{"title", "Echo servers"},
                                            {"parameters",
                                             {{"connections", n},
                                              {"active", active},
                                              {"bytes", l.bytes},
                                              {"servers", servers},
                                              {"seconds", l.seconds}}},
                                            {"rows", rows}});
  program.figure("over_epoll", "threads over the better epoll loop", bench::median(ratio), "x",
                 "median over the rounds, messages per second");
  program.figure("over_epoll_cpu", "the same by the server's CPU time", bench::median(cpu_ratio), "x",
                 "median over the rounds");
}

/// A process has a descriptor per connection, and some more.
unsigned most_connections() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur > 64 ? static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur - 64, 1'000'000)) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  bench::program program("echo", "Echo servers: a thread per connection against event loops.", argc, argv);
  load l;
  bool cost = false;
  unsigned servers = 1;
  program.option("--connections", l.connections, "Connections (default 10000)");
  program.option("--active", l.active, "Of them, with a message under way at a time (default all)");
  program.option("--bytes", l.bytes, "Of a message (default 64)", bench::between(1, most_bytes));
  program.option("--seconds", l.seconds, "Per measurement (default 3)");
  program.option("--servers", servers, "Workers, and OS threads with a loop each (default 1)");
  program.flag("--cost", cost, "What waiting costs, instead");
  program.parse();
  many_files();
  if (program.options().quick) {
    l.connections = std::min(l.connections, 1000u);
    l.seconds = 0.5;
  }
  if (cost) {
    costs(program, std::min(l.connections, 9000u));
    return program.finish();
  }
  if (const unsigned most = most_connections(); l.connections > most) {
    std::fprintf(program.out(),
                 "echo: skipped: the limit on open files allows %u connections: raise ulimit -n, or take "
                 "--connections\n",
                 most);
    program.json()["skipped"] = "the limit on open files is too low";
    return program.finish();
  }
  compare(program, l, servers);
  return program.finish();
}
