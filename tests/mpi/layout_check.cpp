// Prints where things are in this rank: one line that must be the same in all ranks, and text on standard
// output before and after, as main would print it. Uses no MPI. Run by layout_check.sh.
#include <dlfcn.h>
#include <sys/personality.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "base/fixed_layout.hpp"
#include "base/launcher.hpp"
#include "base/rank_output.hpp"

extern "C" char** environ;

namespace {
thread_local int of_thread = 1;
int of_program = 1;
}  // namespace

int main(int argc, char** argv) {
  namespace base = godwit::base;
  base::keep_fixed_layout();
  std::puts("main before");
  std::cout << "main before, by cout\n";

  int local = 0;
  void* small = std::malloc(100);
  void* large = std::malloc(1 << 20);
  const std::string text(100, 'x');
  int dummies = 0;
  for (char** e = environ; *e != nullptr; ++e) dummies += std::strstr(*e, "_GODWIT_PAD") != nullptr;
  const char* goose = std::getenv("GOOSE");
  const char* length = std::getenv("GOOSE_LENGTH");
  const bool right_goose =
      length == nullptr || (goose != nullptr && std::strlen(goose) == std::strtoul(length, nullptr, 10));
  const auto now = base::own_layout();

  base::open_output();
  std::printf(
      "layout local %p frame %p argv %p argv[0] %p small %p large %p string %p tls %p errno %p data %p main "
      "%p "
      "shared %p modules %lx program %lx argc %d dummies %d environment %s personality %x state %u %s\n",
      static_cast<void*>(&local), __builtin_frame_address(0), static_cast<void*>(argv),
      static_cast<void*>(argv[0]), small, large, static_cast<const void*>(text.data()),
      static_cast<void*>(&of_thread), static_cast<void*>(&errno), static_cast<void*>(&of_program),
      reinterpret_cast<void*>(&main), dlsym(RTLD_DEFAULT, "getppid"), static_cast<unsigned long>(now.modules),
      static_cast<unsigned long>(now.program), argc, dummies, right_goose ? "whole" : "damaged",
      static_cast<unsigned>(personality(0xffffffff)), static_cast<unsigned>(now.randomisation), now.detail);
  if (argc > 1 && std::strcmp(argv[1], "list") == 0)
    for (unsigned i = 0; i < now.module_count && i < base::layout::most_modules; ++i)
      std::printf("module %s %lx %lx\n", now.module_list[i].name,
                  static_cast<unsigned long>(now.module_list[i].base),
                  static_cast<unsigned long>(now.module_list[i].build));
  base::close_output();

  std::puts("main after");
  std::free(small);
  std::free(large);
  return 0;
}
