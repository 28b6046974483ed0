/* Join records: one child, CONSUMERS threads that get or drop its result, workers that resume who waited.
 *
 * What it is: docs/protocols/join.md, one step per access to a shared word. CONSUMERS=1 is future, more is
 * shared_future. What it is not: how a parent is detached from its child (deque.pml).
 * Memory: all words of this protocol change by atomic operations, before which a store buffer is empty; what a
 * weaker order would allow (results, image fields, loads that move) is written out as mutants.
 * A freed object is poisoned by the owner's sweep at any later time; every use checks that it is alive.
 *
 * Run by models/check.sh. Every -D name in an #ifdef below, but CONSUMERS and NO_COPIES
 * (a smaller search), is a mutant that must FAIL.
 */
#ifndef CONSUMERS
#define CONSUMERS 3
#endif
#define C (CONSUMERS + 1)
#define DONE 100
#define DETACHED 101
#define POISON 102

/* the record; consumer i's image is "location" i, so that state is 0, 1..CONSUMERS, DONE or DETACHED */
byte state = 0, result = 0, references = CONSUMERS;
bit  alive = 1, freed = 0;

bit  im_alive[C], im_freed[C], im_copied[C];    /* images */
byte im_next[C], im_own[C];
byte parent_here[C];      /* the waiter's parent: 1 in the deque, 0 in nobody's (in hand) or left */
byte parent_ran[C];       /* how often its continuation was executed */
byte parent_sees[C];      /* record that the parent was told its child completes; 0: none */
byte resumed[C];          /* how often the waiter was resumed */
byte got[C];              /* consumer is finished */
bit  child_done;
chan ready = [CONSUMERS] of { byte };

#define USE assert(alive && !freed)
#define USE_IM(n) assert(im_alive[n] && !im_freed[n])

inline free_record() {
  atomic { USE; if :: freed = 1 :: alive = 0; state = POISON; result = POISON fi }
}

inline resume(n) {                              /* copy the stack back, free the image, run */
  atomic { USE_IM(n); assert(im_copied[n] && im_own[n] == n + 10); if :: im_freed[n] = 1 :: im_alive[n] = 0; im_next[n] = POISON fi };
  resumed[n]++
}

proctype child() {
  byte x, first, next, after;
#ifndef RESULT_AFTER_DONE
  atomic { USE; result = 1 };
#endif
  atomic { USE; x = state; state = DONE };      /* JN1 release, JN2 acquire */
#ifdef RESULT_AFTER_DONE
  atomic { USE; result = 1 };
#endif
#ifdef CHILD_LOOKS_AGAIN
  atomic { USE; assert(state == DONE) };
#endif
  if
  :: x == 0
  :: x == DETACHED -> free_record()
  :: else ->
     first = x;
     atomic { USE_IM(first); next = im_next[first] };
     do
     :: next != 0 ->
#ifdef NEXT_AFTER_PUSH
        ready ! next;
        atomic { USE_IM(next); after = im_next[next] };
#else
        atomic { USE_IM(next); after = im_next[next] };
        ready ! next;
#endif
        next = after
     :: else -> break
     od;
     resume(first)
  fi;
  child_done = 1
}

proctype worker() {
  byte n;
end:
  do
  :: atomic { ready ? n }; resume(n); n = 0
  od
}

inline release() {
  atomic { USE; r = references };
  if
  :: r == 1
  :: else ->
#ifdef RELEASE_IN_TWO_STEPS
     atomic { USE; references = r - 1 };
#else
     atomic { USE; r = references; references-- }
#endif
  fi;
  if
  :: r == 1 ->
#ifdef FREE_WHILE_RUNNING
     free_record()
#else
#ifdef DETACH_WITHOUT_CAS
     atomic { USE; old = state };
     if :: old == 0 -> atomic { USE; state = DETACHED } :: else -> free_record() fi
#else
     atomic { USE; old = state; if :: old == 0 -> state = DETACHED :: else fi };
     if
     :: old == 0                                /* JN4: the child frees it */
     :: else -> assert(old == DONE); free_record()
     fi
#endif
#endif
  :: else
  fi
}

proctype consumer(byte me) {
  byte r, old, own, v;
  bit here;
  atomic { if :: parent_here[me] = 1 :: parent_ran[me] = 1 fi };         /* in our deque, or left long ago */
  if
  :: goto drop                                  /* nobody asks for the result */
  :: true
  fi;
  if
#ifndef NO_COPIES
  :: me == 1 -> atomic { USE; references++ }; release()       /* a copy comes and goes */
#endif
  :: true
  fi;
#ifdef VALUE_BEFORE_DONE
  atomic { USE; v = result };
#endif
  atomic { USE; old = state };                  /* JN1 acquire */
  if
  :: old == DONE -> goto take
  :: else
  fi;
  /* 1. part from the parent; 10 + me is our own record's name */
  atomic { here = parent_here[me]; parent_here[me] = 0; own = me + 10;
  /* 2. copy out */
    im_alive[me] = 1; im_own[me] = own;
#ifndef COPY_AFTER_PUBLISH
    im_copied[me] = 1
#endif
  };
  /* 3. publish */
#ifdef PUBLISH_ONCE
  atomic { USE; im_next[me] = old; state = me }
#else
  if
  :: atomic { USE; old = state }
  :: old = 0                                    /* guessed, where a look takes a round trip */
  fi;
  do
  :: old == DONE ->                             /* cancel */
#ifndef CANCEL_KEEPS_IMAGE
     atomic { USE_IM(me); im_alive[me] = 0 };
#endif
#ifndef CANCEL_LOSES_PARENT
     atomic { parent_here[me] = here; here = 0 };
#endif
     goto take
  :: else ->
#ifdef NEXT_AFTER_PUBLISH
     r = old;
#else
     atomic { USE_IM(me); im_next[me] = old };
#endif
     atomic { USE; if :: state == old -> state = me; old = POISON :: else -> old = state fi };   /* JN2 release, JN3 */
     if :: old == POISON -> break :: else fi
  od;
#ifdef NEXT_AFTER_PUBLISH
  atomic { USE_IM(me); im_next[me] = r; r = 0 };
#endif
#endif
#ifdef COPY_AFTER_PUBLISH
  im_copied[me] = 1;
#endif
#ifdef TOUCH_AFTER_PUBLISH
  USE_IM(me);
#endif
  /* 4. the parent goes on in place */
  if :: here -> atomic { parent_ran[me]++; parent_sees[me] = own; here = 0 } :: else fi;
  /* ... and we, wherever we are resumed */
  (resumed[me] > 0);
  assert(parent_here[me] == 0);
take:
  atomic { USE; assert(state == DONE) };
#ifndef VALUE_BEFORE_DONE
  atomic { USE; v = result };
#endif
#ifdef VALUE_AFTER_FREE
  release(); v = result; assert(v == 1); goto end_of_thread;
#endif
  atomic { assert(v == 1); v = 0; own = 0; old = 0; r = 0 };
drop:
  release();
#ifdef VALUE_AFTER_FREE
end_of_thread:
#endif
  /* the thread ends: pop the parent, or complete the own record */
  atomic {
    if :: parent_here[me] -> parent_here[me] = 0; parent_ran[me]++ :: else fi;
    got[me] = 1
  }
}

proctype sweep() {                              /* the owner's heap takes back what others marked */
  byte n;
end:
  do
  :: atomic { freed -> assert(alive); alive = 0; freed = 0; state = POISON; result = POISON }
  :: atomic { im_freed[1] -> im_alive[1] = 0; im_freed[1] = 0; im_next[1] = POISON }
#if CONSUMERS > 1
  :: atomic { im_freed[2] -> im_alive[2] = 0; im_freed[2] = 0; im_next[2] = POISON }
#endif
#if CONSUMERS > 2
  :: atomic { im_freed[3] -> im_alive[3] = 0; im_freed[3] = 0; im_next[3] = POISON }
#endif
  od
}

init {
  byte n;
  atomic {
    run child(); run worker(); run sweep();
    n = 1; do :: n < C -> run consumer(n); n++ :: else -> break od
  };
  n = 1;
  do :: n < C -> (got[n]); n++ :: else -> break od;
  (child_done && !freed && empty(ready));
  assert(!alive);                               /* the record was freed, by one of the two sides */
  n = 1;
  do
  :: n < C ->
     (!im_freed[n]);
     assert(!im_alive[n] && resumed[n] <= 1 && parent_ran[n] == 1);
     n++
  :: else -> break
  od
}
