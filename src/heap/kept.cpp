// See kept.hpp.
#include "heap/kept.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/valgrind.hpp"
#include "heap/counted_types.hpp"
#include "heap/private_pages.hpp"
#include "stack/stack.hpp"

extern "C" [[gnu::weak]] char __libc_single_threaded;

// Whatever bytes there are is looked at.
#define GODWIT_NO_ASAN __attribute__((no_sanitize("address", "undefined")))

namespace godwit::heap {

namespace {

constexpr int plenty = 1 << 30;

/// A class of kept objects, and what its table said.
struct kept_type {
  counted_type type;
  counted_table::function dispose, destroy;
};

// Never destroyed: in a worker that calls exit, what other variables own is dropped later.
auto& kept_ = *new std::vector<std::uintptr_t>;  // addresses of control blocks, rising
auto& types_ = *new std::vector<kept_type>;      // by the addresses of their tables

// ---- Finding them

/// Which words may be the address of a table: never no for one that is.
class sieve {
 public:
  explicit sieve(const std::vector<counted_type>& types) noexcept {
    for (const counted_type& t : types) passes_[hash(reinterpret_cast<std::uintptr_t>(t.table))] = 1;
  }
  /// The first of [at, end) that passes, else end.
  GODWIT_NO_ASAN const std::uintptr_t* next(const std::uintptr_t* at,
                                            const std::uintptr_t* end) const noexcept {
    for (; end - at >= 8; at += 8) {
      unsigned char any = 0;
      for (int i = 0; i < 8; ++i) any |= passes_[hash(at[i])];
      if (any != 0) break;
    }
    while (at != end && passes_[hash(*at)] == 0) ++at;
    return at;
  }

 private:
  static constexpr unsigned bits = 14;
  static std::size_t hash(std::uintptr_t word) noexcept { return word >> 3 & ((1u << bits) - 1); }
  unsigned char passes_[1u << bits] = {};
};

std::uintptr_t page_bytes() noexcept { return static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)); }

class search {
 public:
  search() : all_(counted_types()), sieve_(all_), found_(all_.size()) {}
  bool nothing_to_find() const noexcept { return all_.empty(); }

  /// False: the system refuses.
  bool look_at(stack::range r) {
    if (alone_) {
      look_at(r.low, reinterpret_cast<const std::uintptr_t*>(r.low), (r.high - r.low) / word);
      return true;
    }
    while (r.low < r.high) {
      const std::size_t bytes = std::min<std::size_t>(r.high - r.low, sizeof copy_);
      const iovec to{copy_, bytes}, from{reinterpret_cast<void*>(r.low), bytes};
      const ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
      if (n < 0 && errno != EFAULT) return false;
      if (n > 0) look_at(r.low, copy_, static_cast<std::size_t>(n) / word);
      r.low += n == sizeof copy_ ? most_words * word : n > 0 ? static_cast<std::size_t>(n) : page_bytes();
    }
    return true;
  }
  std::vector<kept_type> found() const {
    std::vector<kept_type> types;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (found_[i]) types.push_back({all_[i], all_[i].table->dispose, all_[i].table->destroy});
    return types;
  }

 private:
  static constexpr std::size_t word = sizeof(std::uintptr_t), most_words = 4 << 10,
                               block_words = sizeof(control_block) / word;

  /// The @p count words that lie at @p address are @p words.
  GODWIT_NO_ASAN void look_at(std::uintptr_t address, const std::uintptr_t* words, std::size_t count) {
    if (count < block_words) return;
    const std::uintptr_t* const end = words + (count - block_words + 1);
    for (const std::uintptr_t* w = words; (w = sieve_.next(w, end)) != end; ++w) {
      const control_block b = std::bit_cast<control_block>(std::array{w[0], w[1]});
      if (b.owners < 0 || b.watchers <= 0) continue;
      const auto type =
          std::lower_bound(all_.begin(), all_.end(), b.table,
                           [](const counted_type& a, const counted_table* table) { return a.table < table; });
      const std::uintptr_t at = address + static_cast<std::size_t>(w - words) * sizeof *w;
      if (type == all_.end() || type->table != b.table || is_copy(at)) continue;
      kept_.push_back(at);
      found_[static_cast<std::size_t>(type - all_.begin())] = true;
    }
  }
  bool is_copy(std::uintptr_t at) const noexcept {
    return at - reinterpret_cast<std::uintptr_t>(copy_) < sizeof copy_;
  }

  const std::vector<counted_type>& all_;
  sieve sieve_;
  std::vector<bool> found_;
  /// Nobody can give memory back while it is looked at, and nobody watches how it is used.
  const bool alone_ = &__libc_single_threaded != nullptr && __libc_single_threaded && !base::on_valgrind();
  std::uintptr_t copy_[most_words + block_words - 1];  // a block may begin with the last of most_words
};

}  // namespace

std::string find_kept() {
  forget_kept();
  search s;
  if (s.nothing_to_find()) return {};
  // Workers have main's memory but for the stack of who calls run.
  const auto look = [&s](const stack::range& r, bool known) { return known && s.look_at(r); };
  if (!each_private_stretch(stack::whole_system_stack(), look))
    return "this process's memory cannot be read by /proc/self/maps, pagemap and process_vm_readv";
  types_ = s.found();
  return {};
}

std::span<const std::uintptr_t> kept_in(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const auto first = std::lower_bound(kept_.begin(), kept_.end(), begin);
  return {first, std::lower_bound(first, kept_.end(), end)};
}

void forget_kept() noexcept {
  kept_ = {};
  types_ = {};
}

// ---- In a worker

namespace {

bool is_kept(const control_block* b) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(b);
  // What threads make lies elsewhere in most cases.
  return at >= kept_.front() && at <= kept_.back() && std::binary_search(kept_.begin(), kept_.end(), at);
}

const kept_type& type_of(const control_block* b) noexcept {
  return *std::lower_bound(types_.begin(), types_.end(), b->table,
                           [](const kept_type& a, const counted_table* t) { return a.type.table < t; });
}

/// Nobody owns the object, as this worker counts.
void dispose(control_block* b) noexcept {
  if (is_kept(b))
    std::atomic_ref(b->owners).fetch_add(plenty, std::memory_order_relaxed);
  else
    type_of(b).dispose(b);
}
/// Likewise nobody knows the block.
void destroy(control_block* b) noexcept {
  if (is_kept(b))
    std::atomic_ref(b->watchers).fetch_add(plenty, std::memory_order_relaxed);
  else
    type_of(b).destroy(b);
}

void write(counted_table::function& at, counted_table::function to, table_page in) {
  const bool closed = in != table_page::writable, code = in == table_page::code;
  if (closed && !stack::open_page(&at, true, code))
    base::fatal(
        "cannot keep the objects that main owns by std::shared_ptr: mprotect: %s: let programs change their "
        "tables of functions, or make these objects in threads",
        std::strerror(errno));
  __atomic_store_n(&at, to, __ATOMIC_RELEASE);
  if (closed) static_cast<void>(stack::open_page(&at, false, code));
}

}  // namespace

void keep() {
  for (const kept_type& t : types_) {
    write(t.type.table->dispose, dispose, t.type.page);
    write(t.type.table->destroy, destroy, t.type.page);
  }
}

}  // namespace godwit::heap
