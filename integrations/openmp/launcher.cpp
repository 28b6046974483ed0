// godwit-openmp PROGRAM ARGS...: docs/openmp.md
#include "../launcher/launch.hpp"

int main(int argc, char** argv) {
  return launch(
      {.name = "godwit-openmp",
       .help = "Runs a program that gcc -fopenmp compiled so that its threads are lightweight threads of "
               "Godwit, and its\n"
               "tasks are cheap. It must be linked with libgomp dynamically.\n"
               "  OMP_NUM_THREADS=N            threads of a parallel region (default: the CPUs that may be "
               "used)\n"
               "  OMP_SCHEDULE, OMP_DYNAMIC, OMP_MAX_ACTIVE_LEVELS, OMP_CANCELLATION and others: as ever\n"
               "  GODWIT_WORKERS=N             OS threads that run the threads (default: the CPUs that may "
               "be used)\n"
               "  GODWIT_TRACE=FILE            events for godwit-report, when the program exits\n"
               "What works and what does not: docs/openmp.md in Godwit's documentation.",
       .libraries = {"libgodwit-openmp.so", "libgodwit-pthread.so"}},
      argc, argv);
}
