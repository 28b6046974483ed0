// See mains_variables.hpp.
#include "heap/mains_variables.hpp"

#include "base/symbols.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <link.h>
#include <memory>
#include <string_view>
#include <vector>

namespace godwit::heap {

namespace {

constexpr std::size_t page_bytes = 4096;
using page = std::array<std::byte, page_bytes>;
constexpr page zero{};

/// Memory that the program's file may write.
struct stretch {
  std::uintptr_t begin, end;
  std::vector<std::unique_ptr<page>> was;  // null: all zero
};

struct memory {
  std::uintptr_t loaded_at = 0;
  std::vector<stretch> stretches;
};
constinit memory* remembered_ = nullptr;  // in a worker; never destroyed

void find_stretches() {
  remembered_ = new memory;
  dl_iterate_phdr(
      [](dl_phdr_info* program, std::size_t, void*) {  // the first one
        remembered_->loaded_at = program->dlpi_addr;
        for (unsigned i = 0; i < program->dlpi_phnum; ++i) {
          const auto& part = program->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
          const std::uintptr_t begin = program->dlpi_addr + part.p_vaddr;
          remembered_->stretches.push_back({begin, begin + part.p_memsz, {}});
        }
        return 1;
      },
      nullptr);
}

/// Calls f(bytes, what was there) for the pieces of [begin, begin + bytes) of a stretch.
template <class F>
bool all_of_pieces(const stretch& s, std::uintptr_t begin, std::uint64_t bytes, F f) {
  while (bytes != 0) {
    const std::uintptr_t offset = begin - s.begin;
    const std::size_t in_page = offset % page_bytes, n = std::min<std::uint64_t>(bytes, page_bytes - in_page);
    const page* const was = s.was[offset / page_bytes].get();
    if (!f(reinterpret_cast<const std::byte*>(begin), (was != nullptr ? *was : zero).data() + in_page, n))
      return false;
    begin += n;
    bytes -= n;
  }
  return true;
}

bool is_unchanged(std::uintptr_t begin, std::uint64_t bytes) {
  for (const stretch& s : remembered_->stretches)
    if (begin >= s.begin && begin < s.end && bytes <= s.end - begin)
      return all_of_pieces(s, begin, bytes, [](const std::byte* is, const std::byte* was, std::size_t n) {
        return std::memcmp(is, was, n) == 0;
      });
  return true;  // it cannot be written
}

/// By its mangled name.
bool is_the_programs(std::string_view name) {
  if (name.empty() || name.find('@') != name.npos) return false;  // a copy of a library's
  constexpr std::string_view others[] = {"_ZN6godwit", "_ZZN6godwit", "_ZNK6godwit", "_ZZNK6godwit",
                                         "_ZGV",       "_ZT",         "_ZSt",        "_ZNSt",
                                         "_ZNKSt",     "_ZZSt",       "_ZZNSt",      "_ZZNKSt",
                                         "_ZN9__gnu",  "godwit_",     "__",          "completed."};
  return std::ranges::none_of(others, [=](std::string_view o) { return name.starts_with(o); });
}

}  // namespace

void remember_mains_variables() {
  find_stretches();
  for (stretch& s : remembered_->stretches) {
    for (std::uintptr_t at = s.begin; at < s.end; at += page_bytes) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(at);
      const std::size_t n = std::min<std::size_t>(page_bytes, s.end - at);
      s.was.emplace_back();
      if (std::memcmp(bytes, zero.data(), n) == 0) continue;
      s.was.back() = std::make_unique<page>();
      std::memcpy(s.was.back()->data(), bytes, n);
    }
  }
}

std::map<std::string, std::uint64_t> changed_variables() {
  std::map<std::string, std::uint64_t> changed;
  if (remembered_ == nullptr) return changed;
  base::each_symbol(base::own_program(), [&](const base::symbol& s) {
    if (!s.is_function && s.bytes != 0 && is_the_programs(s.name) &&
        !is_unchanged(remembered_->loaded_at + s.begin, s.bytes))
      changed[base::demangled(s.name)] = s.bytes;
    return true;
  });
  return changed;
}

}  // namespace godwit::heap
