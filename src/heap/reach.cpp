// See reach.hpp.
#include "heap/reach.hpp"

#include "heap/part.hpp"
#include "heap/pool.hpp"
#include "heap/roots.hpp"
#include "transport/shm/pages.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>

namespace godwit::heap {

namespace {

using transport::shm::shared_pages;

/// Of pages, so that addresses of blocks do not stay behind in free memory of malloc, where the next search
/// would find them.
template <class T>
class table {
 public:
  explicit table(std::uint64_t count)
      : pages_(std::max<std::uint64_t>(1, count) * sizeof(T), "raise the limit on memory (ulimit -v)") {}
  T& operator[](std::uint64_t i) noexcept { return reinterpret_cast<T*>(pages_.data())[i]; }
  std::uint64_t size() const noexcept { return pages_.size() / sizeof(T); }

 private:
  shared_pages pages_;
};

/// Addresses of blocks that are known and have not been searched.
class to_do {
 public:
  bool empty() const noexcept { return count_ == 0; }
  void push(std::byte* block) {
    if (count_ == addresses_.size()) {
      table<std::byte*> larger(2 * count_);
      std::memcpy(&larger[0], &addresses_[0], count_ * sizeof block);
      addresses_ = std::move(larger);
    }
    addresses_[count_++] = block;
  }
  std::byte* pop() noexcept { return addresses_[--count_]; }

 private:
  table<std::byte*> addresses_{64 << 10};
  std::uint64_t count_ = 0;
};

class search {
 public:
  explicit search(const transport::shm::window& memory) : memory_(memory) {
    for (std::uint64_t i = 0; i < all_.fresh; i += all_.table[i].spans) note(i);
  }
  /// Blocks of threads that nothing has led to.
  std::uint64_t missing() const noexcept { return missing_; }

  void from_mains_blocks() {
    each_run([&](span& s, std::byte* first) {
      if (!is_mains(s)) return;
      for (std::uint32_t n = 0; n < blocks_of(s); ++n)
        if (std::byte* const b = first + std::uint64_t{n} * s.block_bytes; !is_seen(b)) see(s, b);
      go_on();
    });
  }
  void from(std::span<const std::uintptr_t> words) {
    look_at(words);
    go_on();
  }
  void free_missing() noexcept {
    each_run([&](span& s, std::byte* first) {
      if (is_mains(s)) return;
      if (s.kind == run_kind::large) {
        if (!is_seen(first)) pool::give(&s);
        return;
      }
      part* const owner = s.owner;  // with the last block the run is not its any more
      const std::uint64_t count = s.fresh, bytes = s.block_bytes;
      for (std::uint64_t n = 0; n < count; ++n)
        if (std::byte* const b = first + n * bytes; !is_seen(b)) free(owner, b);
    });
  }

 private:
  static constexpr unsigned unit_bits = 4;  // no block is smaller
  static constexpr std::uint64_t units = span_bytes >> unit_bits;

  static std::uint32_t blocks_of(const span& s) noexcept { return s.kind == run_kind::small ? s.fresh : 1; }
  /// The run at entry @p i: where its blocks are, and which of them are free, which is like being seen.
  void note(std::uint64_t i) noexcept {
    span& s = all_.table[i];
    if (s.kind == run_kind::free) return;
    for (std::uint64_t k = i; k < i + s.spans; ++k) run_of_[k] = i + 1;
    std::uint64_t used = blocks_of(s);
    if (s.kind == run_kind::small)
      for (block* b = s.free; b != nullptr; b = b->next, --used) set_seen(reinterpret_cast<std::byte*>(b));
    if (!is_mains(s)) missing_ += used;
  }
  /// Runs that were in use when the search began.
  template <class F>
  void each_run(F&& f) {
    for (std::uint64_t i = 0; i < fresh_; ++i)
      if (run_of_[i] == i + 1) f(all_.table[i], bytes_of(all_.table + i));
  }

  std::uint64_t unit_of(const std::byte* block) const noexcept {
    return static_cast<std::uint64_t>(block - all_.spans) >> unit_bits;
  }
  bool is_seen(const std::byte* block) noexcept {
    const std::uint64_t u = unit_of(block);
    return (seen_[u / 64] >> u % 64 & 1) != 0;
  }
  void set_seen(const std::byte* block) noexcept {
    const std::uint64_t u = unit_of(block);
    seen_[u / 64] |= std::uint64_t{1} << u % 64;
  }
  void see(const span& s, std::byte* block) {
    set_seen(block);
    if (!is_mains(s)) --missing_;
    to_do_.push(block);
  }

  void look_at(std::span<const std::uintptr_t> words) {
    for (const std::uintptr_t word : words) {
      const std::uint64_t offset = word - here.begin;
      if (offset >= fresh_ << span_bits) continue;
      const std::uint64_t run = run_of_[offset >> span_bits];
      if (run == 0) continue;
      const span& s = all_.table[run - 1];
      std::byte* block = bytes_of(&s);
      if (s.kind == run_kind::small) {
        const std::uint64_t n = (offset - ((run - 1) << span_bits)) / s.block_bytes;
        if (n >= s.fresh) continue;
        block += n * s.block_bytes;
      }
      if (!is_seen(block)) see(s, block);
    }
  }
  void go_on() {
    while (!to_do_.empty()) {
      std::byte* const block = to_do_.pop();
      const span& s = *run_at(block);
      if (s.kind == run_kind::small)
        look_at({reinterpret_cast<const std::uintptr_t*>(block), s.block_bytes / sizeof(std::uintptr_t)});
      else
        look_at_large(block, std::uint64_t{s.spans} << span_bits);
    }
  }
  /// Without its pages that were never written: to read one is to make it.
  void look_at_large(const std::byte* block, std::uint64_t bytes) {
    const auto from = static_cast<std::uint64_t>(block - memory_.base()), end = from + bytes;
    for (auto r = memory_.written(from, end); r.from < r.end; r = memory_.written(r.end, end))
      look_at({reinterpret_cast<const std::uintptr_t*>(memory_.base() + r.from),
               (r.end - r.from) / sizeof(std::uintptr_t)});
  }

  const transport::shm::window& memory_;
  common& all_ = *here.all;
  const std::uint64_t fresh_ = all_.fresh;
  table<std::uint64_t> run_of_{fresh_};  // of a span: the first entry of its run, plus 1; 0: it is free
  table<std::uint64_t> seen_{fresh_ * units / 64};
  to_do to_do_;
  std::uint64_t missing_ = 0;
};

}  // namespace

void free_unreachable(const transport::shm::window& memory) noexcept try {
  for (int round = 0; round < 2; ++round)  // the first one sends home what others have found
    each_part([](part& p) { tidy(p); });
  search s(memory);
  if (s.missing() != 0) s.from_mains_blocks();
  const auto look = [&](std::span<const std::uintptr_t> words) {
    s.from(words);
    return s.missing() != 0;
  };
  if (s.missing() != 0 && each_root(look)) s.free_missing();
} catch (const std::exception&) {  // no memory to find out: what is left stays
}

}  // namespace godwit::heap
