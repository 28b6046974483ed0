/* Memory that a host's cache gives back, and memory that is freed and used again. docs/protocols/global.md, GL10.
 *
 * What it is: one allocation, EVICTORS workers of a host that have a unit of it in the cache which nobody needs any
 * more, the directory at home and its copy on that host (directory::look), and a third that frees the allocation. The
 * unit lies inside: its entry (INSIDE) names the one where the allocation begins. Then the addresses are given out
 * again, with that host as their home, which writes there; the new allocation begins where the old one did, or
 * elsewhere. An evictor looks whose bytes they are, and gives their pages back if they are another host's. A user on
 * that host looks at the new allocation.
 * Asserted: the new bytes stay; the user finds them, on this host; nobody uses an entry that is being written, nor
 * the homes of blocks of a freed allocation.
 * What it is not: locks of units and sets (one evictor has one unit), what travels (global.pml).
 * Must pass: the plain model. Mutants, must FAIL: NOT_COUNTED, COUNTED_LATE, NOT_AWAITED, NOT_ALL, NO_GENERATION,
 * GENERATION_LATE, UNCOUNTED_EARLY, STATE_FIRST, STATE_STAYS, NO_LOCK, REUSE_UNSEEN, REUSE_NOT_AWAITED.
 */
#ifndef EVICTORS
#define EVICTORS 2
#endif
#define INSIDE 2

mtype = { live, inside, freed };
mtype state[3] = freed;      /* entries at home: where an allocation may begin (0 and 1), and INSIDE */
byte word[3];                /* their contents: the evicting host is the home of the bytes; INSIDE: where it begins */
bit  writing[2];             /* the contents are being written */
bit  no_homes;               /* the table of the homes of the old one's blocks is freed */
byte generation;             /* of the evicting host */
mtype k_state[3] = freed;    /* the host's copies */
byte k_generation[3];
byte k_word[3];
bit  asking[3];              /* lock: somebody fetches the copy */
bit  evicting[EVICTORS];     /* one of each */
bit  bytes;                  /* 1: the new allocation's have been written */

/* Entry i; s: its state. */
inline read(i) {
#ifdef STATE_FIRST
  s = k_state[i];
  c = k_generation[i];
#else
  c = k_generation[i];
  s = k_state[i];
#endif
}
inline look(i) {
  g = generation;
  read(i);
  if
  :: c == g + 1 && s != freed -> skip
  :: else ->
#ifndef NO_LOCK
     atomic { !asking[i] -> asking[i] = 1 };
#endif
     g = generation;
     if  /* the request may read them in any order */
     :: s = state[i]; w = word[i]
     :: w = word[i]; s = state[i]
     fi;
     assert(s != live || !writing[i]);
#ifndef STATE_STAYS
     k_state[i] = freed;
#endif
     k_word[i] = w; k_generation[i] = g + 1; k_state[i] = s;
#ifndef NO_LOCK
     asking[i] = 0
#endif
  fi
}

/* What the unit is part of; s: live, if it is; mine: this host is the home. */
inline find() {
  look(INSIDE);
  at = k_word[INSIDE];
  look(at);
  mine = k_word[at]
}

proctype evictor(byte me) {
  byte g, c, w, at, mine;
  mtype s;
#if !defined(NOT_COUNTED) && !defined(COUNTED_LATE)
  evicting[me] = 1;
#endif
  find();
#ifdef COUNTED_LATE
  evicting[me] = 1;
#endif
  assert(s != live || mine || !no_homes);
#ifdef UNCOUNTED_EARLY
  evicting[me] = 0;
#endif
  if
  :: s == live && !mine -> bytes = 0
  :: else -> skip
  fi;
#if !defined(NOT_COUNTED) && !defined(UNCOUNTED_EARLY)
  evicting[me] = 0
#endif
}

/* One after the other: there may be no moment at which none does. */
inline seen_not_to_evict() {
  evicting[0] == 0;
#ifndef NOT_ALL
  for (n : 1 .. EVICTORS - 1) { evicting[n] == 0 }
#endif
}

proctype user() {
  byte g, c, w, at, mine;
  mtype s;
  find();
  assert(s == live && mine)
}

init {
  byte n, first;
  atomic {  /* the host's copies are good: it used the memory */
    state[0] = live; state[INSIDE] = inside;
    k_state[0] = live; k_state[INSIDE] = inside; k_generation[0] = 1; k_generation[INSIDE] = 1;
    for (n : 1 .. EVICTORS) { run evictor(n - 1) }
  };
  /* free */
  state[0] = freed;
#if !defined(NO_GENERATION) && !defined(GENERATION_LATE)
  generation++;
#endif
#ifndef NOT_AWAITED
  seen_not_to_evict();
#endif
#ifdef GENERATION_LATE
  generation++;
#endif
  no_homes = 1;
  /* allocate */
  if
  :: first = 0
  :: first = 1
  fi;
  word[INSIDE] = first;
  writing[first] = 1; word[first] = 1; writing[first] = 0;
#ifndef REUSE_UNSEEN
  generation++;
#endif
#ifndef REUSE_NOT_AWAITED
  seen_not_to_evict();
#endif
  no_homes = 0;
  state[first] = live;
  run user();
  bytes = 1;
  _nr_pr == 1;
  assert(bytes == 1)
}
