/* Idleness of several hosts where waiting threads poll (policies stalling, child_full): label ID5 between hosts,
 * docs/protocols/policies.md.
 *
 * idle_poll.pml, whose program this runs, with waves as in idle_nodes.pml. A host at which nobody has left idleness
 * since the wave before looks at its own waiting threads before it lets the wave pass: if one is ready, it will run.
 * N workers; the first N - 1 are of host 0, the last is host 1. Letters: idle_nodes.pml.
 *
 * A decision with a thread ready or running is an assertion. Waves go on for ever, so that somebody decides is for LIVE
 * to show, with weak fairness: no attempt to take fails there without a reason, and work comes first.
 * Mutants, must FAIL: NO_SCAN, OWN_HOST (only the first host looks), SCAN_FIRST (and does not look at the word again),
 * NO_EPOCH (a wave may be unclean), LEFT_FIRST (the epoch, then the count; with N=3); with LIVE: WAITER_NOT_SEEN.
 * Must pass: the plain model, LIVE.
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

byte idle[HOSTS];
bit  changed[HOSTS] = 1;     /* somebody has left idleness since the last visit, or there has been none */
bit  gate[HOSTS];
bit  asked, answered;        /* host 1; what it has answered, until host 0 is visited */
bit  unclean;                /* of the answer */
byte at[T], owner[T];        /* owner: of the queue, while QUEUED */
byte waits[T];               /* the record that it waits for */
bit  done[T + 1];
bit  over;                   /* somebody has decided */
byte queued, ready_of[N];    /* of `at`: threads QUEUED, and waiting ones of a worker that are ready */
hidden byte i;

inline become_running() {
#ifdef LEFT_FIRST
  changed[HOST(me)] = 1;
  atomic { is_idle = 0; idle[HOST(me)]-- }
#else
  atomic { is_idle = 0; idle[HOST(me)]--; changed[HOST(me)] = 1 }         /* IN2 */
#endif
}

/* ID5: the queues of all workers of the own host; sets `no`. A step finds the next image of a list, another looks at
 * its record. */
inline scan() {
  v = 0;
  do
  :: atomic { v < N && !no ->
       if :: HOST(v) != HOST(me) -> t = T :: else fi;
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

#define FULL(h) (idle[h] == WORKERS_OF(h))
#define HAS_STEP(h) (FULL(h) && (h == 1 -> asked : !asked))
#ifdef NO_EPOCH
#define LEFT(h) false
#else
#define LEFT(h) changed[h]
#endif
/* The part of an idle worker in a wave. */
inline step() {
  if
  :: HOST(me) == 0 && !answered -> asked = 1
  :: else ->
#ifdef NO_SCAN
     skip;
#elif defined(OWN_HOST)
     if :: HOST(me) == 0 && !LEFT(HOST(me)) && !unclean -> scan() :: else fi;
#else
     if :: !LEFT(HOST(me)) && !unclean -> scan() :: else fi;
#endif
     atomic {
       if
       :: !no && FULL(HOST(me)) ->        /* the visit: a look at one word */
#ifdef SCAN_FIRST
          c = 0;
#else
          c = LEFT(HOST(me));
#endif
          changed[HOST(me)] = 0;
          if
          :: HOST(me) == 1 -> asked = 0; answered = 1; unclean = c
          :: else -> answered = 0; if :: !c && !unclean -> decide() :: else fi; unclean = 0
          fi
       :: else
       fi
     }
  fi;
  atomic { no = 0; c = 0; gate[HOST(me)] = 0 }
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
#ifdef LIVE
  :: else
#else
  :: true                                 /* a try-lock failed */
#endif
  fi;
  t = 0
}

#ifdef LIVE
byte acts;                   /* of threads before they only end */
#define MAY_GO_ON (acts < 2 * T) -> acts++
#define FIRST (queued == 0 && ready_of[me] == 0)
#else
#define MAY_GO_ON true
#define FIRST true
#endif
proctype worker(byte me) {
  byte v, t, r, mine = NONE;
  bit is_idle, no, c;
  if :: me == 0 -> atomic { mine = 0; at[0] = RUN } :: else fi;
  do
  :: atomic { mine != NONE ->             /* runs a thread */
       if
       :: MAY_GO_ON -> v = 0;             /* spawns */
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
       :: MAY_GO_ON -> select (v : 0 .. T); at[mine] = WAITS(me); waits[mine] = v;
          if :: done[v] -> ready_of[me]++ :: else fi;
          mine = NONE
       fi;
       v = 0 }
  :: atomic { mine == NONE && over -> break }
  :: atomic { mine == NONE && !over && is_idle && FIRST && HAS_STEP(HOST(me)) && !gate[HOST(me)] -> gate[HOST(me)] = 1 };
     step()
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
       :: else ->                         /* ID1: own queues empty? */
          do :: v < T && (at[v] != QUEUED || owner[v] != me) -> v++ :: else -> break od;
          no = (v < T);
          v = 0;
          if :: no -> no = 0 :: else -> is_idle = 1; idle[HOST(me)]++ fi
       fi };
  od
}

init { atomic { done[DONE] = 1; i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0 } }

#ifdef LIVE
ltl ends { <> over }
#endif
