// The core file of a worker holds what is in use of the heap that workers share, not what was freed, and of
// stacks what was touched.
// test: timeout=120 once skip-asan skip-qemu
#include "heap/owning.hpp"
#include "support/child.hpp"
#include "support/shared.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

namespace gw = godwit;
namespace files = std::filesystem;

constexpr std::size_t small_bytes = 300, large_bytes = 5 << 20, freed_bytes = 256 << 20;

/// Where a thread has what it allocated.
struct places {
  char *small, *large;
};

char* filled(std::size_t bytes, char with) {
  char* const p = new char[bytes];
  std::fill_n(p, bytes, with);
  p[bytes - 1] = 0;
  return p;
}

/// Dies in a thread, with a core file in @p folder. The small block was made by another worker.
int dies(places* told, const files::path& folder, void (*how)(), bool recorded) {
  if (chdir(folder.c_str()) != 0) return 1;
  rlimit all{};
  getrlimit(RLIMIT_CORE, &all);
  all.rlim_cur = all.rlim_max;
  setrlimit(RLIMIT_CORE, &all);
  gw::options o = owning::shared_heap(2, "parents");
  o.check_heap = recorded;
  char name[] = "program";
  char* argv[] = {name, nullptr};
  return gw::run(
      1, argv,
      [=] {
        char* const small = gw::spawn([] { return filled(small_bytes, 's'); }).join();
        char* const freed = filled(freed_bytes, 'f');
        char* const large = filled(large_bytes, 'l');
        delete[] freed;
        owning::elsewhere();
        *told = {small, large};
        how();
      },
      o);
}

std::string printed(const std::string& command) {
  std::string text;
  if (std::FILE* f = popen((command + " 2>&1 </dev/null").c_str(), "r"); f != nullptr) {
    char line[4096];
    while (std::fgets(line, sizeof line, f) != nullptr) text += line;
    pclose(f);
  }
  return text;
}

std::string why_not() {
  std::string pattern;
  std::ifstream("/proc/sys/kernel/core_pattern") >> pattern;
  if (pattern.empty() || pattern.find_first_of("|/") != pattern.npos)
    return "core files go elsewhere here: " + pattern;
  rlimit allowed{};
  getrlimit(RLIMIT_CORE, &allowed);
  if (allowed.rlim_max < (std::uint64_t{1} << 30)) return "core files are limited here (ulimit -c)";
  if (printed("gdb -nx -batch -ex 'python print(6 * 7)'").find("42") == std::string::npos)
    return "there is no gdb with Python";
  return {};
}

volatile std::uintptr_t nowhere = 16;

TEST(CoreFile, HoldsWhatIsInUse) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  struct way {
    int status;
    void (*how)();
    bool recorded;
  };
  for (const auto& [status, how, recorded] :
       {way{134, [] { std::abort(); }, false},
        way{139, [] { *reinterpret_cast<volatile int*>(nowhere) = 1; }, true}}) {
    std::string folder = (files::temp_directory_path() / "godwit-core-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    support::shared<places> told;
    const support::outcome child = support::run_child(
        [&, how = how, recorded = recorded] { return dies(told.get(), folder, how, recorded); }, {}, 60);
    EXPECT_EQ(child.status, status) << show(child);
    EXPECT_EQ(child.left_behind, 0);
    files::path core;
    for (const auto& file : files::directory_iterator(folder)) core = file.path();
    ASSERT_FALSE(core.empty()) << show(child);
    EXPECT_LT(files::file_size(core), 100u << 20);  // whatever the limits of stacks and heap are

    const auto address = [](const void* p) {
      char text[32];
      std::snprintf(text, sizeof text, "%p", p);
      return std::string(text);
    };
    const std::string small = address(told->small), large = address(told->large);
    const std::string text =
        printed("gdb -nx -batch -ex 'source " GODWIT_TEST_SOURCE_DIR "/tools/gdb/godwit.py' -ex 'x/s " +
                small + "' -ex 'x/2cb " + large + "+" + std::to_string(large_bytes - 2) +
                "' -ex 'godwit block " + small + "' -ex 'godwit block " + large + "+5000' /proc/" +
                std::to_string(getpid()) + "/exe " + core.string());
    for (const std::string& words :
         std::vector<std::string>{small + ":\t's' <repeats 200 times>", ":\t108 'l'\t0 '\\000'",
                                  small + " is block " + small + " of 320 bytes, of worker ",
                                  std::string("'s part: in use") + (recorded ? ", 300 bytes" : ""),
                                  "lies 5000 bytes into block " + large + " of 5242880 bytes: in use"})
      EXPECT_NE(text.find(words), text.npos) << "no " << words << " in\n" << text;
    files::remove_all(folder);
  }
}

}  // namespace
