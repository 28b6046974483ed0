/* Memory that a host's cache gives back, and memory that is freed and used again. docs/protocols/global.md, GL10.
 *
 * What it is: one allocation, EVICTORS workers of a host that have a unit of it in the cache which nobody needs any
 * more, the descriptor at home and its copy on that host (directory::look), and a third that frees the allocation.
 * Then the addresses are given out again, with that host as their home, which writes there. An evictor looks whose
 * bytes they are, and gives their pages back if they are another host's.
 * Asserted: the new bytes stay; and nobody uses a descriptor that is being written.
 * What it is not: locks of units and sets (one evictor has one unit), what travels (global.pml).
 * Must pass: the plain model. Mutants, must FAIL: NOT_COUNTED, COUNTED_LATE, NOT_AWAITED, NO_GENERATION,
 * GENERATION_LATE, UNCOUNTED_EARLY, STATE_FIRST, STATE_STAYS.
 */
#ifndef EVICTORS
#define EVICTORS 2
#endif

mtype = { live, freed };
mtype state = live;          /* descriptor, at home */
bit  here;                   /* its contents, at home: the reading host is the home of the bytes */
bit  writing;                /* the contents are being written */
byte generation;             /* of the evicting host */
byte k_generation = 1;       /* the host's copy, good: it used the memory */
mtype k_state = live;
bit  k_here;
byte evicting;
bit  bytes;                  /* 1: the new allocation's have been written */

proctype evictor() {
  byte g, c;
  mtype s;
  bit mine;
#if !defined(NOT_COUNTED) && !defined(COUNTED_LATE)
  evicting++;
#endif
  g = generation;
#ifdef STATE_FIRST
  s = k_state;
  c = k_generation;
#else
  c = k_generation;
  s = k_state;
#endif
  if
  :: c == g + 1 && s == live -> mine = k_here
  :: else ->
     atomic { s = state; mine = here; assert(s == freed || !writing) };
#ifndef STATE_STAYS
     k_state = freed;
#endif
     k_here = mine; k_generation = g + 1; k_state = s
  fi;
#ifdef COUNTED_LATE
  evicting++;
#endif
#ifdef UNCOUNTED_EARLY
  evicting--;
#endif
  if
  :: s == live && !mine -> bytes = 0
  :: else -> skip
  fi;
#if !defined(NOT_COUNTED) && !defined(UNCOUNTED_EARLY)
  evicting--
#endif
}

init {
  byte n;
  atomic { for (n : 1 .. EVICTORS) { run evictor() } };
  /* free */
  state = freed;
#if !defined(NO_GENERATION) && !defined(GENERATION_LATE)
  generation++;
#endif
#ifndef NOT_AWAITED
  evicting == 0;
#endif
#ifdef GENERATION_LATE
  generation++;
#endif
  /* allocate */
  writing = 1; here = 1; writing = 0;
  generation++;
  state = live;
  bytes = 1;
  _nr_pr == 1;
  assert(bytes == 1)
}
