// See symbols.hpp.
#include "base/symbols.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <link.h>
#include <system_error>
#include <vector>

namespace godwit::base {

namespace {

/// @p n objects of the file from byte @p at on; fewer or none if it is not as long.
template <class T>
std::vector<T> read_at(std::ifstream& file, std::uint64_t at, std::uint64_t n) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
  if (n > most_bytes / sizeof(T)) return {};
  std::vector<T> v(n);
  file.clear();
  file.seekg(static_cast<std::streamoff>(at));
  file.read(reinterpret_cast<char*>(v.data()), static_cast<std::streamsize>(n * sizeof(T)));
  v.resize(static_cast<std::size_t>(file.gcount()) / sizeof(T));
  return v;
}

}  // namespace

std::string own_program() {
  std::error_code unreadable;
  const std::string path = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  return unreadable ? "/proc/self/exe" : path;
}

void each_symbol(const std::string& file, const std::function<bool(const symbol&)>& f) {
  std::ifstream in(file, std::ios::binary);
  const auto head = read_at<ElfW(Ehdr)>(in, 0, 1);
  if (head.empty() || std::memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0) return;
  const auto sections = read_at<ElfW(Shdr)>(in, head[0].e_shoff, head[0].e_shnum);
  for (const auto& table : sections) {
    if ((table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) || table.sh_link >= sections.size())
      continue;
    const auto symbols = read_at<ElfW(Sym)>(in, table.sh_offset, table.sh_size / sizeof(ElfW(Sym)));
    auto names = read_at<char>(in, sections[table.sh_link].sh_offset, sections[table.sh_link].sh_size);
    names.push_back('\0');
    for (const auto& s : symbols) {
      const unsigned type = s.st_info & 0xf;
      if ((type != STT_FUNC && type != STT_OBJECT) || s.st_name >= names.size()) continue;
      if (!f({s.st_value, s.st_size, type == STT_FUNC, names.data() + s.st_name})) return;
    }
  }
}

}  // namespace godwit::base
