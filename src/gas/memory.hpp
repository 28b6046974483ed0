// Global memory as one worker sees it: access, allocation, consistency. Knows no scheduler; the runtime calls
// release and acquire where threads come and go.
//
// Inside the host everything is a load or store in the window. Other hosts are reached by requests through
// the worker's port; ranges of their memory are cached (cache.hpp), single values are not unless a copy is
// there. Files: memory.cpp (access), allocate.cpp, directory.cpp, cache.cpp, checks.cpp (check_global).
// Documents: docs/global-memory.md, docs/memory-model.md, docs/protocols/global.md. Called by:
// src/runtime/global_entry.cpp.
#pragma once

#include "base/section.hpp"
#include "gas/cache.hpp"
#include "gas/heap.hpp"
#include "gas/reach.hpp"
#include "gas/space.hpp"
#include "gas/words.hpp"

#include <godwit/options.hpp>
#include <godwit/runtime.hpp>

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace godwit::gas {

struct memory_setup {
  reach_setup reach;
  space where;
  const options* opts = nullptr;
  worker_stats* stats = nullptr;
  /// An event for the trace; may be null.
  void (*note)(cache_event what, std::uint64_t since_ns, std::uint64_t bytes) noexcept = nullptr;
};

class memory {
 public:
  void init(const memory_setup& setup);

  // global_path.hpp says what these do.
  void get(global_address from, void* to, std::size_t bytes);
  void put(global_address to, const void* from, std::size_t bytes);
  void copy(global_address to, global_address from, std::uint64_t bytes);
  std::uint64_t atomic(detail::atomic_op what, global_address at, unsigned width, std::uint64_t operand,
                       std::uint64_t expected, bool relaxed);
  void fence() noexcept;
  void gather(const detail::global_piece* pieces, std::size_t count);
  void scatter(const detail::global_piece* pieces, std::size_t count);
  std::byte* checkout(global_address at, std::uint64_t bytes, detail::access_mode mode, detail::place where);
  void checkin(global_address at, std::uint64_t bytes, detail::access_mode mode) noexcept;
  std::byte* try_local(global_address at, std::uint64_t bytes) noexcept;
  std::uint32_t home(global_address at);
  std::uint32_t owner(global_address at);

  global_address allocate(std::uint64_t bytes, std::uint64_t alignment, const detail::spread& how,
                          detail::place where);
  global_address allocate_local(std::uint64_t bytes, std::uint64_t alignment, detail::place where);
  void free(global_address at, std::uint64_t bytes, detail::place where);
  void populate(global_address at, std::uint64_t bytes) noexcept;

  /// What this worker's host has written reaches its homes before this returns. Nothing on one host.
  void release() noexcept {
    if (several_hosts_) cache_.write_back();
  }
  /// release() would have to communicate.
  bool must_release() const noexcept { return several_hosts_ && cache_.has_dirty(); }
  /// What is read from now on is at least as new as what other hosts released before now.
  void acquire() noexcept {
    if (several_hosts_) cache_.invalidate();
  }

  /// All of it lies on this host: an access needs no round trip.
  bool is_near(global_address at, std::uint64_t bytes);
  /// The whole range has one owner, on another host, and no copy of it is here that is dirty.
  bool single_far_owner(global_address at, std::uint64_t bytes, std::uint32_t& owner);
  /// These bytes are about to be written at their home.
  void forget_copies(global_address at, std::uint64_t bytes) noexcept {
    if (several_hosts_) cache_.drop(at, bytes);
  }
#ifndef NDEBUG
  /// After a run without an error, when no worker of this host does anything any more; by each worker.
  void check_invariants() const;
#endif
  reach& net() noexcept { return reach_; }
  bool checks() const noexcept { return checks_; }
  bool several_hosts() const noexcept { return several_hosts_; }
  void usage(std::uint64_t& used, std::uint64_t& limit) const noexcept;
  /// check_global: what this worker allocated and nobody freed, one line; empty: nothing.
  std::string leaks() const;
  /// check_global: the checkouts that this worker holds, one line.
  std::string open_checkouts() const;

 private:
  struct allocation_site {
    std::uint64_t bytes;
    detail::place where;
  };

  bool is_one_piece(global_address at, std::uint64_t bytes);

  // directory.cpp
  /// The descriptor of the shared allocation that @p at lies in, or null. May take round trips the first
  /// time.
  descriptor* find(global_address at);
  std::uint32_t home_of_block(const descriptor& d, std::uint64_t block);
  std::uint32_t owner_of_block(const descriptor& d, std::uint64_t block);
  global_address begin_of(const descriptor& d) const noexcept {
    return where_.shared_low + (d.first << space::granule_bits);
  }
  descriptor* entry(std::uint64_t granule) const noexcept {
    return reach_.at<descriptor>(where_.directory_low) + granule;
  }
  /// Call f(owner, address, bytes) for each part of the range that has one owner. False: it is not in a live
  /// allocation.
  template <class F>
  bool visit_pieces(global_address at, std::uint64_t bytes, F&& f);
  /// The same for ranges that must be.
  template <class F>
  void each_piece(global_address at, std::uint64_t bytes, F&& f);
  [[noreturn]] void bad_address(global_address at, std::uint64_t bytes, const char* doing) const;

  // allocate.cpp
  global_address allocate_shared(std::uint64_t bytes, std::uint64_t alignment, const detail::spread& how);
  void lock_shared();
  void unlock_shared();
  /// The first of @p count granules; ~0: there are none.
  /// @p reused: others may have copies of what was there.
  std::uint64_t take_granules(std::uint64_t count, std::uint64_t alignment, bool& reused);
  void free_shared(global_address at, std::uint64_t bytes, detail::place where);
  bool take_budget(std::uint32_t host, std::uint64_t bytes);
  void give_budget(std::uint32_t host, std::uint64_t bytes);
  void drain_returned() noexcept;
  void retire(global_address at) noexcept;
  void empty_quarantine(std::uint64_t left) noexcept;
  [[noreturn]] void no_room(std::uint64_t bytes, std::uint32_t host, const char* of_what, const char* remedy);

  // checks.cpp
  void check_range(global_address at, std::uint64_t bytes, const char* doing);
  void note_checkout(global_address at, std::uint64_t bytes, bool writes, const detail::place& where);
  void forget_checkout(global_address at, std::uint64_t bytes, bool writes) noexcept;
  void mark_shadow(global_address at, std::uint64_t bytes, bool live) noexcept;

  reach reach_;
  space where_;
  cache cache_;
  heap heap_;
  host_words* host_ = nullptr;
  worker_stats* stats_ = nullptr;
  std::uint32_t me_ = 0;
  bool several_hosts_ = false;
  bool checks_ = false;
  /// by first granule and generation
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> user_tables_;
  std::unordered_map<global_address, allocation_site> sites_;  ///< check_global
  /// check_global: freed, not reused yet
  std::deque<global_address> quarantine_;
  std::uint64_t quarantine_bytes_ = 0;
  static constexpr std::uint64_t most_in_quarantine = 4 << 20;
};

}  // namespace godwit::gas
