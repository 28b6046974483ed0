// Who is asked for a part of movable memory that another host has: what this host knows of owners, and how
// good that was.
//
// The words of the places (words.hpp) are a table of hints for all parts at once: flat, one load, shared by
// the host. What papers have instead is a table of a few translations per rank, which is here, too, for
// comparison (options::translations): those that are not in it are asked for at their homes. Hints only:
// whether a part is there, its place says (docs/protocols/move.md).
//
// Source: Active global address space (network-managed), sections 4.2, 5.1 and 6.7. Called by access.cpp and
// cache_transfer.cpp, before they ask, and by parts_movable.cpp, which hears the answers. Tests:
// tests/gas/translations_test.cpp, tests/global/hints_test.cpp.
#pragma once

#include "gas/parts.hpp"

#include <godwit/options.hpp>
#include <godwit/runtime.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace godwit::gas {

struct translation_setup {
  std::uint64_t entries = 0;  ///< of the table; 0: flat
  choice::translations_replace replace = choice::translations_replace::lru;
  choice::translations_lock lock = choice::translations_lock::none;
  /// lock is not none: the host's table of bytes_of(entries) bytes, all zero before the first use
  std::byte* shared = nullptr;
};

/// At most so many translations, in sets of up to 16: those of parts that lie together are spread over the
/// sets. A worker's own, or of all of a host, under one lock or one per set.
class translation_table {
 public:
  static std::uint64_t bytes_of(std::uint64_t entries) noexcept { return sets_of(entries) * sizeof(set); }

  explicit translation_table(const translation_setup& how);

  /// What is known of the owner of @p part, as in place_words. False: nothing. @p age: entries of another age
  /// are worth nothing.
  bool find(const place_words* part, std::uint64_t age, std::uint64_t& owner) noexcept;
  /// From now on this is known. True: something else had to be forgotten for it.
  bool enter(const place_words* part, std::uint64_t age, std::uint64_t owner) noexcept;

 private:
  static constexpr std::uint64_t most_ways = 16;
  /// All fields W/R under the lock, or by one worker.
  struct entry {
    const place_words* part;  ///< null: empty
    std::uint64_t age, owner;
    std::uint64_t used;  ///< the set's clock at the last look
  };
  struct alignas(64) set {
    std::atomic<std::uint32_t> lock;  ///< see base/lock.hpp. W all of the host
    std::uint64_t clock;              ///< random: the state of what is drawn
    entry of[most_ways];
  };
  static std::uint64_t sets_of(std::uint64_t entries) noexcept {
    return (entries + most_ways - 1) / most_ways;
  }
  set& set_of(const place_words* part) const noexcept {
    return sets_[reinterpret_cast<std::uintptr_t>(part) / sizeof(place_words) % count_];
  }
  std::uint64_t ways_of(const set& s) const noexcept {
    const auto i = static_cast<std::uint64_t>(&s - sets_);
    return how_.entries / count_ + (i < how_.entries % count_ ? 1 : 0);
  }
  template <class F>
  bool with_lock(set& s, F&& f) noexcept;
  entry& victim(set& s, std::uint64_t ways) const noexcept;

  const translation_setup how_;
  const std::uint64_t count_;
  std::unique_ptr<set[]> own_;
  set* sets_;
};

class translations {
 public:
  translations(worker_stats& stats, const translation_setup& how) : stats_(stats) {
    if (how.entries != 0) table_ = std::make_unique<translation_table>(how);
  }

  /// Whom to ask for @p p, of movable memory, which is not here: sets p.host.
  void look_up(const reach& net, part& p) noexcept;
  /// What was asked next for @p p has said this. Counts whether it was the right one to ask.
  void answered(const reach& net, part& p, const place_answer& said) noexcept;
  /// It has told who has @p p.
  void learn(const reach& net, const part& p, ownership told) noexcept;
  /// The worker that would be asked. Counted as a look-up that was right.
  std::uint32_t guess(const reach& net, const part& p) noexcept;

 private:
  struct found {
    ownership who;
    bool known;
  };
  found find(const reach& net, const part& p) noexcept;

  worker_stats& stats_;
  std::unique_ptr<translation_table> table_;
};

}  // namespace godwit::gas
