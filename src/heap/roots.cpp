// See roots.hpp.
#include "heap/roots.hpp"

#include "heap/private_pages.hpp"
#include "transport/shm/pages.hpp"

#include <algorithm>
#include <cstddef>
#include <fcntl.h>
#include <unistd.h>

namespace godwit::heap {

namespace {

using piece_function = std::function<bool(std::span<const std::uintptr_t>)>;
using stack::range;

struct file {
  explicit file(const char* path) noexcept : fd(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~file() {
    if (fd >= 0) close(fd);
  }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  const int fd;
};

/// Reads the process's memory as a file: what another OS thread unmaps meanwhile is an error, and no fault.
class reader {
 public:
  explicit reader(const piece_function& f) : f_(f) {}
  bool can() const noexcept { return memory_.fd >= 0; }
  bool is_enough() const noexcept { return enough_; }
  /// False: f wants no more.
  bool read(range r) {
    while (r.low < r.high) {
      const ssize_t got = pread(memory_.fd, buffer_.data(), std::min<std::uint64_t>(bytes, r.high - r.low),
                                static_cast<off_t>(r.low));
      if (got <= 0) {  // no memory of the program's
        r.low = r.low / page * page + page;
        continue;
      }
      const auto* const words = reinterpret_cast<const std::uintptr_t*>(buffer_.data());
      enough_ = !f_({words, static_cast<std::size_t>(got) / sizeof *words});
      if (enough_) return false;
      r.low += static_cast<std::uintptr_t>(got);
    }
    return true;
  }

 private:
  static constexpr std::size_t bytes = 256 << 10;  // read at once
  const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));

  const piece_function& f_;
  file memory_{"/proc/self/mem"};
  // Not of malloc: copies of pointers would be found there the next time.
  transport::shm::shared_pages buffer_{bytes, "raise the limit on memory (ulimit -v)"};
  bool enough_ = false;
};

[[gnu::noinline]] bool read_all(const piece_function& f) {
  // What lies below is nobody's any more.
  const auto live = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) / 16 * 16;
  const range own = stack::whole_system_stack();
  reader r(f);
  return r.can() && (each_private_stretch(own.holds(live) ? range{own.low, live} : range{},
                                          [&r](const range& m, bool) { return r.read(m); }) ||
                     r.is_enough());
}

}  // namespace

[[gnu::noinline]] bool each_root(const piece_function& f) {
  __builtin_unwind_init();  // what the callers have in registers lies in this frame
  const bool all = read_all(f);
  asm volatile("" ::: "memory");  // it lies there until then
  return all;
}

}  // namespace godwit::heap
