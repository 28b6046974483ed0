// Files that an option names and a program of ours writes: none that is somebody else's is overwritten.
//
// Header only, because the report and the benchmarks use it without the library. Called by:
// src/trace/out_file.cpp, tools/report/main.cpp, bench/common. Test: tests/base/output_file_test.cpp.
#pragma once

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace godwit::base {

inline constexpr std::size_t output_head_bytes = 512;

/// Opens the file @p path for writing and emptied; makes it if there is none. A regular file that has
/// something in it is taken only if one of @p marks stands in its first 512 bytes: then it is an earlier
/// output. Terminals, pipes and other devices are taken as they are. Gives back a descriptor (also open for
/// reading where that may be had), or -1 and why not in @p problem. Some system calls.
inline int open_output(const std::string& path, std::initializer_list<std::string_view> marks,
                       std::string& problem) {
  struct stat s {};
  const bool pipe = stat(path.c_str(), &s) == 0 && S_ISFIFO(s.st_mode);  // whose reader must be somebody else
  int fd = open(path.c_str(), (pipe ? O_WRONLY : O_RDWR) | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EACCES) fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || fstat(fd, &s) != 0) {
    problem = std::strerror(errno);
    if (fd >= 0) close(fd);
    return -1;
  }
  if (!S_ISREG(s.st_mode) || s.st_size == 0) return fd;
  char head[output_head_bytes];
  const ssize_t n = pread(fd, head, sizeof head, 0);
  bool ours = false;
  for (const std::string_view mark : marks)
    ours |= n > 0 && std::string_view(head, static_cast<std::size_t>(n)).find(mark) != mark.npos;
  if (ours && ftruncate(fd, 0) == 0) return fd;
  problem = ours ? std::strerror(errno) : "it exists and is no earlier output of this kind";
  close(fd);
  return -1;
}

}  // namespace godwit::base
