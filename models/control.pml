/* Control objects: a state, a lock, and who waits (docs/protocols/control.md, src/gas/controls.cpp).
 *
 * A latch of SETTERS counts. WAITERS threads wait for it; the list has room for one, and who finds it full brings a
 * larger one. When all that wait have gone on, one of them frees the object at once, whatever the setters still do.
 * Asserted: nothing is touched that was freed, each record is completed once, and the larger room is not lost. Invalid
 * end state: somebody waits for ever.
 *
 * Mutants, must FAIL: TEST_FIRST (the condition is looked at before the lock is taken), LISTED_LATE (who waits is put
 * on the list after the lock is open), TAKEN_LATE (who goes on is looked up after the lock is open),
 * KEEPS_LIST (who goes on stays on the list, and the next one finds it), FULL_CHANGES (a step that found no room
 * has changed the state already), with WAITERS=4: GROWS_BACK (a room is taken although the object has a larger one).
 *
 * With SERVER: a step may end its worker, which then has the lock. The companion of its host carries out a step for
 * another host, and ends the run if that worker is gone. Asserted: the step is carried out once, or the run ends.
 * Invalid end state: nobody notices. Mutant, must FAIL: SERVER_WAITS (the companion waits for the lock).
 */
#ifdef SERVER

bit  lock, gone, ended;
byte steps;
mtype = { nothing, asked, done, later };
mtype mail = nothing;

active proctype worker() {
  atomic { !lock -> lock = 1 };
  if
  :: gone = 1
  :: lock = 0
  fi
}

active proctype companion() {
end:
  do
  :: mail == asked ->
#ifdef SERVER_WAITS
     atomic { !lock -> lock = 1 };
#else
     if                                                                          /* CO3 */
     :: atomic { !lock -> lock = 1 }
     :: atomic { lock -> mail = later; goto end }
     fi;
#endif
     steps++;
     lock = 0;
     mail = done
  :: gone -> ended = 1; break
  od
}

active proctype asker() {
  do
  :: mail == nothing || mail == later -> mail = asked
  :: mail == done -> break
  :: ended -> break
  od;
  assert(ended || steps == 1)
}

#else
#ifndef SETTERS
#define SETTERS 2
#endif
#ifndef WAITERS
#define WAITERS 3
#endif

bit  lock, freed;
byte count = SETTERS, waiting, capacity = 1;
bit  listed[WAITERS];
byte completed[WAITERS];
byte gone_on, steps;
hidden byte k;

#define TOUCH assert(!freed)
#define ALL_LISTED(mine) k = 0; do :: k < WAITERS -> mine[k] = listed[k]; k++ :: else -> break od

inline take_lock() { atomic { !lock -> TOUCH; lock = 1 } }
inline open_lock() { atomic { TOUCH; lock = 0 } }

proctype waiter(byte me) {
  byte brings;
  bit open;
again:
#ifdef TEST_FIRST
  open = (count == 0);
#endif
  take_lock();
  d_step {
    if
#ifdef GROWS_BACK
    :: brings != 0 -> capacity = brings
#else
    :: brings > capacity -> capacity = brings
#endif
    :: else
    fi;
    assert(waiting <= capacity);
    brings = 0
  };
  if
  :: waiting == capacity ->
#ifdef FULL_CHANGES
     steps++;
#endif
     brings = capacity + 1;
     open_lock();
     goto again
  :: else
  fi;
  steps++;
#ifndef TEST_FIRST
  open = (count == 0);                                                   /* CO1 */
#endif
  if
  :: open -> open_lock()
  :: else ->
#ifdef LISTED_LATE
     open_lock();
     d_step { TOUCH; listed[me] = 1; waiting++ };
#else
     d_step { listed[me] = 1; waiting++ };                               /* CO1 */
     open_lock();
#endif
     completed[me] != 0
  fi;
  atomic {
    gone_on++;
    if :: gone_on == WAITERS -> !lock; assert(steps == WAITERS); freed = 1 :: else fi
  }
}

proctype setter() {
  bit mine[WAITERS];
  byte i;
  take_lock();
  count--;
  if
  :: count == 0 ->
#ifdef TAKEN_LATE
     open_lock();
     d_step { TOUCH; ALL_LISTED(mine) };
#else
     d_step { ALL_LISTED(mine) };
#ifndef KEEPS_LIST
     d_step { k = 0; do :: k < WAITERS -> listed[k] = 0; k++ :: else -> break od; waiting = 0 };   /* CO2 */
#endif
     open_lock();
#endif
     do
     :: i < WAITERS ->
        if :: mine[i] -> d_step { completed[i]++; assert(completed[i] == 1) } :: else fi;          /* CO2 */
        i++
     :: else -> break
     od
  :: else -> open_lock()
  fi
}

/* A step that changes nothing, but after which all who wait are asked again. */
proctype asker() {
  bit mine[WAITERS];
  byte i;
  if
  :: atomic { !lock && !freed -> lock = 1 };
     if
     :: count == 0 ->
        d_step { ALL_LISTED(mine) };
        d_step { k = 0; do :: k < WAITERS -> listed[k] = 0; k++ :: else -> break od; waiting = 0 };
     :: else
     fi;
     open_lock();
     do
     :: i < WAITERS ->
        if :: mine[i] -> d_step { completed[i]++; assert(completed[i] == 1) } :: else fi;
        i++
     :: else -> break
     od
  :: freed
  fi
}

init {
  byte i;
  atomic {
    do :: i < WAITERS -> run waiter(i); i++ :: else -> break od;
    i = 0;
    do :: i < SETTERS -> run setter(); i++ :: else -> break od;
    run asker()
  }
}

#endif
