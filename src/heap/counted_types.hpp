// The classes of this program and its libraries whose objects count owners: what stands behind
// std::shared_ptr and boost::shared_ptr (control blocks).
//
// They are found by their virtual tables, which lie in the loaded objects and name their class: the chain of
// its bases ends in one that is known. Not found are those that were compiled without type information
// (-fno-rtti).
// Called by kept.cpp. Test: tests/heap/counted_types_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

namespace godwit::heap {

struct control_block;

/// A virtual table, as objects point at it: from the third entry on.
struct counted_table {
  using function = void (*)(control_block*) noexcept;
  function destructors[2];
  function dispose;  ///< nobody owns the object any more
  function destroy;  ///< nobody knows the block any more
};

/// The start of an object of such a class.
struct control_block {
  counted_table* table;
  int owners;    ///< copies of shared_ptr
  int watchers;  ///< copies of weak_ptr, and one more while there are owners
};

/// What kind of page a table lies in. Not numbers that could be counts: a counted_type must not look like a
/// control_block.
enum class table_page : std::int64_t { writable = -1, read_only = -2, code = -3 };

struct counted_type {
  counted_table* table;
  table_page page;
};

/// All, by the addresses of their tables. Not while other OS threads load or unload libraries. Throws
/// std::bad_alloc. Milliseconds at the first call; later nothing, unless libraries were loaded meanwhile.
const std::vector<counted_type>& counted_types();

}  // namespace godwit::heap
