/* One suspended thread that several want to wake: publishing, the count, places in its frame. docs/protocols/park.md (PK1 ... PK3), events.md (SU1, TM2)
 *
 * What it is: continuation.cpp (suspend: the counts, publish, cancel), worker.cpp (unpark), suspension.hpp, timers.cpp (expire, stop_timer),
 * descriptors.cpp (happened, leave), the drop-in for pthreads (an OS thread that disturbs: io.cpp, foreign.cpp). Who watches for events, and
 * sleeps, is in events.pml: here an event finds a worker that delivers it.
 *
 * The program: one thread, the root, waits ROUNDS times for something outside, then ends; it runs on whichever worker takes it. Each time a
 * descriptor, or a timer, or both and an OS thread know of it: any of these may end the wait, before it begins or several at once.
 * Its worker's scheduler goes on as soon as it is published.
 * Asserted: who resumes it finds it saved, and alone; its frame is not touched when it is gone; who decides finds it ended.
 * A wake-up that is lost is an invalid end state. Must pass: the plain model. Mutants, must FAIL: PUBLISH_FIRST, TOUCHED_LATER (PK1),
 * PUBLISH_BLIND, END_IN_TWO, END_UNSEEN (PK2), NOT_COUNTED, COUNT_LATE, UNPARK_WHILE_IDLE, FOREIGN_PUSH (PK3), CANCEL_COUNTED, TIMER_NOT_AWAITED,
 * DONE_FIRST (TM2), LEAVE_UNLOCKED, NOT_LEFT, TOUCHED_AFTER.
 */
#ifndef N
#define N 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define NOBODY 9
#define PREPARING 0          /* the suspension's word */
#define SELF 1
#define ENDED 2
#define RUNS 1               /* the timer */
#define EXPIRES 2
#define DONE 3

short idle;                  /* idle workers minus threads that wait for something outside */
bit  is_idle[N];
byte on = 0;                 /* the worker that runs the thread; NOBODY */
byte deciding;               /* the worker that has just published + 1 */
bit  saved, frame, ready;
byte word, rounds;
bit  root_done, over;
bit  lock, listed;           /* of a descriptor */
byte timer;
bit  io_lock, known;         /* of the OS thread that disturbs */
bit  stack;                  /* it has put the thread there; a worker is to unpark it */

#define FRAME assert(frame)

/* The exchange. Sets `got` if there is a thread to unpark. */
inline end_wait() {
#ifdef END_IN_TWO
  atomic { FRAME; got = (word == SELF) };
  atomic { FRAME; word = ENDED }
#else
#ifdef END_UNSEEN
  atomic { FRAME; got = (word == SELF); if :: got -> word = ENDED :: else fi }   /* nothing is left behind for publish */
#else
  atomic { FRAME; got = (word == SELF); word = ENDED }                           /* PK2 */
#endif
#endif
}
/* By a running worker. */
inline unpark() {
  atomic { assert(!ready && on == NOBODY); ready = 1 };
#ifndef NOT_COUNTED
  idle++                                  /* PK3: after it is ready */
#endif
}

proctype thread() {
  byte w;
  do
  :: rounds < ROUNDS ->
     rounds++;
     atomic { word = PREPARING; frame = 1 };
     if                                   /* who knows of it */
     :: atomic { !lock -> listed = 1 }
     :: timer = RUNS
     :: atomic { !lock -> listed = 1 };
        timer = RUNS;
        atomic { !io_lock -> known = 1 }
     fi;
     if
     :: word == ENDED
     :: else ->
        /* On the scheduler stack of its worker from here on. */
#ifndef PUBLISH_FIRST
        saved = 1;
#endif
#if !defined(NOT_COUNTED) && !defined(COUNT_LATE)
        idle--;                           /* PK3: before it is published */
#endif
        /* Publish. From here on its worker goes on by itself. */
        if
#ifdef PUBLISH_BLIND
        :: atomic { true -> word = SELF; w = on; on = NOBODY; deciding = w + 1 };
#else
        :: atomic { word == PREPARING -> word = SELF; w = on; on = NOBODY; deciding = w + 1 };
#endif
           on != NOBODY -> w = 0
#ifndef PUBLISH_BLIND
        :: word == ENDED ->
           saved = 0;
#if !defined(NOT_COUNTED) && !defined(CANCEL_COUNTED) && !defined(COUNT_LATE)
           idle++
#else
           skip
#endif
#endif
        fi
     fi;
     /* Runs. Out of all places, then the frame may go. */
     assert(word == ENDED);
     atomic { !io_lock -> known = 0 };
     if
     :: timer == 0
     :: atomic { timer == RUNS -> timer = 0 }
     :: timer == DONE -> timer = 0
#ifdef TIMER_NOT_AWAITED
     :: timer == EXPIRES
#endif
     fi;
#ifndef NOT_LEFT
#ifdef LEAVE_UNLOCKED
     listed = 0;
#else
     atomic { !lock -> listed = 0 };
#endif
#endif
     frame = 0
  :: else -> break
  od;
  atomic { root_done = 1; on = NOBODY }
}

/* A worker without a thread. What it delivers is chosen freely. */
proctype worker(byte me) {
  bit got;
  do
  :: over -> break
  :: deciding == me + 1 ->                /* it has just published */
#ifdef PUBLISH_FIRST
     saved = 1;
#endif
#ifdef TOUCHED_LATER
     FRAME; assert(saved);
#endif
#ifdef COUNT_LATE
     idle--;
#endif
     deciding = 0
  :: on != me && deciding != me + 1 && !over ->
     if
     :: over -> break
     /* Take it. */
     :: ready && is_idle[me] -> atomic { is_idle[me] = 0; idle-- }
     :: atomic { ready && !is_idle[me] -> ready = 0; assert(saved && on == NOBODY); saved = 0; on = me }
     /* Collected: run, and deliver. */
     :: !ready && is_idle[me] && (listed || timer == RUNS || stack) -> 
#ifndef UNPARK_WHILE_IDLE
        atomic { is_idle[me] = 0; idle-- }
#else
        goto deliver
#endif
     :: !is_idle[me] && (listed || timer == RUNS || stack) ->
deliver:
        if
        :: atomic { listed && !lock -> lock = 1 };
           if
           :: listed -> listed = 0; end_wait()
           :: else
           fi;
           lock = 0;
           if :: got -> got = 0; unpark() :: else fi;
#ifdef TOUCHED_AFTER
           FRAME
#endif
        :: atomic { timer == RUNS -> timer = EXPIRES };
#ifdef DONE_FIRST
           timer = DONE;
#endif
           end_wait();
           if :: got -> got = 0; unpark() :: else fi;
#ifndef DONE_FIRST
           atomic { FRAME; timer = DONE } /* TM2 */
#endif
        :: atomic { stack -> stack = 0 };
           unpark()
        :: else
        fi
     /* Nothing to do. */
     :: !is_idle[me] && !ready ->
        is_idle[me] = 1;
        atomic {
          idle++;
          if
          :: idle == N ->
             assert(root_done && !ready && on == NOBODY && deciding == 0);
             over = 1
          :: else
          fi
        }
     fi
  od
}

/* An OS thread that may disturb it, as often as it waits. */
proctype disturber() {
  bit got;
  do
  :: atomic { known && !io_lock -> io_lock = 1 };
     if :: known -> end_wait() :: else fi;
     io_lock = 0;
     if
     :: got ->
        got = 0;
#ifdef FOREIGN_PUSH
        unpark()
#else
        stack = 1
#endif
     :: else
     fi
  :: over -> break
  od
}

init { byte i; atomic { run thread(); i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; run disturber() } }
