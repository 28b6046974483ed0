/* Programs in the shape that Chapel's compiler emits, one for each case. Argument: the case's name, and its
 * size where it has one. Ends with 0 and "all right" if what Chapel promises was kept. tests/chapel. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "../standin/standin.h"
#include "chplexit.h"
#include "shapes.h"

static long size = 0;
static long size_or(long usual) {
  return size != 0 ? size : getenv("STRESS_SHORT") != NULL && usual > 100 ? usual / 10 : usual;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Functions that become tasks. The compiler makes a table of them, and tasks are begun by numbers in it. */
// clang-format off
#define FUNCTIONS(F) \
  F(mark) F(outer) F(inner) F(link_) F(ping) F(produce) \
  F(consume) F(private_) F(stuck) F(reader) F(nap) F(counted) F(busy) \
  F(from_outside) F(fills) F(waits_long) F(deep) F(made) F(maker) F(relay) F(half_stuck)
// clang-format on
#define NUMBER(name) f_##name,
#define DECLARATION(name) static void name(void*);
#define ENTRY(name) name,
enum fid { FUNCTIONS(NUMBER) };
FUNCTIONS(DECLARATION)
chpl_fn_p chpl_ftable[] = {FUNCTIONS(ENTRY)};

/* tasks: each runs once, with its own arguments. */
static atomic_uchar* marks;
static void mark(void* p) {
  const arguments* a = p;
  atomic_fetch_add(&marks[a->index], 1);
  task_ends(a);
}
static void main_tasks(void) {
  const long n = size_or(1000000);
  marks = calloc((size_t)n, sizeof *marks);
  coforall(f_mark, n, NULL, 10);
  for (long i = 0; i < n; ++i) CHECK(marks[i] == 1);
  free(marks);
}

/* nested: a coforall in each task of a coforall. */
static atomic_long inner_ran;
static void inner(void* p) {
  const arguments* a = p;
  atomic_fetch_add(&inner_ran, a->index + 1);
  task_ends(a);
}
static void outer(void* p) {
  const arguments* a = p;
  coforall(f_inner, *(long*)a->shared, NULL, 21);
  task_ends(a);
}
static void main_nested(void) {
  long n = size_or(400);
  coforall(f_outer, n, &n, 20);
  CHECK(inner_ran == n * (n * (n + 1) / 2));
}

/* deep: a cobegin of two in each task of a cobegin, down to the bottom. */
static void deep(void* p) {
  const arguments* a = p;
  if (a->index > 0) {
    end_count ends = {0};
    add_task(f_deep, &ends, a->index - 1, NULL, 30);
    add_task(f_deep, &ends, a->index - 1, NULL, 31);
    wait_for_end(&ends);
  } else {
    atomic_fetch_add(&inner_ran, 1);
  }
  task_ends(a);
}
static void main_deep(void) {
  const long n = size_or(14);
  end_count ends = {0};
  add_task(f_deep, &ends, n, NULL, 32);
  wait_for_end(&ends);
  CHECK(inner_ran == 1L << n);
}

/* relay: each task begins the next one and ends. */
static void relay(void* p) {
  const arguments* a = p;
  if (a->index > 0) add_task(f_relay, NULL, a->index - 1, NULL, 35);
  atomic_fetch_add(&inner_ran, 1);
}
static void main_relay(void) {
  const long n = size_or(500000);
  add_task(f_relay, NULL, n - 1, NULL, 36);
  while (atomic_load(&inner_ran) != n) chpl_task_yield();
}

/* chain: tasks of begin, each waits for the one before by a sync variable and fills the next. */
static sync_int* links;
static void link_(void* p) {
  const arguments* a = p;
  writeEF(&links[a->index + 1], readFE(&links[a->index], 41) + 1, 42);
}
static void main_chain(void) {
  const long n = size_or(20000);
  links = malloc((size_t)(n + 1) * sizeof *links);
  for (long i = 0; i <= n; ++i) init(&links[i]);
  for (long i = n; i-- > 0;) add_task(f_link_, NULL, i, NULL, 43);
  writeEF(&links[0], 5, 44);
  CHECK(readFE(&links[n], 45) == n + 5);
  for (long i = 0; i <= n; ++i) CHECK(!chpl_sync_isFull(&links[i].value, &links[i].aux));
  free(links);
}

/* pingpong: many pairs, each with two sync variables. */
typedef struct {
  sync_int to, fro;
} table;
static long rounds = 200;
static void ping(void* p) {
  const arguments* a = p;
  table* t = (table*)a->shared + a->index / 2;
  for (long i = 0; i < rounds; ++i) {
    if (a->index % 2 == 0) {
      writeEF(&t->to, i, 50);
      CHECK(readFE(&t->fro, 51) == 2 * i);
    } else {
      writeEF(&t->fro, 2 * readFE(&t->to, 52), 53);
    }
  }
  task_ends(a);
}
static void main_pingpong(void) {
  const long pairs = size_or(500);
  table* tables = malloc((size_t)pairs * sizeof *tables);
  for (long i = 0; i < pairs; ++i) {
    init(&tables[i].to);
    init(&tables[i].fro);
  }
  coforall(f_ping, 2 * pairs, tables, 54);
  free(tables);
}

/* queue: producers and consumers share one sync variable; nothing is lost, nothing comes twice. */
enum { producers = 64, consumers = 32 };
static sync_int slot;
static long each_makes;
static atomic_long taken_sum, taken_count;
static void produce(void* p) {
  const arguments* a = p;
  for (long i = 0; i < each_makes; ++i) writeEF(&slot, a->index * each_makes + i, 60);
  task_ends(a);
}
static void consume(void* p) {
  const arguments* a = p;
  for (long v; (v = readFE(&slot, 61)) >= 0;) {
    atomic_fetch_add(&taken_sum, v);
    atomic_fetch_add(&taken_count, 1);
  }
  task_ends(a);
}
static void main_queue(void) {
  each_makes = size_or(2000);
  init(&slot);
  end_count made = {0}, used = {0};
  for (long i = 0; i < consumers; ++i) add_task(f_consume, &used, i, NULL, 62);
  for (long i = 0; i < producers; ++i) add_task(f_produce, &made, i, NULL, 63);
  wait_for_end(&made);
  for (long i = 0; i < consumers; ++i) writeEF(&slot, -1, 64);
  wait_for_end(&used);
  const long n = producers * each_makes;
  CHECK(taken_count == n && taken_sum == n * (n - 1) / 2);
  CHECK(!chpl_sync_isFull(&slot.value, &slot.aux));
}

/* readers: readFF by many leaves the variable full, reset empties it, writeXF fills it whatever it was. */
static void reader(void* p) {
  const arguments* a = p;
  CHECK(readFF(&slot, 70) == 9);
  task_ends(a);
}
static void main_readers(void) {
  init(&slot);
  end_count ends = {0};
  for (long i = 0; i < size_or(1000); ++i) add_task(f_reader, &ends, i, NULL, 71);
  chpl_task_yield();
  writeXF(&slot, 9);
  wait_for_end(&ends);
  CHECK(chpl_sync_isFull(&slot.value, &slot.aux));
  writeXF(&slot, 10);
  CHECK(readFF(&slot, 72) == 10);
  reset(&slot);
  CHECK(!chpl_sync_isFull(&slot.value, &slot.aux));
  writeEF(&slot, 11, 73);
  CHECK(readFE(&slot, 74) == 11);
}

/* private: ids and data of a task are its own, also after it has waited. */
static void private_(void* p) {
  const arguments* a = p;
  CHECK(chpl_task_getInfoChapel() == &a->header.infoChapel);
  CHECK(chpl_task_getInfoChapel()->data[0] == 77); /* the parent's */
  CHECK(chpl_task_getInfoRuntime()->comm_data == NULL);
  const chpl_taskID_t id = chpl_task_getId();
  chpl_task_getInfoRuntime()->comm_data = (void*)(uintptr_t)id;
  chpl_task_getInfoChapel()->data[1] = (unsigned char)a->index;
  chpl_task_setSubloc((c_sublocid_t)(a->index % 3));
  for (int i = 0; i < 20; ++i) {
    if (i % 5 == 0) chpl_task_sleep(1e-4);
    chpl_task_yield();
    CHECK(chpl_task_idEquals(chpl_task_getId(), id));
    CHECK(chpl_task_getInfoRuntime()->comm_data == (void*)(uintptr_t)id);
    CHECK(chpl_task_getInfoChapel()->data[1] == (unsigned char)a->index);
    CHECK(chpl_task_getRequestedSubloc() == (c_sublocid_t)(a->index % 3));
  }
  ((chpl_taskID_t*)a->shared)[a->index] = id;
  task_ends(a);
}
static int by_number(const void* a, const void* b) {
  const chpl_taskID_t x = *(const chpl_taskID_t*)a, y = *(const chpl_taskID_t*)b;
  return x < y ? -1 : x > y;
}
static void main_private(void) {
  const long n = size_or(1000);
  chpl_taskID_t* ids = calloc((size_t)n, sizeof *ids);
  chpl_task_getInfoChapel()->data[0] = 77;
  const chpl_taskID_t mine = chpl_task_getId();
  coforall(f_private_, n, ids, 80);
  CHECK(chpl_task_getId() == mine && chpl_task_getInfoChapel()->data[0] == 77);
  qsort(ids, (size_t)n, sizeof *ids, by_number);
  for (long i = 0; i < n; ++i)
    CHECK(ids[i] != chpl_nullTaskID && ids[i] != mine && (i == 0 || ids[i] != ids[i - 1]));
  char text[CHPL_TASK_ID_STRING_MAX_LEN];
  CHECK(strcmp(chpl_task_idToString(text, sizeof text, 123), "123") == 0);
  CHECK(strcmp(chpl_task_idToString(text, sizeof text, UINT64_MAX), "18446744073709551615") == 0);
  CHECK(chpl_task_idToString(text, 3, 123) == NULL);
  free(ids);
}

/* sleep: one thousand sleep at the same time, and none comes back early. */
static void nap(void* p) {
  const arguments* a = p;
  const double begin = now();
  chpl_task_sleep(0.05);
  CHECK(now() - begin >= 0.05);
  task_ends(a);
}
static void main_sleep(void) { coforall(f_nap, size_or(1000), NULL, 90); }

/* busy: who waits by yielding goes on helping: a task that makes tasks while all others only wait. */
static atomic_long helped;
static void counted(void* p) {
  const arguments* a = p;
  for (volatile int i = 0; i < 2000; ++i) {
  }
  atomic_fetch_add(&helped, 1);
  task_ends(a);
}
static void busy(void* p) {
  const arguments* a = p;
  for (int i = 0; i < 200; ++i) coforall(f_counted, 50, NULL, 100);
  task_ends(a);
}
static void main_busy(void) {
  coforall(f_busy, size_or(4), NULL, 101);
  CHECK(helped == size_or(4) * 200 * 50);
}

/* helps: the main task only yields at one worker, while the task of the other makes one more and waits for it
 * without yielding: the main task's worker must come and take it. Two workers. */
static atomic_int begun, yielding, made_ran;
static void made(void* p) {
  atomic_store(&made_ran, 1);
  task_ends(p);
}
static void maker(void* p) {
  const arguments* a = p;
  atomic_store(&begun, 1);
  while (!atomic_load(&yielding)) {
  }
  end_count ends = {0};
  add_task(f_made, &ends, 0, NULL, 105);
  while (!atomic_load(&made_ran)) {
  }
  wait_for_end(&ends);
  task_ends(a);
}
static void main_helps(void) {
  CHECK(chpl_task_getMaxPar() == 2);
  end_count ends = {0};
  add_task(f_maker, &ends, 0, NULL, 106);
  while (!atomic_load(&begun)) {
  }
  atomic_store(&yielding, 1);
  wait_for_end(&ends);
}

/* many: tasks that have all begun, and wait. */
static void waits_long(void* p) {
  const arguments* a = p;
  readFF(&slot, 110);
  task_ends(a);
}
static void main_many(void) {
  const long n = size_or(50000);
  init(&slot);
  end_count ends = {0};
  for (long i = 0; i < n; ++i) add_task(f_waits_long, &ends, i, NULL, 111);
#if GODWIT_CHAPEL_COUNTS
  while (chpl_task_getNumBlockedTasks() != n) chpl_task_yield();
  CHECK(chpl_task_getNumQueuedTasks() == 0);
  CHECK(chpl_task_getNumThreads() == chpl_task_getMaxPar());
  CHECK(chpl_task_getNumIdleThreads() < chpl_task_getNumThreads());
#endif
  writeEF(&slot, 1, 112);
  wait_for_end(&ends);
}

/* sizes: what the layer says of itself. */
static void main_sizes(void) {
  CHECK(chpl_task_getMaxPar() >= 1);
  CHECK(chpl_task_getCallStackSize() >= 64 << 10);
  CHECK(chpl_task_guardPagesInUse());
  CHECK(CHPL_TASK_IMPL_IS_FIXED_THREAD() && CHPL_TASK_IMPL_GET_FIXED_NUM_THREADS() == chpl_task_getMaxPar());
  char deep_frame[1 << 20]; /* fits: 8 MiB */
  memset(deep_frame, 1, sizeof deep_frame);
  CHECK(deep_frame[12345] == 1);
}

/* moved: bodies of on statements, whose bundles begin otherwise. */
typedef struct {
  chpl_comm_on_bundle_t header;
  atomic_long* counter;
} on_arguments;
static void moved(void* p) {
  const on_arguments* a = p;
  CHECK(chpl_task_getInfoChapel() == &a->header.task_bundle.infoChapel);
  atomic_fetch_add(a->counter, 1);
}
static void main_moved(void) {
  static atomic_long counter;
  on_arguments a;
  memset(&a, 0, sizeof a);
  a.header.kind = CHPL_ARG_BUNDLE_KIND_COMM;
  a.counter = &counter;
  for (int i = 0; i < 100; ++i)
    chpl_task_startMovedTask(FID_NONE, moved, &a, sizeof a, c_sublocid_none_val, chpl_nullTaskID);
  while (counter != 100) chpl_task_yield();
}

/* outside: an OS thread of the communication layer begins tasks, and fills what tasks wait for. */
static atomic_long from_outside_ran;
static sync_int there[100], back[100];
static void from_outside(void* p) {
  (void)p;
  atomic_fetch_add(&from_outside_ran, 1);
}
static void fills(void* p) {
  (void)p;
  for (int i = 0; i < 100; ++i) {
    add_task(f_from_outside, NULL, i, NULL, 120);
    if (i % 10 == 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
    writeEF(&there[i], i, 121);
    CHECK(readFE(&back[i], 122) == 2 * i);
  }
}
static void main_outside_halt(void) {
  printf("before\n");
  readFE(&there[0], 125);
  chpl_exit_any(3);
}
static void main_outside(void) {
  for (int i = 0; i < 100; ++i) {
    writeEF(&back[i], 2 * readFE(&there[i], 123), 124);
  }
  while (from_outside_ran != 100) chpl_task_yield();
}

/* events: asked for, one of each kind comes for each task. */
static void main_events(void) { main_tasks(); }

/* Deadlocks: all wait for sync variables; and one of them waits for the others' end. */
static void main_deadlock(void) {
  init(&slot);
  printf("before\n");
  readFE(&slot, 131);
  printf("after\n");
}
static void stuck(void* p) {
  const arguments* a = p;
  readFE(&slot, 132);
  task_ends(a);
}
static void main_deadlock_coforall(void) {
  init(&slot);
  printf("before\n");
  coforall(f_stuck, 3, NULL, 133);
  printf("after\n");
}
/* Many wait for others' end at the same worker. */
static void half_stuck(void* p) {
  const arguments* a = p;
  coforall(f_stuck, 1, NULL, 133);
  task_ends(a);
}
static void main_deadlock_many(void) {
  init(&slot);
  printf("before\n");
  coforall(f_half_stuck, 500, NULL, 135);
  printf("after\n");
}
static void main_halt(void) {
  init(&slot);
  add_task(f_stuck, NULL, 0, NULL, 134);
  chpl_task_yield();
  printf("before\n");
  chpl_exit_any(3);
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"tasks", main_tasks},
    {"nested", main_nested},
    {"deep", main_deep},
    {"relay", main_relay},
    {"chain", main_chain},
    {"pingpong", main_pingpong},
    {"queue", main_queue},
    {"readers", main_readers},
    {"private", main_private},
    {"sleep", main_sleep},
    {"busy", main_busy},
    {"helps", main_helps},
    {"many", main_many},
    {"sizes", main_sizes},
    {"moved", main_moved},
    {"outside", main_outside},
    {"outside_halt", main_outside_halt},
    {"events", main_events},
    {"deadlock", main_deadlock},
    {"deadlock_coforall", main_deadlock_coforall},
    {"deadlock_many", main_deadlock_many},
    {"halt", main_halt},
};

static void modules(void) { atomic_store(&inner_ran, 0); }

int main(int argc, char** argv) {
  if (argc > 2) size = atol(argv[2]);
  for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; ++i) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    chpl_task_init();
    chpl_task_callMain(modules); /* as Chapel does, for the standard modules */
    const int outside = strncmp(argv[1], "outside", 7) == 0;
    standin_callbacks = strcmp(argv[1], "events") == 0;
    for (int k = 0; outside && k < 100; ++k) {
      init(&there[k]);
      init(&back[k]);
    }
    if (outside) {
#if GODWIT_CHAPEL_COMM_CPU
      CHECK(chpl_task_createCommTask(fills, NULL, 0) == 0);
#else
      CHECK(chpl_task_createCommTask(fills, NULL) == 0);
#endif
    }
    chpl_task_callMain(cases[i].run);
    chpl_task_exit();
    if (standin_callbacks)
      for (int k = 0; k < 3; ++k) CHECK(standin_events[k] == size_or(1000000) + 1);
    printf("all right\n");
    return 0;
  }
  fprintf(stderr, "usage: %s CASE [SIZE]\n", argv[0]);
  return 2;
}
