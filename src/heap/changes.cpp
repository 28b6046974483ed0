// See changes.hpp.
#include "heap/changes.hpp"

#include "heap/mains_blocks.hpp"
#include "heap/mains_variables.hpp"
#include "heap/site_lines.hpp"

#include <cstdio>
#include <functional>
#include <string>

namespace godwit::heap {

namespace {
void raise(std::atomic<std::uint64_t>& at, std::uint64_t to) noexcept {
  std::uint64_t was = at.load(std::memory_order_relaxed);
  while (was < to && !at.compare_exchange_weak(was, to, std::memory_order_relaxed)) {
  }
}
}  // namespace

/// @p text: of blocks: who allocated them; no blocks: a variable's name.
void change_list::add(const char* text, std::uint64_t blocks, std::uint64_t bytes) noexcept {
  const std::uint64_t hash = std::hash<std::string_view>()(text) | 1;
  for (line& l : lines_) {
    std::uint64_t has = l.hash.load(std::memory_order_relaxed);
    if (has == 0 && l.hash.compare_exchange_strong(has, hash, std::memory_order_relaxed)) {
      std::snprintf(l.text, sizeof l.text, "%s", text);
      has = hash;
    }
    if (has != hash) continue;
    l.workers.fetch_add(1, std::memory_order_relaxed);
    raise(l.blocks, blocks);
    return raise(l.bytes, bytes);
  }
  others_.fetch_add(1, std::memory_order_relaxed);
}

void change_list::add_own() {
  for (const auto& [line, changed] : changed_blocks()) add(line.c_str(), changed.blocks, changed.bytes);
  for (const auto& [name, bytes] : changed_variables()) add(name.c_str(), 0, bytes);
}

void change_list::print() const {
  for (const line& l : lines_) {
    if (l.hash.load(std::memory_order_relaxed) == 0) continue;
    const sum changed{l.blocks.load(std::memory_order_relaxed), l.bytes.load(std::memory_order_relaxed)};
    const std::string what = changed.blocks != 0 ? changed.text() + " that main had allocated at " + l.text
                                                 : "the variable " + std::string(l.text) + " (" +
                                                       std::to_string(changed.bytes) + " bytes)";
    const std::uint32_t workers = l.workers.load(std::memory_order_relaxed);
    std::fprintf(stderr, "godwit: heap: threads in %u %s changed their copy of %s\n", workers,
                 workers == 1 ? "worker" : "workers", what.c_str());
  }
  if (others_.load(std::memory_order_relaxed) != 0)
    std::fputs("godwit: heap: threads changed more of main's memory than there are lines for\n", stderr);
  if (lines_[0].hash.load(std::memory_order_relaxed) != 0 || others_.load(std::memory_order_relaxed) != 0)
    std::fputs(
        "godwit: heap: neither main nor other workers see such a change: return what threads compute, or "
        "make "
        "the object in a gw::shared_scope or in global memory (docs/heap.md)\n",
        stderr);
}

}  // namespace godwit::heap
