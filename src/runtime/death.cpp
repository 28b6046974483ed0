// See death.hpp.
#include "runtime/death.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include "base/code_place.hpp"

namespace godwit::runtime {

namespace {

/// What snprintf gave back, as the number of bytes that are there.
int written(int n, std::size_t size) noexcept { return std::clamp(n, 0, static_cast<int>(size) - 1); }

/// " (bash)", nothing if the process is gone.
int name_of(std::uint64_t pid, char* text, std::size_t size) noexcept {
  char path[40], name[64] = {};
  std::snprintf(path, sizeof path, "/proc/%llu/comm", static_cast<unsigned long long>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, name, sizeof name - 1);
  close(fd);
  if (n <= 1) return 0;
  name[n - 1] = 0;  // the end of the line
  return written(std::snprintf(text, size, " (%s)", name), size);
}

}  // namespace

int describe_code(char* text, std::size_t size, std::uint64_t code) noexcept {
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(code), &where) == 0 || where.dli_fname == nullptr)
    return written(std::snprintf(text, size, "code at 0x%llx", static_cast<unsigned long long>(code)), size);
  const char* file = std::strrchr(where.dli_fname, '/');
  return written(
      std::snprintf(
          text, size, "%s (%s+0x%llx)", where.dli_sname != nullptr ? where.dli_sname : "code",
          file != nullptr ? file + 1 : where.dli_fname,
          static_cast<unsigned long long>(code - reinterpret_cast<std::uintptr_t>(where.dli_fbase))),
      size);
}

int describe_sender(char* text, std::size_t size, std::uint64_t sender, std::uint64_t user,
                    std::uint64_t self) noexcept {
  const std::uint64_t pid = sender - 1;
  if (pid == 0)
    return written(std::snprintf(text, size, ", which a process outside this container sent"), size);
  if (pid == self) return written(std::snprintf(text, size, ", which it sent to itself"), size);
  int n =
      written(std::snprintf(text, size, ", which process %llu", static_cast<unsigned long long>(pid)), size);
  n += name_of(pid, text + n, size - static_cast<std::size_t>(n));
  const std::size_t left = size - static_cast<std::size_t>(n);
  return n +
         written(std::snprintf(text + n, left, " of user %llu sent", static_cast<unsigned long long>(user)),
                 left);
}

int describe_signal(char* text, std::size_t size, int signal, const cause_of_death& why) noexcept {
  int n =
      written(std::snprintf(text, size, " was killed by signal %d (%s)", signal, strsignal(signal)), size);
  const std::size_t left = size - static_cast<std::size_t>(n);
  if (why.sender != 0) {
    if (signal != SIGABRT || why.sender - 1 != why.self)  // abort() does
      n += describe_sender(text + n, left, why.sender, why.user, why.self);
    return n;
  }
  if (signal == SIGKILL)
    return n + written(std::snprintf(text + n, left,
                                     ": by somebody, or by the system because memory ran out (dmesg, and the "
                                     "limit of the control group)"),
                       left);
  if (why.code == 0) return n;
  return n + written(std::snprintf(text + n, left, " at address 0x%llx",
                                   static_cast<unsigned long long>(why.address)),
                     left);
}

std::string describe_place(const cause_of_death& why) {
  std::vector<std::uintptr_t> code;
  for (const std::uintptr_t frame : why.frames)
    if (frame != 0) code.push_back(frame == why.code ? frame + 1 : frame);  // as if it were a call
  constexpr std::size_t most_lines = 4;
  std::string text, before;
  for (const std::string& line : base::lines_of(code, most_lines)) {
    const std::string place = base::place_in_line(line);
    if (text.empty())
      text = ", in " + line;
    else if (place != before)
      text += (text.ends_with(')') ? ", called at " : ", ") + place;
    before = place;
  }
  const std::uint64_t first = why.code != 0 ? why.code : why.frames[0];
  if (!text.empty() || first == 0) return text;
  char only[512];
  describe_code(only, sizeof only, first);
  return std::string(", in ") + only;
}

}  // namespace godwit::runtime
