/* Wait lists, the mutex, time limits, the condition variable. docs/protocols/park.md (WL1 ... WL6), mutex.md (MX1, MX2)
 *
 * What it is: wait_list.cpp, mutex.cpp, mutex.hpp, condition_variable.hpp. A thread that is suspended blocks until `go`;
 * what parking itself takes is in park.pml. The list is written only by who holds its lock, so each change is one step here,
 * and an assertion where a mutant does without. What lies in a frame (node, timer) may be touched while `frame` says so.
 *
 * Plain: THREADS threads take and leave a mutex, ROUNDS times each; the last TIMED of them with a time limit. Who sees, while it holds the
 * mutex, that all others are through with it destroys it after its unlock (MX2). Asserted: one holder at a time; nobody touches
 * the mutex when it is gone, a node when its frame is gone, or wakes a thread that is not suspended; all come to their end.
 * COND: two threads wait for a token at a condition variable, one of them with a time limit; a third one brings a token for each
 * (NOTIFY_ALL: both at once), and then destroys the condition variable. ALONE: the one with the time limit, and no token. The mutex
 * there is a plain lock, and threads that wait for it are not shown. Asserted as above; and as many threads find
 * themselves notified as a notify took out of the list.
 *
 * Must pass: all of them. Mutants, must FAIL: OPEN_FIRST (WL1), NEXT_AFTER_UNPARK (WL3), EXPIRE_ANYWAY, EXPIRED_OVER_NOTIFIED,
 * EXPIRED_STAYS, TIMER_NOT_STOPPED, TIMER_IN_LIST_LOCK (WL5); of the mutex: FAST_WITH_LOCK, UNLOCK_FAST_WITH_LOCK (MX1), UNLOCK_IN_TWO,
 * TOUCHED_LATER (MX2), NOT_MARKED, MARK_LOST, HANDED_OPEN, HANDED_NOT_SEEN; with COND: NO_STATE_LOOK (WL2), CHAIN_ALL (WL3),
 * LIST_AFTER_UNLOCK, NO_USERS, USERS_BEFORE_TIMER (WL6); with COND and ALONE: EARLY_NOT_SEEN (WL5).
 */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef TIMED
#define TIMED 1
#endif
#ifndef VAIN
#define VAIN 1               /* hands over after so many wake-ups in vain (the code: 4) */
#endif
#ifdef COND
#undef THREADS
#define THREADS 2            /* those that wait */
#endif
#define NONE 0               /* threads: 1 ... THREADS */
#define IDLE 0               /* state of a node */
#define LISTED 1
#define NOTIFIED 2
#define EXPIRED 3
#define HANDED 9             /* mark of a node */
#define RUNS 1               /* of a timer */
#define EXPIRES 2
#define DONE 3

/* The word. */
bit  lock, locked, waiters;
byte users;                  /* COND: threads in wait, which the destructor waits for (WL6) */
byte holder;                 /* of the list's lock, for the assertions; THREADS + 1 ...: others */
bit  gone;                   /* the object is destroyed */

byte list[THREADS + 1], length;
byte state[THREADS + 1], mark[THREADS + 1], chain[THREADS + 1];
bit  who[THREADS + 1];
bit  frame[THREADS + 1];
bit  suspended[THREADS + 1], go[THREADS + 1];
byte timer[THREADS + 1];
byte inside;                 /* threads that hold the mutex */
byte through;                /* threads that will not touch the mutex again, and who holds it in its last round */
byte taken_out, notified;    /* COND */
byte tokens;

#define OBJECT assert(!gone)
#define NODE(i) assert(frame[i])
#define HELD assert(holder == me && lock)

inline open_list() { atomic { OBJECT; HELD; holder = 0; lock = 0 } }
inline lock_list() { atomic { !lock || gone -> OBJECT; lock = 1; holder = me } }

inline push(pn, in_front) {
  d_step {
    OBJECT; HELD; NODE(pn);
    state[pn] = LISTED; who[pn] = 0;
    if
    :: in_front -> k = length; do :: k > 0 -> list[k] = list[k - 1]; k-- :: else -> break od; list[0] = pn
    :: else -> list[length] = pn
    fi;
    length++; k = 0
  }
}
inline remove(rn) {
  d_step {
    OBJECT; HELD;
    k = 0;
    do :: list[k] != rn -> assert(k < length); k++ :: else -> break od;
    length--;
    do :: k < length -> list[k] = list[k + 1]; k++ :: else -> break od;
    list[length] = NONE; k = 0
  }
}
/* The first one into the caller's chain, if there is one. */
inline pop() {
  if
  :: length != 0 ->
     n = list[0];
     remove(n);
     d_step {
       NODE(n); state[n] = NOTIFIED; taken_out++;
#ifndef CHAIN_ALL
       if
       :: who[n] ->
#else
       if
       :: true ->
#endif
          chain[n] = NONE;
          if :: first == NONE -> first = n :: else -> chain[last] = n fi;
          last = n
       :: else                            /* WL2: it will see the state before it suspends */
       fi;
       n = NONE
     }
  :: else
  fi
}
inline unpark(un) { d_step { assert(suspended[un] && !go[un]); go[un] = 1 } }
inline wake_chain() {
  do
  :: first != NONE ->
     atomic { n = first; NODE(n) };
#ifdef NEXT_AFTER_UNPARK
     unpark(n);
     atomic { NODE(n); first = chain[n] };
#else
     first = chain[n];
     unpark(n);
#endif
     n = NONE
  :: else -> break
  od;
  last = NONE
}

inline suspend() {
  go[me] -> d_step { go[me] = 0; suspended[me] = 0 }
}
/* Enlist and suspend; the list's lock is held since before, and open afterwards. */
inline wait_held(in_front) {
  push(me, in_front);
#ifdef OPEN_FIRST
  open_list();
  d_step { who[me] = 1; suspended[me] = 1 };
#else
  suspended[me] = 1;                      /* saved */
  who[me] = 1;
  open_list();                            /* WL1 */
#endif
  suspend()
}
inline wait_listed() {
#ifdef NO_STATE_LOOK
  suspended[me] = 1;
  lock_list();
  who[me] = 1;
  open_list();
  suspend();
#else
  lock_list();
  if
  :: state[me] == LISTED -> suspended[me] = 1; who[me] = 1; open_list(); suspend()   /* WL2 */
  :: else -> open_list()
  fi
#endif
}

inline start_timer() { d_step { frame[me] = 1; state[me] = IDLE; who[me] = 0; mark[me] = 0; timer[me] = RUNS } }
inline stop_timer() {
#ifdef TIMER_NOT_STOPPED
  d_step { if :: timer[me] == RUNS -> timer[me] = 0 :: else fi };
#else
  if
  :: atomic { timer[me] == RUNS -> timer[me] = 0 }
  :: timer[me] == DONE
  fi;
#endif
  d_step { frame[me] = 0; state[me] = IDLE; who[me] = 0; mark[me] = 0 }
}

/* A worker that delivers: the timer of any thread may expire as soon as it runs. */
proctype clock(byte f) {
  byte k, me = f + THREADS;
  bit wakes;
  do
  :: atomic { timer[f] == RUNS -> timer[f] = EXPIRES };
     NODE(f);
     lock_list();
     NODE(f);
#ifdef EXPIRE_ANYWAY
     if
     :: state[f] == LISTED -> remove(f)
     :: else
     fi;
     wakes = who[f];
#else
     if
     :: state[f] == LISTED ->            /* WL5: else somebody else woke it, or it waits no more */
#ifndef EXPIRED_STAYS
        remove(f);
#endif
        wakes = who[f]
     :: else
     fi;
#endif
#ifdef EXPIRED_OVER_NOTIFIED
     state[f] = EXPIRED;
#else
     if :: state[f] != NOTIFIED -> state[f] = EXPIRED :: else fi;
#endif
     open_list();
     if :: wakes -> unpark(f); wakes = 0 :: else fi;
     d_step { NODE(f); timer[f] = DONE }
  :: timer[f] == 7 -> break
  od
}

#ifndef COND

/* MX1: while nobody has the list. Sets `mine`. */
#ifdef FAST_WITH_LOCK
#define FREE (!locked)
#else
#define FREE (!locked && !lock)
#endif
inline take_if_free() { d_step { OBJECT; if :: FREE -> locked = 1; mine = 1 :: else fi } }
/* The list's lock is held. Sets `mine` and opens it, or marks. A load and a store: nobody else may change the word. */
inline take_or_mark() {
  OBJECT;
  if
  :: !locked -> atomic { OBJECT; HELD; locked = 1; waiters = (length != 0); holder = 0; lock = 0; mine = 1 }
  :: else ->
#ifndef NOT_MARKED
     atomic { OBJECT; waiters = 1; locked = 1 }
#else
     skip
#endif
  fi
}
inline lock_mutex(timed) {
  mine = 0; tries = 0;
  take_if_free();
  do
  :: mine -> break
  :: else ->
     if :: timed -> start_timer() :: else -> d_step { frame[me] = 1; state[me] = IDLE; who[me] = 0; mark[me] = 0 } fi;
     lock_list();
     take_or_mark();
     if
     :: mine
     :: else ->
        if
        :: timed && state[me] == EXPIRED -> open_list(); late = 1
        :: else ->
           mark[me] = (tries >= VAIN -> VAIN : tries);
           wait_held(tries != 0);
           late = (state[me] != NOTIFIED);
#ifndef HANDED_NOT_SEEN
           mine = (mark[me] == HANDED)
#endif
        fi
     fi;
     if
     :: timed ->
#ifdef TIMER_IN_LIST_LOCK
        lock_list(); stop_timer(); open_list()
#else
        stop_timer()
#endif
     :: else -> frame[me] = 0
     fi;
     if :: late -> late = 0; break :: else fi;
     tries = (tries > VAIN -> tries : tries + 1)
  od;
  tries = 0
}
inline unlock_mutex() {
  if
#ifdef UNLOCK_FAST_WITH_LOCK
  :: atomic { locked && !waiters -> OBJECT; locked = 0 }
  :: !locked || waiters ->
#else
  :: atomic { (locked && !waiters && !lock) || gone -> OBJECT; locked = 0 }
  :: !locked || waiters || lock ->
#endif
     lock_list();
     hand = (length != 0 && mark[list[0]] >= VAIN);
     if :: hand -> NODE(list[0]); mark[list[0]] = HANDED :: else fi;
     pop();
#ifdef UNLOCK_IN_TWO
     atomic { OBJECT; HELD; waiters = (length != 0); holder = 0; lock = 0 };
     atomic { OBJECT; locked = hand };
#else
#ifdef HANDED_OPEN
     hand = 0;
#endif
     atomic {                             /* MX2: the last access */
       OBJECT; HELD; locked = hand;
#ifdef MARK_LOST
       waiters = 0;
#else
       waiters = (length != 0);
#endif
       holder = 0; lock = 0
     };
#endif
#ifdef TOUCHED_LATER
     OBJECT;
#endif
     hand = 0;
     wake_chain()
  fi
}

proctype thread(byte me) {
  byte k, n, first, last, tries, round;
  bit mine, late, hand, ends;
  do
  :: round < ROUNDS ->
     round++;
     if
     :: me > THREADS - TIMED -> lock_mutex(1)
     :: else -> lock_mutex(0)
     fi;
     if
     :: mine ->
        atomic {
          assert(inside == 0); inside++;
          if :: round == ROUNDS -> through++; ends = (through == THREADS) :: else fi
        };
        inside--;
        unlock_mutex();
        if :: ends -> assert(!gone); gone = 1 :: else fi
     :: else -> atomic { if :: round == ROUNDS -> through++; ends = 0 :: else fi }   /* it was late; does not touch it again */
     fi;
     mine = 0
  :: else -> break
  od;
  atomic { timer[me] = 7 }
}

init {
  byte i;
  atomic {
    i = 1;
    do
    :: i <= THREADS -> run thread(i); if :: i > THREADS - TIMED -> run clock(i) :: else fi; i++
    :: else -> break
    od
  }
}

#else  /* COND */

bit mutex;
inline lock_user() { atomic { !mutex -> mutex = 1 } }
inline enlist() {
  lock_list();
  if
#ifndef EARLY_NOT_SEEN
  :: timed && state[me] == EXPIRED -> waits = 0
#endif
  :: else -> push(me, 0); waits = 1
  fi;
  atomic { OBJECT; HELD; users++; holder = 0; lock = 0 }
}

/* Waits for a token. */
proctype thread(byte me) {
  byte k;
  bit timed, waits, woken;
  timed = (me == THREADS);
  lock_user();
  do
  :: tokens != 0 -> break
  :: else ->
     if :: timed -> start_timer() :: else -> d_step { frame[me] = 1; state[me] = IDLE; who[me] = 0 } fi;
#ifdef LIST_AFTER_UNLOCK
     mutex = 0;
     enlist();
#else
     enlist();
     mutex = 0;
#endif
     woken = 0;
     if :: waits -> wait_listed(); woken = (state[me] == NOTIFIED) :: else fi;
     if :: woken -> notified++ :: else fi;
#ifdef USERS_BEFORE_TIMER
     atomic { OBJECT; users-- };
#endif
     if :: timed -> stop_timer() :: else -> frame[me] = 0 fi;
#ifndef USERS_BEFORE_TIMER
     atomic { OBJECT; users-- };          /* WL6: the last access */
#endif
     lock_user();
     if :: timed && !woken -> break :: else fi
  od;
  if :: tokens != 0 -> tokens-- :: else -> assert(timed) fi;
  mutex = 0;
  timer[me] = 7
}

inline notify(all) {
  if
  :: length != 0 ->                       /* seems_empty */
     lock_list();
     do
     :: length != 0 -> pop(); if :: all :: else -> break fi
     :: else -> break
     od;
     open_list();
     wake_chain()
  :: else -> OBJECT
  fi
}

proctype bringer(byte me) {
  byte k, n, first, last;
#ifdef NOTIFY_ALL
  lock_user();
  tokens = 2;
  mutex = 0;
  notify(1);
#else
  lock_user(); tokens++; mutex = 0;
  notify(0);
  lock_user(); tokens++; mutex = 0;
  notify(0);
#endif
  /* The destructor may be called once all have been notified: with a token for each, nobody begins to wait any more. */
  length == 0;
#ifndef NO_USERS
  users == 0;
#endif
  gone = 1;
  timer[1] == 7 && timer[2] == 7;
  assert(notified == taken_out)
}

#ifdef ALONE
init { atomic { run thread(2); run clock(2) } }
#else
init { atomic { run thread(1); run thread(2); run clock(2); run bringer(7) } }
#endif
#endif
