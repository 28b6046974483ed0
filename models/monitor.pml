/* Spare workers and the monitor that wakes them. docs/protocols/monitor.md (MO1 ... MO4)
 *
 * What it is: runtime/monitor.cpp, idleness.cpp (rest, call_monitor, sleeping), far_calls.cpp (wake_spares_of). Queues are reduced to numbers,
 * as in idle.pml. No sleep has a time limit, so every lost wake-up is an invalid end state.
 * The program: EVENTS times something from outside makes a thread ready that is counted like a letter until then (park.md). It makes another
 * thread and then keeps its worker, in a system call or by spinning, until that other one has run.
 * The monitor takes any worker that does not sleep for a stuck one, as it may be wrong about slow ones; what it never misses is that all are.
 * Must pass: the plain model. Mutants, must FAIL: WATCH_LATE, ASLEEP_LATE, NO_CALL (MO1), WAKE_FIRST, SEEN_LATE, SHUTDOWN_NOT_TOLD
 * (MO2), NOT_PASSED_ON (MO3; with two regular workers), REST_WITH_READY, REST_WITH_EVENT (MO4), NOT_COUNTED, NO_MONITOR.
 */
#ifndef R
#define R 2                  /* regular workers */
#endif
#ifndef S
#define S 1                  /* spares */
#endif
#ifndef EVENTS
#define EVENTS 2
#endif
#define N (R + S)
#define NONE 0
#define FIRST 1              /* the thread that waits for the other one by keeping its worker */
#define OTHER 2
#define UNTIL_WORK 1         /* watch */

short idle;                  /* idle workers minus events that are to come */
byte to_come = EVENTS, come; /* events; those that nobody has taken yet */
byte rq[N];                  /* ready queues */
byte made, ran;              /* the others */
bit  asleep[N], woken[N];    /* woken: by the futex that workers sleep in */
bit  dozes[N];               /* is in that futex */
bit  same[N], spare_same[N]; /* the futex's word, wake or spare_wake, is still what this worker has read: counters that never come round */
bit  blocked[N], rests[N], called[N];
byte up, resting;
byte watch;
bit  shutdown;
byte ended;
hidden byte i;

#define ANY_READY (come > 0 || rq[0] > 0 || rq[1] > 0 || rq[N - 1] > 0)

#define LATER ((i < 1 && dozes[1]) || (i < N - 1 && dozes[N - 1]))
inline wake_one() {                                            /* any one, if there is one */
  atomic { same[0] = 0; same[1] = 0; same[N - 1] = 0; i = 0;
     do :: i < N && dozes[i] -> dozes[i] = 0; woken[i] = 1; break
        :: i < N && (!dozes[i] || LATER) -> i++ :: i == N -> break od; i = 0 }
}
inline wake_all_asleep() {
  atomic { same[0] = 0; same[1] = 0; same[N - 1] = 0; i = 0;
     do :: i < N -> if :: dozes[i] -> dozes[i] = 0; woken[i] = 1 :: else fi; i++ :: else -> break od; i = 0 }
}
inline wake_spares() {       /* MO2 */
  atomic { spare_same[0] = 0; spare_same[1] = 0; spare_same[N - 1] = 0 };
  if
  :: resting != 0 -> atomic { i = R; do :: i < N -> if :: rests[i] -> rests[i] = 0; called[i] = 1 :: else fi; i++ :: else -> break od; i = 0 }
  :: else
  fi
}
inline become_idle() {
  is_idle = 1;
  atomic { idle++; last = (idle == N) };
  if
  :: last ->
     atomic { last = 0; assert(to_come == 0 && !ANY_READY && ran == made && ran == EVENTS); shutdown = 1 };
     wake_all_asleep();
#ifndef SHUTDOWN_NOT_TOLD
     wake_spares()
#endif
  :: else
  fi
}
#define TO_REST (me >= R && up <= me - R)
#ifdef REST_WITH_EVENT
#define EMPTY_HANDED true
#else
#define EMPTY_HANDED !has
#endif

/* Something happens outside: whoever sleeps in epoll comes back. One worker and one spare: only when nobody is stuck. */
#if R == 1
#define MAY_COME (ran == EVENTS - to_come && !blocked[0] && !blocked[1])
#else
#define MAY_COME true
#endif
proctype outside() {
  do
  :: to_come == 0 -> break
  :: atomic { to_come > 0 && MAY_COME -> to_come--; come++ };
     wake_one()
  od
}

proctype worker(byte me) {
  bit is_idle, last, has;      /* has: found an event, and not delivered it yet */
  byte task, mine;
  if :: me >= R -> is_idle = 1 :: else fi;
  do
  :: is_idle && shutdown -> break
  :: is_idle && !shutdown && TO_REST && EMPTY_HANDED ->      /* MO4 */
#ifndef NOT_PASSED_ON
     wake_one();                              /* MO3 */
#endif
     resting++;
     asleep[me] = 1;
     do
     :: true ->
#ifndef SEEN_LATE
        spare_same[me] = 1;                   /* MO2: spare_wake, then what it stands for */
#endif
        if :: up > me - R || shutdown -> break :: else fi;
#ifdef SEEN_LATE
        spare_same[me] = 1;
#endif
        atomic { if :: spare_same[me] -> rests[me] = 1 :: else fi };
        if :: !rests[me] -> called[me] = 0 fi;
        spare_same[me] = 0
     od;
     asleep[me] = 0;
     resting--;
     spare_same[me] = 0
  :: is_idle && !shutdown && !(TO_REST && EMPTY_HANDED) ->
     if
     :: has || ANY_READY ->
#ifdef ASLEEP_LATE
        asleep[me] = 1;
#endif
        is_idle = 0; idle--;                  /* ID1 */
        if
#ifdef NO_CALL
        :: false
#else
        :: watch == UNTIL_WORK -> watch = 0   /* MO1: asleep, then watch */
#endif
        :: else
        fi;
        asleep[me] = 0
     :: !has && !ANY_READY ->
        asleep[me] = 1;
        same[me] = 1;
        if
        :: ANY_READY || shutdown
        :: else ->
           atomic { if :: same[me] -> dozes[me] = 1 :: else fi };
           if :: !dozes[me] -> woken[me] = 0 fi;
           atomic { if :: come > 0 && !has -> come--; has = 1 :: else fi }   /* it comes back from epoll */
        fi;
        same[me] = 0;
#ifndef ASLEEP_LATE
        asleep[me] = 0                        /* MO1 */
#endif
     fi
  :: !is_idle ->
     atomic {                                 /* from outside, the own queue, others' queues unless to rest; a try may fail */
       if
       :: has -> has = 0; task = FIRST; idle++; assert(idle < N)
       :: come > 0 && !has -> come--; task = FIRST; idle++; assert(idle < N)
       :: rq[me] > 0 -> rq[me]--; task = OTHER
#ifdef REST_WITH_READY
       :: rq[me] > 0 && TO_REST -> skip
#endif
       :: !TO_REST && rq[(me + 1) % N] > 0 -> rq[(me + 1) % N]--; task = OTHER
       :: !TO_REST && rq[(me + N - 1) % N] > 0 -> rq[(me + N - 1) % N]--; task = OTHER
       :: rq[me] == 0 -> skip
       fi
     };
     if
     :: task == FIRST ->
        atomic { made++; mine = made; rq[me]++ };
        wake_one();
        if
        :: atomic { blocked[me] = 1; task = NONE };
           atomic { ran >= mine -> blocked[me] = 0; mine = 0 }
        :: atomic { task = NONE; mine = 0 }   /* or it does not wait */
        fi
     :: task == OTHER -> atomic { ran++; task = NONE }
     :: task == NONE ->
        if
        :: rq[me] == 0 && !has -> become_idle()
#ifdef REST_WITH_READY
        :: TO_REST -> become_idle()
#endif
        :: else
        fi
     fi
  od;
  atomic { ended++; if :: ended == N -> watch = 0 :: else fi }
}

#define SLEEPS(w) (asleep[w] && !blocked[w])
#define ALL_ASLEEP (asleep[0] && asleep[R - 1])
#define NONE_ASLEEP (!asleep[0] && !asleep[R - 1] && (up == 0 || !asleep[R]))
#define FREE ((blocked[0] -> 0 : 1) + ((R > 1 && !blocked[R - 1]) -> 1 : 0) + ((up > 0 && !blocked[R]) -> 1 : 0))

proctype monitor() {
  do
  :: ended == N -> break
  :: ended != N && !shutdown && NONE_ASLEEP && up < S ->       /* raise; one look after the other: all may have changed by now */
#ifdef WAKE_FIRST
     wake_spares();
     up++
#else
     up++;
     wake_spares()
#endif
  :: up > 0 && FREE > R -> up--                                /* lower */
  :: up == 0 && ALL_ASLEEP && ended != N ->
#ifdef WATCH_LATE
     if
     :: ALL_ASLEEP -> watch = UNTIL_WORK; watch != UNTIL_WORK
     :: else
     fi
#else
     watch = UNTIL_WORK;                                       /* MO1: watch, then asleep */
     if
     :: ALL_ASLEEP && ended != N -> watch != UNTIL_WORK
     :: else -> watch = 0
     fi
#endif
  od
}

init { atomic {
#ifdef NOT_COUNTED
  idle = 0 - EVENTS;
#else
  idle = S - EVENTS;
#endif
  i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0;
  run outside();
#ifndef NO_MONITOR
  run monitor()
#endif
} }
