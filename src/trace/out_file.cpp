// See out_file.hpp.
#include "trace/out_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/output_file.hpp"
#include "trace/file.hpp"

namespace godwit::trace {

namespace {
constexpr std::size_t buffer_bytes = 1 << 20;
}

out_file::out_file(const std::string& path, const char* option) : path_(path), option_(option) {
  open();
  buffer_.reserve(buffer_bytes);
}

void out_file::open() {
  std::string problem;
  // What trace_file, of any version (the last character), and the counters as JSON begin with.
  const std::string_view trace_begins{raw_magic, sizeof raw_magic - 1}, counters_begin = "{\"godwit\":";
  fd_ = path_ == "-" ? fcntl(1, F_DUPFD_CLOEXEC, 3)
                     : base::open_output(path_, {trace_begins, counters_begin}, problem);
  if (fd_ < 0)
    throw std::invalid_argument("godwit: cannot write " + path_ + ": " +
                                (path_ == "-" ? std::strerror(errno) : problem) + ": give --godwit-" +
                                option_ + " a file in a folder that exists and can be written");
  if (fd_ < 3) move_from(3);
}

void out_file::move_from(int least) {
  if (const int other = fcntl(fd_, F_DUPFD_CLOEXEC, least); other >= 0) close(std::exchange(fd_, other));
}

void out_file::pause() {
  constexpr int out_of_the_way = 200;
  if (target_ >= 0) close(std::exchange(fd_, std::exchange(target_, -1)));
  fstat(fd_, &paused_);
  if (path_ == "-" || !S_ISREG(paused_.st_mode))
    move_from(out_of_the_way);
  else
    close(std::exchange(fd_, -1));
}

void out_file::resume() {
  struct stat s {};
  if (fd_ < 0 || fstat(fd_, &s) != 0 || s.st_dev != paused_.st_dev || s.st_ino != paused_.st_ino) open();
}

bool out_file::is_same_file(const out_file& other) const noexcept {
  struct stat a {
  }, b{};
  return fstat(fd_, &a) == 0 && fstat(other.fd_, &b) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

out_file::~out_file() {
  finish();
  close(fd_);
  if (target_ >= 0) close(target_);
}

void out_file::make_readable() {
  struct stat s {};
  if (path_ != "-" && fstat(fd_, &s) == 0 && S_ISREG(s.st_mode)) return;
  std::FILE* f = std::tmpfile();
  const int meanwhile = f != nullptr ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 3) : -1;
  if (meanwhile < 0)
    throw std::invalid_argument("godwit: cannot make a temporary file for what goes to " + path_ +
                                ", which is no regular file (" + std::strerror(errno) +
                                "): give --godwit-trace the name of a file");
  std::fclose(f);
  target_ = std::exchange(fd_, meanwhile);
}

void out_file::finish() {
  flush();
  if (target_ < 0) return;
  std::vector<char> piece(buffer_bytes);
  while (passed_on_ < flushed_ && problem_.empty()) {
    const std::size_t n = read(passed_on_, piece.data(), piece.size());
    if (n == 0) break;
    write_all(target_, piece.data(), n);
    passed_on_ += n;
  }
}

void out_file::write(const void* data, std::size_t bytes) {
  if (buffer_.size() + bytes > buffer_bytes) flush();
  buffer_.append(static_cast<const char*>(data), bytes);
}

void out_file::write_all(int fd, const char* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes && problem_.empty();) {
    const ssize_t n = ::write(fd, data + done, bytes - done);
    if (n >= 0)
      done += static_cast<std::size_t>(n);
    else if (errno != EINTR)
      problem_ = std::strerror(errno);
  }
}

void out_file::flush() {
  write_all(fd_, buffer_.data(), buffer_.size());
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
