// The same addresses in all ranks: code, data, thread-local storage, main's stack, the heap built before run.
//
// Threads migrate between processes that a launcher started one by one, so before main each rank executes
// itself anew without address randomisation. The addresses of main's frames also depend on the size and
// number of arguments and variables; dummy variables, gone again before main, pad both to steps. At launch
// the ranks compare what came out, for it can fail: Docker refuses the switch, hosts differ in libraries.
// Not here: the stack protector's canary (src/context). A plain start: one look at the environment.
// Called by src/runtime at launch. Tests: tests/base/launcher_test.cpp, tests/mpi/layout_check.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace godwit::base {

/// Does nothing; whoever refers to it gets this file's constructor from a static library.
void keep_fixed_layout() noexcept;

/// What of this process's layout must be equal in all. Plain bytes, for exchange by any transport.
struct layout {
  static constexpr std::uint32_t format_now = 1;
  static constexpr std::size_t most_modules = 56;

  enum class state : std::uint32_t {
    not_needed,  ///< a plain start: nothing was done
    fixed,       ///< started anew without randomisation
    as_asked,    ///< GODWIT_RANDOMIZE=1
    refused      ///< see detail
  };
  /// A loaded file: the program first, then the libraries loaded with it, in the loader's order.
  struct module {
    char name[40];        ///< without folder, truncated; empty: the program
    std::uint64_t base;   ///< load address minus linked address
    std::uint64_t build;  ///< hash of its build-id, or of its program headers
  };

  std::uint32_t format;
  state randomisation;
  std::uint64_t program;     ///< hash of the program's build-id, or of its read-only segments
  std::uint64_t modules;     ///< hash of all modules, also those beyond module_list
  std::uint64_t tls;         ///< of a thread_local of the main thread
  std::uint64_t main_stack;  ///< of a frame below main's caller
  std::uint64_t heap_start;  ///< end of the data segment before main, its page
  std::uint64_t page_bytes;
  std::uint64_t stack_limit;  ///< ulimit -s in bytes: the kernel puts mappings below it
  std::uint32_t module_count;
  char build_id[44];  ///< the program's, in hexadecimal; "" when it has none
  char kernel[40];    ///< release
  char detail[160];   ///< why the layout is not fixed
  module module_list[most_modules];
};
static_assert(sizeof(layout) <= 4096);

/// This process's. Modules, stack and heap are those before main, if a launcher of several ranks was found
/// then; else those of the call, which belongs on the main thread.
layout own_layout();

/// What two layouts must have in common, as words, the place of main's stack last: all ranks agree if each
/// word is the same in all.
std::array<std::uint64_t, 7> words_to_compare(const layout& l) noexcept;

struct rank_layout {
  int rank;
  char host[64];
  layout is;
};

/// Why the two functions below may name a rank: it differs from rank 0 (@p zero: its words) in any but the
/// main stack; in that; one of three layout::state. Of each reason the first rank is enough.
std::array<bool, 5> reasons_to_name(const layout& mine, const std::array<std::uint64_t, 7>& zero) noexcept;

/// Empty if all agree; else one or two lines: who differs from rank 0 in what, and what to do. @p some: rank
/// 0 and, by rank, at least those that there is a reason to name. The main stack does not count: see below.
std::string compare_layouts(std::span<const rank_layout> some);

/// Empty if pointers to main's locals mean the same in all ranks; else a line that says so and what to do.
std::string compare_main_stacks(std::span<const rank_layout> some);

/// Padding of strings and pointers that the kernel puts on the initial stack. Exposed for its test.
struct start_padding {
  std::size_t variables;  ///< how many dummies
  std::size_t bytes;      ///< of all dummies, with their closing zeros
};
/// @p strings: arguments and variables, with closing zeros and the program's path; @p pointers: how many.
start_padding padding_for(std::size_t strings, std::size_t pointers) noexcept;

}  // namespace godwit::base
