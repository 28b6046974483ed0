// See fixed_layout.hpp. What the kernel does: fs/exec.c, fs/binfmt_elf.c (create_elf_tables), execve(2),
// personality(2).
//
// The program that has just been started anew knows itself by two things: the mark with its own process
// number (launcher.hpp) and at least one dummy variable. So it happens once, whatever comes of it, and a rank
// that replaces itself by another program of ours, which has the mark but no dummies, starts that anew again.
#include "base/fixed_layout.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/launcher.hpp"
#include "base/options.hpp"
#include "base/rank_output.hpp"
#include "base/text.hpp"
#include "base/valgrind.hpp"

namespace godwit::base {
namespace {

constexpr std::string_view dummy_name = "_GODWIT_PAD=";

layout start_;           // what the constructor found out
bool snapshot_ = false;  // main_stack, heap_start, tls and the modules in it are those before main

thread_local char of_main_thread_;  // only its address counts

// ---- hashes

constexpr std::uint64_t hash_start = 0xcbf29ce484222325u;  // FNV-1a over 8 bytes at a time, and a shift
std::uint64_t mix(std::uint64_t h, std::uint64_t v) noexcept {
  h = (h ^ v) * 0x100000001b3u;
  return h ^ h >> 29;
}
#if defined(__SANITIZE_ADDRESS__)
#define GODWIT_NO_ASAN __attribute__((no_sanitize("address")))
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GODWIT_NO_ASAN __attribute__((no_sanitize("address")))
#endif
#endif
#if !defined(GODWIT_NO_ASAN)
#define GODWIT_NO_ASAN
#endif
/// Segments hold redzones of globals, which a sanitizer would report: plain loads, no memcpy.
GODWIT_NO_ASAN std::uint64_t mix_bytes(std::uint64_t h, const void* data, std::size_t bytes) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  for (; bytes >= 8; p += 8, bytes -= 8) {
    std::uint64_t v = 0;
    for (int i = 7; i >= 0; --i) v = v << 8 | p[i];
    h = mix(h, v);
  }
  for (; bytes != 0; ++p, --bytes) h = mix(h, *p);
  return h;
}

// ---- loaded files

template <class F>
void for_each_module(F f) noexcept {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* call) {
        (*static_cast<F*>(call))(*info);
        return 0;
      },
      &f);
}

const char* base_name(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

struct note_bytes {
  const unsigned char* data = nullptr;
  std::size_t bytes = 0;
};
GODWIT_NO_ASAN note_bytes build_id_of(const dl_phdr_info& m) noexcept {
  for (int i = 0; i < m.dlpi_phnum; ++i) {
    const auto& segment = m.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto align = segment.p_align == 8 ? std::size_t{8} : std::size_t{4};
    const auto up = [align](std::size_t n) { return (n + align - 1) & ~(align - 1); };
    const auto* p = reinterpret_cast<const unsigned char*>(m.dlpi_addr + segment.p_vaddr);
    const auto* end = p + segment.p_memsz;
    while (p + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(p);
      const auto* name = p + sizeof *note;
      const auto* data = p + up(sizeof *note + note->n_namesz);
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && name[0] == 'G' && name[1] == 'N' &&
          name[2] == 'U')
        return {data, note->n_descsz};
      p = data + up(note->n_descsz);
    }
  }
  return {};
}

std::uint64_t build_of(const dl_phdr_info& m) noexcept {
  if (const note_bytes id = build_id_of(m); id.data != nullptr)
    return mix_bytes(hash_start, id.data, id.bytes);
  std::uint64_t h = hash_start;
  for (int i = 0; i < m.dlpi_phnum; ++i) {
    const auto& s = m.dlpi_phdr[i];
    h = mix(mix(mix(h, s.p_type), s.p_vaddr), mix(s.p_memsz, s.p_filesz));
  }
  return h;
}

/// The bytes that no relocation touches.
std::uint64_t text_of(const dl_phdr_info& m) noexcept {
  std::uint64_t h = hash_start;
  for (int i = 0; i < m.dlpi_phnum; ++i) {
    const auto& s = m.dlpi_phdr[i];
    if (s.p_type == PT_LOAD && (s.p_flags & PF_W) == 0 && (s.p_flags & PF_R) != 0)
      h = mix_bytes(h, reinterpret_cast<const void*>(m.dlpi_addr + s.p_vaddr), s.p_memsz);
  }
  return h;
}

void take_modules(layout& l) noexcept {
  l.modules = hash_start;
  const unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
  bool first = true;
  for_each_module([&](const dl_phdr_info& m) {
    const char* name = first || m.dlpi_name == nullptr ? "" : base_name(m.dlpi_name);
    if (!first && ((vdso != 0 && m.dlpi_addr == vdso) || *name == '\0')) return;
    first = false;
    const std::uint64_t build = build_of(m);
    l.modules = mix(mix(mix_bytes(l.modules, name, std::strlen(name)), m.dlpi_addr), build);
    if (l.module_count < layout::most_modules) {
      layout::module& entry = l.module_list[l.module_count];
      std::snprintf(entry.name, sizeof entry.name, "%s", name);
      entry.base = m.dlpi_addr;
      entry.build = build;
    }
    ++l.module_count;
  });
}

// ---- is this the start of the program?

/// d_ptr of a dynamic entry: relocated in place by most loaders, not by all.
const char* dynamic_string(const link_map& m, ElfW(Addr) table, ElfW(Xword) offset) noexcept {
  return reinterpret_cast<const char*>((table < m.l_addr ? table + m.l_addr : table) + offset);
}

/// Call @p f with every DT_NEEDED (and DT_SONAME) string of @p m, until it returns true.
template <class F>
bool any_dynamic_name(const link_map& m, ElfW(Sxword) tag, F f) noexcept {
  ElfW(Addr) strings = 0;
  for (const ElfW(Dyn)* d = m.l_ld; d != nullptr && d->d_tag != DT_NULL; ++d)
    if (d->d_tag == DT_STRTAB) strings = d->d_un.d_ptr;
  for (const ElfW(Dyn)* d = m.l_ld; strings != 0 && d != nullptr && d->d_tag != DT_NULL; ++d)
    if (d->d_tag == tag && f(dynamic_string(m, strings, d->d_un.d_val))) return true;
  return false;
}

bool is_called(const link_map& m, const char* needed) noexcept {
  return std::strcmp(base_name(m.l_name), base_name(needed)) == 0 ||
         any_dynamic_name(m, DT_SONAME, [&](const char* own) { return std::strcmp(own, needed) == 0; });
}

/// Whether @p wanted lies in a library that the program needs, directly or not.
bool program_needs(const link_map* program, std::uintptr_t wanted) {
  ElfW(Addr) base = 0;  // of the library with that address
  for_each_module([&](const dl_phdr_info& m) {
    for (int i = 0; i < m.dlpi_phnum; ++i)
      if (const auto& s = m.dlpi_phdr[i];
          s.p_type == PT_LOAD && wanted - (m.dlpi_addr + s.p_vaddr) < s.p_memsz)
        base = m.dlpi_addr;
  });
  std::vector<const link_map*> reached{program};
  for (std::size_t i = 0; i < reached.size(); ++i)
    any_dynamic_name(*reached[i], DT_NEEDED, [&](const char* needed) {
      for (const link_map* m = program->l_next; m != nullptr; m = m->l_next)
        if (std::find(reached.begin(), reached.end(), m) == reached.end() && is_called(*m, needed))
          reached.push_back(m);
      return false;
    });
  return std::any_of(reached.begin(), reached.end(), [&](const link_map* m) { return m->l_addr == base; });
}

/// False: this code came by dlopen (into an interpreter, say), and main is long under way.
bool is_program_start() {
  const auto here = reinterpret_cast<std::uintptr_t>(&keep_fixed_layout);
  bool first = true, in_program = false;
  const r_debug* loader = nullptr;
  for_each_module([&](const dl_phdr_info& m) {
    if (!first) return;
    first = false;
    for (int i = 0; i < m.dlpi_phnum; ++i) {
      const auto& s = m.dlpi_phdr[i];
      const std::uintptr_t at = m.dlpi_addr + s.p_vaddr;
      if (s.p_type == PT_LOAD && here - at < s.p_memsz) in_program = true;
      if (s.p_type != PT_DYNAMIC) continue;
      for (const auto* d = reinterpret_cast<const ElfW(Dyn)*>(at); d->d_tag != DT_NULL; ++d)
        if (d->d_tag == DT_DEBUG) loader = reinterpret_cast<const r_debug*>(d->d_un.d_ptr);
    }
  });
  return in_program || (loader != nullptr && loader->r_map != nullptr && program_needs(loader->r_map, here));
}

// ---- starting anew

bool same_file(const char* path) noexcept {
  struct stat a {
  }, b{};
  return path != nullptr && stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

/// The path that this process was started by, so that its name stays; else any that leads to the same file.
std::string own_path() {
  const char* started_by = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (same_file(started_by)) return started_by;
  std::error_code unreadable;
  const std::string link = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  return same_file(link.c_str()) ? link : "/proc/self/exe";
}

/// The arguments as the kernel has them: also the loader's own, when the program was started by it.
std::vector<std::string> own_arguments() { return lines_of("/proc/self/cmdline", '\0'); }

bool kernel_randomises() { return first_line("/proc/sys/kernel/randomize_va_space") != "0"; }

void explain(layout::state state, const char* what, const char* why) noexcept {
  start_.randomisation = state;
  std::snprintf(start_.detail, sizeof start_.detail, "%s%s%s", what, *why != '\0' ? ": " : "", why);
}

void try_exec(const std::string& path, const std::vector<std::string>& arguments,
              const std::vector<char*>& kept, const std::string& mark, start_padding pad) {
  std::vector<std::string> dummies(pad.variables, std::string(dummy_name));
  std::size_t rest = pad.bytes - std::min(pad.bytes, pad.variables * (dummy_name.size() + 1));
  for (std::size_t i = 0; i < dummies.size(); ++i) {
    const std::size_t share = rest / (dummies.size() - i);
    dummies[i].append(share, '.');
    rest -= share;
  }
  std::vector<char*> argv, envp = kept;
  for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  envp.push_back(const_cast<char*>(mark.c_str()));
  for (const auto& d : dummies) envp.push_back(const_cast<char*>(d.c_str()));
  envp.push_back(nullptr);
  execve(path.c_str(), argv.data(), envp.data());
}

/// Comes back only if it could not be done.
void start_anew() {
  if (getauxval(AT_SECURE) != 0) return explain(layout::state::refused, "the program is set-uid", "");
  if (seems_to_be_valgrind()) return explain(layout::state::refused, "the program runs under valgrind", "");
  const int present = personality(0xffffffff);
  const unsigned long before = present == -1 ? 0 : static_cast<unsigned>(present);
  const bool is_off = (before & ADDR_NO_RANDOMIZE) != 0;
  if (!is_off && (present == -1 || personality(before | ADDR_NO_RANDOMIZE) == -1)) {
    const char* why = std::strerror(errno);
    if (kernel_randomises()) return explain(layout::state::refused, "personality", why);
  }

  const std::string path = own_path();
  const std::vector<std::string> arguments = own_arguments();
  char mark[128];
  write_rank_mark(mark, sizeof mark, environ, {getpid(), before});
  std::vector<char*> kept;
  std::size_t strings = path.size() + 1 + std::strlen(mark) + 1;
  for (char** e = environ; *e != nullptr; ++e)
    if (!std::string_view(*e).starts_with(rank_mark_name)) {
      kept.push_back(*e);
      strings += std::strlen(*e) + 1;
    }
  for (const auto& a : arguments) strings += a.size() + 1;
  const start_padding pad = padding_for(strings, arguments.size() + kept.size() + 1);
  try_exec(path, arguments, kept, mark, pad);
  if (errno == E2BIG) try_exec(path, arguments, kept, mark, {1, 0});  // then main's frames may lie anywhere
  explain(layout::state::refused, "exec", std::strerror(errno));
  if (!is_off) personality(before);
}

/// Take the dummies out of the environment, in place. True if there were any.
bool strip_dummies() noexcept {
  if (environ == nullptr) return false;
  char** to = environ;
  bool any = false;
  for (char** from = environ; *from != nullptr; ++from)
    if (std::strncmp(*from, dummy_name.data(), dummy_name.size()) == 0)
      any = true;
    else
      *to++ = *from;
  if (any) *to = nullptr;
  return any;
}

/// Programs that this one starts shall be as random as ever: the flag counts at exec only.
void after_start_anew(unsigned long before) noexcept {
  const auto now = static_cast<unsigned long>(personality(0xffffffff));
  if ((now & ADDR_NO_RANDOMIZE) == 0 && kernel_randomises()) {
    explain(layout::state::refused, "personality", "the switch did not outlast exec");
    return;
  }
  start_.randomisation = layout::state::fixed;
  if (now != before) personality(before);
}

/// For programs that this one starts, when it was not started anew with the mark.
void leave_mark() {
  char mark[128];
  write_rank_mark(mark, sizeof mark, environ, {getpid(), 0});
  setenv(std::string(rank_mark_name.substr(0, rank_mark_name.size() - 1)).c_str(),
         mark + rank_mark_name.size(), 1);
}

void take_snapshot(layout& l, const void* frame) noexcept {
  l.main_stack = reinterpret_cast<std::uintptr_t>(frame);
  l.heap_start = reinterpret_cast<std::uintptr_t>(sbrk(0));
  l.tls = reinterpret_cast<std::uintptr_t>(&of_main_thread_);
  take_modules(l);
}

[[gnu::constructor(101)]] void at_program_start() {
  const launcher& l = detect_launcher();
  if (!l.one_of_several() || !is_program_start()) return;
  const bool anew = strip_dummies();
  const rank_mark mark = read_rank_mark(environ);
  if (anew && mark.process == getpid())
    after_start_anew(mark.personality);
  else if (const char* word = find_variable(environ, "GODWIT_RANDOMIZE");
           word != nullptr && read_switch(word) == true)
    explain(layout::state::as_asked, "GODWIT_RANDOMIZE is set", "");
  else
    start_anew();
  if (mark.process != getpid()) leave_mark();
  take_snapshot(start_, __builtin_frame_address(0));
  snapshot_ = true;
  settle_output();
  const char* output = find_variable(environ, "GODWIT_OUTPUT");
  if (l.rank != 0 && (output == nullptr || std::strcmp(output, "all") != 0)) silence_output();
}

}  // namespace

void keep_fixed_layout() noexcept {}

start_padding padding_for(std::size_t strings, std::size_t pointers) noexcept {
  constexpr std::size_t least_variables = 16;  // so that each stays far below the kernel's 128 KiB per string
  std::size_t slots = 512;
  while (slots < pointers + least_variables) slots *= 4;
  const std::size_t variables = slots - pointers;
  std::size_t total = 64 * 1024;
  while (total < strings + variables * (dummy_name.size() + 1)) total *= 2;
  return {variables, total - strings};
}

layout own_layout() {
  layout l = start_;
  if (!snapshot_) take_snapshot(l, __builtin_frame_address(0));
  l.format = layout::format_now;
  l.page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  l.heap_start &= ~(l.page_bytes - 1);
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  l.stack_limit = static_cast<std::uint64_t>(limit.rlim_cur);
  utsname system{};
  uname(&system);
  std::snprintf(l.kernel, sizeof l.kernel, "%.*s", static_cast<int>(sizeof l.kernel - 1), system.release);
  bool first = true;
  for_each_module([&](const dl_phdr_info& m) {
    if (!first) return;
    first = false;
    const note_bytes id = build_id_of(m);
    l.program = id.data != nullptr ? mix_bytes(hash_start, id.data, id.bytes) : text_of(m);
    for (std::size_t i = 0; i < id.bytes && 2 * i + 2 < sizeof l.build_id; ++i)
      std::snprintf(l.build_id + 2 * i, 3, "%02x", id.data[i]);
  });
  return l;
}

}  // namespace godwit::base
