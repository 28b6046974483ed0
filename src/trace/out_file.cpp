// See out_file.hpp.
#include "trace/out_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace godwit::trace {

namespace {
constexpr std::size_t buffer_bytes = 1 << 20;
}

out_file::out_file(const std::string& path, const char* option) : path_(path) {
  fd_ = path == "-" ? dup(1) : open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0)
    throw std::invalid_argument("godwit: cannot write " + path + ": " + std::strerror(errno) +
                                ": give --godwit-" + option + " a file in a folder that exists and can be written");
  buffer_.reserve(buffer_bytes);
}

out_file::~out_file() {
  flush();
  close(fd_);
}

bool out_file::is_regular() const noexcept {
  struct stat s{};
  return path_ != "-" && fstat(fd_, &s) == 0 && S_ISREG(s.st_mode);
}

void out_file::write(const void* data, std::size_t bytes) {
  if (buffer_.size() + bytes > buffer_bytes) flush();
  buffer_.append(static_cast<const char*>(data), bytes);
}

void out_file::flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t n = problem_.empty() ? ::write(fd_, buffer_.data() + done, buffer_.size() - done) : -1;
    if (n < 0 && problem_.empty()) {
      if (errno == EINTR) continue;
      problem_ = std::strerror(errno);
    }
    if (!problem_.empty()) break;
    done += static_cast<std::size_t>(n);
  }
  flushed_ += buffer_.size();
  buffer_.clear();
}

std::size_t out_file::read(std::uint64_t at, void* to, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = pread(fd_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace godwit::trace
