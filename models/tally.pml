/* A tally: threads that nobody joins one by one, counted until they have ended. docs/protocols/tally.md
 *
 * What it is: join_records::count_part, detach_into, put_span, end_part, count_off, await_last; one step per access
 * to a shared word.
 * Members are threads whose parent has left: member 0 and 1 are spawned by the owner, member 2 by member 0. Each
 * has a record: `state` is swapped by the member that ends. Who spawned it detaches the record into the tally, at
 * any moment: while the member runs, or when it has ended. OUTSIDER: member 3 is spawned by a thread that is none,
 * which the owner does not wait for. The owner waits PHASES times, the last time when all have been spawned; then
 * it frees the tally. Every member fails: its record is in the tally's list, which the owner takes.
 * A record has one word for the number of a part and, with --godwit-span, for the longest chain of who ends.
 * Asserted: whoever comes out of wait finds all members ended that it spawned and that these spawned, and their
 * failures in the list, each with its number and its link; nobody touches a tally or a record that was freed. Invalid end state:
 * a wait without end.
 *
 * Mutants, must FAIL: COUNT_LATE (a part is counted after its record names the tally), NOT_TAKEN_BACK (one that has
 * ended before is not counted off), TWO_STEPS (read, then written), ABOVE_LATE (what is above is written after the
 * mark that somebody waits), KEEPS_WAITS (the last one leaves the mark), LOOK_AGAIN (the last one looks at the mark
 * after its subtraction), LIST_LATE (counted off before its failure is in the list), DETACH_WITHOUT_CAS, NUMBER_LATE
 * (a part has its number after its record names the tally), SPAN_OVER (who ends writes its span over the number, and
 * puts the number back if it was detached by then), LINK_NOT_AWAITED (the link to the failure before is under way to
 * another host while the list gets its new head).
 */
#ifndef PHASES
#define PHASES 2
#endif
#ifdef OUTSIDER
#define N 4
#else
#define N 3
#endif
#define NONE 0
#define DONE 1
#define DETACHED 2
#define PART 2
#define WAITS 1

byte state[N];
bit  begun[N], ended[N], spawned[N], listed[N], gone[N];
bit  linked[N];            /* the record names the one that failed before it */
byte word[N];              /* 0, or: */
#define NUMBER 1
#define SPAN 2
byte count;                /* of the tally */
bit  above, told, freed;   /* what is above is written; the owner is let go */

#define TOUCH assert(!freed)

#ifdef LINK_NOT_AWAITED
bit wire[N];
active proctype net() {
  byte i;
end:
  do
  :: i < N -> if :: wire[i] -> atomic { wire[i] = 0; linked[i] = 1 } :: freed fi; i++
  :: else -> break
  od
}
#endif

inline count_off() {
#ifdef TWO_STEPS
  atomic { TOUCH; now = count };
  atomic { TOUCH; count = (now == PART + WAITS -> 0 : now - PART) };
  if :: now == PART + WAITS -> atomic { assert(above); told = 1 } :: else fi;
#else
#ifdef LOOK_AGAIN
  atomic { TOUCH; count = count - PART };
  atomic { TOUCH; now = count; if :: now == WAITS -> count = 0 :: else fi };
  if :: now == WAITS -> atomic { assert(above); told = 1 } :: else fi;
#else
  atomic { TOUCH; now = count; assert(now >= PART);                            /* TY2 */
#ifdef KEEPS_WAITS
    count = now - PART
#else
    count = (now == PART + WAITS -> 0 : now - PART)
#endif
  };
  if :: now == PART + WAITS -> atomic { assert(above); told = 1 } :: else fi;
#endif
#endif
  now = 0
}

/* The record of member m, complete: into the list, then counted off. */
inline end_part(m) {
#ifdef LIST_LATE
  count_off();
#endif
#ifdef LINK_NOT_AWAITED
  wire[m] = 1;
#else
  linked[m] = 1;                                                               /* TY5 */
#endif
  atomic { TOUCH; assert(!gone[m] && !listed[m]); listed[m] = 1 };               /* TY3 */
#ifndef LIST_LATE
  count_off();
#endif
}

/* By who spawned it. */
inline detach_into(m) {
#ifndef COUNT_LATE
  atomic { TOUCH; count = count + PART };                                      /* TY1 */
#endif
#ifndef NUMBER_LATE
  word[m] = NUMBER;
#endif
#ifdef DETACH_WITHOUT_CAS
  atomic { was = state[m] };
  if :: was == NONE -> state[m] = DETACHED :: else fi;
#else
  atomic { was = state[m]; if :: was == NONE -> state[m] = DETACHED :: else fi };
#endif
#ifdef COUNT_LATE
  atomic { TOUCH; count = count + PART };
#endif
#ifdef NUMBER_LATE
  word[m] = NUMBER;
#endif
  if
  :: was == NONE
  :: else ->
#ifndef NOT_TAKEN_BACK
     end_part(m)
#else
     atomic { linked[m] = 1; listed[m] = 1 }
#endif
  fi;
  was = 0
}

/* A spawn whose continuation is stolen: the member runs, and its parent goes on elsewhere. */
inline spawn(m) { spawned[m] = 1; begun[m] = 1; detach_into(m) }

proctype member(byte me) {
  byte now, was, x;
  begun[me] == 1;
  if
  :: me == 0 && N > 2 -> spawn(2)
  :: else
  fi;
  ended[me] = 1;
#ifdef SPAN_OVER
  atomic { was = word[me]; word[me] = SPAN };
#else
  atomic { if :: word[me] != NUMBER -> word[me] = SPAN :: else fi };             /* TY4 */
#endif
  atomic { x = state[me]; state[me] = DONE };
#ifdef SPAN_OVER
  if :: x == DETACHED && was == NUMBER -> word[me] = NUMBER :: else fi;
  was = 0;
#endif
  if
  :: x == DETACHED -> end_part(me)
  :: else
  fi
}

#ifdef OUTSIDER
bit outsider_done;
proctype outsider() {
  byte now, was;
  spawn(3);
  outsider_done = 1
}
#endif

inline await() {
  atomic { TOUCH; was = count };
  if
  :: was == 0
  :: else ->
#ifndef ABOVE_LATE
     atomic { TOUCH; above = 1 };                                                /* TY2 */
#endif
     atomic {
       TOUCH;
       if
       :: count == 0 -> was = 0
       :: else -> assert(count % 2 == 0); count = count + WAITS
       fi
     };
#ifdef ABOVE_LATE
     atomic { TOUCH; above = 1 };
#endif
     if
     :: was == 0 -> above = 0
     :: else -> atomic { told -> told = 0; above = 0 }
     fi
  fi;
  was = 0
}

/* All that the owner has spawned has ended, and so has all that these have spawned. */
inline check(m) { assert(!spawned[m] || (ended[m] && (listed[m] || gone[m]))) }
inline take_failed() {
  d_step {
    TOUCH;
    i = 0;
    do
    :: i < N -> if :: listed[i] -> assert(word[i] == NUMBER && linked[i]); listed[i] = 0; gone[i] = 1 :: else fi; i++
    :: else -> break
    od;
    i = 0
  }
}

active proctype owner() {
  byte now, was, i, phase;
  atomic {
    i = 0;
    do :: i < N -> run member(i); i++ :: else -> break od;
    i = 0
  };
#ifdef OUTSIDER
  run outsider();
#endif
  spawn(0);
  do
  :: phase + 1 < PHASES ->
     phase++;
     await();
     d_step { check(0); check(2) };
     take_failed()
  :: else -> break
  od;
  spawn(1);
#ifdef OUTSIDER
  outsider_done == 1;
#endif
  await();
  d_step { check(0); check(1); check(2) };
#ifdef OUTSIDER
  check(3);
#endif
  take_failed();
  atomic { assert(count == 0); freed = 1 }
}
