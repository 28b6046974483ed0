/* Policy locked_free: the queue by which others give back objects of an owner's heap. docs/protocols/policies.md
 *
 * What it is: heap::drain_queue, heap::collect (owner) and join_records::free_far (givers). The owner allocates
 * an object, some giver uses it and gives it back; LIVES times each. A giver may mark it instead: a call from
 * another host, carried out by who never waits for a lock.
 * Stores of givers are buffered: the two plain ones become visible in any order, the release of the lock after
 * both (UNLOCK_RELAXED: at any time). A giver sees its own stores at once. Exchanges act on memory.
 * Asserted: what the owner takes back had been given back, once; in the end it has everything. Must pass: the
 * plain model. Mutants, must FAIL: GIVER_NO_LOCK, OWNER_NO_LOCK, GIVER_HEAD_FIRST, OWNER_HEAD_FIRST (the head is
 * read before the lock is taken), OWNER_KEEPS_HEAD (emptied after unlocking), UNLOCK_RELAXED, LINK_AFTER_UNLOCK,
 * SWEEP_TAKES_LINKED (an object is taken for marked whatever its word says), END_IS_MARK.
 */
#ifndef GIVERS
#define GIVERS 2
#endif
#ifndef OBJECTS
#define OBJECTS 3
#endif
#ifndef LIVES
#define LIVES 2
#endif
#define NONE 0
#define MARK 1
#ifdef END_IS_MARK
#define END MARK
#else
#define END 2
#endif
#define FIRST 3              /* refs of objects: FIRST ... */
#define IDS (FIRST + OBJECTS)
#define FREE 0               /* an object is in the owner's free list; with giver w: w + 1; on its way back */
#define GIVEN 9

bit  lock;
byte head, freed[IDS];
byte state[IDS], lives[IDS];
byte given, buffers;         /* lives that have ended; store buffers that are empty for good */
byte link_of[GIVERS], link[GIVERS], new_head[GIVERS];
bit  unlocking[GIVERS];      /* the buffered stores of a giver */

proctype buffer(byte w) {
  do
  :: atomic { link_of[w] != NONE -> freed[link_of[w]] = link[w]; link_of[w] = NONE; link[w] = 0 }
  :: atomic { new_head[w] != NONE -> head = new_head[w]; new_head[w] = NONE }
#ifdef UNLOCK_RELAXED
  :: atomic { unlocking[w] -> unlocking[w] = 0; lock = 0 }
#else
  :: atomic { unlocking[w] && link_of[w] == NONE && new_head[w] == NONE -> unlocking[w] = 0; lock = 0 }
#endif
  :: atomic { given == OBJECTS * LIVES && link_of[w] == NONE && new_head[w] == NONE && !unlocking[w] ->
       buffers++; break }
  od
}

inline put_link() { atomic { link_of[me] == NONE -> link_of[me] = r; link[me] = (h != NONE -> h : END) } }
inline read_head() { atomic { h = (new_head[me] != NONE -> new_head[me] : head) } }

proctype giver(byte me) {
  byte r, h;
  do
  :: given == OBJECTS * LIVES -> break
  :: r = FIRST;
     atomic {
       do :: r < IDS && state[r] == me + 1 -> break :: r < IDS -> r++ :: r == IDS -> break od;
       if :: r < IDS && state[r] == me + 1 -> state[r] = GIVEN :: else -> r = NONE fi };
     if
     :: r == NONE
     :: r != NONE -> atomic { link_of[me] == NONE -> link_of[me] = r; link[me] = MARK };
        atomic { r = NONE; given++ }
     :: r != NONE ->
#ifdef GIVER_HEAD_FIRST
        read_head();
#endif
#ifndef GIVER_NO_LOCK
        atomic { !lock && !unlocking[me] -> lock = 1 };
#endif
#ifndef GIVER_HEAD_FIRST
        read_head();
#endif
#ifndef LINK_AFTER_UNLOCK
        put_link();
#endif
        atomic { new_head[me] == NONE -> new_head[me] = r };
#ifndef GIVER_NO_LOCK
        unlocking[me] = 1;
#endif
#ifdef LINK_AFTER_UNLOCK
        !unlocking[me];
        put_link();
#endif
        atomic { r = NONE; h = 0; given++ }
     fi
  od
}

inline drain() {
#ifdef OWNER_HEAD_FIRST
  r = head;
#endif
#ifndef OWNER_NO_LOCK
  atomic { !lock -> lock = 1 };
#endif
#ifdef OWNER_KEEPS_HEAD
  r = head;
  lock = 0;
  head = NONE;
#else
  atomic {
#ifndef OWNER_HEAD_FIRST
    r = head;
#endif
    head = NONE };
#ifndef OWNER_NO_LOCK
  lock = 0;
#endif
#endif
  do
  :: r > END ->
     assert(state[r] == GIVEN);           /* else: in use, or taken back twice */
     atomic { h = r; r = freed[r]; state[h] = FREE; h = 0 }
  :: else -> break
  od;
  assert(r == END || !some);              /* the list ends where the first one of it was put */
  r = NONE
}

/* Of an object that lives: is it marked? */
inline look_for_mark() {
  if
#ifdef SWEEP_TAKES_LINKED
  :: state[r] != FREE && freed[r] != 0 ->
#else
  :: state[r] != FREE && freed[r] == MARK ->
#endif
     assert(state[r] == GIVEN);
     state[r] = FREE
  :: else
  fi
}

active proctype owner() {
  byte r, h;
  bit some;
  atomic { h = 0; do :: h < GIVERS -> run giver(h); run buffer(h); h++ :: else -> break od; h = 0 };
  do
  :: buffers == GIVERS -> break
  :: head != NONE -> atomic { some = 1 }; drain(); some = 0
  :: atomic { given < OBJECTS * LIVES -> select (r : FIRST .. IDS - 1); look_for_mark(); r = NONE }
  :: atomic { given < OBJECTS * LIVES -> /* allocate any free one for any giver */
       r = FIRST;
       do :: r < IDS && state[r] == FREE && lives[r] < LIVES -> break :: r < IDS -> r++ :: r == IDS -> break od;
       if
       :: r < IDS && state[r] == FREE && lives[r] < LIVES ->
          lives[r]++; freed[r] = 0;
          select (h : 1 .. GIVERS); state[r] = h; h = 0
       :: else
       fi;
       r = NONE }
  od;
  drain();
  r = FIRST;
  do :: r < IDS -> look_for_mark(); assert(state[r] == FREE && lives[r] == LIVES); r++ :: else -> break od
}
