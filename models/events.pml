/* Events from outside and idleness: who watches for events, who sleeps, who wakes whom. docs/protocols/events.md (EV1, EV2, TM1), idle.md
 *
 * What it is: idleness.cpp (sees_work, become_*, wait_for_work, sleep, wake_one), continuation.cpp (loop, the counts around publish), worker.cpp (unpark),
 * events.cpp (collect, look, deliver, interrupt), timers.cpp (start_timer, begin_sleep, expire). Ready queues are reduced to who is in
 * them; publishing and waking one thread are one step each (park.pml). A run of one host.
 * NO PERIODS: who sleeps, sleeps until it is woken, an event comes, or a timer is due that it knew of. So what is found here
 * costs nothing in the program but at most one sleep period; but "all are blocked" is then a wake-up that was lost: an invalid end state.
 * Sequentially consistent: "push, then look for sleepers" has no fence in the code (idle.md), and may cost one period there.
 *
 * The program: the root creates CLOCK and PARENT (and with T=5 PLAIN, which only ends), in any order, waits (inside) until all have ended, and
 * ends the run; with BUSY it computes until then. CLOCK waits for a timer; PARENT spawns EVENT, which waits for a descriptor; its own
 * continuation cannot be stolen. With BURN it spawns CLOCK as well, and computes until both have been woken: a worker that looks for nothing.
 * The event comes at any time, and the timer is due at any time after the event, or the other way round.
 * Asserted: who decides finds nobody running, ready or waiting for something outside; one worker at a time waits in epoll; what was
 * collected is not thrown away. Must pass: the plain model, BUSY, BURN, each also with FOREIGN (an OS thread wakes EVENT, by way of the
 * source of events). Mutants, must FAIL: NOT_COUNTED, DELIVER_IDLE (ID1, ID2), COLLECT_BOTH, COLLECTED_EARLY (EV1), NOBODY_WATCHES,
 * SHUTDOWN_NO_INTERRUPT; with N=3: READ_BY_OTHERS (EV2); with BUSY: NOT_RESET (EV2), PUSH_WAKES_NONE, NO_INTERRUPT, WAKE_NOT_SEEN, POLLING_LATE; with BURN:
 * RESET_FIRST (EV2), FIRST_WAKES_NONE, NO_T1, T1_LATE (TM1); with FOREIGN and BUSY: PUT_LATE (interrupted first, then put).
 * N=3 has too many states to be searched whole: plain and with BURN, no error in the first 1.3 * 10^8 each (the mutant: after 1.1 * 10^7).
 */
#ifndef N
#define N 2
#endif
#ifdef BURN
#define BURNS 1
#else
#define BURNS 0
#endif
#define ROOT 0
#define EVENT 1
#define CLOCK 2
#define PARENT 3
#define PLAIN 4
#ifndef T
#define T 4                  /* threads: 0 ... T - 1 */
#endif
#define NONE 9
/* Where a thread is. */
#define NEW 0
#define READY 1
#define RUNS 2
#define INSIDE 3
#define OUTSIDE 4
#define ENDED 5

byte at[T];
byte home[T];                  /* worker whose ready queue it is in */
byte ended;                  /* threads but the root */
bit  event_first;
bit  root_done, shutdown;

short idle; byte outside, sleepers;
byte stale = 255;            /* bit per worker: `wake` has changed since it read it (a counter there; here: finite) */
bit  polling, collecting;
bit  rung, eventfd;          /* rung: the word `interrupted` */
byte asleep;                 /* bit per worker: in the futex */
byte in_epoll;

bit  ready_fd;               /* epoll has an event */
byte found;                  /* collected, not delivered */
bit  listed, woken_event;    /* EVENT is in the descriptor's list; the event has been delivered */
#define NEVER 1
#define DUE 2
byte sleeps_until;           /* 0: nobody sleeps; NEVER; DUE: until the timer's deadline */
bit  timer, due;             /* it runs; its time has come */
bit  woken_clock;
byte stack;                  /* FOREIGN: threads that OS threads want to wake */
byte i;

#define IN(t, w) (at[t] == READY && home[t] == w)
#if T > PLAIN
#define READY_IN(w) (IN(0, w) || IN(1, w) || IN(2, w) || IN(3, w) || IN(4, w))
#define ANY_READY (at[0] == READY || at[1] == READY || at[2] == READY || at[3] == READY || at[4] == READY)
#else
#define READY_IN(w) (IN(0, w) || IN(1, w) || IN(2, w) || IN(3, w))
#define ANY_READY (at[0] == READY || at[1] == READY || at[2] == READY || at[3] == READY)
#endif
#define STALE (stale & (1 << me))
#define WAITED_FOR listed

inline interrupt() {
  atomic { if :: !rung -> rung = 1; k = 1 :: else -> k = 0 fi };
  if :: k -> eventfd = 1; k = 0 :: else fi
}
/* Futex: any one of those that sleep; the word has changed before. */
inline wake_one() {
  if
  :: sleepers != 0 ->
     stale = 255;                         /* wake + 1 */
     atomic {
       if
       :: asleep & 1 -> asleep = asleep & ~1; k = 0
       :: asleep & 2 -> asleep = asleep & ~2; k = 0
       :: asleep & 4 -> asleep = asleep & ~4; k = 0
       :: asleep == 0 -> k = 1
       fi
     };
#ifndef NO_INTERRUPT
     if :: k && polling -> interrupt() :: else -> k = 0 fi
#else
     k = 0
#endif
  :: else
  fi
}
inline push_ready(x) {
  atomic { assert(at[x] != READY && at[x] != RUNS); at[x] = READY; home[x] = me };
#ifndef PUSH_WAKES_NONE
  wake_one()
#endif
}
inline unpark_outside(y) {
  push_ready(y);
#ifndef NOT_COUNTED
  outside--;
  idle++
#ifndef DELIVER_IDLE
  ; assert(idle < N)
#endif
#else
  outside--
#endif
}

/* Sets `some`. The caller says whether it wants to wait. */
inline collect(wants) {
  some = 0;
  if
  :: !wants && !WAITED_FOR && !(timer && due) && !stack
  :: else ->
#ifndef COLLECT_BOTH
     if
     :: atomic { !collecting -> collecting = 1 };
#else
     if
     :: collecting = 1;
#endif
#ifdef FOREIGN
        waits = wants && (stack == 0);
#else
        waits = wants;
#endif
        assert(found == 0);               /* else it would be thrown away */
        if
        :: waits ->
#ifdef T1_LATE
           until = (timer -> DUE : NEVER);
           sleeps_until = until;
#else
           atomic { until = (timer -> DUE : NEVER); sleeps_until = until };   /* TM1: one lock */
#endif
           in_epoll++;
           assert(in_epoll == 1);
           if
           :: ready_fd || eventfd || (until == DUE && due)
           fi;
           in_epoll--
        :: else
        fi;
        sleeps_until = 0;
        until = 0;
        atomic { if :: ready_fd && (waits || WAITED_FOR) -> ready_fd = 0; found = 1 :: else fi };
        if
#ifdef READ_BY_OTHERS
        :: eventfd ->
#else
        :: eventfd && waits ->            /* EV2: it is for who waits, or is about to */
#endif
#ifdef RESET_FIRST
           rung = 0;
           eventfd = 0;
#else
           eventfd = 0;
#ifndef NOT_RESET
           rung = 0;               /* EV2 */
#endif
#endif
        :: else
        fi;
        waits = 0;
        if
        :: found != 0 || (timer && due) -> atomic { some = 1; others = 1 }
        :: else -> collecting = 0
        fi
     :: collecting                        /* EV1 */
     fi
#ifdef FOREIGN
     ; atomic { if :: stack != 0 -> some = 1 :: else fi }
#endif
  fi
}
/* `collecting` is held if there is something of the own source. */
inline deliver() {
#ifdef FOREIGN
  atomic { if :: stack != 0 -> stack = 0; k = 1 :: else fi };
  if :: k -> k = 0; unpark_outside(EVENT) :: else fi;
#endif
  if
  :: others ->
     others = 0;
#ifdef COLLECTED_EARLY
     collecting = 0;
#endif
     if
     :: found != 0 ->
        atomic {
          woken_event = 1; k = 0;
          if :: listed -> listed = 0; k = (at[EVENT] == OUTSIDE) :: else fi
        };
        if :: k -> k = 0; unpark_outside(EVENT) :: else fi;
        found = 0
     :: else
     fi;
#ifndef COLLECTED_EARLY
     collecting = 0;                      /* EV1 */
#endif
     atomic { if :: timer && due -> timer = 0; woken_clock = 1; k = (at[CLOCK] == OUTSIDE) :: else -> k = 0 fi };
     if :: k -> k = 0; unpark_outside(CLOCK) :: else fi
  :: else
  fi
}

inline collect_events(ce) {
  if
  :: has_events -> some = 1
  :: !has_events && outside == 0 -> some = 0
  :: else -> collect(ce); has_events = some
  fi
}
inline sees_work() {
  some = 0;
  if
  :: shutdown -> goto out
  :: else ->
     collect_events(0);
     if
     :: !some -> some = ANY_READY
     :: else
     fi
  fi
}
inline decide() {
  d_step {
    i = 0;
    do
    :: i < T -> assert(at[i] == ENDED || at[i] == INSIDE || at[i] == NEW); i++
    :: else -> break
    od;
    i = 0;
    assert(root_done);                    /* nobody waits for ever in this program: no deadlock to report */
    shutdown = 1
  };
  stale = 255;
  asleep = 0;
#ifndef SHUTDOWN_NO_INTERRUPT
  if :: polling -> interrupt() :: else fi
#endif
}

inline go_on() { mine = parent; parent = NONE }
/* The running thread suspends for something outside; `mine` is its own again if it need not. */
inline park_outside(z) {
#ifndef NOT_COUNTED
  idle--;                                 /* ID2 */
#endif
  atomic { k = (outside == 0); outside++ };
#ifndef FIRST_WAKES_NONE
  if :: k && (parent != NONE || READY_IN(me)) -> k = 0; wake_one() :: else -> k = 0 fi;
#else
  k = 0;
#endif
  atomic {                                /* publish */
    if
    :: (z == EVENT && woken_event) || (z == CLOCK && woken_clock) -> k = 1
    :: else -> at[z] = OUTSIDE; go_on(); k = 0
    fi
  };
  if
  :: k ->
     k = 0;
     outside--;
#ifndef NOT_COUNTED
     idle++
#endif
  :: else
  fi
}
inline end(e) {
  atomic { at[e] = ENDED; go_on(); ended++; k = (ended == T - 1 && at[ROOT] == INSIDE) };
  if :: k -> k = 0; push_ready(ROOT) :: else fi
}

proctype worker(byte me) {
  byte mine = NONE, parent = NONE, k, until, v;
  bit is_idle, has_events, others, some, waits, slept;
  if :: me == 0 -> mine = ROOT; at[ROOT] = RUNS :: else fi;
  do
  /* Threads. */
  :: mine == ROOT ->
     if
     :: !BURNS && at[CLOCK] == NEW -> push_ready(CLOCK)
     :: at[PARENT] == NEW -> push_ready(PARENT)
#if T > PLAIN
     :: at[PLAIN] == NEW -> push_ready(PLAIN)
#endif
     :: (at[CLOCK] != NEW || BURNS) && at[PARENT] != NEW && at[T - 1] != NEW ->
#ifdef BUSY
        ended == T - 1;
#else
        if
        :: atomic { ended != T - 1 -> at[ROOT] = INSIDE; mine = NONE }
        :: ended == T - 1
        fi;
        if
        :: mine == NONE
        :: else ->
#endif
        atomic { at[ROOT] = ENDED; root_done = 1; mine = NONE }
#ifndef BUSY
        fi
#endif
     fi
  :: mine == EVENT ->
     if
     :: woken_event -> end(EVENT)
     :: else ->
#ifndef FOREIGN
        atomic { if :: !woken_event -> listed = 1 :: else fi };   /* DS2 */
#endif
        park_outside(EVENT)
     fi
  :: mine == CLOCK ->
     if
     :: woken_clock -> end(CLOCK)
     :: else ->
        /* start_timer: one lock. */
        atomic {
          timer = 1; k = (sleeps_until == NEVER);
          if :: k -> sleeps_until = DUE :: else fi
        };
#ifndef NO_T1
        if :: k -> k = 0; interrupt() :: else fi;
#else
        k = 0;
#endif
        park_outside(CLOCK)
     fi
  :: mine == PARENT ->
     if
     :: at[EVENT] == NEW -> atomic { parent = PARENT; mine = EVENT; at[EVENT] = RUNS }
     :: BURNS && at[CLOCK] == NEW -> atomic { parent = PARENT; mine = CLOCK; at[CLOCK] = RUNS }
     :: else ->
        !BURNS || (woken_event && woken_clock);
        end(PARENT)
     fi
#if T > PLAIN
  :: mine == PLAIN -> end(PLAIN)
#endif

  /* The scheduler loop. */
  :: mine == NONE ->
     if
     :: is_idle ->
        sees_work();
        if
        :: !some -> goto wait_for_work
        :: else ->
           some = 0;
#ifdef DELIVER_IDLE
           if :: has_events -> has_events = 0; deliver() :: else fi;
#endif
           is_idle = 0;
           idle--;                        /* ID1 */
           if :: has_events -> has_events = 0; deliver() :: else fi
        fi
     :: else
     fi;
     if
     :: true ->                           /* its queue is empty, or it has had many turns */
        collect_events(0);
        if :: some -> some = 0; has_events = 0; deliver() :: else fi
     :: READY_IN(me)
     fi;
     v = me;
     do
     :: v < me + N ->
        atomic {
          k = 0;
          do
          :: k < T && !(at[k] == READY && home[k] == v % N) -> k++
          :: else -> break
          od;
          if :: k < T -> at[k] = RUNS; mine = k :: else fi;
          k = 0
        };
        if :: mine != NONE -> v = 0; goto again :: else -> v++ fi
     :: else -> break
     od;
     v = 0;
     /* become_idle */
     if
     :: READY_IN(me)
     :: else ->
        is_idle = 1;
        atomic { idle++; some = (idle == N) };
        if :: some -> some = 0; decide(); goto out :: else fi
     fi;
     goto again;

wait_for_work:
     sleepers++;
     stale = stale & ~(1 << me);          /* seen = wake */
     sees_work();
     if
     :: some -> some = 0
     :: else ->
        slept = 0;
#ifndef NOBODY_WATCHES
        if
        :: outside != 0 ->
#ifdef POLLING_LATE
           k = (polling == 0 && !STALE);
           if :: k -> polling = 1 :: else fi;
           if :: k -> some = 1 :: else fi;
#else
           atomic { k = !polling; polling = 1 };
#endif
           if
           :: k ->
              k = 0;
#if !defined(WAKE_NOT_SEEN) && !defined(POLLING_LATE)
              if :: !STALE -> collect_events(1) :: else fi;
#else
              collect_events(1);
#endif
              some = 0;
              polling = 0;
              slept = 1
           :: else
           fi
        :: else
        fi;
#endif
        if
        :: slept
        :: else ->
           atomic { if :: !STALE -> asleep = asleep | (1 << me) :: else fi };
           !(asleep & (1 << me))
        fi;
        slept = 0
     fi;
     atomic { sleepers--; stale = stale | (1 << me) };
again:
     skip
  od;
out:
  assert(shutdown)
}

/* The world outside. */
proctype world() {
#ifdef FOREIGN
  byte k;
  at[EVENT] == OUTSIDE && (event_first || woken_clock);   /* an OS thread wakes it: knows it once it is published */
#ifdef PUT_LATE
  interrupt();
  atomic { woken_event = 1; stack = 1 }
#else
  atomic { woken_event = 1; stack = 1 };
  interrupt()
#endif
#else
  event_first || woken_clock;
  ready_fd = 1
#endif
}
proctype time() { timer && (!event_first || woken_event); due = 1 }

init {
  atomic {
    if :: event_first = 1 :: event_first = 0 fi;
    i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0;
    run world(); run time()
  }
}
