/* Results that are read along, and are used later: docs/protocols/join.md (Read along, RA).
 *
 * What it is: one place in another host's memory where join records lie one after the other, each a life of
 * the place; the worker of thread P, whose stack has a word for a future; and everybody else. P joins other
 * futures, which asks for this one along, at any time. What it is not: how a record is read and given back
 * (join.pml).
 * Memory: P's worker keeps the copies for itself; a request's answer is one step.
 *
 * Run by models/check.sh. Every -D name in an #ifdef below, but LIVES, is a mutant that must FAIL.
 */
#ifndef LIVES
#define LIVES 4
#endif

/* who has the future of the present life */
#define NOBODY 0      /* there is no record: the next life may begin */
#define ELSEWHERE 1   /* another thread's, which may hand it to P */
#define UNMOVED 2     /* P's: the variable in its stack that its spawn filled */
#define MOVED 3       /* P's, in its stack, but it was moved there */
#define OUTSIDE 4     /* never moved, but not in P's stack: any thread may join it there */

byte life = 0, has = NOBODY;
bit  done = 0;
bit  word = 0;        /* P's stack has a word that looks like an unmoved future of this place */
byte copied = 0;      /* the life whose result P's worker has; 0: none */

inline next_life(who) { life++; done = 0; has = who }

/* P joins the future. Only some may be served from a copy. */
inline join_it(may_use_copy) {
  assert(!may_use_copy || copied == 0 || copied == life);   /* without a copy it is read where it lies */
  has = NOBODY
}

active proctype all() {
end:
  do
  /* somebody else's record */
  :: atomic { has == NOBODY && life < LIVES -> next_life(ELSEWHERE) }
  :: atomic { has == NOBODY && life < LIVES -> next_life(OUTSIDE) }
  /* P's continuation leaves its child there, and comes here. RA1 */
  :: atomic { has == NOBODY && life < LIVES -> next_life(UNMOVED); word = 1;
#ifndef KEEPS_COPIES
       copied = 0
#endif
     }
#ifndef KEEPS_COPIES
  /* P goes and comes back */
  :: atomic { copied != 0 -> copied = 0 }
#endif
  :: atomic { has != NOBODY && !done -> done = 1 }
  /* another joins it */
  :: atomic { (has == ELSEWHERE || has == OUTSIDE) && done -> has = NOBODY }
  /* by global memory, or in a result; and back */
  :: atomic { has == ELSEWHERE -> has = MOVED }
  :: atomic { has == UNMOVED || has == MOVED -> has = ELSEWHERE }
  /* within P's stack */
  :: atomic { has == UNMOVED -> has = MOVED }
  /* P reads another record of that host, and this one along: whatever lies there, and wherever the word is from */
  :: atomic { word && has != NOBODY && done && copied == 0 -> copied = life }
  /* the frame's bytes are overwritten, once the future is not there */
  :: atomic { word && has != UNMOVED -> word = 0 }
  /* RA3 */
  :: atomic { has == UNMOVED && done -> join_it(1) }
#ifdef MOVED_COUNTS
  :: atomic { has == MOVED && done -> join_it(1) }
#else
  :: atomic { has == MOVED && done -> join_it(0) }
#endif
#ifdef ANY_PLACE
  :: atomic { has == OUTSIDE && done -> join_it(1) }
#else
  :: atomic { has == OUTSIDE && done -> join_it(0) }
#endif
  od
}
