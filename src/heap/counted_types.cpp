// See counted_types.hpp. It knows the virtual tables and type information of the Itanium C++ ABI, and the
// libraries' own names, which are part of theirs.
#include "heap/counted_types.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <link.h>
#include <string_view>
#include <unistd.h>

#include "stack/stack.hpp"

namespace godwit::heap {

namespace {

// Also what lies between a program's variables is read.
#define GODWIT_NO_ASAN __attribute__((no_sanitize("address", "undefined")))

// Those of the library that count with atomic instructions, or without.
constexpr std::string_view counting_classes[] = {"St16_Sp_counted_baseILN9__gnu_cxx12_Lock_policyE2EE",
                                                 "St16_Sp_counted_baseILN9__gnu_cxx12_Lock_policyE0EE",
                                                 "N5boost6detail15sp_counted_baseE"};
constexpr std::string_view class_of_classes_with_one_base = "N10__cxxabiv120__si_class_type_infoE";

/// What the compiler writes for a class with one base; for others only the first two words are so.
struct type_information {
  const type_information* const* table;
  const char* name;
  const type_information* base;
};

class loaded_objects {
 public:
  loaded_objects() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* all) {
          static_cast<loaded_objects*>(all)->add(*info);
          return 0;
        },
        this);
    const auto by_address = [](const part& a, const part& b) { return a.at.low < b.at.low; };
    std::sort(parts_.begin(), parts_.end(), by_address);
  }
  GODWIT_NO_ASAN std::vector<counted_type> types() const {
    std::vector<counted_type> found;
    for (const stack::range& r : with_tables_)
      for (std::uintptr_t at = (r.low + sizeof(void*) - 1) / sizeof(void*) * sizeof(void*);
           at + sizeof(table_words) <= r.high; at += sizeof(void*))
        if (const table_words words = *reinterpret_cast<const table_words*>(at);
            is_table(words) && counts(words.type)) {
          const std::uintptr_t table = at + offsetof(table_words, functions);
          found.push_back({reinterpret_cast<counted_table*>(table), page_of(table)});
        }
    std::sort(found.begin(), found.end(),
              [](const counted_type& a, const counted_type& b) { return a.table < b.table; });
    return found;
  }

 private:
  struct part {
    stack::range at;
    unsigned flags;
  };
  struct table_words {
    std::uintptr_t offset_to_object;
    const type_information* type;
    std::uintptr_t functions[4];
  };

  void add(const dl_phdr_info& info) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    stack::range relocated;
    for (unsigned i = 0; i < info.dlpi_phnum; ++i)
      if (const auto& p = info.dlpi_phdr[i]; p.p_type == PT_GNU_RELRO) {
        relocated = {info.dlpi_addr + p.p_vaddr, info.dlpi_addr + p.p_vaddr + p.p_memsz};
        read_only_.push_back({relocated.low / page * page, relocated.high / page * page});
      }
    // Tables hold addresses: where these are not known before the program runs, the loader writes them.
    const bool at_fixed_address = info.dlpi_addr == 0;
    const bool only_relocated = !at_fixed_address && relocated.high != 0;
    if (only_relocated) with_tables_.push_back(relocated);
    for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
      const auto& p = info.dlpi_phdr[i];
      if (p.p_type != PT_LOAD || (p.p_flags & PF_R) == 0) continue;
      const std::uintptr_t low = info.dlpi_addr + p.p_vaddr;
      parts_.push_back({{low, low + p.p_memsz}, p.p_flags});
      const bool written = (p.p_flags & PF_W) != 0;
      if (!written) read_only_.push_back(parts_.back().at);
      if (!only_relocated && (written || at_fixed_address)) with_tables_.push_back({low, low + p.p_filesz});
    }
  }

  const part* part_of(std::uintptr_t a) const noexcept {
    const auto next = std::upper_bound(parts_.begin(), parts_.end(), a,
                                       [](std::uintptr_t v, const part& p) { return v < p.at.low; });
    return next != parts_.begin() && next[-1].at.holds(a) ? &next[-1] : nullptr;
  }
  bool is_code(std::uintptr_t a) const noexcept {
    const part* const p = part_of(a);
    return p != nullptr && (p->flags & PF_X) != 0;
  }
  bool is_data(const void* at, std::size_t bytes) const noexcept {
    const auto a = reinterpret_cast<std::uintptr_t>(at);
    const part* const p = part_of(a);
    return p != nullptr && p->at.high - a >= bytes;
  }
  table_page page_of(std::uintptr_t a) const noexcept {
    if (is_code(a)) return table_page::code;
    const bool read_only =
        std::any_of(read_only_.begin(), read_only_.end(), [a](const stack::range& r) { return r.holds(a); });
    return read_only ? table_page::read_only : table_page::writable;
  }

  bool is_table(const table_words& w) const noexcept {
    return w.offset_to_object == 0 && w.type != nullptr &&
           reinterpret_cast<std::uintptr_t>(w.type) % alignof(type_information) == 0 &&
           std::all_of(std::begin(w.functions), std::end(w.functions),
                       [this](std::uintptr_t f) { return f != 0 && is_code(f); });
  }
  GODWIT_NO_ASAN bool has_name(const type_information* t, std::string_view start) const noexcept {
    return is_data(t, 2 * sizeof(void*)) && is_data(t->name, start.size()) &&
           std::strncmp(t->name, start.data(), start.size()) == 0;
  }
  GODWIT_NO_ASAN bool has_one_base(const type_information* t) const noexcept {
    return is_data(t, sizeof *t) && is_data(t->table - 1, sizeof(void*)) &&
           has_name(t->table[-1], class_of_classes_with_one_base);
  }
  GODWIT_NO_ASAN bool counts(const type_information* t) const noexcept {
    for (int deep = 0; deep < 16; ++deep, t = t->base) {
      for (const std::string_view name : counting_classes)
        if (has_name(t, name)) return true;
      if (!has_one_base(t)) return false;
    }
    return false;
  }

  std::vector<part> parts_;
  std::vector<stack::range> with_tables_, read_only_;
};

/// Changes when an object is loaded or unloaded.
unsigned long long loads_so_far() noexcept {
  unsigned long long n = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* n) {
        *static_cast<unsigned long long*>(n) = info->dlpi_adds + info->dlpi_subs;
        return 1;
      },
      &n);
  return n;
}

}  // namespace

const std::vector<counted_type>& counted_types() {
  static std::vector<counted_type> types;
  static unsigned long long of = ~0ull;
  const unsigned long long now = loads_so_far();
  if (now != of) {
    types = loaded_objects().types();
    of = now;
  }
  return types;
}

}  // namespace godwit::heap
