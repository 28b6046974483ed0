// See record.hpp.
#include "heap/record.hpp"

#include "base/check.hpp"
#include "base/walk_stack.hpp"
#include "heap/malloc.hpp"
#include "heap/part.hpp"

#include <cerrno>
#include <cstdlib>
#include <utility>

extern "C" [[gnu::visibility("hidden")]] const char __start_godwit_malloc[], __stop_godwit_malloc[];

namespace godwit::heap {

namespace {

constinit next_functions before_;         // what next_ was
constinit stack_end* end_ = nullptr;      // null: stacks can be followed to their ends
constexpr std::uint32_t most_looks = 64;  // for a place in the table of sites

}  // namespace

[[GODWIT_IN_MALLOC, gnu::noinline]] caller_list find_callers(std::uintptr_t end) noexcept {
  // Who calls malloc is there, and so is the address that it comes back to. Further callers may be at another
  // worker, and what is left of their frames must not be followed.
  constexpr unsigned always_there = 2;
  const auto own_begin = reinterpret_cast<std::uintptr_t>(__start_godwit_malloc),
             own_end = reinterpret_cast<std::uintptr_t>(__stop_godwit_malloc);
  caller_list c;
  base::walk_stack([&](std::uintptr_t code, std::uintptr_t low) noexcept {
    if (c.count == 0 && code - own_begin <= own_end - own_begin) return true;
    c.add(code);
    return c.frames < always_there || (c.frames < caller_list::most && low < end);
  });
  return c;
}

std::uint32_t site_table::number_of(const caller_list& c) noexcept {
  std::uint64_t hash = 1;
  for (unsigned i = 0; i < c.count; ++i) {
    hash = (hash ^ c.code[i]) * 0x9E37'79B9'7F4A'7C15u;
    hash ^= hash >> 29;
  }
  hash |= 1;
  for (std::uint32_t look = 0; look < most_looks; ++look) {
    const auto number = static_cast<std::uint32_t>(1 + (hash / 2 + look) % (count - 1));
    site& s = rows[number];
    std::uint64_t has = s.hash.load(std::memory_order_relaxed);
    if (has == 0 && s.hash.compare_exchange_strong(has, hash, std::memory_order_relaxed)) {
      std::copy_n(c.code, c.count, s.callers);
      return number;
    }
    if (has == hash) return number;
  }
  return 0;
}

namespace {

/// What a call of malloc asks for.
struct request {
  part* from = nullptr;  ///< null: it is not a worker's, or the C library's own
  std::uint32_t site = 0;

  void* given(void* at, std::uint64_t bytes) const noexcept {
    if (at == nullptr)
      errno = ENOMEM;
    else
      here.all->recorded->of(at).word.store(record::of(bytes, site), std::memory_order_relaxed);
    return at;
  }
};

[[GODWIT_IN_MALLOC, gnu::noinline]] request look() noexcept {
  part* const own = std::exchange(recorded, nullptr);  // what the unwinder allocates is its own
  if (own == nullptr) return {};
  const caller_list c = find_callers(end_ != nullptr ? end_() : ~std::uintptr_t{0});
  recorded = own;
  const auto* const caller = reinterpret_cast<const void*>(c.count != 0 ? c.code[0] : 0);
  if (here.c_library.holds(caller) || here.loader.holds(caller)) return {};
  return {own, here.all->recorded->sites.number_of(c)};
}

[[GODWIT_IN_MALLOC]] void* recorded_malloc(std::size_t bytes) noexcept {
  const request r = look();
  return r.from == nullptr ? before_.malloc(bytes) : r.given(allocate(*r.from, bytes), bytes);
}
[[GODWIT_IN_MALLOC]] void* recorded_calloc(std::size_t count, std::size_t each) noexcept {
  const request r = look();
  if (r.from == nullptr) return before_.calloc(count, each);
  std::size_t bytes = 0;
  const bool fits = !__builtin_mul_overflow(count, each, &bytes);
  return r.given(fits ? allocate_zero(*r.from, bytes) : nullptr, bytes);
}
[[GODWIT_IN_MALLOC]] void* recorded_memalign(std::size_t alignment, std::size_t bytes) noexcept {
  const request r = look();
  return r.from == nullptr ? before_.memalign(alignment, bytes)
                           : r.given(allocate_aligned(*r.from, bytes, alignment), bytes);
}

}  // namespace

void begin_recording(stack_end* end) noexcept {
  end_ = end;
  if (next_.malloc == recorded_malloc) return;
  std::free(std::malloc(1));  // so that next_ has been found
  before_ = next_;
  next_.malloc = recorded_malloc;
  next_.calloc = recorded_calloc;
  next_.memalign = recorded_memalign;
}

void forget_allocation(const void* at) noexcept {
  if (here.all->recorded->of(at).word.exchange(0, std::memory_order_relaxed) == 0)
    base::fatal("free of %p, which malloc has not given out, or which was freed before", at);
}

}  // namespace godwit::heap
