/* What a result owns: docs/protocols/join.md (What a result owns, OW).
 *
 * What it is: an outer record whose value holds the one reference of an inner record, which is complete. Its
 * consumers read the value or not, and go, before or after it is complete. CONSUMERS=1: a future, whose
 * consumer takes the value; more: a shared_future, of which each reader gets a reference to the inner record.
 * What it is not: how child and consumers meet in the record's state (join.pml).
 * Memory: the last reference of a record orders what was done under the others before it (join.pml).
 *
 * Run by models/check.sh. Every -D name in an #ifdef below, but CONSUMERS, is a mutant that must FAIL.
 */
#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#define DONE 1
#define DETACHED 2

byte state = 0, references = CONSUMERS, inner_references = 1;
bit  alive = 1, inner_alive = 1;
byte gone = 0;

#define USE assert(alive)
#define USE_INNER assert(inner_alive)

inline release_inner() {
  atomic {
    USE_INNER;
    inner_references--;
    if :: inner_references == 0 -> inner_alive = 0 :: else fi
  }
}

inline free_outer() { atomic { USE; alive = 0 } }

/* by who frees the record, if nobody took the value: OW1 */
inline drop_and_free() {
#ifdef NOBODY_DROPS
  free_outer();
#else
#ifdef FREED_BEFORE_READ
  free_outer();
  USE;                                          /* the value's bytes */
#else
  USE;
  free_outer();
#endif
  release_inner();
#endif
}

inline exchange_state(new, old) { atomic { USE; old = state; state = new } }

proctype child() {
  byte old;
  exchange_state(DONE, old);                    /* the value is there, and the inner reference is its own */
  if
  :: old == DETACHED -> drop_and_free()
  :: else
  fi
}

/* a consumer goes without the value, or a reader has read it */
inline release(old) {
  atomic { USE; references--; old = references };
  if
  :: old == 0 ->
     atomic { USE; old = state; if :: old == 0 -> state = DETACHED :: else fi };
     if :: old == DONE -> drop_and_free() :: else fi
  :: else ->
#ifdef EACH_DROPS
     release_inner()
#endif
  fi
}

proctype consumer() {
  byte old;
  if
  :: true                                       /* nobody asks for the value */
  :: state == DONE ->
#if CONSUMERS == 1
     USE;                                       /* takes it: OW2 */
#ifdef TAKEN_AND_DROPPED
     drop_and_free();
#else
     free_outer();
#endif
     USE_INNER;                                 /* what it took is its own */
     release_inner();
     goto end
#else
     USE;                                       /* reads it: OW3 */
#ifdef SHARED_LATE
     release(old);
     atomic { USE_INNER; inner_references++ };
     release_inner();
     goto end
#else
#ifndef READER_TAKES
     atomic { USE_INNER; inner_references++ };
#endif
     if
     :: release(old); USE_INNER; release_inner(); goto end
     :: USE_INNER; release_inner()
     fi
#endif
#endif
  fi;
  release(old);
end:
  gone++
}

init {
  byte n;
  atomic {
    run child();
    do :: n < CONSUMERS -> run consumer(); n++ :: else -> break od
  };
  (gone == CONSUMERS && _nr_pr == 1);
  assert(!alive && !inner_alive)
}
