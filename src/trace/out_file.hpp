// A file that is written from its beginning, in large pieces, and can be read back meanwhile.
//
// Errors after opening are remembered, not thrown: a full disk must not change what a run gives back. The caller asks
// problem() at the end. Called by: trace_file.cpp, perfetto.cpp, src/runtime (stats). Test: tests/trace/file_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::trace {

class out_file {
 public:
  /// Makes or empties the file @p path; "-" is standard output. Throws std::invalid_argument: one line, with
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

  bool is_regular() const noexcept;
  std::uint64_t size() const noexcept { return flushed_ + buffer_.size(); }
  const std::string& path() const noexcept { return path_; }
  /// Why the file is not complete; empty: it is.
  const std::string& problem() const noexcept { return problem_; }

 private:
  std::string path_;
  std::string buffer_;
  std::string problem_;
  std::uint64_t flushed_ = 0;
  int fd_ = -1;
};

}  // namespace godwit::trace
