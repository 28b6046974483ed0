/* Cached global memory: the copies of a host, their epochs, dirty ranges, write-back, fetch, eviction.
 *
 * What it is: docs/protocols/global.md. Two hosts, WORKERS workers, the first ON0 of them on host 0. Words of 1 byte, two per
 * unit; word i lies at host HOME(i), the other host may cache its unit. What workers do is not fixed: each word has a token,
 * and who holds it may use the word in every way that there is, then pass the token to any worker: on the same host just
 * so, to another host with release before and acquire after. So all race-free programs of at most OPS operations
 * run, chains of forks and joins, messages and false sharing among them; concurrent readers of one word are not. Whatever the
 * schedule, a word must have the value that its last writer gave it, and be at home in the end.
 * Besides, any worker may release and acquire without a reason (NOISE times), as it does for others' threads, and a host may
 * evict a unit whenever it is allowed to.
 * A request to another host is the steps at the asker and one at the home, with everything in between. Memory is
 * sequentially consistent: inside a host these words change under the unit's lock or by one of the atomic additions.
 * With AM the home's worker carries out requests, when it waits or has nothing to do: SERVES.
 * With BEGUN checkouts may be begun, and completed later: the unit is not locked while the request is away.
 * What it is not: which entry of the table a unit gets, where a block's owner is looked up, checkouts of several units.
 *
 * Smaller searches: START (who holds word 1 at first; word 0: worker 0), CHECKOUTS (no other operations).
 * Run by models/check.sh, which says with what sizes. Mutants, must FAIL:
 *   fetch       STAMP_AFTER, FETCH_OVER_DIRTY, FETCH_OVER_WRITING, NO_ACQUIRE_WHEN_EMPTY
 *   write-back  CLEAR_BEFORE_ACK, COUNT_BEFORE_ACK, SKIP_LOCKED, WHOLE_UNIT, UNLOCKED_WHILE_AWAY, NO_RELEASE, NO_ACQUIRE,
 *               WRITING_NOT_DIRTY
 *   eviction    EVICT_DIRTY, EVICT_PINNED
 *   by value    ATOMIC_KEEPS_COPY, ATOMIC_DROPS_BEFORE, ATOMIC_OVER_DIRTY, PUT_KEEPS_COPY, PUT_WRITES_COPY_BEFORE,
 *               PUT_WRITES_COPY_AFTER, GET_IGNORES_DIRTY
 *   BEGUN       CHANGES_IGNORED, WRITE_BACK_NOT_COUNTED, DROP_NOT_COUNTED, WRITTEN_NOT_COUNTED, BEGUN_OVER_KEPT,
 *               BEGUN_OVER_NEWER, BEGUN_STAMPS_LATE
 *   with AM     NO_SERVE_IN_LOCK, NO_SERVE_IN_WAIT
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef ON0
#define ON0 2
#endif
#ifndef UNITS
#define UNITS 1
#endif
#ifndef OPS
#define OPS 4
#endif
#ifndef NOISE
#define NOISE 1
#endif
#define WORDS (2 * UNITS)
#if defined(BOTH_WAYS)
#define HOME(i) ((i) < 2)                  /* a unit of each host */
#elif defined(MIXED)
#define HOME(i) ((i) & 1)                  /* a unit of both */
#else
#define HOME(i) 1                          /* all words at host 1 */
#endif
#define HOST(w) ((w) >= ON0)
#define U(h, u) ((h) * UNITS + (u))        /* entry of unit u at host h */
#define C(h, i) ((h) * WORDS + (i))        /* copy of word i at host h */
#define GONE 9
#define BIT(i) (1 << ((i) & 1))

byte home[WORDS];                          /* memory at its home */
byte copy[2 * WORDS];                      /* at the same address in the window of the other host; only W/R by cache and holders */
byte epoch[2];                             /* host words */
byte dirty_units[2];
bit  lock[2 * UNITS];
byte stamp[2 * UNITS], pins[2 * UNITS];    /* the unit's fields, under its lock */
byte dirty[2 * UNITS], writing[2 * UNITS]; /* ranges: one bit per word; no word is open twice, since its holder is one */

byte holder[WORDS];                        /* the token: which worker */
bit  arrived[WORDS];                       /* it came from another host: acquire first */
byte value[WORDS];                         /* what the last write in happens-before order wrote */
byte ops = OPS, noise = NOISE, ended;

#ifdef BEGUN
byte changes[2 * UNITS];                   /* of a unit: what it had was written to its homes, or forgotten */
#define CHANGES(u) changes[U(h, u)]++;
#else
#define CHANGES(u)
#endif
#ifdef WRITE_BACK_NOT_COUNTED
#define CLEANED(u)
#else
#define CLEANED(u) CHANGES(u)
#endif
#ifdef DROP_NOT_COUNTED
#define DROPPED(u)
#else
#define DROPPED(u) CHANGES(u)
#endif
#ifdef WRITTEN_NOT_COUNTED
#define FOLLOWED(u)
#else
#define FOLLOWED(u) CHANGES(u)
#endif

#ifdef AM
byte serves;                               /* one bit per worker: it waits, so it carries out requests for its host's memory */
#define SERVER(i) (HOME(i) == 0 -> 0 : WORKERS - 1)
#define AT_HOME(u) (serves & (1 << SERVER(2 * (u)))) ->
#define WAITS serves = serves | (1 << me);
#define GOES_ON serves = serves & ~(1 << me);
#else
#define AT_HOME(u)
#define WAITS
#define GOES_ON
#endif
#if defined(AM) && !defined(NO_SERVE_IN_WAIT)
#define ASKS WAITS
#define HAS_ANSWER GOES_ON
#else
#define ASKS
#define HAS_ANSWER
#endif

#define FREE(u) (!lock[U(h, u)])
#define LOCK(u) lock[U(h, u)] = 1
#define UNLOCK(u) lock[U(h, u)] = 0
#define DIRTY(u) dirty[U(h, u)]
#define WRITING(u) writing[U(h, u)]
#define STAMP(u) stamp[U(h, u)]
#if defined(AM) && !defined(NO_SERVE_IN_LOCK)
#define BEFORE_LOCK(u) atomic { WAITS skip };
#define LOCKED GOES_ON
#else
#define BEFORE_LOCK(u)
#define LOCKED
#endif


#ifdef WHOLE_UNIT
#define SENDS(i) (HOME(i) != h)
#else
#define SENDS(i) (d & BIT(i))
#endif
#ifdef EVICT_PINNED
#define MAY_EVICT(u) true
#else
#define MAY_EVICT(u) (pins[U(h, u)] == 0)
#endif
#define RELEASE 0
#define DROP 1
#define EVICT 2
inline then(u, what) {
  if
  :: what == RELEASE
  :: what == DROP -> STAMP(u) = 0; DROPPED(u)
  :: what == EVICT && !MAY_EVICT(u)
  :: what == EVICT && MAY_EVICT(u) ->
     STAMP(u) = 0;
     if :: HOME(2 * (u)) != h -> copy[C(h, 2 * (u))] = GONE :: else fi;
     if :: HOME(2 * (u) + 1) != h -> copy[C(h, 2 * (u) + 1)] = GONE :: else fi
  fi
}

/* Take the lock, write back what is dirty, do `what`, unlock. */
inline write_back(u, what) {
  BEFORE_LOCK(u)
  atomic {
    FREE(u) -> LOCKED
    if
#if defined(EVICT_DIRTY)
    :: what == EVICT && MAY_EVICT(u) && DIRTY(u) != 0 -> DIRTY(u) = 0; dirty_units[h]--; then(u, what)
    :: DIRTY(u) != 0 && !(what == EVICT && MAY_EVICT(u)) ->
#elif defined(ATOMIC_OVER_DIRTY)
    :: what == DROP && DIRTY(u) != 0 -> then(u, what)
    :: DIRTY(u) != 0 && what != DROP ->
#else
    :: DIRTY(u) != 0 && !(what == EVICT && !MAY_EVICT(u)) ->
#endif
       d = DIRTY(u); e2 = epoch[h]; v0 = copy[C(h, 2 * (u))]; v1 = copy[C(h, 2 * (u) + 1)];
#ifdef CLEAR_BEFORE_ACK
       DIRTY(u) = 0; dirty_units[h]--;
#endif
#ifdef COUNT_BEFORE_ACK
       dirty_units[h]--;
#endif
#ifndef UNLOCKED_WHILE_AWAY
       LOCK(u);
#endif
       ASKS skip
    :: DIRTY(u) == 0 || (what == EVICT && !MAY_EVICT(u)) -> then(u, what)
    fi
  };
  if
  :: d != 0 ->
     atomic {
       AT_HOME(u) skip;
       if :: SENDS(2 * (u)) -> home[2 * (u)] = v0 :: else fi;
       if :: SENDS(2 * (u) + 1) -> home[2 * (u) + 1] = v1 :: else fi
     };
     atomic {
#ifdef UNLOCKED_WHILE_AWAY
       FREE(u);
#endif
       HAS_ANSWER
       CLEANED(u)
       if                                  /* all of it is what we wrote: then the copy is good */
       :: d == 3 && e2 > STAMP(u) -> STAMP(u) = e2
       :: else
       fi;
#ifndef CLEAR_BEFORE_ACK
#ifdef UNLOCKED_WHILE_AWAY
       if :: DIRTY(u) != 0 -> dirty_units[h]-- :: else fi;
#elif !defined(COUNT_BEFORE_ACK)
       dirty_units[h]--;
#endif
       DIRTY(u) = 0;
#endif
       then(u, what);
#ifndef UNLOCKED_WHILE_AWAY
       UNLOCK(u);
#endif
       d = 0; e2 = 0; v0 = 0; v1 = 0
     }
  :: else
  fi
}

#ifdef SKIP_LOCKED
#define MAY_SKIP(u) (DIRTY(u) == 0 || !FREE(u))
#else
#define MAY_SKIP(u) (DIRTY(u) == 0)        /* a hint without lock: cleared only when all is at home */
#endif
inline release() {
  if
  :: dirty_units[h] == 0 || (UNITS == 1 && MAY_SKIP(0))
  :: dirty_units[h] != 0 && (UNITS > 1 || DIRTY(0) != 0) ->
#if UNITS > 1
     if :: MAY_SKIP(0) :: DIRTY(0) != 0 -> write_back(0, RELEASE) fi;
     if :: MAY_SKIP(1) :: DIRTY(1) != 0 -> write_back(1, RELEASE) fi
#else
     write_back(0, RELEASE)
#endif
  fi
}

inline acquire() {
#if defined(NO_ACQUIRE_WHEN_EMPTY)
  if :: STAMP(0) != 0 || STAMP(UNITS - 1) != 0 -> epoch[h]++ :: else fi
#elif !defined(NO_ACQUIRE)
  epoch[h]++
#else
  skip
#endif
}

#if defined(FETCH_OVER_DIRTY)
#define KEPT(u) WRITING(u)
#elif defined(FETCH_OVER_WRITING)
#define KEPT(u) DIRTY(u)
#else
#define KEPT(u) (DIRTY(u) | WRITING(u))
#endif
/* What an operation is: */
#define READ 1                             /* checkouts */
#define WRITE 2
#define BOTH 3
#define GET 4
#define PUT 5
#define ATOMIC 6                           /* relaxed; one with an order is this between release and acquire */

#define NEW value[g] = (value[g] + 1) % 8
#define MINE (DIRTY(u) & BIT(g))

inline open_unit() {                       /* what: READ, WRITE or BOTH; e: the host's epoch when it began */
  BEFORE_LOCK(u)
  atomic {
    FREE(u) -> LOCKED
    pins[U(h, u)]++;
    if
    :: what == WRITE || STAMP(u) >= e || MINE -> e = 0
    :: else -> LOCK(u); ASKS skip
    fi;
    if :: what != READ && e == 0 -> WRITING(u) = WRITING(u) | BIT(g) :: else fi
  };
  if
  :: e != 0 ->
     atomic { AT_HOME(u) v0 = home[2 * u]; v1 = home[2 * u + 1] };
     atomic {
       HAS_ANSWER
       if :: HOME(2 * u) != h && !(KEPT(u) & 1) -> copy[C(h, 2 * u)] = v0 :: else fi;
       if :: HOME(2 * u + 1) != h && !(KEPT(u) & 2) -> copy[C(h, 2 * u + 1)] = v1 :: else fi;
#ifdef STAMP_AFTER
       STAMP(u) = epoch[h];
#else
       STAMP(u) = e;
#endif
       if :: what != READ -> WRITING(u) = WRITING(u) | BIT(g) :: else fi;
       UNLOCK(u); e = 0; v0 = 0; v1 = 0
     }
  :: else
  fi
}

#ifdef BEGUN
#ifdef CHANGES_IGNORED
#define UNCHANGED(u) true
#else
#define UNCHANGED(u) (changes[U(h, u)] == seen)
#endif
#ifdef BEGUN_OVER_NEWER
#define OLDER(u) true
#else
#define OLDER(u) (STAMP(u) < e)
#endif
#ifdef BEGUN_OVER_KEPT
#define STAYS(u) 0
#else
#define STAYS(u) KEPT(u)
#endif
/* What goes before open_unit: the request, unlocked, and later its answer into the copy, if it is still good */
inline begin_and_complete() {
  BEFORE_LOCK(u)
  atomic {
    FREE(u) -> LOCKED
    pins[U(h, u)]++;
    seen = changes[U(h, u)];
    asked = !(STAMP(u) >= e || MINE);
    ASKS skip
  };
  if
  :: asked ->
     atomic { AT_HOME(u) v0 = home[2 * u]; v1 = home[2 * u + 1] };
     BEFORE_LOCK(u)
     atomic {
       FREE(u) -> LOCKED HAS_ANSWER
       if
       :: OLDER(u) && UNCHANGED(u) ->
          if :: HOME(2 * u) != h && !(STAYS(u) & 1) -> copy[C(h, 2 * u)] = v0 :: else fi;
          if :: HOME(2 * u + 1) != h && !(STAYS(u) & 2) -> copy[C(h, 2 * u + 1)] = v1 :: else fi;
#ifdef BEGUN_STAMPS_LATE
          STAMP(u) = epoch[h]
#else
          STAMP(u) = e
#endif
       :: else
       fi;
       seen = 0; asked = 0; v0 = 0; v1 = 0
     }
  :: else
  fi
}
#endif

inline close_unit() {
  BEFORE_LOCK(u)
  atomic {
    FREE(u) -> LOCKED
    assert(copy[C(h, g)] == value[g]);     /* still */
    if
    :: what != READ ->
#ifndef WRITING_NOT_DIRTY
       if :: DIRTY(u) == 0 -> dirty_units[h]++ :: else fi;
       DIRTY(u) = DIRTY(u) | BIT(g);
#endif
       WRITING(u) = WRITING(u) & ~BIT(g)
    :: else
    fi;
    pins[U(h, u)]--
  }
}

inline written() {                         /* copies follow */
  BEFORE_LOCK(u)
  atomic { FREE(u) -> LOCKED copy[C(h, g)] = value[g]; FOLLOWED(u) ASKS skip }
}

#if UNITS > 1
#define HOLDS (holder[0] == me || holder[1] == me || holder[2] == me || holder[3] == me)
#else
#define HOLDS (holder[0] == me || holder[1] == me)
#endif

proctype worker(byte me) {
  byte g, u, what, e, e2, d, v0, v1, to;
  bit h;
#ifdef BEGUN
  byte seen;
  bit begun, asked;
#endif
  atomic { h = HOST(me); WAITS skip };
  do
  :: atomic {
       ops > 0 && HOLDS ->
       if
       :: holder[0] == me -> g = 0
       :: holder[1] == me -> g = 1
#if UNITS > 1
       :: holder[2] == me -> g = 2
       :: holder[3] == me -> g = 3
#endif
       fi;
       ops--; GOES_ON
       if :: arrived[g] -> acquire(); arrived[g] = 0 :: else fi;
       if
       :: HOME(g) == h -> assert(home[g] == value[g]); NEW; home[g] = value[g]
       :: HOME(g) != h ->
          u = g / 2; e = epoch[h];
          if
          :: what = READ
          :: what = WRITE
#ifdef BEGUN
          :: what = READ; begun = 1
          :: what = BOTH; begun = 1
#endif
#ifndef CHECKOUTS
          :: what = BOTH
          :: what = GET
          :: what = PUT; NEW
          :: what = ATOMIC
#endif
          fi
       fi
     };
     if
     :: what == 0
     :: what != 0 && what <= BOTH ->
#ifdef BEGUN
        if :: begun -> begin_and_complete() :: else fi;
#endif
        open_unit();
#ifdef BEGUN
        if :: begun -> atomic { FREE(u) -> pins[U(h, u)]--; begun = 0 } :: else fi;
#endif
        atomic {
          if :: what != WRITE -> assert(copy[C(h, g)] == value[g]) :: else fi;
          if :: what != READ -> NEW; copy[C(h, g)] = value[g] :: else fi
        };
        close_unit()
     :: what == GET ->
        BEFORE_LOCK(u)
        atomic {
          FREE(u) -> LOCKED
          if
#ifdef GET_IGNORES_DIRTY
          :: STAMP(u) >= e ->
#else
          :: STAMP(u) >= e || MINE ->
#endif
             assert(copy[C(h, g)] == value[g]); e = 0
          :: else -> ASKS skip
          fi
        };
        if
        :: e != 0 -> atomic { AT_HOME(u) assert(home[g] == value[g]); HAS_ANSWER e = 0 }
        :: else
        fi
     :: what == PUT ->
#if !defined(PUT_KEEPS_COPY) && !defined(PUT_WRITES_COPY_AFTER)
        written();
#endif
        atomic { AT_HOME(u) home[g] = value[g]; HAS_ANSWER e = 0 };
#if !defined(PUT_KEEPS_COPY) && !defined(PUT_WRITES_COPY_BEFORE)
        written();
#endif
        e = 0
     :: what == ATOMIC ->
#ifndef ATOMIC_KEEPS_COPY
        write_back(u, DROP);
#endif
        atomic { ASKS e = 0 };
        atomic { AT_HOME(u) assert(home[g] == value[g]); NEW; home[g] = value[g]; HAS_ANSWER skip };
#if !defined(ATOMIC_KEEPS_COPY) && !defined(ATOMIC_DROPS_BEFORE)
        write_back(u, DROP)
#endif
     fi;
     if
     :: atomic { ops > 0 -> what = 0; u = 0; g = 0; WAITS skip }       /* keep it */
     :: atomic {
          what = 0; u = 0;
          if
          :: me != 0 -> to = 0
          :: me != 1 -> to = 1
#if WORKERS > 2
          :: me != 2 -> to = 2
#endif
#if WORKERS > 3
          :: me != 3 -> to = 3
#endif
          fi
        };
#ifndef NO_RELEASE
        if :: HOST(to) != h -> release() :: else fi;
#endif
        atomic { arrived[g] = arrived[g] || HOST(to) != h; holder[g] = to; to = 0; g = 0; WAITS skip }
     fi
  :: atomic { noise > 0 && ops > 0 -> noise--; GOES_ON };
     if
     :: release()
     :: acquire()
     :: write_back(0, EVICT)
#if UNITS > 1
     :: write_back(1, EVICT)
#endif
     fi;
     atomic { WAITS skip }
  :: ops == 0 -> break
  od;
  release();
  atomic {
    ended++; WAITS
    if
    :: ended == WORKERS ->
       g = 0;
       do
       :: g < WORDS -> assert(home[g] == value[g]); g++
       :: else -> break
       od;
       assert(dirty_units[0] == 0 && dirty_units[1] == 0)
    :: else
    fi
  }
}

init {
  byte i;
  atomic {
#ifdef START
    holder[1] = START;
#else
    if :: holder[0] = 0 :: holder[0] = WORKERS - 1 fi;
    if :: holder[1] = 0 :: holder[1] = 1 :: holder[1] = WORKERS - 1 fi;
#endif
#if UNITS > 1
    holder[2] = WORKERS - 2; holder[3] = WORKERS - 1;
#endif
    epoch[0] = 1; epoch[1] = 1;
    do :: i < WORKERS -> run worker(i); i++ :: else -> break od
  }
}
