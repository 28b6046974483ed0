// Teams: parallel regions, their barriers and what their members share.
#pragma once

#include "share.hpp"
#include "thread.hpp"

namespace godwit::openmp {

struct team {
  std::atomic<unsigned> size{0};  ///< members of the region. W who begins it, R all, before `members`
  /// `capacity` are there, and `places` for more. W who begins a region, R all
  std::atomic<member**> members{nullptr};
  unsigned capacity = 0, places = 0;
  unsigned hired = 0;  ///< members that have a thread, the first one counted
  /// Threads in regions of the same thread of the program, but for it. W and R who begins and ends these
  std::atomic<unsigned>* others = nullptr;
  std::atomic<unsigned> own_others{0};  ///< its team's outside all regions. W and R likewise
  unsigned level = 0, active_level = 0;

  // What the first member was before and will be again.
  member* outer = nullptr;
  task* outer_task = nullptr;
  team* next = nullptr;  ///< thread::unused_teams

  void (*function)(void*) = nullptr;
  void* data = nullptr;
  group* reductions = nullptr;  ///< of the region: GOMP_parallel_reductions

  /// Barriers that were passed in the upper half, members that are at the next one in the lower. The second
  /// is for those that a cancelled region leaves: then some are still there when others are at its end.
  struct alignas(64) counter {
    std::atomic<std::uint64_t> word{0};  ///< W and R members
  };
  counter barriers[2];
  /// The same for a member all the time from one barrier to the next.
  std::uint64_t barriers_passed() const noexcept {
    return barriers[0].word.load(std::memory_order_acquire) / one_passed +
           barriers[1].word.load(std::memory_order_acquire) / one_passed;
  }
  static constexpr std::uint64_t one_passed = std::uint64_t{1} << 32, none_cancelled = ~std::uint64_t{0};
  std::atomic<std::uint32_t> sleepers{0};  ///< members asleep, or about to be. W they, R all
  std::atomic<bool> cancelled{false};      ///< the region. W and R members
  /// The loop or sections that were cancelled: those behind so many barriers. W and R members
  std::atomic<std::uint64_t> share_cancelled{none_cancelled};
  std::atomic<std::uint64_t> ended_elsewhere{0};  ///< tasks. W threads that are no members, R members

  // Tasks that somebody outside the team has made ready: omp_fulfill_event.
  std::uint32_t handed_word = 0;
  std::atomic<task*> handed{nullptr};  ///< a list. W under the lock, R members

  alignas(64) std::atomic<std::uint64_t> singles{0};  ///< so many have begun. W and R members
  void* broadcast = nullptr;                          ///< copyprivate
  static constexpr unsigned share_count = 8;
  share shares[share_count];
};

/// Begin a region with @p threads of them, the caller as the first; it is to call the function, then
/// end_region. @p first: makes the worksharing construct that the region begins with, or null.
using prepare_share = void (*)(share&, void* argument);
team& begin_region(void (*function)(void*), void* data, unsigned threads, group* reductions,
                   prepare_share first, void* argument) noexcept;
void end_region() noexcept;
/// As many as a region gets whose clause says @p asked (0: it has none).
/// They are taken from the limit until end_region.
unsigned region_size(unsigned asked) noexcept;

/// Wait until all members are here and all tasks of the team have ended; run tasks meanwhile.
/// @p cancellable: true if the region was cancelled, then without waiting.
bool barrier(thread& t, bool cancellable) noexcept;

/// All members look again at what they wait for.
void wake_all(team& m) noexcept;
/// A task has come.
void wake_one(team& m) noexcept;

}  // namespace godwit::openmp
