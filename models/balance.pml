/* Parts that come by themselves, while others free memory: docs/protocols/balance.md.
 *
 * What it is: auto_balance::look, by an idle worker of each of HOSTS hosts, LOOKS times each, and
 * auto_balance::without_looks with allocator::free inside, by a thread that allocates, frees and allocates again
 * at the same addresses. A look takes some parts in several messages; between any two of them everything else
 * may happen.
 * Asserted: whoever takes a part takes it of the allocation that it saw live, and that is live still; nobody
 * waits for ever. What it is not: how one part moves (move.pml).
 * Must pass: the plain model. Mutants, must FAIL: FREE_WITHOUT_LOCK, LOOK_WITHOUT_LOCK, LIVE_BEFORE_LOCK,
 * UNLOCK_BEFORE_BYTES, KEEPS_LOCK (of a look that finds nothing).
 */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef LOOKS
#define LOOKS 2
#endif
#ifndef LIVES
#define LIVES 3
#endif

byte lock;                 /* 0, or who: looker + 1, or FREER */
#define FREER 9
byte generation;           /* of what lies at these addresses */
bit  live;

proctype looker(byte me) {
  byte n, seen, parts;
  bit ok;
  do
  :: n == LOOKS -> break
  :: n < LOOKS ->
     n++; ok = 0; parts = 0;
#ifdef LIVE_BEFORE_LOCK
     atomic { ok = live; seen = generation };
#endif
     if
#ifndef LOOK_WITHOUT_LOCK
     :: atomic { lock == 0 -> lock = me + 1 };
        skip
     :: lock != 0 -> goto next            /* another one does; next time */
#else
     :: true
#endif
     fi;
#ifndef LIVE_BEFORE_LOCK
     atomic { ok = live; seen = generation };
#endif
#ifdef KEEPS_LOCK
     if :: !ok -> goto next :: else fi;
#endif
#ifdef UNLOCK_BEFORE_BYTES
     lock = 0;
#endif
     do
     :: ok && parts < 2 -> atomic { assert(live && generation == seen); parts++ }
     :: else -> break
     od;
#if !defined(UNLOCK_BEFORE_BYTES) && !defined(LOOK_WITHOUT_LOCK)
     lock = 0;
#endif
next: skip
  od
}

proctype user() {
  byte n;
  do
  :: n == LIVES -> break
  :: n < LIVES ->
     n++;
     atomic { generation++; live = 1 };
#ifndef FREE_WITHOUT_LOCK
     atomic { lock == 0 -> lock = FREER };
#endif
     live = 0;
     skip;                                /* its pages are given back, host by host */
#ifndef FREE_WITHOUT_LOCK
     lock = 0
#endif
  od
}

init {
  byte i;
  atomic {
    run user();
    do :: i < HOSTS -> run looker(i); i++ :: else -> break od
  }
}
