// Policy lazy: spawns that left nothing behind are found on the stack, and get the slots that other spawns
// have from the beginning. From there on the deque's protocol is that of all policies.
// docs/protocols/lazy.md; model: models/lazy.pml. Tests: tests/api/lazy_test.cpp.
#pragma once

#include "context/frame_rules.hpp"
#include "context/lazy.hpp"
#include "sched/deque.hpp"
#include "sched/frames.hpp"
#include "sched/site.hpp"
#include "stack/stack.hpp"

#include <array>

namespace godwit::sched {

/// What a slot has no room for: the rest of the registers, and where the spawn would have returned to. One
/// for each slot, at the same distance from all. W owner before the slot counts; R owner, thieves under lock.
struct alignas(64) lazy_site {
  std::uintptr_t r12, r13, r14, r15;
  std::uintptr_t return_address;
  /// words below slot.sp where the child, whose frames these are, keeps the parent's registers; 0: nowhere
  std::uint32_t kept[context::frame_rule::saved_registers];
};
static_assert(sizeof(lazy_site) == sizeof(spawn_slot));

/// Where a parent goes on whose child has come to its end: behind its spawn, or, with a status, in the
/// spawn's handler.
struct lazy_way {
  std::uintptr_t return_address;
  ref status;
};

/// In slot.closure: what is known of the closure (lazy_spawn.hpp), and the site, at its common address.
inline unsigned lazy_traits_of(const spawn_slot& s) noexcept { return static_cast<unsigned>(s.closure[0]); }
inline lazy_site* lazy_site_of(const spawn_slot& s) noexcept {
  return reinterpret_cast<lazy_site*>(s.closure[1]);
}

/// As spawned_at(parent), under any policy.
inline std::uintptr_t spawned_at(const spawn_slot& parent, bool lazily) noexcept {
  return lazily ? lazy_site_of(parent)->return_address : spawned_at(parent);
}

/// Do its registers name it? (Its frames: names_heap.) Such a continuation stays on its host.
inline bool names_heap(const lazy_site& of, const stack::range& heap) noexcept {
  return heap.holds(of.r12) || heap.holds(of.r13) || heap.holds(of.r14) || heap.holds(of.r15);
}

/// May the child that was spawned at @p parent hold an address in [@p top, @p end), where its ancestors'
/// frames are? Nothing was stored of its closure: what it has of it lies in its own frames, [@p low, @p top),
/// besides registers that it keeps for its parent.
bool lazy_refers_to(const spawn_slot& parent, std::uintptr_t low, std::uintptr_t top,
                    std::uintptr_t end) noexcept;

/// Null: a run can have the policy here, with workers that are processes. Else why not, as the end of a
/// sentence.
const char* no_lazy_spawns() noexcept;

/// Is the program compiled so that its spawns are looked at (GODWIT_LAZY_LOOKS)?
bool looks_at_lazy_spawns() noexcept;

class lazy_spawns {
 public:
  explicit lazy_spawns(const site& here) noexcept : here_(here) {}

  /// @p slots: the deque's, which gets the lower half of its room.
  void init(spawn_slot* slots, std::uint64_t bytes) noexcept;

  // Where the expose signal keeps its hands off.
  /// Push all that lies between @p from, where a signal came, and the newest slot. False: that cannot be said
  /// for certain; nothing has changed.
  bool push(const context::frame_registers& from) noexcept;
  /// Likewise from the caller on; ends the run if that cannot be said.
  void push_here() noexcept;

  /// A continuation as godwit_ctx_resume_suspended takes it: bytes below its frames.
  static constexpr std::size_t bytes_below = 9 * sizeof(std::uintptr_t);
  /// Write them to @p to: how the parent at @p slot goes on, with @p status.
  static void put_below(std::byte* to, const spawn_slot& slot, const lazy_site& site, ref status) noexcept;

 private:
  /// Places where registers of older frames were kept since the last spawn on the way; 0: nowhere.
  using kept_places = std::array<std::uintptr_t, context::frame_rule::saved_registers>;
  template <class Visit>
  bool walk(context::frame_registers from, Visit&& visit) noexcept;
  static void note_kept(lazy_site& of, std::uintptr_t sp, const kept_places& places) noexcept;

  const site& here_;
  spawn_slot* slots_ = nullptr;
  std::uint64_t half_ = 0;  ///< slots
  std::uintptr_t lost_at_ = 0;
};

}  // namespace godwit::sched
