// See roots.hpp.
#include "heap/roots.hpp"

#include "base/text.hpp"
#include "stack/stack.hpp"
#include "transport/shm/pages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

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

/// Private mappings that may be written, or were: those of files that are read only hold no pointers.
std::vector<range> private_mappings() {
  std::vector<range> found;
  for (const std::string& line : base::lines_of("/proc/self/maps")) {
    unsigned long low = 0, high = 0, file_number = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &low, &high, rights, &file_number) == 4 &&
        rights[3] == 'p' && (rights[1] == 'w' || (rights[0] == 'r' && file_number == 0)))
      found.push_back({low, high});
  }
  return found;
}

/// Reads the process's memory as a file: what another OS thread unmaps meanwhile is an error, and no fault.
class reader {
 public:
  explicit reader(const piece_function& f) : f_(f) {}
  bool can() const noexcept { return memory_.fd >= 0 && pages_.fd >= 0; }
  /// False: f wants no more.
  bool read(range r) {
    while (r.low < r.high) {
      const std::uint64_t count = std::min<std::uint64_t>(entries, (r.high - r.low + page - 1) / page);
      auto* const in_use = reinterpret_cast<std::uint64_t*>(buffer_.data() + bytes);
      const ssize_t got =
          pread(pages_.fd, in_use, count * sizeof *in_use, static_cast<off_t>(r.low / page * sizeof *in_use));
      const std::uint64_t known = got > 0 ? static_cast<std::uint64_t>(got) / sizeof *in_use : 0;
      if (known == 0) return read_all(r);  // the system does not tell which ones are in use
      const std::uintptr_t first = r.low / page * page;
      for (std::uint64_t i = 0; i < known;) {
        const std::uint64_t begin = i;
        while (i < known && (in_use[i] & (present | swapped)) != 0) ++i;
        const range used{std::max(r.low, first + begin * page), std::min(r.high, first + i * page)};
        if (i != begin && !read_all(used)) return false;
        if (i == begin) ++i;
      }
      r.low = first + known * page;
    }
    return true;
  }

 private:
  bool read_all(range r) {
    while (r.low < r.high) {
      const ssize_t got = pread(memory_.fd, buffer_.data(), std::min<std::uint64_t>(bytes, r.high - r.low),
                                static_cast<off_t>(r.low));
      if (got <= 0) {  // no memory of the program's
        r.low = r.low / page * page + page;
        continue;
      }
      const auto* const words = reinterpret_cast<const std::uintptr_t*>(buffer_.data());
      if (!f_({words, static_cast<std::size_t>(got) / sizeof *words})) return false;
      r.low += static_cast<std::uintptr_t>(got);
    }
    return true;
  }

  static constexpr std::size_t bytes = 256 << 10;    // of memory, read at once
  static constexpr std::uint64_t entries = 8 << 10;  // of /proc/self/pagemap
  static constexpr std::uint64_t present = std::uint64_t{1} << 63, swapped = std::uint64_t{1} << 62;
  const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));

  const piece_function& f_;
  file memory_{"/proc/self/mem"}, pages_{"/proc/self/pagemap"};
  // Not of malloc: copies of pointers would be found there the next time.
  transport::shm::shared_pages buffer_{bytes + entries * sizeof(std::uint64_t),
                                       "raise the limit on memory (ulimit -v)"};
};

[[gnu::noinline]] bool read_all(const piece_function& f) {
  // What lies below is nobody's any more.
  const auto live = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) / 16 * 16;
  const range own = stack::whole_system_stack();
  const std::vector<range> all = private_mappings();
  reader r(f);
  if (!r.can() || all.empty()) return false;
  for (const range& m : all) {
    if (!own.holds(live) || m.high <= own.low || m.low >= live) {
      if (!r.read(m)) return true;
      continue;
    }
    if (m.low < own.low && !r.read({m.low, own.low})) return true;
    if (m.high > live && !r.read({live, m.high})) return true;
  }
  return true;
}

}  // namespace

[[gnu::noinline]] bool each_root(const piece_function& f) {
  __builtin_unwind_init();  // what the callers have in registers lies in this frame
  const bool all = read_all(f);
  asm volatile("" ::: "memory");  // it lies there until then
  return all;
}

}  // namespace godwit::heap
