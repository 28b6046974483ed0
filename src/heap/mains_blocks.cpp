// See mains_blocks.hpp.
#include "heap/mains_blocks.hpp"

#include "base/check.hpp"
#include "base/environment.hpp"
#include "heap/heap.hpp"
#include "heap/kept.hpp"
#include "heap/malloc.hpp"
#include "heap/record.hpp"
#include "heap/site_lines.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <pthread.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::heap {

namespace {

struct made {
  std::uintptr_t at = 0;  ///< 0: none
  std::uint64_t bytes = 0;
  std::uint32_t site = 0;
};

constinit next_functions before_;  // what next_ was

/// By address. What it is kept in comes from there, as it is used by malloc.
class made_table {
 public:
  void put(const made& m) noexcept {
    if (2 * ++count_ > rows_.size()) grow();
    place_of(m.at) = m;
  }
  void remove(const void* block) noexcept {
    if (rows_.empty()) return;
    made* hole = &place_of(reinterpret_cast<std::uintptr_t>(block));
    if (hole->at == 0) return;
    --count_;
    // What lies behind it, and would be looked for in front of the hole, moves up.
    for (made* m = next(hole); m->at != 0; m = next(m)) {
      const std::size_t home = home_of(m->at), here = index(m), to = index(hole);
      if (((here - home) & mask()) < ((here - to) & mask())) continue;
      *hole = *m;
      hole = m;
    }
    *hole = {};
  }
  std::span<const made> rows() const noexcept { return rows_; }

 private:
  std::size_t mask() const noexcept { return rows_.size() - 1; }
  std::size_t index(const made* m) const noexcept { return static_cast<std::size_t>(m - rows_.data()); }
  std::size_t home_of(std::uintptr_t at) const noexcept {
    return static_cast<std::size_t>((at >> 4) * 0x9E37'79B9'7F4A'7C15u >> 20) & mask();
  }
  made* next(const made* m) const noexcept { return &rows_[(index(m) + 1) & mask()]; }
  /// Where it is, or would be.
  made& place_of(std::uintptr_t at) const noexcept {
    made* m = &rows_[home_of(at)];
    while (m->at != 0 && m->at != at) m = next(m);
    return *m;
  }
  void grow() noexcept {
    const std::span<made> before = rows_;
    const std::size_t rows = std::max<std::size_t>(2 * before.size(), 1 << 12);
    void* const p = before_.calloc(rows, sizeof(made));
    if (p == nullptr) base::fatal("GODWIT_CHECK_HEAP: no memory to record what main allocates");
    rows_ = {static_cast<made*>(p), rows};
    for (const made& m : before)
      if (m.at != 0) place_of(m.at) = m;
    before_.free(before.data());
  }

  std::span<made> rows_;
  std::size_t count_ = 0;
};

constinit made_table table_;             // W who holds lock_
constinit site_table* sites_ = nullptr;  // W once
constinit pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool unrecorded_ = false;

/// What a worker has found in a block of main's.
struct remembered {
  made block;
  std::uint64_t content = 0;
  bool freed = false;  ///< W any OS thread of the worker
};
constinit bool is_worker_ = false;
constinit std::vector<remembered>* remembered_ = nullptr;  // by address; in a worker; never destroyed

struct locked {
  locked() noexcept { pthread_mutex_lock(&lock_); }
  ~locked() { pthread_mutex_unlock(&lock_); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
};

/// Callers, without the functions of the C++ library that the first of them has called.
std::span<const std::uintptr_t> outside_cpp_library(std::span<const std::uintptr_t> callers) noexcept {
  const auto first = std::find_if(callers.begin(), callers.end(), [](std::uintptr_t code) {
    return !here.cpp_library.holds(reinterpret_cast<const void*>(code));
  });
  return {first, callers.end()};
}
bool is_the_programs(const caller_list& c) noexcept {
  const auto callers = outside_cpp_library({c.code, c.count});
  return !callers.empty() && here.program.holds(reinterpret_cast<const void*>(callers.front()));
}

[[GODWIT_IN_MALLOC, gnu::noinline]] void* add(void* at, std::size_t bytes) noexcept {
  if (at == nullptr || is_worker_ || std::exchange(unrecorded_, true)) return at;
  if (caller_list c = find_callers(~std::uintptr_t{0}); is_the_programs(c)) {
    const auto* const calls_main = std::find_if(c.code, c.code + c.count, [](std::uintptr_t code) {
      return here.c_library.holds(reinterpret_cast<const void*>(code));
    });
    c.count = static_cast<unsigned>(calls_main - c.code);
    const locked l;
    table_.put({reinterpret_cast<std::uintptr_t>(at), bytes, sites_->number_of(c)});
  }
  unrecorded_ = false;
  return at;
}
/// It is about to be free: after that, others may get it.
void remove(const void* at) noexcept {
  if (at == nullptr) return;
  if (!is_worker_) {
    const locked l;
    return table_.remove(at);
  }
  if (remembered_ == nullptr) return;
  const auto block =
      std::lower_bound(remembered_->begin(), remembered_->end(), reinterpret_cast<std::uintptr_t>(at),
                       [](const remembered& r, std::uintptr_t address) { return r.block.at < address; });
  if (block != remembered_->end() && block->block.at == reinterpret_cast<std::uintptr_t>(at))
    block->freed = true;
}

[[GODWIT_IN_MALLOC]] void* noted_malloc(std::size_t bytes) noexcept {
  return add(before_.malloc(bytes), bytes);
}
[[GODWIT_IN_MALLOC]] void* noted_calloc(std::size_t count, std::size_t each) noexcept {
  return add(before_.calloc(count, each), count * each);
}
[[GODWIT_IN_MALLOC]] void* noted_memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return add(before_.memalign(alignment, bytes), bytes);
}
[[GODWIT_IN_MALLOC]] void* noted_realloc(void* at, std::size_t bytes) noexcept {
  remove(at);  // also where there is no room: what is not recorded is not looked at
  return add(before_.realloc(at, bytes), bytes);
}
[[GODWIT_IN_MALLOC]] void noted_free(void* at) noexcept {
  remove(at);
  before_.free(at);
}

/// In front of what the program does before main.
[[gnu::constructor(101)]] void begin_noting() noexcept {
  if (!base::environment_asks("GODWIT_CHECK_HEAP") || !is_ours()) return;
  find_code();
  before_ = next_;
  sites_ = static_cast<site_table*>(before_.calloc(1, sizeof(site_table)));
  if (sites_ == nullptr) return;
  next_.malloc = noted_malloc;
  next_.calloc = noted_calloc;
  next_.memalign = noted_memalign;
  next_.realloc = noted_realloc;
  next_.free = noted_free;
  // A child that the program forks may allocate.
  pthread_atfork([] { pthread_mutex_lock(&lock_); }, [] { pthread_mutex_unlock(&lock_); },
                 [] { pthread_mutex_unlock(&lock_); });
}

/// Of its bytes, but not of counts in it.
std::uint64_t content_of(const made& block) noexcept {
  const std::span<const std::uintptr_t> kept = kept_in(block.at, block.at + block.bytes);
  auto next = kept.begin();
  std::uint64_t hash = block.bytes;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x9E37'79B9'7F4A'7C15u, hash ^= hash >> 29;
  };
  constexpr std::uint64_t word = sizeof(std::uint64_t);
  for (std::uint64_t i = 0; i < block.bytes; i += word) {
    if (next != kept.end() && block.at + i == *next + word) {
      ++next;
      continue;
    }
    std::uint64_t w = 0;
    std::memcpy(&w, reinterpret_cast<const void*>(block.at + i), std::min(word, block.bytes - i));
    mix(w);
  }
  return hash;
}

/// A stream's, by the C++ library's names.
bool is_buffer(const site& s) noexcept {
  for (const std::uintptr_t code : s.callers) {
    const auto* const at = reinterpret_cast<const void*>(code);
    Dl_info found;
    if (here.cpp_library.holds(at) && dladdr(at, &found) != 0 && found.dli_sname != nullptr &&
        std::string_view(found.dli_sname).find("filebuf") != std::string_view::npos)
      return true;
  }
  return false;
}

}  // namespace

unrecorded::unrecorded() noexcept : before_(std::exchange(unrecorded_, true)) {}
unrecorded::~unrecorded() { unrecorded_ = before_; }

bool records_main() noexcept { return sites_ != nullptr; }

void remember_mains_blocks(bool checks) {
  is_worker_ = true;
  if (!checks) return;
  auto* const all = new std::vector<remembered>;
  for (const made& m : table_.rows())
    if (m.at != 0) all->push_back({m, 0, false});
  std::sort(all->begin(), all->end(),
            [](const remembered& a, const remembered& b) { return a.block.at < b.block.at; });
  for (remembered& r : *all) r.content = content_of(r.block);
  remembered_ = all;
}

std::map<std::string, sum> changed_blocks() {
  if (remembered_ == nullptr) return {};
  std::map<std::uint32_t, sum> of_site;
  for (const remembered& r : *remembered_)
    if (!r.freed && content_of(r.block) != r.content) of_site[r.block.site].add({1, r.block.bytes});
  std::map<std::string, sum> of_line;
  for (const auto& [number, changed] : of_site) {
    const site& s = sites_->rows[number];
    if (is_buffer(s)) continue;
    const site_line l = line_of(outside_cpp_library(s.callers));
    of_line[l.line + l.callers].add(changed);
  }
  return of_line;
}

}  // namespace godwit::heap
