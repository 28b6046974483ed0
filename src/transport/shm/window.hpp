// A window: one sparse file of shared memory per host, mapped once, at the same address in every worker
// of the run. There is one on global memory, and one on the heap that the workers of a host share.
//
// Byte g of global memory, wherever it lives, has its place at base() + g in every host's window: the memory
// itself on the host that owns it, a cached copy (or nothing yet) on the others. Pages cost memory only when
// touched. The file has no name. What lies where is the business of src/gas and src/heap.
// Called by: src/runtime (before the fork), src/gas, src/heap. Test: tests/transport/window_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace godwit::transport::shm {

/// What a window is on: how its file and its errors are called.
struct window_use {
  const char* file;
  const char* prefix;  ///< begins an error
  const char* remedy;  ///< how to need less
};
inline constexpr window_use of_global{
    "godwit-global", "godwit: global memory: ", "lower --godwit-global-bytes (GODWIT_GLOBAL_BYTES)"};
inline constexpr window_use of_heap{"godwit-heap",
                                    "godwit: the threads' heap: ", "use --godwit-heap=private (GODWIT_HEAP)"};
inline constexpr window_use of_shared_objects{
    "godwit-shared", "godwit: shared objects: ", "use --godwit-substrate=threads (GODWIT_SUBSTRATE)"};

class window {
 public:
  explicit window(const window_use& use = of_global) noexcept : use_(use) {}
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() { destroy(); }

  /// On one machine: make and map. Throws std::runtime_error with cause and remedy: then destroy what is half
  /// made. Call before the fork.
  /// @p keep_file: for make_private.
  void create(std::uint64_t bytes, bool keep_file = false);

  // The same in steps, for ranks; see segment.
  void make_file(std::uint64_t bytes);
  std::string file_path() const;
  void open_file(std::uint64_t bytes, const std::string& path);
  static std::uint32_t free_bases(std::uint64_t bytes) noexcept;
  /// The largest of bytes, bytes / 4, bytes / 16 ... that is at least 256 MiB and can be had here; 0: none.
  /// @p count: so many side by side.
  static std::uint64_t largest(std::uint64_t bytes, std::uint32_t count = 1) noexcept;
  /// Before map: this is number @p number of @p count windows side by side, of as many bytes. The others are
  /// other hosts', and inaccessible here.
  void lie_beside(std::uint32_t number, std::uint32_t count) noexcept {
    number_ = number;
    count_ = count;
  }
  void map(unsigned candidate);
  /// In a forked child: what is written from now on is this process's alone. False: the system refuses.
  bool make_private() noexcept;
  void destroy() noexcept;

  /// In this process the first @p bytes of the window at @p base are accessible no more.
  static void forbid(std::byte* base, std::uint64_t bytes) noexcept;

  /// The first bytes in [from, end), offsets in the window, that may be other than zero: whole pages, empty
  /// if there are none. Reading them costs no memory. Needs the file, else: all. Three system calls.
  struct bytes_range {
    std::uint64_t from, end;
  };
  bytes_range written(std::uint64_t from, std::uint64_t end) const noexcept;

  std::byte* base() const noexcept { return base_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// With those that lie beside it.
  std::byte* base_of_all() const noexcept { return base_ - number_ * bytes_; }
  std::uint64_t bytes_of_all() const noexcept { return count_ * bytes_; }

  /// Give the whole pages inside [address, address + bytes) back to the system, on this host: they are zero
  /// again.
  static void discard(void* address, std::uint64_t bytes) noexcept;

  /// The pages of [address, address + bytes) will be written soon: have them all at once, if the system can.
  static void populate(void* address, std::uint64_t bytes) noexcept;

  /// A core file of this process will hold the pages of [from, to). Of windows it holds nothing else. In a
  /// signal handler.
  static void put_into_core_file(const void* from, const void* to) noexcept;

 private:
  bool has_file() const noexcept;

  const window_use& use_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint32_t number_ = 0, count_ = 1;
  int fd_ = -1;
  std::uint64_t file_ = 0;  ///< the file's number: the program may have closed it, and opened another
};

}  // namespace godwit::transport::shm
