// map_file: a file as read-only memory, at one address in all workers of all hosts of a run.
//
//   const gw::mapped_file f = gw::map_file("graph.bin");
//   const std::span<const edge> edges = f.as<edge>();
//   gw::for_each(gw::index_range(0ul, edges.size()), [edges](std::uint64_t i) { use(edges[i]); });
//
// So pointers and spans into it are plain bytes that may be captured, sent and kept in global memory. Each
// host reads its own copy of the file, when a page is first touched, through the system's page cache. Source:
// Itoyori, reading of inputs. docs/decisions/0018-mapped-files.md. Tests: tests/global/map_file_test.cpp. See
// docs/global-memory.md.
#pragma once

#include <godwit/detail/slow_path.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace godwit {

/// What map_file gives: plain bytes, owns nothing. The memory is there until the run ends.
class mapped_file {
 public:
  constexpr mapped_file() noexcept = default;

  const std::byte* data() const noexcept { return data_; }
  /// In bytes.
  std::uint64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// As objects, from the beginning on: as many as are there whole.
  template <class T>
  std::span<const T> as() const noexcept {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4096,
                  "godwit::mapped_file: bytes of a file can be seen as trivially copyable types only");
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  friend mapped_file map_file(const char* path, detail::place where);
  const std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

/// Map the file at @p path for the rest of the run. Inside a run only, from one thread, which may go on at
/// another worker: no std::string holds the path, its bytes would stay behind. A relative path is of that
/// thread's worker. Every host must have the same file there: its size and 16 pages of it are compared.
/// Throws std::logic_error outside a run; std::runtime_error, with worker and cause, if a worker cannot open
/// it, finds another one, or cannot map it; global_bad_alloc if the run has no addresses left for it. Who
/// changes the file meanwhile breaks it for all: shorter, it ends the run by a signal. Cost: a message per
/// worker, and some pages read; no memory of global_limit.
mapped_file map_file(const char* path, detail::place where = detail::place::here());

}  // namespace godwit
