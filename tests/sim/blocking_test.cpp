// Calls that would block are refused in a simulated run, by name; those that need not wait do what they do
// anywhere; and nothing of it is left after the run, or reaches child processes and other OS threads.
// test: skip-qemu
#include "support/child.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

namespace gw = godwit;

gw::options simulated(std::uint32_t workers) {
  gw::options o = support::schedule(workers);
  o.substrate = gw::choice::substrate::sim;
  o.quiet = true;
  return o;
}

class blocking : public testing::Test {
 protected:
  void SetUp() override {
    constexpr int pr_set_syscall_user_dispatch = 59;
    volatile char allow = 0;
    if (prctl(pr_set_syscall_user_dispatch, 1, 0, 0, &allow) != 0)
      GTEST_SKIP() << "this kernel has no syscall user dispatch";
    prctl(pr_set_syscall_user_dispatch, 0, 0, 0, 0);
  }
};

int nothing() { return 0; }
int empty_pipe() {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  return ends[0];
}
int silent_socket() {
  int s[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  return s[0];
}
int listening_socket() {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(listen(s, 1), 0);
  return s;
}
int stream_socket() { return socket(AF_INET, SOCK_STREAM, 0); }
int a_set_of_events() { return epoll_create1(0); }
int a_child() {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pause();
  }
  return child;
}
/// A file, opened once more, that @p lock has locked.
int locked_file(void (*lock)(int)) {
  const std::string name = testing::TempDir() + "godwit_blocking_" + std::to_string(getpid());
  lock(open(name.c_str(), O_RDWR | O_CREAT, 0600));
  const int again = open(name.c_str(), O_RDWR);
  unlink(name.c_str());
  return again;
}
struct flock whole_file() {
  struct flock all {};
  all.l_type = F_WRLCK;
  return all;
}
sigset_t one_signal() {
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGUSR1);
  return s;
}

struct blocking_case {
  const char* name;  // of the system call, or its end
  int (*prepare)();  // gives the argument of:
  void (*block)(int);
};

const blocking_case cases[] = {
    {"clock_nanosleep", nothing, [](int) { usleep(10); }},
    {"clock_nanosleep", nothing, [](int) { std::this_thread::sleep_for(std::chrono::microseconds(1)); }},
    {"clock_nanosleep", nothing,
     [](int) { std::this_thread::sleep_until(std::chrono::steady_clock::now() + std::chrono::seconds(1)); }},
    {"nanosleep", nothing,
     [](int) {
       const timespec t{0, 1};
       syscall(SYS_nanosleep, &t, nullptr);
     }},
    {"poll", nothing, [](int) { poll(nullptr, 0, 1); }},
    {"poll", empty_pipe,
     [](int fd) {
       pollfd p{fd, POLLIN, 0};
       poll(&p, 1, -1);
     }},
    {"ppoll", empty_pipe,
     [](int fd) {
       pollfd p{fd, POLLIN, 0};
       const timespec t{0, 1};
       ppoll(&p, 1, &t, nullptr);
     }},
    {"select", empty_pipe,
     [](int fd) {
       fd_set s;
       FD_ZERO(&s);
       FD_SET(fd, &s);
       select(fd + 1, &s, nullptr, nullptr, nullptr);
     }},
    {"pselect6", nothing,
     [](int) {
       const timespec t{1, 0};
       pselect(0, nullptr, nullptr, nullptr, &t, nullptr);
     }},
    {"epoll_", a_set_of_events,
     [](int fd) {
       epoll_event e;
       epoll_wait(fd, &e, 1, 1);
     }},
    {"epoll_pwait", a_set_of_events,
     [](int fd) {
       epoll_event e;
       epoll_pwait(fd, &e, 1, -1, nullptr);
     }},
    {"read", empty_pipe,
     [](int fd) {
       char c;
       static_cast<void>(!read(fd, &c, 1));
     }},
    {"readv", empty_pipe,
     [](int fd) {
       char c;
       const iovec v{&c, 1};
       static_cast<void>(!readv(fd, &v, 1));
     }},
    {"recvfrom", silent_socket,
     [](int fd) {
       char c;
       static_cast<void>(!recv(fd, &c, 1, 0));
     }},
    {"recvmsg", silent_socket,
     [](int fd) {
       msghdr m{};
       recvmsg(fd, &m, 0);
     }},
    {"accept", listening_socket, [](int fd) { accept(fd, nullptr, nullptr); }},
    {"accept4", listening_socket, [](int fd) { accept4(fd, nullptr, nullptr, 0); }},
    {"connect", stream_socket,
     [](int fd) {
       sockaddr_in a{};
       a.sin_family = AF_INET;
       a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
       a.sin_port = htons(9);
       connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a);
     }},
    {"wait4", nothing, [](int) { waitpid(a_child(), nullptr, 0); }},
    {"waitid", nothing, [](int) { waitid(P_PID, static_cast<id_t>(a_child()), nullptr, WEXITED); }},
    {"pause", nothing, [](int) { pause(); }},
    {"rt_sigsuspend", nothing,
     [](int) {
       const sigset_t s = one_signal();
       sigsuspend(&s);
     }},
    {"rt_sigtimedwait", nothing,
     [](int) {
       const sigset_t s = one_signal();
       sigwaitinfo(&s, nullptr);
     }},
    {"flock", [] { return locked_file([](int fd) { flock(fd, LOCK_EX); }); },
     [](int fd) { flock(fd, LOCK_EX); }},
    {"fcntl",
     [] {
       return locked_file([](int fd) {
         struct flock all = whole_file();
         fcntl(fd, F_OFD_SETLK, &all);
       });
     },
     [](int fd) {
       struct flock all = whole_file();
       fcntl(fd, F_OFD_SETLKW, &all);
     }},
};

/// A run of whose threads one does @p block.
support::outcome run_with(const std::function<void()>& block) {
  return support::run_child([&] {
    return gw::run<int>(
        [&block] {
          auto f = gw::spawn([&block] {
            gw::sim::charge(1'000);
            block();
          });
          f.join();
          return 0;
        },
        simulated(2));
  });
}

void expect_refused(const support::outcome& o, const char* name) {
  EXPECT_EQ(o.status, 70) << name << ": " << support::show(o);
  for (const char* words : {"godwit: worker ", name, ", called by ", "would block"})
    EXPECT_TRUE(o.err_has(words)) << words << ": " << support::show(o);
}

TEST_F(blocking, calls_are_refused_by_name) {
  for (const blocking_case& c : cases) {
    const int on = c.prepare();
    expect_refused(run_with([&] { c.block(on); }), c.name);
    if (on != 0) close(on);
    if (HasFailure()) return;  // each of the others may take as long
  }
}

// These outlive processes.
TEST_F(blocking, system_v_calls_are_refused_by_name) {
  const int queue = msgget(IPC_PRIVATE, 0600), semaphores = semget(IPC_PRIVATE, 1, 0600);
  expect_refused(run_with([=] {
                   long message[2];
                   static_cast<void>(!msgrcv(queue, message, sizeof(long), 0, 0));
                 }),
                 "msgrcv");
  sembuf down{0, -1, 0};
  expect_refused(run_with([&] { semop(semaphores, &down, 1); }), "sem");
  msgctl(queue, IPC_RMID, nullptr);
  semctl(semaphores, 0, IPC_RMID);
}

[[gnu::noinline]] void sleeps_in_here() {
  std::this_thread::sleep_for(std::chrono::seconds(1));
  asm volatile("");
}

TEST_F(blocking, the_caller_is_named) {
  const auto o = run_with(sleeps_in_here);
  EXPECT_TRUE(o.err_has("sleeps_in_here")) << support::show(o);
}

std::mutex mutex_;

/// The second worker's thread wants what the first one's holds while the second has its turn.
TEST_F(blocking, a_lock_that_another_worker_holds_is_refused) {
  const auto o = support::run_child([] {
    return gw::run<int>(
        [] {
          auto holds = gw::spawn([] {
            const std::lock_guard here(mutex_);
            gw::sim::charge(1'000'000);
          });
          gw::sim::charge(10'000);
          const std::lock_guard here(mutex_);
          holds.join();
          return 0;
        },
        simulated(2));
  });
  expect_refused(o, "futex (a lock, a condition variable, the end of an OS thread)");
  EXPECT_TRUE(o.err_has("hold no lock")) << support::show(o);
}

TEST_F(blocking, a_lock_that_another_thread_of_the_system_holds_is_not) {
  std::atomic<bool> held{false};
  std::thread holds([&] {
    const std::lock_guard here(mutex_);
    held.store(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  while (!held.load()) std::this_thread::yield();
  gw::run<void>([] { const std::lock_guard here(mutex_); }, simulated(2));
  holds.join();
}

/// What need not wait.
std::string calls_that_go_through() {
  char c = 0;
  int ends[2];
  if (pipe(ends) != 0) return "pipe";
  pollfd p{ends[0], POLLIN, 0};
  if (poll(&p, 1, 0) != 0) return "poll that does not wait";
  if (write(ends[1], "abc", 3) != 3) return "write";
  if (poll(&p, 1, -1) != 1) return "poll";
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  if (select(ends[0] + 1, &set, nullptr, nullptr, nullptr) != 1 || !FD_ISSET(ends[0], &set)) return "select";
  if (read(ends[0], &c, 1) != 1 || c != 'a') return "read of a pipe";
  iovec v{&c, 1};
  if (readv(ends[0], &v, 1) != 1 || c != 'b') return "readv";
  if (read(ends[0], &c, 1) != 1 || c != 'c') return "read of the last byte";
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  if (read(ends[0], &c, 1) != -1 || errno != EAGAIN) return "read of a pipe that never waits";
  close(ends[1]);
  if (read(ends[0], &c, 1) != 0) return "read of the end";
  std::string word;
  if (!(std::ifstream("/proc/self/comm") >> word) || word.empty()) return "read of a file";
  if (usleep(0) != 0) return "a sleep for no time";
  if (waitpid(-1, nullptr, 0) != -1 || errno != ECHILD) return "wait without children";
  const int s = silent_socket();
  if (recv(s, &c, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN) return "recv that does not wait";
  close(s);
  const timespec none{};
  const sigset_t usr1 = one_signal();
  if (sigtimedwait(&usr1, nullptr, &none) != -1 || errno != EAGAIN) return "sigtimedwait";
  sigset_t before, now;
  sigprocmask(SIG_BLOCK, &usr1, &before);
  raise(SIGUSR1);
  if (sigwaitinfo(&usr1, nullptr) != SIGUSR1) return "a signal that is there";
  sigprocmask(SIG_SETMASK, &before, &now);
  if (sigismember(&now, SIGUSR1) != 1 || sigismember(&before, SIGUSR1) != 0) return "the mask";
  return {};
}

TEST_F(blocking, calls_that_need_not_wait_go_through) {
  EXPECT_EQ(gw::run<std::string>(calls_that_go_through, simulated(2)), "");
}

/// With every signal blocked, too.
TEST_F(blocking, the_signal_that_tells_of_calls_is_never_blocked) {
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const auto o = run_with([] {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    usleep(1);
  });
  expect_refused(o, "clock_nanosleep");
  gw::run<void>([] {}, simulated(2));
  sigset_t after;
  sigprocmask(SIG_SETMASK, &before, &after);
  EXPECT_EQ(sigismember(&after, SIGSYS), 1);
}

void on_signal(int) { static_cast<void>(getppid()); }

TEST_F(blocking, handlers_of_the_program_make_calls) {
  std::signal(SIGUSR1, on_signal);
  expect_refused(run_with([] {
                   raise(SIGUSR1);
                   raise(SIGUSR1);
                   usleep(1);
                 }),
                 "clock_nanosleep");
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_F(blocking, child_processes_and_other_threads_may_block) {
  const int status = gw::run<int>(
      [] {
        int by_thread = 0;
        std::thread([&] { by_thread = usleep(1'000) == 0 ? 1 : 0; }).join();
        return std::system("sleep 0.01; exit 7") + by_thread;
      },
      simulated(2));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(status & 1, 1) << "the other thread";
  gw::run<void>([] { gw::spawn([] { gw::sim::charge(1'000); }).join(); }, simulated(2));
}

TEST_F(blocking, a_forked_child_may_block) {
  const auto o = run_with([] {
    const pid_t child = fork();
    if (child == 0) {
      usleep(1'000);
      execl("/bin/sh", "sh", "-c", "sleep 0.01; echo slept", nullptr);
    }
    siginfo_t ended{};
    while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG) == 0 && ended.si_pid == 0) {
    }
  });
  EXPECT_EQ(o.status, 0) << support::show(o);
  EXPECT_EQ(o.out, "slept\n") << support::show(o);
}

TEST_F(blocking, nothing_is_left_after_a_run) {
  struct sigaction before, after;
  sigaction(SIGSYS, nullptr, &before);
  gw::run<void>([] { gw::spawn([] { gw::sim::charge(1'000); }).join(); }, simulated(3));
  sigaction(SIGSYS, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  EXPECT_EQ(usleep(1), 0);
  EXPECT_EQ(std::system("true"), 0);
  const std::string status = [] {
    std::ifstream file("/proc/self/status");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  EXPECT_NE(status.find("NoNewPrivs:\t0"), std::string::npos);
}

}  // namespace
