/* Idleness of several hosts where waiting threads poll (policies stalling, child_full): label ID5 between hosts,
 * docs/protocols/policies.md.
 *
 * idle_poll.pml, whose program this runs, with two counts as in idle_nodes.pml: idle workers of each host, and
 * announced hosts. Who brings the second to the number of hosts looks at all waiting threads of all hosts, one
 * after the other. Count of hosts and epoch are one word: who takes a host back changes both in one step, and
 * the value that made HOSTS must be there still after the look.
 * N workers; the first N - 1 are of host 0, the last is host 1. Letters and their units: idle_nodes.pml.
 *
 * A decision with a thread ready or running is an assertion. An idle worker that sees nothing blocks, so "all
 * are idle for ever and nobody decided" is an invalid end state.
 * Mutants, must FAIL: NO_SCAN, OWN_HOST (only the decider's host is looked at), LOOK_FIRST (each host looks at its
 * own threads before it is announced, and nobody looks later), NO_EPOCH (after the look nobody looks at the word),
 * COUNT_LAST (only at the count of hosts), LEFT_FIRST (epoch and count are two words, the epoch changes first, and
 * only that is looked at), EPOCH_LATE (it is read after the addition that made HOSTS), LEFT_AFTER_TAKE (the host is
 * taken back after a thread was touched), CLEAR_FIRST (a second worker need not wait for that), WAITER_NOT_SEEN.
 * Must pass: the plain model.
 */
#ifndef N
#define N 2
#endif
#ifndef T
#define T 3
#endif
#define HOSTS 2
#define HOST(w) ((w) == N - 1)
#define WORKERS_OF(h) ((h) -> 1 : N - 1)
#define DONE T               /* a record that is complete from the start */
#define NONE T
#define NEW 0                /* where a thread is */
#define RUN 1                /* on a worker, or in its hands */
#define ENDED 2
#define QUEUED 3             /* deque or ready queue of a worker */
#define WAITS(w) (4 + (w))   /* in the queue of waiting threads of worker w */

byte idle[HOSTS], idle_hosts;
bit  announced[HOSTS], gate[HOSTS];
#define READ 1
#define CHANGED 2
byte left[N];                /* worker i has read the epoch; a host has been taken back since. 0: not looking */
byte at[T], owner[T];        /* owner: of the queue, while QUEUED */
byte waits[T];               /* the record that it waits for */
bit  done[T + 1];
bit  over;                   /* somebody has decided */
byte queued, ready_of[N];    /* of `at`: threads QUEUED, and waiting ones of a worker that are ready */
hidden byte i;

inline count_left() {
  d_step { i = 0; do :: i < N -> left[i] = (left[i] != 0 -> CHANGED : 0); i++ :: else -> break od; i = 0 }
}

inline take_host_back() {
  if
  :: !announced[HOST(me)]
  :: else ->
     atomic { !gate[HOST(me)] -> gate[HOST(me)] = 1 };        /* IN3 */
     if
     :: announced[HOST(me)] ->
#ifdef CLEAR_FIRST
        announced[HOST(me)] = 0; gate[HOST(me)] = 0;
#endif
#ifdef LEFT_FIRST
        count_left();
        idle_hosts--;
#else
        atomic { idle_hosts--; count_left() };                /* ID5 */
#endif
        announced[HOST(me)] = 0
     :: else
     fi;
     gate[HOST(me)] = 0
  fi
}

inline become_running() {
  atomic { is_idle = 0; idle[HOST(me)]-- };                   /* IN2 */
#ifndef LEFT_AFTER_TAKE
  take_host_back()
#endif
}

/* ID5: the queues of all workers of all hosts; sets `no`. A step finds the next image of a list, another looks at
 * its record. */
inline scan() {
  v = 0;
  do
  :: atomic { v < N && !no ->
#if defined(OWN_HOST) || defined(LOOK_FIRST)
       if :: HOST(v) != HOST(me) -> t = T :: else fi;
#endif
       do :: t < T && at[t] != WAITS(v) -> t++ :: else -> break od;
       if :: t < T -> r = waits[t] :: else -> r = NONE + 1; t = 0; v++ fi };
     atomic { if :: r <= T -> no = done[r]; t++ :: else fi; r = 0 }
  :: else -> break
  od;
  atomic { v = 0; t = 0 }
}

/* ID3: nobody has anything to run, or the decision is false. */
inline decide() {
  d_step {
    v = 0;
    do
    :: v < T -> assert(at[v] == NEW || at[v] == ENDED || (at[v] >= WAITS(0) && !done[waits[v]])); v++
    :: else -> break
    od;
    v = 0;
    over = 1
  }
}

inline announce() {
  atomic { !gate[HOST(me)] -> gate[HOST(me)] = 1 };
#ifdef LOOK_FIRST
  scan();
#endif
  if
  :: announced[HOST(me)] || no -> no = 0
  :: else ->
     announced[HOST(me)] = 1;                                 /* IN2 */
     if
     :: idle[HOST(me)] != WORKERS_OF(HOST(me)) -> announced[HOST(me)] = 0
     :: else ->
        atomic {
          idle_hosts++; last = (idle_hosts == HOSTS);         /* IN1 */
#ifndef EPOCH_LATE
          left[me] = (last -> READ : 0)
#endif
        }
     fi
  fi;
  gate[HOST(me)] = 0;
  if
  :: last ->
#ifdef EPOCH_LATE
     left[me] = READ;
#endif
#if !defined(NO_SCAN) && !defined(LOOK_FIRST)
     scan();
#endif
     atomic {
#ifdef COUNT_LAST
       no = no || idle_hosts != HOSTS;
#elif !defined(NO_EPOCH)
       no = no || left[me] == CHANGED;
#endif
       if :: !no -> decide() :: else fi;
       no = 0; last = 0; left[me] = 0
     }
  :: else
  fi
}

inline take() {
  t = 0;
  if
  :: queued != 0 ->
     do :: at[t] == QUEUED -> break :: else -> t++ od;
     mine = t; at[t] = RUN; owner[t] = 0; queued--
  :: ready_of[me] != 0 ->
     do :: at[t] == WAITS(me) && done[waits[t]] -> break :: else -> t++ od;
     mine = t; at[t] = RUN; waits[t] = 0; ready_of[me]--
  :: true                                 /* a try-lock failed */
  fi;
  t = 0
}

proctype worker(byte me) {
  byte v, t, r, mine = NONE;
  bit is_idle, last, no;
  if :: me == 0 -> atomic { mine = 0; at[0] = RUN } :: else fi;
  do
  :: atomic { mine != NONE ->             /* runs a thread */
       if
       :: v = 0;                          /* spawns */
          do :: v < T && at[v] != NEW -> v++ :: else -> break od;
          if :: v < T -> at[v] = QUEUED; owner[v] = me; queued++ :: else fi
       :: at[mine] = ENDED; done[mine] = 1;
          v = 0;
          do
          :: v < T ->
             if :: at[v] >= WAITS(0) && waits[v] == mine -> ready_of[at[v] - WAITS(0)]++ :: else fi;
             v++
          :: else -> break
          od;
          mine = NONE
       :: select (v : 0 .. T); at[mine] = WAITS(me); waits[mine] = v;
          if :: done[v] -> ready_of[me]++ :: else fi;
          mine = NONE
       fi;
       v = 0 }
  :: atomic { mine == NONE && over -> break }
  :: atomic { mine == NONE && !over && is_idle && !announced[HOST(me)] &&
              idle[HOST(me)] == WORKERS_OF(HOST(me)) -> skip };
     announce()
#ifdef WAITER_NOT_SEEN
  :: atomic { mine == NONE && !over && is_idle && queued != 0 -> skip };
#else
  :: atomic { mine == NONE && !over && is_idle && (queued != 0 || ready_of[me] != 0) -> skip };
#endif
     become_running()
  :: atomic { mine == NONE && !over && !is_idle ->
       take();
       if
       :: mine != NONE
#ifdef LEFT_AFTER_TAKE
          ; goto taken
#endif
       :: else ->                         /* ID1: own queues empty? */
          do :: v < T && (at[v] != QUEUED || owner[v] != me) -> v++ :: else -> break od;
          no = (v < T);
          v = 0;
          if :: no -> no = 0 :: else -> is_idle = 1; idle[HOST(me)]++ fi
       fi };
#ifdef LEFT_AFTER_TAKE
     goto again;
taken:
     take_host_back();
again:
     skip
#endif
  od
}

init { atomic { done[DONE] = 1; i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0 } }
