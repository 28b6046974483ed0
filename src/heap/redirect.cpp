// See redirect.hpp.
#include "heap/redirect.hpp"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string_view>

#include "stack/stack.hpp"

namespace godwit::heap {

namespace {

#if defined(__x86_64__)
constexpr bool names_a_slot(std::uint64_t type) {
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}
#elif defined(__aarch64__)
constexpr bool names_a_slot(std::uint64_t type) {
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}
#elif defined(__riscv)
constexpr bool names_a_slot(std::uint64_t type) { return type == R_RISCV_JUMP_SLOT || type == R_RISCV_64; }
#else
constexpr bool names_a_slot(std::uint64_t) { return false; }
#endif

/// One loaded object's tables.
class object {
 public:
  explicit object(const dl_phdr_info& info) noexcept : base_(info.dlpi_addr) {
    for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
      const auto& part = info.dlpi_phdr[i];
      if (part.p_type == PT_DYNAMIC) read(reinterpret_cast<const ElfW(Dyn)*>(base_ + part.p_vaddr));
      if (part.p_type == PT_GNU_RELRO)
        read_only_ = {base_ + part.p_vaddr, base_ + part.p_vaddr + part.p_memsz};
    }
  }
  void redirect(std::span<const redirection> all) const noexcept {
    if (symbols_ == nullptr || names_ == nullptr) return;
    for (const table& t : tables_)
      for (const ElfW(Rela)* r = t.begin; r < t.end; ++r)
        if (names_a_slot(ELF64_R_TYPE(r->r_info))) slot(*r, all);
  }

 private:
  struct table {
    const ElfW(Rela) * begin = nullptr;
    const ElfW(Rela) * end = nullptr;
  };
  /// Some loaders put addresses in the place of offsets, some do not.
  std::uintptr_t address(std::uintptr_t v) const noexcept { return v < base_ ? base_ + v : v; }
  void read(const ElfW(Dyn) * entry) noexcept {
    std::uintptr_t at[2] = {};
    std::uint64_t bytes[2] = {};
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB)
        symbols_ = reinterpret_cast<const ElfW(Sym)*>(address(entry->d_un.d_ptr));
      if (entry->d_tag == DT_STRTAB) names_ = reinterpret_cast<const char*>(address(entry->d_un.d_ptr));
      if (entry->d_tag == DT_JMPREL) at[0] = address(entry->d_un.d_ptr);
      if (entry->d_tag == DT_PLTRELSZ) bytes[0] = entry->d_un.d_val;
      if (entry->d_tag == DT_RELA) at[1] = address(entry->d_un.d_ptr);
      if (entry->d_tag == DT_RELASZ) bytes[1] = entry->d_un.d_val;
    }
    for (int i = 0; i < 2; ++i)
      if (at[i] != 0)
        tables_[i] = {reinterpret_cast<const ElfW(Rela)*>(at[i]),
                      reinterpret_cast<const ElfW(Rela)*>(at[i] + bytes[i])};
  }
  void slot(const ElfW(Rela) & r, std::span<const redirection> all) const noexcept {
    const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(r.r_info)];
    const char* const name = names_ + symbol.st_name;
    for (const redirection& one : all) {
      if (std::strcmp(name, one.name) != 0) continue;
      auto* const to = reinterpret_cast<void**>(base_ + r.r_offset);
      if (__atomic_load_n(to, __ATOMIC_RELAXED) == one.to) continue;
      const bool closed = read_only_.holds(reinterpret_cast<std::uintptr_t>(to));
      if (closed && !stack::open_page(to, true)) return;
      __atomic_store_n(to, one.to, __ATOMIC_RELEASE);
      if (closed) static_cast<void>(stack::open_page(to, false));
    }
  }

  std::uintptr_t base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  table tables_[2];
  stack::range read_only_;
};

}  // namespace

void redirect(std::span<const redirection> all) noexcept {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* all_of_them) {
        // The kernel's object has no such calls, and its tables are not where they say.
        if (std::string_view(info->dlpi_name).find("vdso") == std::string_view::npos)
          object(*info).redirect(*static_cast<std::span<const redirection>*>(all_of_them));
        return 0;
      },
      &all);
}

void* c_library_function(const char* name) noexcept {
  static void* const library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? dlsym(library, name) : nullptr;
}

}  // namespace godwit::heap
