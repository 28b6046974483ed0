/* Idleness where waiting threads poll (policies stalling, child_full): label ID5 of docs/protocols/idle.md.
 *
 * Who completes a record tells nobody: each worker looks at its own waiting threads in turn. So a thread may
 * become ready on an idle worker, and who brings the count to N must look at all of them before it decides.
 * The program: T threads, 0 is the root. A running thread may spawn, end, or wait for any thread's record: its
 * own (for ever), one that is done by now, or DONE (a yield). Deques and ready queues are reduced to what they
 * hold; taking is atomic (deque.pml). Letters, hosts: idle.pml, idle_nodes.pml. No sleep: it ends by timeout.
 * The epoch counts up for ever; `left` says only whether it has changed since it was read: the same, finite.
 *
 * A decision with a thread ready or running is an assertion. An idle worker that sees nothing blocks, so "all
 * are idle for ever and nobody decided" is an invalid end state.
 * Mutants, must FAIL (docs/protocols/policies.md): LEFT_FIRST, NO_RECOUNT, both with COUNT_LAST, NO_SCAN,
 * SCAN_OWN, SCAN_FIRST, NO_EPOCH, EPOCH_BEFORE_COUNT, TAKE_FIRST, LEFT_AFTER_TAKE, IDLE_WITH_READY,
 * WAITER_NOT_SEEN. Must pass: the plain model; NOT_IN_EMPTY (become_idle does not look at the own waiting
 * threads); ONE_WORD (count and epoch change in one step; the value that made N is the epoch).
 */
#ifndef N
#define N 3
#endif
#ifndef T
#define T 3
#endif
#define DONE T               /* a record that is complete from the start */
#define NONE T
#define NEW 0                /* where a thread is */
#define RUN 1                /* on a worker, or in its hands */
#define ENDED 2
#define QUEUED 3             /* deque or ready queue of a worker */
#define WAITS(w) (4 + (w))   /* in the queue of waiting threads of worker w */

byte idle = 0;
#define READ 1
#define CHANGED 2
byte left[N];                /* worker i has read the epoch; somebody has left idleness since. 0: not looking */
byte at[T], owner[T];        /* owner: of the queue, while QUEUED */
byte waits[T];               /* the record that it waits for */
bit  done[T + 1];
bit  over;                   /* somebody has decided */
byte queued, ready_of[N];    /* of `at`: threads QUEUED, and waiting ones of a worker that are ready */
hidden byte i;

inline count_left() {
  d_step { i = 0; do :: i < N -> left[i] = (left[i] != 0 -> CHANGED : 0); i++ :: else -> break od; i = 0 }
}

inline become_running() {
#if defined(ONE_WORD)
  atomic { is_idle = 0; idle--; count_left() }
#elif defined(LEFT_FIRST)
  count_left();
  atomic { is_idle = 0; idle-- }
#else
  atomic { is_idle = 0; idle-- };         /* ID1 */
#ifndef LEFT_AFTER_TAKE
  count_left()                            /* ID5: between the count and touching any thread */
#endif
#endif
}

/* ID5: the queues of all workers; sets `no`. A step finds the next image of a list, another looks at its record. */
inline scan() {
  v = 0;
  do
  :: atomic { v < N && !no ->
       do :: t < T && at[t] != WAITS(v) -> t++ :: else -> break od;
       if :: t < T -> r = waits[t] :: else -> r = NONE + 1; t = 0; v++ fi };
#ifndef NO_EPOCH
     atomic { no = (left[me] == CHANGED);   /* the lists may change: do not walk on */
#else
     atomic { no = 0;
#endif
       if :: r <= T -> no = no || done[r]; t++; r = 0 :: else -> r = 0 fi }
#ifdef SCAN_OWN
     ; if :: v > 0 -> v = N :: else fi
#endif
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

inline become_idle() {
#ifdef SCAN_FIRST
  left[me] = READ;
  scan();
#endif
#ifdef EPOCH_BEFORE_COUNT
  left[me] = READ;
#endif
  atomic {
    is_idle = 1; idle++; last = (idle == N)   /* ID1, ID3 */
#ifdef ONE_WORD
    ; left[me] = (idle == N -> READ : 0)
#endif
  };
  if
  :: last ->
#if !defined(ONE_WORD) && !defined(SCAN_FIRST) && !defined(EPOCH_BEFORE_COUNT)
     left[me] = READ;                     /* ID5: read the epoch, */
#ifndef NO_RECOUNT
     no = (idle != N);                    /* then the count: who leaves from here on changes the epoch */
#endif
#endif
#if !defined(NO_SCAN) && !defined(SCAN_FIRST)
     scan();
#endif
#ifdef COUNT_LAST
     no = no || idle != N;
#endif
     atomic {
#ifndef NO_EPOCH
       no = no || left[me] == CHANGED;
#endif
       if :: !no -> decide() :: else fi;
       no = 0; last = 0; left[me] = 0
     }
  :: else -> left[me] = 0
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
#ifdef WAITER_NOT_SEEN
  :: atomic { mine == NONE && !over && is_idle && queued != 0 ->
#else
  :: atomic { mine == NONE && !over && is_idle && (queued != 0 || ready_of[me] != 0) ->
#endif
#ifdef TAKE_FIRST
       take() };
     if :: mine != NONE -> become_running() :: else fi
#else
       skip };
     become_running()
#endif
  :: atomic { mine == NONE && !over && !is_idle ->
       take();
       if
       :: mine != NONE
#ifdef LEFT_AFTER_TAKE
          ; goto taken
#endif
       :: else ->                         /* ID1: own queues empty, no own waiting thread ready? */
#ifndef IDLE_WITH_READY
          do :: v < T && (at[v] != QUEUED || owner[v] != me) -> v++ :: else -> break od;
#else
          v = T;
#endif
          no = (v < T);
#ifndef NOT_IN_EMPTY
          no = no || ready_of[me] != 0;
#endif
          v = 0;
          if :: no -> no = 0 :: else -> goto nothing fi
       fi };
     goto again;
#ifdef LEFT_AFTER_TAKE
taken:
     count_left();
     goto again;
#endif
nothing:
     become_idle();
again:
     skip
  od
}

init { atomic { done[DONE] = 1; i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0 } }
