// The shared memory of a run on one machine.
//
// One memfd holds all workers' segments one after the other. It is mapped once, read-write, at the *alias*
// addresses (everybody reaches everybody there), and each worker maps its own part a second time at the
// *common* address, which is the same in all workers:
//
//   common ->  | own segment |  alias 0 | alias 1 | ... | alias n-1 | front 0 | ... | front n-1 |
//
// A segment is gigabytes of addresses, so each one that a process looks into costs it 8 KiB of page tables.
// What all look at, the begin of each segment, therefore lies beside that of the others among the aliases:
// the fronts.
//
// Workers that are threads of one process have no common address: each one's own segment is the one at its
// alias address.
//
//   a segment: | hot page | public words | deque slots | guard | heap | guard | uni-address region | guard |
//
// Pages cost memory only when touched. The memfd has no name, so nothing can be left behind.
// Who calls: src/runtime (create before the fork, adopt after it), src/sched (addresses). U4, U5 in the
// papers.
#pragma once

#include "base/check.hpp"
#include "transport/transport.hpp"

#include <cstring>
#include <string>

namespace godwit::transport::shm {

/// Offsets within one segment, bytes, whole pages.
struct layout {
  std::uint64_t front = 0;  ///< so many at the begin lie among the fronts; 0: there are none
  std::uint64_t hot = 0;
  std::uint64_t words = 0;
  std::uint64_t host = 0;  ///< words that only a host's first worker uses, if they are not among those
  std::uint64_t slots = 0;
  std::uint64_t slots_bytes = 0;
  std::uint64_t heap = 0;
  std::uint64_t heap_bytes = 0;
  std::uint64_t stack = 0;
  std::uint64_t stack_bytes = 0;
  std::uint64_t companion_end = 0;  ///< plan_in_turn: of the stack of a companion
  std::uint64_t span = 0;           ///< size of one segment
};

/// Between the ranges of a segment: a frame that skips a page must still hit it.
inline constexpr std::uint64_t guard_bytes = 1 << 20;

/// Lay out a segment. words_bytes and hot_bytes are what sched and the headers need, @p front_words of the
/// words what workers look at while they have nothing to do; 0: no fronts.
layout plan(std::uint64_t hot_bytes, std::uint64_t words_bytes, std::uint64_t front_words,
            std::uint64_t stack_bytes, std::uint64_t heap_bytes) noexcept;
/// The same for workers that are threads of one process: stacks do not share a region, @p pool_bytes is for
/// all those of a worker, and @p slots_bytes for its deque.
layout plan_in_place(std::uint64_t hot_bytes, std::uint64_t words_bytes, std::uint64_t slots_bytes,
                     std::uint64_t pool_bytes, std::uint64_t heap_bytes) noexcept;

/// What plan_in_turn is about, in bytes.
struct parts_in_turn {
  std::uint64_t companion = 0;  ///< stack
  std::uint64_t host = 0;       ///< words of the host
  std::uint64_t scheduler = 0;  ///< stack
  std::uint64_t hot = 0;
  std::uint64_t words = 0;
  std::uint64_t words_in_page = 0;  ///< so many of the words end with a page
  std::uint64_t heap = 0;
  std::uint64_t slots = 0;
  std::uint64_t stack = 0;
};
/// For workers that take turns on one OS thread. There are many, and of each a few pages are in use: what is
/// used together lies together, without guards, and the whole takes few addresses, which saves page tables.
///
///   | companion's stack | host's words |
///   | scheduler's stack | hot words | public words | heap | deque slots | region |
///
/// The host's words lie apart, as few workers use theirs: the top of the scheduler's stack, hot and public
/// words have room in one page.
layout plan_in_turn(const parts_in_turn& p) noexcept;

/// The workers of one machine: [first, first + count).
struct near_range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool holds(worker_no w) const noexcept { return index(w) - first < count; }
};

/// The mapping. Plain data: forked workers inherit it as it is.
class segment {
 public:
  /// Create for workers 0 ... @p workers - 1 at the first free base. Throws std::runtime_error with cause and
  /// remedy. Call before the fork.
  void create(std::uint32_t workers, const layout& l);

  // The same in steps, for processes that are not forked from one: one of them makes the file, the others
  // open it; all agree on a base that is free in each.
  void make_file(near_range near, const layout& l);
  /// "/proc/PID/fd/N": valid while the maker has not adopted and lives.
  std::string file_path() const;
  void open_file(near_range near, const layout& l, const std::string& path);
  /// Bit i: base candidate i is free for a mapping of @p total bytes here.
  static std::uint32_t free_bases(std::uint64_t total) noexcept;
  static std::uint64_t total_bytes(std::uint32_t near_workers, const layout& l) noexcept {
    return l.span * (std::uint64_t{near_workers} + 1) + l.front * near_workers;
  }
  /// Map everything at base candidate @p candidate.
  void map(unsigned candidate);

  // Workers that are threads of one process: nothing lies at the common address, and every worker calls its
  // own segment what all others call it. at() takes addresses of any worker's.
  /// Map private memory for all. Throws like create.
  void create_in_place(std::uint32_t workers, const layout& l);
  /// The same mapping as worker @p me sees it.
  segment seen_by(worker_no me) const noexcept;

  // Workers that take turns on one OS thread (substrate sim): as in place, but threads' stacks are at the
  // common address while their worker has its turn, as with processes, and in its own segment (kept_stacks)
  // meanwhile.
  /// Map private memory for all. Throws like create.
  void create_in_turn(std::uint32_t workers, const layout& l);
  /// As worker @p me sees it, whose host is simulated and has the workers @p near: it reaches no others.
  segment seen_by(worker_no me, near_range near) const noexcept;
  /// Another one has written a thread's stack into the own segment, at [low, high): bring it to where threads
  /// run. Elsewhere it is there.
  void bring_stacks(std::uintptr_t low, std::uintptr_t high) const noexcept;
  /// The other way: what is read from the own segment at [low, high) is what lies there where threads run.
  void keep_stacks(std::uintptr_t low, std::uintptr_t high) const noexcept;

  /// In a worker, after the fork: map the own part at the common address.
  void adopt(worker_no me);
  /// A core file of this process will hold of it what workers have used; else it would hold all. In a signal
  /// handler.
  void put_into_core_file() const noexcept;
  /// Unmap everything (the supervising process, after the run).
  void destroy() noexcept;
  /// Give the pages of [address, address + bytes) of the own segment back to the system.
  static void discard(void* address, std::size_t bytes) noexcept;
  /// How much of the own region [low, high), counted from high downwards, has ever been touched, in bytes.
  static std::size_t touched_from_top(const std::byte* low, const std::byte* high) noexcept;

  const layout& where() const noexcept { return layout_; }
  const near_range& near() const noexcept { return near_; }
  bool reaches(worker_no w) const noexcept { return near_.holds(w); }
  /// What a worker calls the begin of its own segment.
  std::byte* common() const noexcept { return common_; }
  /// Where threads' stacks lie in all workers.
  std::byte* stacks() const noexcept { return (in_turn_ ? base_ : common_) + layout_.stack; }
  /// create_in_turn: where those of worker @p w are kept.
  std::byte* kept_stacks(worker_no w) const noexcept { return at(w, base_) + layout_.stack; }
  /// The worker's hot words.
  template <class Hot>
  Hot* hot() const noexcept {
    return reinterpret_cast<Hot*>(common_ + layout_.hot);
  }
  /// Where the front of this host's first worker lies; see layout::front.
  std::byte* fronts() const noexcept { return base_ + layout_.span * (std::uint64_t{near_.count} + 1); }
  // plan_in_turn: ends of stacks.
  std::byte* scheduler_end() const noexcept { return common_ + layout_.hot; }
  std::byte* companion_end() const noexcept { return common_ + layout_.companion_end; }
  /// True if [p, p + n) lies in the range that a worker calls its own segment.
  bool owns(const void* p, std::size_t n) const noexcept {
    const auto at = static_cast<const std::byte*>(p);
    return at >= common_ && at + n <= common_ + layout_.span;
  }
  /// Where worker @p w 's byte at common address @p p is mapped in this process. reaches(w) must hold.
  template <class P>
  P* at(worker_no w, P* p) const noexcept {
    GODWIT_ASSERT(index(w) + 1 - near_.first <= near_.count, "the mapping holds this worker's segment");
    GODWIT_ASSERT(p == nullptr || in_span(p, 0), "an address of a worker's memory lies in its segment");
    const std::uint64_t offset = offset_in_any(p);
    return reinterpret_cast<P*>(
        (offset < layout_.front ? front_zero_ + layout_.front * index(w) : zero_ + layout_.span * index(w)) +
        offset);
  }
  /// Where in its worker's segment @p p is, as any worker calls it.
  std::uint64_t offset_in_any(const void* p) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(base_)) & mask_;
  }
  /// The ref of an object in any worker's segment, by its address there.
  ref ref_of_any(const void* p) const noexcept {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - base_);
    GODWIT_ASSERT(shift_ != 0 && offset >= layout_.span && offset < total_bytes(near_.count, layout_),
                  "in place: the object lies in a worker's segment");
    // In place: worker numbers begin with 0, and a segment's size is a power of two (a division would be
    // felt).
    return make_ref(worker_no{static_cast<std::uint32_t>((offset >> shift_) - 1)},
                    offset & (layout_.span - 1));
  }
  /// The object a ref names. Its home must be reachable.
  template <class P>
  [[gnu::always_inline]] P* at(ref r) const noexcept {
    GODWIT_ASSERT(ref_offset(r) != 0 && ref_offset(r) >= layout_.front && ref_offset(r) < layout_.span,
                  "a ref names something in a segment, behind its front");
    GODWIT_ASSERT(near_.holds(ref_worker(r)), "a ref is followed at its host");
    return reinterpret_cast<P*>(zero_ + layout_.span * index(ref_worker(r)) + ref_offset(r));
  }
  std::uint64_t offset_of(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - common_);
  }

  /// For assertions: [p, p + n) lies in one segment, as a worker names it.
  bool in_span(const void* p, std::size_t n) const noexcept {
    const std::uint64_t offset = offset_in_any(p);
    return offset <= layout_.span && n <= layout_.span - offset;
  }
  bool is_word(const void* p) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(p) & (sizeof(word) - 1)) == 0 && in_span(p, sizeof(word));
  }

  /// Addresses in [base, base + bytes) are global memory: the same for all workers of a host.
  void set_window(std::byte* base, std::uint64_t bytes) noexcept {
    windows_ = window_ = base;
    window_bytes_ = bytes;
  }
  /// Simulated hosts: each has a window of its own in [windows, windows + bytes), all of @p stride bytes, a
  /// power of two. That of this host is at @p own.
  void set_windows(std::byte* windows, std::uint64_t bytes, std::uint64_t stride, std::byte* own) noexcept {
    windows_ = windows;
    window_bytes_ = bytes;
    window_mask_ = stride - 1;
    window_ = own;
  }
  bool in_window(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - windows_) < window_bytes_;
  }
  /// Like at(w, p), but @p p may also lie in the window: of any host, which means this one's. In turn: or in
  /// no segment, and is where it says.
  template <class P>
  P* reach(worker_no w, P* p) const noexcept {
    if (!in_window(p)) return in_turn_ && !in_any(p) ? p : at(w, p);
    const auto offset =
        static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(p) - windows_) & window_mask_;
    return reinterpret_cast<P*>(reinterpret_cast<std::uintptr_t>(window_) + offset);
  }

  // one_sided
  std::uint64_t remote_load(worker_no w, const word* p, std::memory_order o) const noexcept {
    GODWIT_ASSERT(is_word(p), "a word is aligned and lies in a segment");
    return at(w, p)->load(o);
  }
  word_pair_value remote_load_pair(worker_no w, const word* p) const noexcept {
    GODWIT_ASSERT(is_word(p) && in_span(p, 2 * sizeof(word)), "a word is aligned and lies in a segment");
    const word* here = at(w, p);
    const std::uint64_t second = here[1].load(std::memory_order_acquire);
    return {here[0].load(std::memory_order_acquire), second};
  }
  void remote_store(worker_no w, const word* p, std::uint64_t v, std::memory_order o) const noexcept {
    GODWIT_ASSERT(is_word(p), "a word is aligned and lies in a segment");
    const_cast<word*>(at(w, p))->store(v, o);
  }
  std::uint64_t remote_exchange(worker_no w, const word* p, std::uint64_t v) const noexcept {
    GODWIT_ASSERT(is_word(p), "a word is aligned and lies in a segment");
    return const_cast<word*>(at(w, p))->exchange(v, std::memory_order_acq_rel);
  }
  bool remote_compare_exchange(worker_no w, const word* p, std::uint64_t& e, std::uint64_t v) const noexcept {
    GODWIT_ASSERT(is_word(p), "a word is aligned and lies in a segment");
    return const_cast<word*>(at(w, p))->compare_exchange_strong(e, v, std::memory_order_acq_rel,
                                                                std::memory_order_acquire);
  }
  std::uint64_t remote_fetch_add(worker_no w, const word* p, std::uint64_t v) const noexcept {
    GODWIT_ASSERT(is_word(p), "a word is aligned and lies in a segment");
    return const_cast<word*>(at(w, p))->fetch_add(v, std::memory_order_acq_rel);
  }
  void remote_get(worker_no w, void* to, const void* from, std::size_t n) const noexcept {
    GODWIT_ASSERT(in_span(from, n), "the bytes lie in one segment");
    std::memcpy(to, at(w, static_cast<const std::byte*>(from)), n);
  }
  void remote_put(worker_no w, void* to, const void* from, std::size_t n) const noexcept {
    GODWIT_ASSERT(in_span(to, n), "the bytes lie in one segment");
    std::memcpy(at(w, static_cast<std::byte*>(to)), from, n);
  }
  void remote_fence() const noexcept { base::fence(); }

  /// create_in_turn made it.
  bool in_turn() const noexcept { return in_turn_; }

 private:
  bool in_any(const void* p) const noexcept {
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(p) - base_) <
           total_bytes(all_, layout_);
  }
  [[noreturn]] void give_up(const std::string& why);
  void reserve_in_place(std::uint32_t workers, const layout& l);
  /// create_in_turn: where the own byte at @p at is kept.
  std::uintptr_t kept(std::uintptr_t at) const noexcept {
    return reinterpret_cast<std::uintptr_t>(common_) + (at - reinterpret_cast<std::uintptr_t>(base_));
  }

  layout layout_{};
  std::byte* base_ = nullptr;                 // the whole mapping
  std::byte* common_ = nullptr;               // own segment
  std::uintptr_t mask_ = ~std::uintptr_t{0};  // what of an address minus base_ is the offset in a segment
  near_range near_{};
  bool in_turn_ = false;
  std::uint32_t all_ = 0;          // in turn: segments, whatever near_ says
  std::uintptr_t zero_ = 0;        // where worker 0's segment lies, or would lie
  std::uintptr_t front_zero_ = 0;  // likewise its front
  unsigned shift_ = 0;             // in place: of the span
  std::byte* window_ = nullptr;    // this host's
  std::byte* windows_ = nullptr;   // the first host's, where all are in this process
  std::uint64_t window_bytes_ = 0;
  std::uint64_t window_mask_ = ~std::uint64_t{0};
  int fd_ = -1;
};
static_assert(one_sided<segment>);

}  // namespace godwit::transport::shm
