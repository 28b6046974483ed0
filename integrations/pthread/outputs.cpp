// See outputs.hpp.
#include "outputs.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <linux/futex.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "real.hpp"
#include "runtime/substrate.hpp"

namespace godwit::pthread {

namespace {

// The number of the process that writes. In its environment, which programs that it starts inherit. Variables
// that begin with GODWIT_ are options.
constexpr const char* writer_variable = "_GODWIT_PTHREAD_WRITER";

pid_t writer_ = 0;  // this process, if it writes; a forked child has the number of its parent here
std::uint32_t exiting_ = 0, written_ = 0;  // futexes

pid_t writer_thread_ = 0;  // its number for the kernel

constexpr unsigned look_every_ms = 100, looks = 600, looks_at_the_same_wait = 10;

/// What is written to. In memory of the process itself: it is asked for when the program ends at once.
struct output {
  char path[4096] = "";
  void set(const std::string& p) noexcept {
    if (p != "-" && p.size() < sizeof path) std::memcpy(path, p.c_str(), p.size() + 1);
  }
  /// A file in which nothing will be.
  void remove_if_empty() const noexcept {
    struct stat s {};
    if (path[0] != '\0' && ::stat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_size == 0) ::unlink(path);
  }
};
output trace_, counters_;

/// The program ends without its handlers. Any thread, also inside of a signal's handler.
void leave_nothing_empty() noexcept {
  if (writer_ == 0 || writer_ != ::getpid()) return;
  trace_.remove_if_empty();
  counters_.remove_if_empty();
}

/// False: @p limit has passed without it.
bool wait_for(std::uint32_t& word, const timespec* limit = nullptr) noexcept {
  while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
    if (::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, limit, nullptr, 0) != 0 && errno == ETIMEDOUT)
      return false;
  return true;
}
void say(const std::string& text) { static_cast<void>(!::write(2, text.data(), text.size())); }
void set(std::uint32_t& word) noexcept {
  __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// What the kernel says of a wait of the writer that has no end of its own: for a lock. Empty: it does not
/// wait like that. Allocates nothing: the caller may be inside malloc.
struct lock_wait {
  char text[256] = "";
  bool operator==(const lock_wait& x) const noexcept { return std::strcmp(text, x.text) == 0; }
  bool any() const noexcept { return text[0] != '\0'; }
};
lock_wait wait_of_writer() noexcept {
  lock_wait wait;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall",
                __atomic_load_n(&writer_thread_, __ATOMIC_ACQUIRE));
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return wait;
  const ssize_t size = ::read(file, wait.text, sizeof wait.text - 1);
  ::close(file);
  wait.text[size > 0 ? size : 0] = '\0';
  int call = -1;
  unsigned long long limit = 1;
  if (std::sscanf(wait.text, "%d %*x %*x %*x %llx", &call, &limit) != 2 || call != SYS_futex || limit != 0)
    wait.text[0] = '\0';
  return wait;
}

/// On a stack of its own: that of the thread that exits may be small.
void* write_at_exit(void*) {
  __atomic_store_n(&writer_thread_, static_cast<pid_t>(::syscall(SYS_gettid)), __ATOMIC_RELEASE);
  wait_for(exiting_);
  try {
    runtime::write_outputs_of_midst();
  } catch (const std::exception& e) {
    const std::string text = e.what();
    say((text.starts_with("godwit: ") ? "" : "godwit: cannot write the counters or the trace: ") + text +
        "\n");
  }
  set(written_);
  return nullptr;
}

/// After the destructors of C++ objects, this library's too. The thread that exits may hold a lock that the
/// writer needs, such as stdout's, if it was interrupted by a signal.
[[gnu::destructor]] void write_outputs() noexcept {
  if (writer_ == 0 || writer_ != ::getpid()) return;
  set(exiting_);
  const timespec look_every{0, look_every_ms * 1'000'000};
  lock_wait before;
  unsigned same = 0;
  for (unsigned i = 0; i < looks; ++i) {
    if (wait_for(written_, &look_every)) return;
    const lock_wait now = wait_of_writer();
    same = now.any() && now == before ? same + 1 : 0;
    before = now;
    if (same == looks_at_the_same_wait)
      return say(
          "godwit: the counters or the trace are incomplete: the thread that ended the program holds a lock "
          "that "
          "writing needs, of malloc or of a stream: end the program outside of signal handlers, and without "
          "flockfile\n");
  }
  say("godwit: the counters or the trace are incomplete: they were not written within a minute\n");
}

/// The program may change its folder.
void make_absolute(std::string& path) {
  if (!path.empty() && path != "-") path = std::filesystem::absolute(path).string();
}

}  // namespace

void begin_outputs(options& opts) {
  if (opts.trace.empty() && opts.stats_json.empty() && !opts.stats) return;
  const std::string me = std::to_string(::getpid());
  const char* writer = std::getenv(writer_variable);
  if (writer != nullptr && writer != me) {
    opts.trace = opts.stats_json = "";
    opts.stats = false;
    return;
  }
  setenv(writer_variable, me.c_str(), 1);
  make_absolute(opts.trace);
  make_absolute(opts.stats_json);
  trace_.set(opts.trace);
  counters_.set(opts.stats_json);
  std::at_quick_exit(leave_nothing_empty);  // the first of them, so the last to be called
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, write_at_exit, nullptr) != 0)
    throw std::runtime_error("cannot start a thread: raise the limit on processes (ulimit -u)");
  pthread_detach(thread);
  writer_ = ::getpid();
}

}  // namespace godwit::pthread

GODWIT_REAL(_exit);

GODWIT_EXPORT_NORETURN void _exit(int status) {
  godwit::pthread::leave_nothing_empty();
  REAL(_exit)(status);
  __builtin_unreachable();
}

GODWIT_EXPORT_NORETURN void _Exit(int status) { _exit(status); }
