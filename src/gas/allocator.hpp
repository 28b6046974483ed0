// The allocator: gives out global memory and takes it back.
//
// Local: from the calling worker's own arena (arena.hpp); what others free comes back through a list that its
// owner empties when it allocates. Distributed: addresses from extents.hpp, divided and entered by
// directory.hpp; each host pays from its budget for what it has of it, when it is allocated. With
// check_global freed local objects wait in a quarantine before they are used again, and who allocated what is
// remembered.
//
// Called by memory.hpp. Document: docs/decisions/0010-global-memory.md.
// Tests: tests/gas/allocator_test.cpp, tests/global/{allocate,misuse}_test.cpp.
#pragma once

#include "gas/checks.hpp"
#include "gas/extents.hpp"
#include "gas/arena.hpp"
#include "gas/objects.hpp"

#include <list>
#include <string>
#include <unordered_map>

namespace godwit::gas {

class allocator {
 public:
  /// @p force_movable: all distributed memory is that can be.
  allocator(const reach& net, const space& where, directory& blocks, checks& check,
            bool force_movable = false);

  // global_path.hpp says what these do.
  global_address allocate(std::uint64_t bytes, std::uint64_t alignment, const detail::spread& how,
                          detail::place where);
  global_address allocate_local(std::uint64_t bytes, std::uint64_t alignment, detail::place where);
  /// Addresses of the window for something else than global memory, on all hosts: until the run ends they are
  /// nobody's. Some round trips.
  global_address reserve(std::uint64_t bytes);
  /// Not 0. Nothing of it may be dirty in a cache: that would be written into the next allocation here.
  void free(global_address at, std::uint64_t bytes, detail::place where);

  /// For inlined code: this worker's free blocks. Not with checks, nor where freeing must release.
  detail::local_objects& objects() noexcept { return arena_.objects(); }

  /// What a host may still have gets less, and more. False: the limit would be exceeded, and nothing changed.
  bool take_budget(std::uint32_t host, std::uint64_t bytes) const noexcept;
  void give_budget(std::uint32_t host, std::uint64_t bytes) const noexcept;
  /// The same at all hosts, of each its @p share; gives back the first one that refused, and then nothing
  /// changed, else how many there are.
  std::uint32_t take_budgets(const std::vector<std::uint64_t>& share) const;
  void give_budgets(const std::vector<std::uint64_t>& share) const;
  /// Of this host.
  void usage(std::uint64_t& used, std::uint64_t& limit) const noexcept;
  /// check_global: what this worker allocated and nobody freed, one line; empty: nothing.
  std::string leaks() const;
  /// How often the parts of a movable allocation were used goes to who wants to know: they are not counted
  /// any more. Cost: a message for some hundred parts of another host.
  void note_heat(const descriptor& d);
  /// The same of all that is live, when nobody allocates or frees. Two round trips more for each allocation.
  void note_heat_of_all();
  /// When nobody allocates.
  void check_invariants() const;

 private:
  struct allocation_site {
    std::uint64_t bytes;
    detail::place where;
  };

  void check_arguments(std::uint64_t bytes, std::uint64_t alignment, const detail::spread& how) const;
  /// A local object; not noted in sites_.
  global_address take_object(std::uint64_t bytes, std::uint64_t alignment);
  global_address allocate_shared(std::uint64_t bytes, std::uint64_t alignment, const detail::spread& how);
  /// For who wants to see it: whose the parts of a movable allocation are.
  void note_homes(const descriptor& d);
  void free_local(global_address at, std::uint64_t bytes, detail::place where);
  void free_shared(global_address at, std::uint64_t bytes, detail::place where);
  [[noreturn]] void no_room(std::uint64_t bytes, std::uint32_t host, const std::string& of_what,
                            const char* remedy) const;
  [[noreturn]] void limit_reached(std::uint64_t bytes, std::uint32_t host) const;

  // Objects of this worker that come back.
  void drain_returned() noexcept;
  void retire(global_address at) noexcept;
  void empty_quarantine(std::uint64_t left) noexcept;
  /// Of another host. @p now: not only looked at. One round trip.
  freed ask_to_free(std::uint32_t home, const returned& object, bool now) const noexcept;

  /// Ends the run if it could not be freed, and says why.
  void not_freed(const freed& f, global_address at, std::uint64_t bytes, const detail::place& where) const;
  [[noreturn]] void freed_twice(global_address at, const detail::place& where) const;
  [[noreturn]] void other_size(global_address at, std::uint64_t allocated, std::uint64_t freed,
                               const detail::place& where) const;

  const reach& net_;
  const space& where_;
  directory& blocks_;
  checks& check_;
  const bool force_movable_;
  extents extents_;
  arena arena_;
  std::unordered_map<global_address, allocation_site> sites_;  ///< check_global
  std::list<global_address> quarantine_;                       ///< check_global: freed, not reused yet
  std::uint64_t quarantine_bytes_ = 0;
  static constexpr std::uint64_t most_in_quarantine = 4 << 20;
};

}  // namespace godwit::gas
