/* From thread to thread: the own ready queue with ready_queue::rotate, and thieves. docs/protocols/park.md
 *
 * What it is: push, pop and rotate of ready_queue.hpp, which thieves take from too, hand_over and next_thread
 * (continuation_turns.hpp). Every worker has a queue, linked through the images of the threads in it: head, tail, count, a lock.
 * Only its owner appends; all take the first. Threads yield or end; they never wait for anything, so all must end.
 * Threads 2 ... T have been created by the first one. Who joins one of them takes it out of the middle of that queue if it has
 * not begun (`out` says so), and runs it (PK4); else the join is over here.
 * `saved` is 1 as long as the thread does not run and its image says how to go on: the image lies in the thread's frames.
 * Sequentially consistent: the lock is taken with acquire and opened with release.
 *
 * Asserted: who resumes a thread finds it saved and nobody else runs it; nobody touches an image that is not his (in a queue under its
 * lock, or taken out by him); a queue whose count is not 0 has a first one; in the end all threads have ended. Must pass: the plain model.
 * Mutants, must FAIL: OPEN_FIRST (the queue is open before the thread is saved), SAVED_LATE (the worker writes into the image when the
 * queue is open), NO_LOCK, THIEF_NO_LOCK, TWO_LOCKS (append, open, take: and go on with the own thread if there is none), COUNT_FIRST
 * (the queue is not looked at again under the lock), COUNT_MORE, TAIL_KEPT, HEAD_AFTER_UNLOCK (where the first one leads to is read too
 * late), TAKE_NO_LOCK, TAKE_BLIND (`out` is not looked at), OUT_LATE (written when the lock is open), MIDDLE_KEEPS_TAIL.
 */
#ifndef N
#define N 2
#endif
#ifndef T
#define T 3
#endif
#ifndef YIELDS
#define YIELDS 2
#endif
#define NONE 0               /* threads: 1 ... T */
#define GARBAGE 15

byte head[N], tail[N], count[N];
bit  locked[N];
byte next[T + 1];            /* of the image */
byte prev[T + 1];            /* likewise; of the first: whatever it was */
bit  out[T + 1];             /* of the place in the queue that it had before it began: not there any more */
bit  saved[T + 1];
byte runs[T + 1];            /* workers that run it */
byte yields[T + 1];
byte ended;
bit  created, joined;        /* all are in their queue; one has been joined */
byte in[T + 1];              /* the queue that it is in, + 1; 0: taken, or running */

#define IMAGE(i) assert((i) != NONE && (i) != GARBAGE && saved[i])
inline take_lock(lq) { atomic { !locked[lq] -> locked[lq] = 1 } }

inline resume(st) {           /* the image is gone: its frames are in use */
  d_step {
    IMAGE(st); assert(runs[st] == 0 && in[st] == 0);
    runs[st]++; saved[st] = 0; next[st] = GARBAGE; mine = st
  }
}
/* Steps that matter when somebody else is inside as well. */
inline append(aq, at) {
  next[at] = NONE;
  IMAGE(tail[aq]);
  next[tail[aq]] = at;
  prev[at] = tail[aq];
#ifndef TAIL_KEPT
  tail[aq] = at;
#endif
  in[at] = aq + 1
}
inline take_first(fq) {
  r = head[fq];
  IMAGE(r);
#ifdef HEAD_AFTER_UNLOCK
  locked[fq] = 0;
#endif
  atomic {
    head[fq] = next[r]; assert(in[r] == fq + 1); in[r] = 0;
#ifndef OUT_LATE
    out[r] = 1
#endif
  }
}
/* From behind another one. */
inline take_behind(bq, bt) {
  IMAGE(prev[bt]);
  if
  :: tail[bq] == bt ->
#ifndef MIDDLE_KEEPS_TAIL
     tail[bq] = prev[bt];
#endif
     next[prev[bt]] = NONE
  :: else ->
     IMAGE(next[bt]);
     prev[next[bt]] = prev[bt];
     next[prev[bt]] = next[bt]
  fi;
  atomic { r = bt; assert(in[bt] == bq + 1); in[bt] = 0; out[bt] = 1 }
}

inline push_ready(pq, pt) {
  take_lock(pq);
  if
  :: count[pq] == 0 -> d_step { next[pt] = NONE; prev[pt] = NONE; head[pq] = pt; tail[pq] = pt; in[pt] = pq + 1 }
  :: else -> append(pq, pt)
  fi;
  count[pq]++;
  locked[pq] = 0
}
/* The first of a queue whose lock is free; else nothing. */
inline pop(oq) {
  r = NONE;
  if
  :: atomic { !locked[oq] -> 
#ifdef THIEF_NO_LOCK
       if :: oq == me -> locked[oq] = 1 :: else fi
#else
       locked[oq] = 1
#endif
     };
     if
     :: count[oq] != 0 -> take_first(oq); count[oq]--
     :: else
     fi;
     locked[oq] = 0;
#ifdef OUT_LATE
     if :: r != NONE -> out[r] = 1 :: else fi
#endif
  :: locked[oq]
  fi
}
/* PK4: by who joins jt, which the worker of queue 0 has created. */
inline take(jt) {
  r = NONE;
  if
#ifdef TAKE_NO_LOCK
  :: true ->
#else
  :: atomic { !locked[0] -> locked[0] = 1 };
#endif
     if
#ifdef TAKE_BLIND
     :: true ->
#else
     :: !out[jt] ->
#endif
        if :: head[0] == jt -> take_first(0) :: else -> take_behind(0, jt) fi;
        count[0]--
     :: out[jt]
     fi;
#ifndef TAKE_NO_LOCK
     locked[0] = 0
#endif
  :: locked[0]
  fi
}
#ifdef NO_LOCK
#define OPEN skip
#else
#define OPEN locked[me] = 0
#endif
/* Append the own one and take the first. r == NONE: nobody was there. Else the queue stays locked. */
inline rotate(rt) {
  r = NONE;
#ifdef COUNT_FIRST
  seen = (count[me] != 0);
#endif
#ifndef NO_LOCK
  take_lock(me);
#endif
#ifndef COUNT_FIRST
  seen = (count[me] != 0);
#endif
  if
  :: seen ->
     append(me, rt);
#ifdef COUNT_MORE
     count[me]++;
#endif
#ifdef TWO_LOCKS
     count[me]++;
     locked[me] = 0;
     take_lock(me);
     if :: count[me] != 0 -> take_first(me); count[me]-- :: else fi;
#else
     take_first(me);
#endif
     seen = 0
  :: else
  fi;
  if
  :: r == NONE -> OPEN
  :: else
  fi
}

proctype worker(byte me) {
  byte mine, r, q;
  bit seen;
  if
  :: me == 0 ->              /* it has all threads, the first one runs */
     mine = 1; runs[1] = 1;
     q = 2;
     do
     :: q <= T -> saved[q] = 1; push_ready(0, q); q++
     :: else -> break
     od;
     q = 0; created = 1
  :: else
  fi;
  do
  :: mine != NONE && yields[mine] < YIELDS ->
     yields[mine]++;
     rotate(mine);
     if
     :: r != NONE ->
#ifdef OPEN_FIRST
        OPEN;
#endif
        d_step { saved[mine] = 1; runs[mine] = 0 }; /* its stack is left */
#ifndef OPEN_FIRST
        OPEN;
#endif
#ifdef SAVED_LATE
        IMAGE(mine);
#endif
        mine = NONE; resume(r)
     :: else                                        /* nobody has seen it: it goes on */
     fi;
     r = NONE
  :: mine != NONE && yields[mine] < YIELDS ->       /* by way of the loop */
     yields[mine]++;
     d_step { saved[mine] = 1; runs[mine] = 0 };
     r = mine; mine = NONE;
     push_ready(me, r);
     r = NONE
  :: mine != NONE && created && !joined ->          /* one of those, once: states are few */
     joined = 1;
     q = 2;
     do
     :: q < T -> q++
     :: break
     od;
     if
     :: q == mine
     :: else ->
        take(q);
        if
        :: r != NONE ->
           d_step { IMAGE(r); assert(runs[r] == 0 && in[r] == 0); runs[r]++; saved[r] = 0; next[r] = GARBAGE };
           d_step { runs[r]--; assert(runs[r] == 0); ended++ }
        :: else
        fi
     fi;
     r = NONE; q = 0
  :: mine != NONE -> d_step { runs[mine]--; assert(runs[mine] == 0); mine = NONE; ended++ }
  :: mine == NONE && count[me] != 0 ->
     pop(me);
     if :: r != NONE -> resume(r) :: else fi;
     r = NONE
  :: mine == NONE && count[(me + 1) % N] != 0 ->
     q = (me + 1) % N;
     pop(q);
     if :: r != NONE -> resume(r) :: else fi;
     r = NONE; q = 0
  :: mine == NONE && ended == T -> break
  od
}

/* Nobody can make a thread ready any more, and one has not ended: lost. */
init {
  byte i;
  atomic { i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0 }
}
