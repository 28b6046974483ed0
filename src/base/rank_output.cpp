// See rank_output.hpp.
#include "base/rank_output.hpp"

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace godwit::base {
namespace {

int real_ = -1;  // what descriptor 1 was at the start; -1: not silenced
int null_ = -1;
bool open_ = true;

/// Out of the way of programs that count on the next free descriptor being a small one.
int keep(int fd) noexcept {
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 200);
  return kept >= 0 ? kept : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

void turn_to(int fd, bool open) noexcept {
  if (real_ < 0 || open_ == open) return;
  try {
    std::cout.flush();
  } catch (...) {  // the stream was told to throw
  }
  std::fflush(stdout);
  dup2(fd, STDOUT_FILENO);
  open_ = open;
}

}  // namespace

void settle_output() noexcept {
  static char buffer[16 * 1024];
  std::setvbuf(stdout, buffer, isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF, sizeof buffer);
}

void silence_output() noexcept {
  if (real_ >= 0) return;
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0) return;
  null_ = keep(null);
  real_ = null_ >= 0 ? keep(STDOUT_FILENO) : -1;  // fails when it is closed: nothing to silence
  close(null);
  if (real_ < 0) {
    if (null_ >= 0) close(null_);
    null_ = -1;
    return;
  }
  dup2(null_, STDOUT_FILENO);
  open_ = false;
}

void open_output() noexcept { turn_to(real_, true); }

void write_whole_lines() noexcept {
  constexpr std::size_t unbuffered = 1;  // as the program asked for
  if (__fbufsize(stdout) != unbuffered) std::setvbuf(stdout, nullptr, _IOLBF, 0);
}

void close_output() noexcept { turn_to(null_, false); }

}  // namespace godwit::base
