/* A call on every worker, handed on along a tree. docs/protocols/each_worker.md
 *
 * What it is: sched::call_on_each_worker. Worker 0 begins; a letter is a call with a part of the workers. Who
 * gets one makes a tally of its parts and its own call (EW1), hands on, calls, and counts off; the last one of a
 * tally frees it and counts off from what is above it (EW2). Above worker 0's is the record that it waits for.
 * FAN: children of a worker, in numbers; WORKERS: how many. A tally is the worker's number; letters arrive in any
 * order. Asserted: the record is complete after all calls, once; each tally is freed once and touched by nobody
 * afterwards. Invalid end states: a record that nobody completes.
 * Must pass: the plain model. Mutants, must FAIL: COUNT_AS_SENT (a part is added when its letter is sent), NOT_OWN
 * (the own call is no part), TWO_STEPS (the count is read, then written), READ_AFTER (what is above is read after
 * the count, by who is not the last, too), CALL_LAST (counted off before the call), NO_UP (the last one stops).
 */
#ifndef WORKERS
#define WORKERS 5
#endif
#ifndef FAN
#define FAN 2
#endif
#define RECORD WORKERS

byte left[WORKERS];
bit  live[WORKERS], letter[WORKERS];
byte calls;
bit  done;

inline count(t) {
  assert(live[t]);
#ifdef TWO_STEPS
  n = left[t];
  left[t] = n - 1;
  n = n - 1;
#else
  atomic { left[t] = left[t] - 1; n = left[t] };
#endif
#ifdef READ_AFTER
  assert(live[t]);
#endif
}

proctype worker(byte me) {
  byte i, n, t, parts;
  letter[me] -> letter[me] = 0;
  i = 1;
  do :: i <= FAN && me * FAN + i < WORKERS -> parts++; i++ :: else -> break od;
  t = (me == 0 -> RECORD : (me - 1) / FAN);
  if
  :: parts == 0                          /* without a tally: from what is above */
  :: else ->
     live[me] = 1;
#ifdef COUNT_AS_SENT
     left[me] = 1;
#else
#ifdef NOT_OWN
     left[me] = parts;
#else
     left[me] = parts + 1;
#endif
#endif
     i = 1;
     do
     :: i <= parts ->
        letter[me * FAN + i] = 1;
#ifdef COUNT_AS_SENT
        atomic { left[me] = left[me] + 1 };
#endif
        i++
     :: else -> break
     od;
     t = me
  fi;
#ifndef CALL_LAST
  atomic { calls++ };
#endif
  do
  :: t == RECORD -> atomic { assert(!done && calls == WORKERS); done = 1 }; break
  :: else ->
     count(t);
     if
     :: n != 0 -> break
     :: else ->
        live[t] = 0;
#ifdef NO_UP
        if :: t != me -> break :: else fi;
#endif
        if :: t == 0 -> t = RECORD :: else -> t = (t - 1) / FAN fi
     fi
  od;
#ifdef CALL_LAST
  atomic { calls++ }
#else
  skip
#endif
}

active proctype begin() {
  byte i;
  atomic { do :: i < WORKERS -> run worker(i); i++ :: else -> break od };
  letter[0] = 1;
  done
}
