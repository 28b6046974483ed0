// Threads that refer to the frames of their ancestors (closures that capture by reference): what goes with
// them when they move, and how a write that would be lost is noticed. docs/protocols/frames.md. Used by the
// policies' workers, and by far_calls.cpp where a continuation is taken for another host. Test:
// tests/sched/frames_test.cpp, tests/api/by_reference_test.cpp.
#pragma once

#include <godwit/detail/hot.hpp>

#include "context/context.hpp"
#include "stack/stack.hpp"

#include <cstddef>
#include <cstdint>

namespace godwit::sched {

/// A hash of the stack bytes [from, from + bytes), whole words; never 0. Any change of one word changes it.
std::uint64_t frame_hash(const void* from, std::size_t bytes) noexcept;

/// The same value, as CPUs without long vectors compute it: for tests.
std::uint64_t frame_hash_in_short_vectors(const void* from, std::size_t bytes) noexcept;

/// Copy [from, from + bytes), and give back the frame_hash of the copy: each word is read once.
std::uint64_t copy_frames(void* to, const void* from, std::size_t bytes) noexcept;

/// frame_hash of frames, which lie at [low, high): the last word belongs to the child below (a return
/// address) and is left out.
inline std::uint64_t frame_hash(std::uintptr_t low, std::uintptr_t high) noexcept {
  return frame_hash(reinterpret_cast<const void*>(low), high - low - sizeof(std::uintptr_t));
}

/// frame_hash of frames that are gone: their cache lines become this CPU's own on the way, since what the
/// worker does next is to write there, above all to copy the next stolen stack.
std::uint64_t last_frame_hash(std::uintptr_t low, std::uintptr_t high) noexcept;

/// Does the closure of the child that was spawned at @p parent hold an address in [low, high)? What points
/// into the closure itself does not count. [region_low, region_high): memory that may be read.
/// @p if_it_hides: the answer where what the closure owns may hold one.
bool refers_to(const detail::spawn_slot& parent, std::uintptr_t low, std::uintptr_t high,
               std::uintptr_t region_low, std::uintptr_t region_high, bool if_it_hides) noexcept;

/// Does any word of [low, high) lie in @p there? What is there may be anything.
bool names(std::uintptr_t low, std::uintptr_t high, const stack::range& there) noexcept;

/// f(word) for the words of [low, high) until one gives back false. What is there may be anything.
template <class F>
__attribute__((no_sanitize("address"))) bool all_words(std::uintptr_t low, std::uintptr_t high,
                                                       F&& f) noexcept {
  for (const auto* at = reinterpret_cast<const std::uintptr_t*>(low);
       at < reinterpret_cast<const std::uintptr_t*>(high); ++at)
    if (!f(*at)) return false;
  return true;
}

/// Does what would leave with the continuation @p own, whose bytes reach to @p end, name it? They are @p
/// further up than their addresses say.
inline bool names_heap(const detail::spawn_slot& own, std::uintptr_t end, const stack::range& heap,
                       std::uintptr_t further = 0) noexcept {
  return heap.holds(own.fp) || heap.holds(own.extra) ||
         names(own.sp - context::fork_bytes_below + further, end + further, heap);
}

/// Where the child was spawned whose parent waits at @p parent: the return address of its spawn; 0: not
/// known.
__attribute__((no_sanitize("address"))) inline std::uintptr_t spawned_at(
    [[maybe_unused]] const detail::spawn_slot& parent) noexcept {
#if defined(GODWIT_CONTEXT_PORTABLE)
  return 0;
#elif defined(__x86_64__)
  return *reinterpret_cast<const std::uintptr_t*>(parent.sp - sizeof(std::uintptr_t));
#else
  return parent.extra;
#endif
}

}  // namespace godwit::sched
