// See private_pages.hpp.
#include "heap/private_pages.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/text.hpp"

namespace godwit::heap {

namespace {

using stack::range;
using function = std::function<bool(const range&, bool)>;

/// What is larger is no memory, but addresses that a tool has reserved for itself.
constexpr std::uintptr_t largest_mapping = std::uintptr_t{4} << 40;

/// Private mappings that may be written, or were: those of files that are read only hold nothing of ours.
std::vector<range> private_mappings() {
  std::vector<range> found;
  for (const std::string& line : base::lines_of("/proc/self/maps")) {
    range at;
    char rights[5] = "";
    unsigned long file = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu", &at.low, &at.high, rights,
                    &file) != 4)
      continue;
    const bool of_the_kernel = line.find("[v") != line.npos;  // vvar, vdso
    if (rights[0] == 'r' && rights[3] == 'p' && (rights[1] == 'w' || (file == 0 && !of_the_kernel)) &&
        at.high - at.low <= largest_mapping)
      found.push_back(at);
  }
  return found;
}

/// Where this OS thread's handlers run, and none does now.
range idle_signal_stack() noexcept {
  stack_t of{};
  if (sigaltstack(nullptr, &of) != 0 || (of.ss_flags & (SS_DISABLE | SS_ONSTACK)) != 0) return {};
  const auto low = reinterpret_cast<std::uintptr_t>(of.ss_sp);
  return {low, low + of.ss_size};
}

/// As the kernel tells by pagemap.
class written_pages {
 public:
  explicit written_pages(const function& f) noexcept
      : f_(f), file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  ~written_pages() {
    if (file_ >= 0) close(file_);
  }
  written_pages(const written_pages&) = delete;
  written_pages& operator=(const written_pages&) = delete;

  /// False: f wants no more.
  bool each_stretch(const range& r) {
    range stretch{r.low, r.low};
    const auto goes_on = [&] { return stretch.high <= stretch.low || f_(stretch, true); };
    for (std::uintptr_t at = r.low; at < r.high;) {
      // The page that a range ends in belongs to it as a whole.
      const std::size_t count = std::min<std::size_t>((r.high - at + page_ - 1) / page_, std::size(entries_));
      const ssize_t got =
          pread(file_, entries_, count * sizeof *entries_, static_cast<off_t>(at / page_ * sizeof *entries_));
      if (got < static_cast<ssize_t>(sizeof *entries_)) return goes_on() && f_({at, r.high}, false);
      for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof *entries_; ++i) {
        const std::uintptr_t next = std::min(r.high, at / page_ * page_ + page_);
        if (is_written(entries_[i])) {
          stretch.high = next;
        } else {
          if (!goes_on()) return false;
          stretch = {next, next};
        }
        at = next;
      }
    }
    return goes_on();
  }

 private:
  static bool is_written(std::uint64_t entry) noexcept {
    constexpr std::uint64_t present = std::uint64_t{1} << 63, swapped = std::uint64_t{1} << 62,
                            of_a_file = std::uint64_t{1} << 61;
    return (entry & (present | swapped)) != 0 && (entry & of_a_file) == 0;
  }

  const function& f_;
  const int file_;
  const std::uintptr_t page_ = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t entries_[1024];
};

}  // namespace

bool each_private_stretch(const range& without, const function& f) {
  const std::vector<range> all = private_mappings();
  std::array holes{without, idle_signal_stack()};
  std::sort(holes.begin(), holes.end(), [](const range& a, const range& b) { return a.low < b.low; });
  written_pages pages(f);
  for (range m : all) {
    for (const range& hole : holes) {
      if (!pages.each_stretch({m.low, std::clamp(hole.low, m.low, m.high)})) return false;
      m.low = std::clamp(hole.high, m.low, m.high);
    }
    if (!pages.each_stretch(m)) return false;
  }
  return !all.empty();
}

}  // namespace godwit::heap
