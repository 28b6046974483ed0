// godwit-pthread PROGRAM ARGS...: docs/pthread.md
#include "../launcher/launch.hpp"

int main(int argc, char** argv) {
  return launch(
      {.name = "godwit-pthread",
       .help =
           "Runs a dynamically linked program so that its POSIX threads are lightweight threads of Godwit.\n"
           "  GODWIT_WORKERS=N             OS threads that run them (default: the CPUs that may be used)\n"
           "  GODWIT_THREAD_STACK_BYTES=N  stack of each thread (default: ulimit -s); K, M and G are "
           "understood\n"
           "  GODWIT_TRACE=FILE            events for godwit-report, when the program exits\n"
           "What works and what does not: docs/pthread.md in Godwit's documentation.",
       .libraries = {"libgodwit-pthread.so"}},
      argc, argv);
}
