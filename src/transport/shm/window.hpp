// The window on global memory: one sparse file of shared memory per host, mapped once, at the same address in
// every worker of the run. Byte g of global memory, wherever it lives, has its place at base() + g in every
// host's window: the memory itself on the host that owns it, a cached copy (or nothing yet) on the others.
//
// Pages cost memory only when touched. The file has no name. What lies where is src/gas's business.
// Called by: src/runtime (before the fork), src/gas. Test: tests/transport/window_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace godwit::transport::shm {

class window {
 public:
  window() = default;
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() { destroy(); }

  /// On one machine: make and map. Throws std::runtime_error with cause and remedy: then destroy what is half
  /// made. Call before the fork.
  void create(std::uint64_t bytes);

  // The same in steps, for ranks; see segment.
  void make_file(std::uint64_t bytes);
  std::string file_path() const;
  void open_file(std::uint64_t bytes, const std::string& path);
  static std::uint32_t free_bases(std::uint64_t bytes) noexcept;
  /// The largest of bytes, bytes / 4, bytes / 16 ... that is at least 256 MiB and can be had here; 0: none.
  static std::uint64_t largest(std::uint64_t bytes) noexcept;
  void map(unsigned candidate);
  void destroy() noexcept;

  /// In this process the first @p bytes of the window at @p base are accessible no more.
  static void forbid(std::byte* base, std::uint64_t bytes) noexcept;

  std::byte* base() const noexcept { return base_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  /// Give the whole pages inside [address, address + bytes) back to the system, on this host: they are zero
  /// again.
  static void discard(void* address, std::uint64_t bytes) noexcept;

 private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  int fd_ = -1;
};

}  // namespace godwit::transport::shm
