/* Idleness: the count of idle workers, mail, the end of the run, the deadlock report, sleeping.
 *
 * What it is: docs/protocols/idle.md. Deques and ready queues are reduced to what they hold; taking from them is
 * atomic (deque.pml shows that it may be seen so), and an attempt may fail for no reason, like a lost try-lock.
 * The program: threads that spawn, yield and end; the root thread may also send mail to another worker and
 * wait for the reply, or wait for something that nobody will ever do (the real deadlock).
 * Wake-ups of one sleeper may be lost (publish, then look for sleepers, without a fence): wake_one may do nothing.
 *
 * Mutants, must FAIL: STATUS (letters are not counted, the sender sets the receiver's status to running instead; also
 * with PUT_FIRST, LOOK_AGAIN and ONE_STEP, attempts to repair that), TAKE_FIRST, IDLE_WITH_READY, MAIL_NOT_COUNTED;
 * with NO_TIMEOUT: NO_MAIL_WAKE, SHUTDOWN_WAKES_NONE. Must pass: the plain model, NO_TIMEOUT (the timeout is not
 * needed for the end to come), LIVE (with weak fairness, the end comes; there no attempt to take fails for ever).
 */
#ifndef N
#define N 3
#endif
#ifndef SPAWNS
#define SPAWNS 2
#endif
#ifndef MAILS
#define MAILS 1
#endif
#define NONE 0
#define PLAIN 1
#define ROOT 2

short idle = 0;              /* idle workers minus letters under way; N: nothing can ever happen again */
bit  status[N];              /* STATUS only. 1: idle */
byte dq[N];                  /* the queued parent: NONE, PLAIN, ROOT */
byte rqp[N]; bit rqr[N];     /* ready queue: plain threads, the root thread */
byte mail[N];                /* mailbox */
byte task[N];                /* what a worker runs or holds in its hands */
byte wake; bit asleep[N];
bit  root_done, shutdown, deadlock, stuck;
bit  waiting;                /* root waits for a reply to its letter */
byte spawns, mails;
hidden byte i;

inline wake_one() {
  atomic { wake = (wake + 1) % 8; i = 0;       /* then any one sleeper, or none */
     do :: i < N && asleep[i] -> asleep[i] = 0; break :: i < N -> i++ :: i == N -> break od; i = 0 }
}
inline wake_all() {
  atomic { wake = (wake + 1) % 8; i = 0; do :: i < N -> asleep[i] = 0; i++ :: else -> break od; i = 0 }
}

/* ID3: nobody has anything, or the report is false. */
inline decide() {
  atomic {
    i = 0;
    do
    :: i < N -> assert(task[i] == NONE && dq[i] == NONE && rqp[i] == 0 && !rqr[i] && mail[i] == 0); i++
    :: else -> break
    od; i = 0;
    assert(root_done || stuck);
    if :: root_done -> shutdown = 1 :: else -> deadlock = 1 fi
  };
#ifndef SHUTDOWN_WAKES_NONE
  wake_all();
#endif
}

inline become_running() {
  if
  :: is_idle ->
     is_idle = 0;
#ifdef STATUS
     atomic { if :: status[me] -> status[me] = 0; v = 1 :: else -> v = 0 fi };
     if :: v -> v = 0; idle-- :: else fi
#else
     idle--                               /* ID1: before touching any work */
#endif
  :: else
  fi
}

inline become_idle() {
  is_idle = 1;
#ifdef STATUS
  status[me] = 1;
#endif
  atomic { idle++; last = (idle == N) };  /* ID1, ID3 */
#ifdef LOOK_AGAIN
  if
  :: last ->
     v = 0;
     do
     :: v < N && last -> if :: mail[v] != 0 -> last = 0 :: else -> v++ fi
     :: else -> break
     od;
     v = 0;
     last = last && (idle == N)
  :: else
  fi;
#endif
  if
  :: last -> last = 0; decide()
  :: else
  fi
}

#ifdef LIVE
#define MAY_FAIL else                     /* no try-lock fails for ever */
#else
#define MAY_FAIL true
#endif
#define STEALABLE(w) (dq[w] != NONE || rqp[w] != 0 || rqr[w])
inline sees_work() {
  found = (mail[me] != 0);
#ifdef STATUS
  found = found || !status[me];
#endif
  v = 0;
  do :: v < N && !found -> found = STEALABLE(v); v++ :: else -> break od;
  v = 0
}

inline send_and_wait() {
  atomic { mails++; if :: to = (me + 1) % N :: to = (me + N - 1) % N fi; waiting = 1 };
#ifdef STATUS
#ifdef PUT_FIRST
  mail[to]++;
#endif
#ifdef ONE_STEP                            /* as if status and count were one word */
  atomic { if :: status[to] -> status[to] = 0; idle-- :: else fi };
#else
  atomic { if :: status[to] -> status[to] = 0; v = 1 :: else -> v = 0 fi };
  if :: v -> v = 0; idle-- :: else fi;
#endif
#ifndef PUT_FIRST
  mail[to]++;
#endif
#else
#ifndef MAIL_NOT_COUNTED
  idle--;                                 /* ID2: the letter counts before it can be seen */
#endif
  mail[to]++;
#endif
  atomic { to = 0 };
#ifndef NO_MAIL_WAKE
  wake_all();
#endif
  atomic { task[me] = dq[me]; dq[me] = NONE }
}

proctype worker(byte me) {
  byte v, to, seen, letters;
  bit is_idle, found, last;
  if :: me == 0 -> task[0] = ROOT :: else fi;
work:
  do                                      /* running a thread */
  :: task[me] == NONE -> break
  :: atomic { task[me] != NONE && dq[me] == NONE && spawns < SPAWNS -> dq[me] = task[me]; task[me] = PLAIN; spawns++ };
     wake_one()
  :: atomic { task[me] == PLAIN -> task[me] = dq[me]; dq[me] = NONE }           /* ends */
  :: atomic { task[me] == PLAIN && spawns < SPAWNS -> spawns++; rqp[me]++; task[me] = dq[me]; dq[me] = NONE };
     wake_one()                                                                   /* yields */
  :: atomic { task[me] == ROOT -> root_done = 1; task[me] = dq[me]; dq[me] = NONE }
  :: atomic { task[me] == ROOT -> stuck = 1; task[me] = dq[me]; dq[me] = NONE }
  :: task[me] == ROOT && mails < MAILS -> send_and_wait()
  od;

  do                                      /* the scheduler loop */
  :: true ->
     if :: shutdown || deadlock -> goto out :: else fi;
     if
     :: mail[me] != 0 ->
#if !defined(TAKE_FIRST)
        become_running();
#endif
        atomic { letters = mail[me]; mail[me] = 0; task[me] = PLAIN };           /* in hand: counts as work */
        do
        :: letters > 0 ->
           letters--;
           atomic { if :: waiting -> waiting = 0; rqr[me] = 1 :: else fi };
#if !defined(STATUS) && !defined(MAIL_NOT_COUNTED)
           atomic { idle++; assert(idle < N) }                                   /* ID2: its unit goes back */
#endif
        :: else -> break
        od;
        task[me] = NONE
     :: else
     fi;
     if
     :: rqp[me] != 0 || rqr[me] ->
#ifndef TAKE_FIRST
        become_running();
#endif
        atomic { if
          :: rqp[me] != 0 -> rqp[me]--; task[me] = PLAIN; found = 1
          :: rqr[me] -> rqr[me] = 0; task[me] = ROOT; found = 1
          :: MAY_FAIL -> found = 0        /* empty by now, or a thief has the lock */
          fi };
        if
        :: found -> become_running(); found = 0; goto work
        :: else
        fi
     :: else
     fi;
     found = 1;
     if :: is_idle -> sees_work() :: else fi;
     if
     :: found ->
        found = 0;
        become_running();
        v = 0;
        do
        :: v < N ->
           atomic { if
             :: dq[v] != NONE && v != me -> task[me] = dq[v]; dq[v] = NONE
             :: rqp[v] != 0 && v != me -> rqp[v]--; task[me] = PLAIN
             :: rqr[v] && v != me -> rqr[v] = 0; task[me] = ROOT
             :: MAY_FAIL
             fi };
           if :: task[me] != NONE -> v = 0; goto work :: else -> v++ fi
        :: else -> break
        od;
        v = 0
     :: else
     fi;
     if
     :: !is_idle ->
        if
#ifdef IDLE_WITH_READY
        :: true -> become_idle()
#else
        :: rqp[me] == 0 && !rqr[me] && mail[me] == 0 -> become_idle()
        :: rqp[me] != 0 || rqr[me] || mail[me] != 0
#endif
        fi
     :: else ->
        seen = wake;
        sees_work();
        if
        :: !found && !shutdown && !deadlock ->
           atomic { if :: wake == seen -> asleep[me] = 1 :: else fi };
           if
           :: !asleep[me]
#ifndef NO_TIMEOUT
           :: asleep[me] -> asleep[me] = 0
#endif
           fi
        :: else
        fi;
        atomic { seen = 0; found = 0 }
     fi
  od;
out:
  assert(shutdown || deadlock)
}

init { atomic { i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0 } }

#ifdef LIVE
ltl ends { <> (shutdown || deadlock) }
#endif
