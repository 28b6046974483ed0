// A file that is written from its beginning, in large pieces, and can be read back meanwhile if it is regular
// (or make_readable).
//
// Errors after opening are remembered, not thrown: a full disk must not change what a run gives back. The
// caller asks problem() at the end. Called by: trace_file.cpp, perfetto.cpp, src/runtime (stats). Test:
// tests/trace/file_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace godwit::trace {

class out_file {
 public:
  /// Makes or empties the file @p path; "-" is standard output. A file that is no earlier output of ours
  /// stays. Throws std::invalid_argument: one line, with
  /// @p option as the remedy.
  out_file(const std::string& path, const char* option);
  ~out_file();
  out_file(const out_file&) = delete;
  out_file& operator=(const out_file&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void flush();
  /// Up to @p bytes from offset @p at of what was flushed; 0 at the end or on an error.
  std::size_t read(std::uint64_t at, void* to, std::size_t bytes);

  /// What is no regular file cannot be read back: from here on it gets everything at once, by finish().
  /// Before the first write. Throws std::invalid_argument.
  void make_readable();
  /// Before the first write: the program goes on, and may close all descriptors. A regular file is closed; a
  /// pipe, whose reader would go, and standard output stay open, at a number where they are in nobody's way.
  void pause();
  /// As before pause; make_readable does not last. Throws std::invalid_argument.
  void resume();
  /// The last word: all that was written is in the file, or problem() says why not.
  void finish();
  std::uint64_t size() const noexcept { return flushed_ + buffer_.size(); }
  const std::string& path() const noexcept { return path_; }
  /// Both are the same regular file, whatever its names.
  bool is_same_file(const out_file& other) const noexcept;
  /// Why the file is not complete; empty: it is.
  const std::string& problem() const noexcept { return problem_; }

 private:
  std::string path_;
  const char* option_;
  std::string buffer_;
  std::string problem_;
  std::uint64_t flushed_ = 0;
  int fd_ = -1;
  int target_ = -1;  // make_readable: the file, while fd_ is a temporary one
  std::uint64_t passed_on_ = 0;
  struct stat paused_ {};

  void open();
  /// To a number that is not lower.
  void move_from(int least);
  void write_all(int fd, const char* data, std::size_t bytes);
};

}  // namespace godwit::trace
