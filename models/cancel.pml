/* Cancellation: a request against spawns (-DREQUEST), and the end of a scope against strands (otherwise). docs/protocols/cancel.md (CA1 ... CA4)
 *
 * What it is: scopes.cpp (request, tell_host, ask, changed, count_strand_off), continuation_spawn.hpp (spawn_point), far_calls.hpp
 * (carried_along), continuation_suspend.hpp (part_from_parent, cancel), worker.cpp (leave_scope).
 *
 * REQUEST: one thread below the scope spawns SPAWNS times; before, the worker ran somebody else. Another worker cancels. A child that is spawned
 * after cancel() has come back does not begin. Mutants, must FAIL: TOLD_FIRST (CA1), POLL_FIRST, ASKED_FIRST (CA2), NOT_AGAIN, ARRIVES_UNSEEN (CA4).
 *
 * Otherwise: a thread has opened a scope and has spawned. The child, above it in the deque, ends, or suspends and is resumed by another worker, or
 * finds that there is nothing to wait for. A thief may take the parent first, or another host, where a stand-in counts. The parent ends the scope.
 * Asserted: the scope ends once, when the child has, and nobody touches it afterwards. A wait without end is an invalid end state.
 * Mutants, must FAIL: COUNT_AFTER_UNLOCK, COUNT_AFTER_PUBLISH, NOT_TAKEN_BACK, OWNER_NOT_COUNTED, CHILD_NOT_COUNTED, STAND_IN_FREED_EARLY (CA3).
 */
#ifdef REQUEST
#ifndef SPAWNS
#define SPAWNS 3
#endif
#define UNKNOWN 9

byte poll, told, seen;       /* hot.poll; cancellations; for which of them the answer is known */
bit request, answer, in_scope, came_back;

active proctype canceller() {
#ifdef TOLD_FIRST
  told++; request = 1;
#else
  request = 1;                                  /* CA1 */
#ifdef POLL_FIRST
  if :: poll != 1 -> poll = 1 :: else fi;
#endif
  told++;                                       /* CA2 */
#endif
#ifndef POLL_FIRST
  if :: poll != 1 -> poll = 1 :: else fi;
#endif
  came_back = 1
}

inline ask() {
  if
  :: seen == told && seen != UNKNOWN
  :: else -> now = told; answer = in_scope && request; seen = now
  fi
}

active proctype worker() {
  byte n = 0, now;
  bit late;
  /* the thread before: it spawns once, perhaps */
  if
  :: poll != 0 -> poll = 0; ask()
  :: skip
  fi;
  in_scope = 1;                                 /* ours comes: by a steal, a resumption, or in place */
#ifndef ARRIVES_UNSEEN
  seen = UNKNOWN; poll = 1;                     /* CA4 */
#endif
  do
  :: n < SPAWNS ->
     n++;
     late = came_back;
     if
     :: poll == 0 -> assert(!late)              /* it begins */
     :: else ->
#ifdef ASKED_FIRST
        ask(); poll = 0;
#else
        poll = 0; ask();                        /* CA2: a fence in between */
#endif
        if
        :: answer ->                            /* it does not */
#ifndef NOT_AGAIN
           poll = 1                             /* CA4 */
#else
           skip
#endif
        :: else -> assert(!late)
        fi
     fi
  :: n == SPAWNS -> break
  od
}

#else

byte count = 1;              /* strands of the scope, and who opened it */
byte far = 0;                /* of the stand-in on another host */
bit lock, taken, popped;     /* the parent's slot */
bit known, published;        /* the child, suspended, for another worker */
bit parent_runs, parent_far;
bit done, freed, child_ended;

inline off() {
  atomic { assert(!freed && count > 0); count--; last = (count == 0) };  /* CA3 */
  if
  :: last -> atomic { assert(!done); done = 1 }
  :: else
  fi
}

active proctype victim() {
  bit last;
  if
  :: /* the child ends */
     atomic { !lock -> lock = 1 };
     if
     :: taken -> lock = 0; child_ended = 1;
#ifndef CHILD_NOT_COUNTED
        off()
#else
        skip
#endif
     :: else -> popped = 1; lock = 0; child_ended = 1; parent_runs = 1
     fi
  :: /* or it suspends */
     atomic { !lock -> lock = 1 };
     if
     :: taken -> lock = 0; known = 1
     :: else -> popped = 1; lock = 0;
#ifndef COUNT_AFTER_PUBLISH
        count++;                                /* CA3 */
#endif
        if
        :: /* what it waits for is there: it goes on, and ends above its parent */
#ifndef NOT_TAKEN_BACK
           count--;
#endif
           child_ended = 1
        :: known = 1;
#ifdef COUNT_AFTER_PUBLISH
           count++
#else
           skip
#endif
        fi;
        parent_runs = 1
     fi
  fi
}

/* A worker that resumes the child: in the end somebody does. */
active proctype resumer() {
  bit last;
end:
  known -> child_ended = 1; off()
}

active proctype thief() {
  bit elsewhere;
  if
  :: elsewhere = 1
  :: skip
  fi;
end:
  atomic { !lock && !popped -> lock = 1 };
  taken = 1;
#ifndef COUNT_AFTER_UNLOCK
  count++;                                      /* CA3 */
  lock = 0;
#else
  lock = 0;
  count++;
#endif
  if
  :: elsewhere -> far = 1; parent_far = 1       /* the stand-in has the parent's place in the count */
  :: else
  fi;
  parent_runs = 1
}

active proctype parent() {
  bit last;
  parent_runs;
#ifndef OWNER_NOT_COUNTED
  if
  :: parent_far ->
#ifdef STAND_IN_FREED_EARLY
     off();
#endif
     far--; if :: far == 0 -> off() :: else fi
  :: else -> off()
  fi;
  done;                                         /* the wait, if there is one */
#else
  if :: count == 1 :: else -> done fi;
#endif
  freed = 1;
  assert(child_ended)
}
#endif
