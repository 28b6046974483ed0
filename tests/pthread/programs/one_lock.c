// Threads that all want one mutex, for report.sh: godwit-report names the line marked `lock`. The holder
// sleeps for so long that workers that come late, on a busy machine, lose less than those that wait.
// one_lock THREADS HOW: ends as HOW says.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_here;
static const char* how = "return";
static int sum;

static void work_under_lock(void) {
  pthread_mutex_lock(&lock);  // line: lock
  usleep(20000);
  ++sum;
  pthread_mutex_unlock(&lock);  // line: unlock
}

static void* worker(void* number) {
  pthread_barrier_wait(&all_here);  // line: barrier
  for (int i = 0; i < 4; ++i) work_under_lock();
  if (number == NULL && strcmp(how, "exit_in_thread") == 0) exit(3);
  return NULL;
}

static void at_end(void) { fprintf(stderr, "the program's own handler\n"); }

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 4;
  if (argc > 2) how = argv[2];
  atexit(at_end);
  pthread_t all[64];
  pthread_barrier_init(&all_here, NULL, (unsigned)threads);
  for (long i = 0; i < threads; ++i) pthread_create(&all[i], NULL, worker, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  if (strcmp(how, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) exit(0);
    waitpid(child, NULL, 0);
  }
  if (strcmp(how, "system") == 0) {
    char command[4200];
    snprintf(command, sizeof command, "%s 1 return", argv[0]);
    if (system(command) != 0) return 9;
  }
  if (strcmp(how, "_exit") == 0) _exit(0);
  if (strcmp(how, "_Exit") == 0) _Exit(0);
  if (strcmp(how, "quick_exit") == 0) quick_exit(0);
  if (strcmp(how, "closed") == 0) printf("not for others\n");
  for (int fd = 0; fd < 100 && strcmp(how, "closed") == 0; ++fd) close(fd);
  if (strcmp(how, "locked") == 0) flockfile(stdout);
  return 0;
}
