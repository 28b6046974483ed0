// The list of tasks that wait, and what is said when all of them do.
//
// A deadlock in which all tasks wait for sync variables is found by the scheduler, at once. But whoever waits
// for other tasks in Chapel yields, and runs: such deadlocks are found here, by those that yield. Sharded, as
// every wait comes by.
#include "internal.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/check.hpp"
#include "base/world.hpp"

namespace godwit::chapel {

namespace {

constexpr std::uint64_t lately_ns = 1'000'000'000;
constexpr unsigned most_named = 16;

struct alignas(64) shard {
  spin_lock lock;
  waiting* newest = nullptr;
};
std::array<shard, 64> shards_;

shard& shard_of(const waiting& w) noexcept {
  return shards_[(reinterpret_cast<std::uintptr_t>(&w) >> 12) * 0x9E3779B97F4A7C15ull >> 58];
}

template <class F>
void each(F&& f) {
  for (shard& s : shards_) {
    s.lock.lock();
    for (waiting* w = s.newest; w != nullptr; w = w->older) f(*w);
    s.lock.unlock();
  }
}

std::string text_of(gwchpl_place where) {
  const char* name = setup().file_name != nullptr ? setup().file_name(where.file) : nullptr;
  return (name != nullptr ? name : "an unknown file") +
         (where.line > 0 ? ":" + std::to_string(where.line) : std::string());
}

std::string text_of(const waiting& w) {
  const gwchpl_place begun = setup().begun_at(w.of->data);
  return "\n  the task of " + text_of(begun) +
         (w.what == nullptr ? " waits for other tasks"
                            : std::string(" waits for a ") + w.what + ", at " + text_of(w.where));
}

}  // namespace

void spin_lock::lock() noexcept {
  for (base::spin_wait turns; taken_.exchange(true, std::memory_order_acquire);)
    while (taken_.load(std::memory_order_relaxed)) turns.turn();
}

void list(waiting& w) noexcept {
  shard& s = shard_of(w);
  s.lock.lock();
  w.older = s.newest;
  w.newer = nullptr;
  if (w.older != nullptr) w.older->newer = &w;
  s.newest = &w;
  s.lock.unlock();
}

void unlist(waiting& w) noexcept {
  shard& s = shard_of(w);
  s.lock.lock();
  (w.newer != nullptr ? w.newer->older : s.newest) = w.older;
  if (w.older != nullptr) w.older->newer = w.newer;
  s.lock.unlock();
}

void look_for_deadlock(std::uint64_t since_ns, std::uint64_t now_ns) noexcept {
  std::uint64_t blocked = 0, yielding = 0;
  each([&](const waiting& w) {
    if (w.what != nullptr)
      ++blocked;
    else if (w.of->yielded_ns.load(std::memory_order_relaxed) + lately_ns > now_ns)
      ++yielding;
  });
  const gwchpl_counts all = gwchpl_count();
  if (all.queued != 0 || blocked + yielding != all.running || blocked == 0) return;
  std::string text = "godwit: deadlock: nothing has gone on for " +
                     std::to_string((now_ns - since_ns) / 1'000'000'000) + " s: " + std::to_string(blocked) +
                     " tasks wait for sync variables, " + std::to_string(yielding) + " for other tasks";
  unsigned named = 0;
  each([&](const waiting& w) {
    if (named++ < most_named) text += text_of(w);
  });
  if (named > most_named) text += "\n  ...";
  text +=
      "\n(a task that yields until something happens outside of the program counts as one that waits for "
      "others.\nCHPL_RT_GODWIT_DEADLOCK_SECONDS: how long to wait for that; 0: for ever)\n";
  if (::ftrylockfile(stdout) == 0) std::fflush(stdout);
  static_cast<void>(!::write(2, text.data(), text.size()));
  ::_exit(base::status_failed);
}

}  // namespace godwit::chapel
