// See libraries.hpp.
#include "runtime/libraries.hpp"
#include "base/text.hpp"
#include "base/world.hpp"

#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <map>
#include <string>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

// OpenMP 5.0; found this way in programs without dynamic symbols
extern "C" [[gnu::weak]] int omp_pause_resource_all(int kind);

namespace godwit::runtime {

namespace {

/// Names of the threads of this process but the calling one and main's, which waits for it, and how many have
/// each.
std::map<std::string, unsigned> other_threads() {
  std::map<std::string, unsigned> names;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return names;
  const long self = syscall(SYS_gettid);
  while (const dirent* entry = readdir(folder)) {
    const long thread = std::strtol(entry->d_name, nullptr, 10);
    if (thread == 0 || thread == self || thread == getpid()) continue;
    const auto name = base::lines_of("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    if (!name.empty()) ++names[name.front()];  // else it has ended
  }
  closedir(folder);
  return names;
}

}  // namespace

void end_threads_of_libraries() noexcept {
  auto* pause = &omp_pause_resource_all;
  if (pause == nullptr)
    pause = reinterpret_cast<decltype(pause)>(dlsym(RTLD_DEFAULT, "omp_pause_resource_all"));
  constexpr int omp_pause_soft = 1;
  if (pause != nullptr) static_cast<void>(pause(omp_pause_soft));
}

bool has_one_thread() noexcept try {
  for (const std::string& line : base::lines_of("/proc/self/status"))
    if (int count = 0; std::sscanf(line.c_str(), "Threads: %d", &count) == 1) return count == 1;
  return false;
} catch (...) {
  return false;
}

void warn_of_threads() noexcept try {
  static bool warned = false;
  if (warned || __libc_single_threaded) return;  // an emulator's threads are not the program's
  auto names = other_threads();
  for (int i = 0; i < 20 && !names.empty(); ++i) {
    base::nap(1'000'000);
    names = other_threads();
  }
  if (names.empty()) return;
  warned = true;
  std::string text;
  for (const auto& [name, count] : names)
    text += (text.empty() ? "" : ", ") + name + (count > 1 ? " (" + std::to_string(count) + ")" : "");
  std::fprintf(
      stderr,
      "godwit: warning: the process that calls run has other threads: %s. Workers are forked without them, "
      "so a library that "
      "needs them inside the run waits for ever: end them before run, or use --godwit-substrate=threads\n",
      text.c_str());
} catch (...) {  // no memory for a warning
}

stack::range forbid_mpi() noexcept {
  struct search {
    std::uintptr_t function;
    stack::range code;
  } s{reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "MPI_Init")), {}};
  if (s.function == 0) return {};
  dl_iterate_phdr(
      [](dl_phdr_info* file, std::size_t, void* found) {
        auto& f = *static_cast<search*>(found);
        if (file->dlpi_name == nullptr || file->dlpi_name[0] == '\0') return 0;  // the program
        for (int i = 0; i < file->dlpi_phnum; ++i) {
          const auto& part = file->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          const std::uintptr_t low = file->dlpi_addr + part.p_vaddr, page = 4096;
          const stack::range code{low / page * page, (low + part.p_memsz + page - 1) / page * page};
          if (!code.holds(f.function)) continue;
          f.code = code;
          return 1;
        }
        return 0;
      },
      &s);
  return s.code.high != 0 && stack::take_away(s.code) ? s.code : stack::range{};
}

}  // namespace godwit::runtime
