// See launch.hpp: what cannot work is said in time.
#include "launch.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

const char* name_ = "";

[[noreturn]] void fail(int status, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", name_, text.c_str());
  std::exit(status);
}

std::string directory_of_this_program() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) fail(70, "cannot read /proc/self/exe: is /proc mounted?");
  std::string p(path, static_cast<std::size_t>(n));
  return p.substr(0, p.rfind('/'));
}

/// Beside the program (in the build tree), or where it is installed.
std::string find_library(const std::string& library_name) {
  const std::string here = directory_of_this_program();
  for (const std::string& folder : {here, here + "/" GODWIT_LIBRARY_FOLDER}) {
    const std::string path = folder + "/" + library_name;
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  fail(70, "cannot find " + library_name + " in " + here + " or " + here +
               "/" GODWIT_LIBRARY_FOLDER ": reinstall godwit");
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string all = path != nullptr ? path : "/usr/bin:/bin";
  for (std::size_t from = 0; from <= all.size();) {
    std::size_t to = all.find(':', from);
    if (to == std::string::npos) to = all.size();
    const std::string candidate = (to == from ? "." : all.substr(from, to - from)) + "/" + name;
    struct stat s {};
    if (access(candidate.c_str(), X_OK) == 0 && stat(candidate.c_str(), &s) == 0 && S_ISREG(s.st_mode))
      return candidate;
    from = to + 1;
  }
  fail(127, "cannot find the program " + name);
}

/// Ends with a message if @p path is a program that the preloaded library cannot get into.
void check_program(const std::string& path) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) fail(127, "cannot run " + path + ": " + std::strerror(errno));
  if ((s.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0)
    fail(2, path + " is set-user-ID: the system does not preload libraries into such programs");
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr head{};
  if (!file.read(reinterpret_cast<char*>(&head), sizeof head)) return;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return;  // a script: its interpreter counts
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
    fail(2, path + " is not a program for x86-64");
  for (int i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(head.e_phoff + static_cast<Elf64_Off>(i) * head.e_phentsize));
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) return;
    if (part.p_type != PT_INTERP) continue;
    std::string loader(part.p_filesz < PATH_MAX ? part.p_filesz : 0, '\0');
    file.seekg(static_cast<std::streamoff>(part.p_offset));
    file.read(loader.data(), static_cast<std::streamsize>(loader.size()));
    if (loader.find("ld-linux") == std::string::npos)
      fail(2, path + " is not linked with glibc (its loader is " + loader.c_str() + ")");
    return;
  }
  fail(2, path + " is statically linked: nothing can be preloaded. Link it dynamically, or with -l" + name_);
}

}  // namespace

int launch(const preloading& what, int argc, char** argv) {
  name_ = what.name;
  if (argc < 2 || std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0) {
    std::printf("usage: %s PROGRAM [ARGUMENT...]\n\n%s\n", what.name, what.help);
    return argc < 2 ? 2 : 0;
  }
  std::string preload;
  for (const std::string& library : what.libraries) {
    const std::string path = find_library(library);
    if (path.find_first_of(" :") != std::string::npos)  // they divide the list, and nothing quotes them
      fail(70, "the system cannot preload " + path +
                   ": a blank or a colon is in its name; install Godwit elsewhere");
    preload += (preload.empty() ? "" : ":") + path;
  }
  const std::string program = find_program(argv[1]);
  check_program(program);
  if (const char* before = std::getenv("LD_PRELOAD"); before != nullptr && *before != '\0')
    preload += std::string(":") + before;
  setenv("LD_PRELOAD", preload.c_str(), 1);
  unsetenv("_GODWIT_PTHREAD_WRITER");  // this program is to write traces, whoever started it: outputs.hpp
  execv(program.c_str(), argv + 1);
  fail(errno == ENOENT ? 127 : 126, "cannot run " + program + ": " + std::strerror(errno));
}
