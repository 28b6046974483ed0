// Programs that change their user and groups: every OS thread of the process must have them, and the calls
// must come back.
#define _GNU_SOURCE
#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t end = PTHREAD_COND_INITIALIZER;
static int ended;

static void* waits(void* arg) {
  (void)arg;
  pthread_mutex_lock(&lock);
  while (!ended) pthread_cond_wait(&end, &lock);
  pthread_mutex_unlock(&lock);
  CHECK(geteuid() == getuid());
  return (void*)(size_t)(getuid() + 1);
}

static void* changes(void* arg) {
  (void)arg;
  CHECK(setreuid((uid_t)-1, getuid()) == 0 && setregid((gid_t)-1, getgid()) == 0);
  return NULL;
}

// Do all OS threads have this user and group?
static int all_are(unsigned user, unsigned group) {
  DIR* dir = opendir("/proc/self/task");
  struct dirent* e;
  int good = 1;
  CHECK(dir != NULL);
  while ((e = readdir(dir)) != NULL) {
    char path[300], line[200];
    unsigned id[4];
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
    FILE* f = fopen(path, "r");
    if (f == NULL) continue;
    while (fgets(line, sizeof line, f) != NULL) {
      if (sscanf(line, "Uid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4)
        good = good && id[0] == user && id[1] == user && id[2] == user && id[3] == user;
      if (sscanf(line, "Gid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4)
        good = good && id[0] == group && id[1] == group && id[2] == group && id[3] == group;
    }
    fclose(f);
  }
  closedir(dir);
  return good;
}

int main(void) {
  const int root = geteuid() == 0;
  const struct passwd* nobody = getpwnam("nobody");
  const uid_t user = root && nobody != NULL ? nobody->pw_uid : getuid();
  const gid_t group = root && nobody != NULL ? nobody->pw_gid : getgid();
  pthread_t t[8], others[4];
  for (int i = 0; i < 8; ++i) CHECK(pthread_create(&t[i], NULL, waits, NULL) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&others[i], NULL, changes, NULL) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(others[i], NULL) == 0);
  if (root) {
    gid_t groups[2] = {group, group + 1}, got[8];
    CHECK(setegid(group) == 0 && getegid() == group && setegid(0) == 0);
    CHECK(seteuid(user) == 0 && geteuid() == user && setgroups(0, NULL) != 0 && seteuid(0) == 0);
    CHECK(initgroups("nobody", group) == 0);
    CHECK(setgroups(2, groups) == 0 && getgroups(8, got) == 2 && setgroups(0, NULL) == 0 &&
          getgroups(8, got) == 0);
  } else {
    CHECK(setuid(0) != 0 && setgid(0) != 0);
  }
  CHECK(setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0);
  CHECK(setgid(group) == 0 && setuid(user) == 0);
  CHECK(all_are(user, group));
  CHECK(user == 0 || setuid(0) != 0);
  pthread_mutex_lock(&lock);
  ended = 1;
  pthread_cond_broadcast(&end);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 8; ++i) {
    void* id;
    CHECK(pthread_join(t[i], &id) == 0 && (size_t)id == (size_t)user + 1);
  }
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(setuid(user) == 0);
    pthread_t again;
    ended = 0;
    CHECK(pthread_create(&again, NULL, changes, NULL) == 0 && pthread_join(again, NULL) == 0);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  puts("user and groups: the same in all threads");
  return 0;
}
