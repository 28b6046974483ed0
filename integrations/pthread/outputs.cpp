// See outputs.hpp.
#include "outputs.hpp"

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <linux/futex.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/substrate.hpp"

namespace godwit::pthread {

namespace {

// The number of the process that writes. In its environment, which programs that it starts inherit. Variables
// that begin with GODWIT_ are options.
constexpr const char* writer_variable = "_GODWIT_PTHREAD_WRITER";

pid_t writer_ = 0;  // this process, if it writes; a forked child has the number of its parent here
std::uint32_t exiting_ = 0, written_ = 0;  // futexes

constexpr std::int64_t patience_s = 60;

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

/// On a stack of its own: that of the thread that exits may be small.
void* write_at_exit(void*) {
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
  const timespec limit{patience_s, 0};
  if (!wait_for(written_, &limit))
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
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, write_at_exit, nullptr) != 0)
    throw std::runtime_error("cannot start a thread: raise the limit on processes (ulimit -u)");
  pthread_detach(thread);
  writer_ = ::getpid();
}

}  // namespace godwit::pthread
