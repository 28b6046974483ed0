// See checks.hpp.
#include "gas/checks.hpp"

#include "base/lock.hpp"

#include <vector>

namespace godwit::gas {

namespace {
struct check_guard {
  word& lock;
  explicit check_guard(word& w) : lock(w) { base::lock(lock, base::holder()); }
  ~check_guard() { base::unlock(lock, base::holder()); }
};
}  // namespace

void checks::mark_live(global_address at, std::uint64_t bytes, bool live) noexcept {
  const shadow s(where_, at, bytes);
  for (std::uint64_t i = 0; i < s.words(); ++i)
    net_.atomic(where_.local_home(at), s.at(where_) + i * 8,
                live ? atomic_function::fetch_or : atomic_function::fetch_and, 8,
                live ? s.mask(i) : ~s.mask(i));
}

void checks::check_range(global_address at, std::uint64_t bytes, const char* doing) {
  if (bytes == 0) return;
  if (where_.is_local(at)) {
    const std::uint32_t home = where_.local_home(at);
    if (bytes > where_.local_begin(home) + where_.local_bytes() - at) blocks_.bad_address(at, bytes, doing);
    const shadow s(where_, at, bytes);
    std::vector<std::uint64_t> live(s.words());
    net_.get(home, live.data(), s.at(where_), live.size() * 8);
    for (std::uint64_t i = 0; i < s.words(); ++i)
      if ((~live[i] & s.mask(i)) != 0) blocks_.bad_address(at, bytes, doing);
    return;
  }
  const descriptor* d = blocks_.find(at);
  // A copy of the descriptor does not hear of the end: ask.
  if (d == nullptr || at + bytes > blocks_.begin_of(*d) + d->bytes ||
      (!net_.is_near(0) && !blocks_.is_live(*d)))
    blocks_.bad_address(at, bytes, doing);
}

void checks::note_checkout(global_address at, std::uint64_t bytes, bool writes, const detail::place& where) {
  detail::hot().poll.store(1, std::memory_order_relaxed);  // the next spawn looks whether it is still open
  if (bytes == 0) return;
  const check_guard lock(net_.host().check_lock);
  open_checkout* free = nullptr;
  for (open_checkout& o : net_.host().open) {
    const std::uint64_t end = o.end.load(std::memory_order_relaxed);
    if (end == 0) {
      if (free == nullptr) free = &o;
      continue;
    }
    const std::uint64_t begin = o.begin.load(std::memory_order_relaxed);
    if ((writes || o.writes != 0) && begin < at + bytes && at < end)
      base::fatal(
          "worker %u: the checkout of global:0x%llx, %llu bytes, at %s:%u overlaps one of global:0x%llx, "
          "%llu bytes, which worker %u made at %s:%u and still holds, and one of them writes: order them "
          "with a join, or check out disjoint ranges",
          net_.me(), static_cast<unsigned long long>(at), static_cast<unsigned long long>(bytes), where.file,
          where.line, static_cast<unsigned long long>(begin), static_cast<unsigned long long>(end - begin),
          o.worker, o.file, o.line);
  }
  if (free == nullptr) return;  // so many at once: the rest goes unchecked
  free->begin.store(at, std::memory_order_relaxed);
  free->file = where.file;
  free->line = where.line;
  free->worker = net_.me();
  free->writes = writes ? 1 : 0;
  free->end.store(at + bytes, std::memory_order_relaxed);
}

void checks::forget_checkout(global_address at, std::uint64_t bytes, bool writes) noexcept {
  if (bytes == 0) return;
  const check_guard lock(net_.host().check_lock);
  for (open_checkout& o : net_.host().open)
    if (o.end.load(std::memory_order_relaxed) == at + bytes &&
        o.begin.load(std::memory_order_relaxed) == at && o.worker == net_.me() &&
        o.writes == (writes ? 1u : 0u)) {
      o.end.store(0, std::memory_order_relaxed);
      return;
    }
}

std::string checks::open_checkouts() const {
  for (const open_checkout& o : net_.host().open)
    if (o.end.load(std::memory_order_relaxed) != 0 && o.worker == net_.me() && o.file != nullptr)
      return std::string(" made at ") + o.file + ":" + std::to_string(o.line);
  return {};
}

}  // namespace godwit::gas
