// The calls of godwit/io.hpp that change what a descriptor stands for, or how its calls wait: what is known
// of it is forgotten. docs/protocols/events.md, "Descriptors". Test: tests/io/.
#include <godwit/io.hpp>

#include <algorithm>
#include <climits>
#include <fcntl.h>
#include <mutex>
#include <sys/resource.h>

#include "io/descriptors.hpp"
#include "io/events.hpp"
#include "io/system.hpp"

namespace godwit::io {

namespace {

using events::descriptor;
using events::int_with_errno;
using events::managed;
using events::raw;

// As linux/close_range.h has them since 5.9.
#if !defined(SYS_close_range)
#define SYS_close_range 436
#endif
constexpr unsigned range_unshare = 2, range_cloexec = 4;

/// f(), which ends what @p fd stands for. What is known of it is forgotten before, so that who waits is told,
/// and after: somebody may have looked in between.
template <class F>
int replace(int fd, F f) noexcept {
  descriptor* d = managed(fd);
  const auto forget = [d](bool closed) {
    if (d != nullptr && d->state() % descriptor::one_event != 0) d->forget(closed);
  };
  forget(true);
  events::delay();
  const long r = f();
  forget(false);  // others may have the number already
  return int_with_errno(r);
}

/// All but those that workers sleep in.
long close_others(unsigned first, unsigned last, unsigned flags) noexcept {
  const auto [low, high] = events::ours();
  long result = 0;
  for (const int own : {low, high}) {
    const auto number = static_cast<unsigned>(own);
    if (own < 0 || number < first || number > last) continue;
    if (number > first) result = raw(SYS_close_range, long{first}, long{number - 1}, long{flags});
    if (number == last || result < 0) return result;
    first = number + 1;
  }
  return raw(SYS_close_range, long{first}, long{last}, long{flags});
}

}  // namespace

int close(int fd) noexcept {
  const events::none_in_the_making hold;
  // Of somebody that closes all numbers: there is no such descriptor for it.
  if (events::is_ours(fd)) [[unlikely]]
    return int_with_errno(-EBADF);
  return replace(fd, [=] { return events::raw_close(fd); });
}

int close_range(unsigned first, unsigned last, unsigned flags) noexcept {
  if (first > last || (flags & ~range_cloexec) != 0) {
    if ((flags & range_unshare) != 0 && godwit::detail::on_worker()) return int_with_errno(-EINVAL);
    return int_with_errno(raw(SYS_close_range, long{first}, long{last}, long{flags}));
  }
  const bool forgets = flags == 0 && godwit::detail::on_worker();
  if (forgets) {
    // now, not by another worker meanwhile: its descriptors would not be known as ours yet
    events::prepare();
    events::forget_descriptors(first, last, true);
  }
  const long result = close_others(first, last, flags);
  if (forgets) events::forget_descriptors(first, last, false);  // as in replace
  return int_with_errno(result);
}

void closefrom(int first) noexcept {
  first = std::max(first, 0);
  if (io::close_range(static_cast<unsigned>(first), ~0u, 0) == 0) return;
  rlimit limit{};  // a kernel before 5.9
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  for (auto end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX)); first < end; ++first)
    io::close(first);
}

int dup3(int from, int to, int flags) noexcept {
  const events::none_in_the_making hold;
  if (events::is_ours(to) && from != to) [[unlikely]]
    return int_with_errno(-EBUSY);
  const auto call = [=] { return raw(SYS_dup3, from, to, flags); };
  return from != to ? replace(to, call) : int_with_errno(call());
}

int dup2(int from, int to) noexcept {
  if (from != to) return io::dup3(from, to, 0);
  const long exists = raw(SYS_fcntl, from, F_GETFD);
  return int_with_errno(exists < 0 ? exists : to);
}

void forget(int fd) noexcept {
  if (descriptor* d = managed(fd)) d->forget(false);
}

int fcntl(int fd, int command, std::intptr_t argument) noexcept {
  long r;
  if (descriptor* d = command == F_SETFL || command == F_GETFL ? managed(fd) : nullptr; d != nullptr) {
    // by without_waiting: it would be seen, and what is set here would be undone
    const std::lock_guard not_changed_now(d->mode);
    r = raw(SYS_fcntl, fd, command, argument);
  } else {
    r = raw(SYS_fcntl, fd, command, argument);
  }
  if (command == F_SETFL && r >= 0) forget(fd);
  return int_with_errno(r);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) noexcept {
  const long r = raw(SYS_setsockopt, fd, level, name, value, bytes);
  if (r >= 0 && level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) forget(fd);
  return int_with_errno(r);
}

}  // namespace godwit::io
