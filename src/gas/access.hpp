// Access to global memory as one worker sees it, and its consistency.
//
// Inside the host everything is a load or store in the window. Other hosts are reached by requests through
// the worker's port; ranges of their memory are cached (cache.hpp), single values are not unless a copy is
// there. What the caller may touch is its own business, unless check_global is on (checks.hpp).
//
// Called by src/runtime/global_path.cpp, which also calls release and acquire where threads come and go.
// Documents: docs/global-memory.md, docs/memory-model.md, docs/protocols/global.md.
// Tests: tests/gas/access_test.cpp, tests/global/{access,atomic,checkout,litmus}_test.cpp.
#pragma once

#include "gas/cache.hpp"
#include "gas/checks.hpp"

namespace godwit::gas {

/// Where memory is, for who wants to go there.
struct standing {
  enum { here, soon, elsewhere } what = here;  ///< soon: between two hosts, or about to come here
  std::uint32_t worker = 0;                    ///< elsewhere: where to go next
  std::uint64_t owner = 0;                     ///< of movable memory, as place_words say it
  // here, and several hosts: of the part that moves with it. Else 0
  global_address part = 0;
  std::uint64_t part_bytes = 0;
};

class access {
 public:
  /// @p copies: with one host its units are not used.
  access(const reach& net, directory& blocks, checks& check, const cache_setup& copies) noexcept
      : net_(net),
        blocks_(blocks),
        check_(check),
        stats_(copies.stats),
        several_hosts_(net.several_hosts()),
        cache_(net, blocks, copies) {}

  // global_path.hpp says what these do.
  void get(global_address from, void* to, std::size_t bytes);
  void put(global_address to, const void* from, std::size_t bytes);
  void copy(global_address to, global_address from, std::uint64_t bytes);
  std::uint64_t atomic(detail::atomic_op what, global_address at, unsigned width, std::uint64_t operand,
                       std::uint64_t expected, bool relaxed);
  void fence() noexcept;
  void gather(const detail::global_piece* pieces, std::size_t count);
  void scatter(const detail::global_piece* pieces, std::size_t count);
  /// @p wanted as in cache.hpp.
  detail::opened checkout(global_address at, std::uint64_t bytes, detail::access_mode mode,
                          detail::place where, std::uint64_t wanted = 0);
  /// A checkout of memory that is this host's, which stays here for so long. data null: not now, with
  /// `standing` of what is not here.
  detail::opened pin(global_address at, std::uint64_t bytes, detail::access_mode mode, detail::place where,
                     standing& not_here);
  void checkin(std::uint64_t ticket, std::uint64_t bytes, detail::access_mode mode) noexcept;
  /// The worker that has it now. Local; of movable memory of another host one round trip or more.
  std::uint32_t owner(global_address at);
  /// Who would be asked for it. Local, and perhaps wrong.
  std::uint32_t likely_owner(global_address at);
  /// Of who wants to be where @p at is: @p told is what it knows of the owner, as places say it (0: nothing),
  /// @p ask_home: go there first. Local.
  standing where_is(global_address at, std::uint64_t told, bool ask_home);
  std::byte* try_local(global_address at, std::uint64_t bytes) noexcept;
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

  /// The whole range has one owner for good, on another host, and nothing that is here is dirty.
  bool single_far_owner(global_address at, std::uint64_t bytes, std::uint32_t& owner);
  /// Ends the run if somebody wants to write frozen memory there. @p where may be empty.
  void refuse_frozen(global_address at, const detail::place& where);
  /// These bytes are about to be written at their home.
  void forget_copies(global_address at, std::uint64_t bytes) noexcept {
    if (several_hosts_) cache_.drop(at, bytes);
  }
  cache& copies() noexcept { return cache_; }
  /// When nobody of the host uses it.
  void check_invariants() const noexcept {
    if (several_hosts_) cache_.check_invariants();
  }

 private:
  /// Do @p touch if the bytes of @p p are this host's memory now, and may be used. Of movable memory under
  /// a use, which is counted as an access.
  template <class F>
  bool touch_here(const piece& p, F&& touch, bool counts = true);
  /// The same for an atomic of movable memory, wherever it is.
  std::uint64_t atomic_on_movable(const piece& p, atomic_function f, unsigned width, std::uint64_t operand,
                                  std::uint64_t expected, bool relaxed);
  /// One more that is not here.
  void add_far(std::vector<part>& far, const piece& p, std::byte* here);
  /// Whom to ask for those of movable memory.
  void look_up(std::vector<part>& far);
  /// Read or write @p far, all of them.
  void fetch_all(std::vector<part>& far);
  void write_all(std::vector<part>& far);
  /// A use of all places of the range, if all of it is movable memory that is here.
  bool use_all(global_address at, std::uint64_t bytes);
  void unpin(global_address at, std::uint64_t bytes);

  const reach& net_;
  directory& blocks_;
  checks& check_;
  worker_stats* const stats_;
  const bool several_hosts_;
  std::uint64_t singles_ = 0;  ///< single_access
  cache cache_;
};

}  // namespace godwit::gas
