/* Blocks that move, and the caches of the hosts that they come to and leave.
 *
 * What it is: docs/protocols/move.md, where it meets docs/protocols/global.md. One unit of two words; they are one block, or
 * one block each (BLOCKS=2). mem[M(h, i)] is word i in the window of host h: the word itself where its block is owned, else a
 * copy, or nothing (GONE). All hosts may cache the unit. As in global.pml each word has a token; who holds it may read
 * and write the word in every way that there is, then passes the token on: inside the host just so, to another host with
 * release before and acquire after. So all race-free programs of at most OPS operations run. Besides, any worker may pull a
 * block to its host (MOVES times; with ABORT it may give up), and release, acquire or discard (NOISE times).
 * Whatever the schedule, no read is stale, and in the end the owner has what the last writer wrote.
 * How an owner is found is move.pml's: here a request goes to the host that owns the block, or is answered `not now`.
 * Registration too: a block is closed as soon as it is owned. Memory is sequentially consistent, but a fill may look at its place
 * before it has the unit and its lock; words of a unit change under its lock. ON0 workers are on host 0, one on each further host.
 * What it is not: full ranges, tags, long uses of several blocks.
 *
 * Smaller searches: START (who holds word 1 at first; word 0: worker 0), CHECKOUTS (no other operations),
 * SECOND_MOVES (of two blocks only the second moves).
 * Run by models/check.sh. Mutants, must FAIL:
 *   arrival     ARRIVAL_OVER_DIRTY, ARRIVAL_OVER_OPEN, ARRIVAL_WITHOUT_LOCK, ARRIVING_NO_DRAIN
 *   write-back  WRITE_BACK_LOST, ARRIVING_CLEARS, FROZEN_CLEARS, LOCK_WHILE_WAITING
 *   fill        FILL_SKIPS_FROZEN (with BLOCKS=2), FILL_WITHOUT_USE, FILL_LOCKS_WHILE_WAITING
 *   discard     SETTLE_DISCARDS_DIRTY, SETTLE_DISCARDS_OPEN, DISCARD_WITHOUT_USE
 *   near        NEAR_WITHOUT_USE, FREEZE_BEFORE_DRAIN
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef ON0
#define ON0 2
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef OPS
#define OPS 3
#endif
#ifndef MOVES
#define MOVES 2
#endif
#ifndef NOISE
#define NOISE 0
#endif
#define HOSTS (WORKERS - ON0 + 1)
#define HOST(w) ((w) < ON0 -> 0 : (w) - ON0 + 1)
#define M(h, i) ((h) * 2 + (i))
#define X(h, b) ((h) * BLOCKS + (b))
#if BLOCKS == 2
#define B(i) (i)
#define OTHER (1 - B(g))
#else
#define B(i) 0
#define OTHER 0
#endif
#define BIT(i) (1 << (i))
#define GONE 9

#define ELSEWHERE 0
#define WANTED 1
#define ARRIVING 2
#define OWNED 3
#define CLOSING 4
#define FROZEN 5
#define AWAY(s) ((s) == ELSEWHERE || (s) == WANTED)
#define HAS(s) ((s) == OWNED || (s) == CLOSING)
#define BETWEEN(s) ((s) == FROZEN || (s) == ARRIVING)

byte state[HOSTS * BLOCKS], uses[HOSTS * BLOCKS];
byte mem[HOSTS * 2];
byte epoch[HOSTS];
bit here[HOSTS];                           /* the unit is in the host's cache; under the lock of its set */
bit set_lock[HOSTS];
bit lock[HOSTS];                           /* of the unit, and what is under it */
byte stamp[HOSTS], pins[HOSTS], dirty[HOSTS], writing[HOSTS];

byte holder[2], value[2];                  /* the token of each word; what its last writer wrote */
bit arrived[2];
byte ops = OPS, moves = MOVES, noise = NOISE, ended;

#define FREE (!lock[h])
#define S(b) state[X(h, b)]
#define USES(b) uses[X(h, b)]
#define HERE(i) mem[M(h, i)]
#define MINE (dirty[h] & BIT(g))
#if HOSTS == 2
#define SOME(test, b) (test(state[X(0, b)]) || test(state[X(1, b)]))
#else
#define SOME(test, b) (test(state[X(0, b)]) || test(state[X(1, b)]) || test(state[X(2, b)]))
#endif
#define QUIET(b) (!SOME(BETWEEN, b))       /* who waits for a block looks at this */

/* Who owns block b: x; or not now, which also those may be told who ask an owner that was. */
inline find(b) {
  if
  :: HAS(state[X(0, b)]) -> x = 0
  :: HAS(state[X(1, b)]) -> x = 1
#if HOSTS == 3
  :: HAS(state[X(2, b)]) -> x = 2
#endif
  :: !QUIET(b) -> x = HOSTS
  fi
}

/* Put the dirty ranges to the owner, until all are there; then forget the copy if `drop`. */
inline write_back(drop) {
  do
  :: atomic {
       FREE ->
       d = dirty[h]; e2 = epoch[h];
#if defined(ARRIVING_CLEARS)
#define WHERE_IT_BELONGS(s) (HAS(s) || (s) == ARRIVING)
#elif defined(FROZEN_CLEARS)
#define WHERE_IT_BELONGS(s) (HAS(s) || (s) == FROZEN)
#else
#define WHERE_IT_BELONGS(s) HAS(s)
#endif
       if :: WHERE_IT_BELONGS(S(B(0))) -> dirty[h] = dirty[h] & 2 :: else fi;
       if :: WHERE_IT_BELONGS(S(B(1))) -> dirty[h] = dirty[h] & 1 :: else fi;
       k = dirty[h];                       /* what is to be sent */
       if :: BETWEEN(S(B(0))) -> k = k & 2 :: else fi;
       if :: BETWEEN(S(B(1))) -> k = k & 1 :: else fi;
       if
       :: k == 0 && dirty[h] == 0 ->       /* nothing is left */
          if :: drop -> stamp[h] = 0 :: else fi;
          d = 0; e2 = 0; break
       :: k == 0 && dirty[h] != 0          /* all not now, as the own place says */
       :: k != 0 -> lock[h] = 1; v0 = HERE(0); v1 = HERE(1)
       fi
     };
     if
     :: k != 0 ->
        if
        :: atomic { k & 1 -> find(B(0));
             if
             :: x == HOSTS -> k = k & 2
             :: else -> mem[M(x, 0)] = v0;
                if :: BLOCKS == 1 && (k & 2) -> mem[M(x, 1)] = v1 :: else fi
             fi;
             if :: BLOCKS == 1 && x == HOSTS -> k = 0 :: else fi;
             x = 0 }
        :: else
        fi;
        if
        :: atomic { (k & 2) && (BLOCKS == 2 || !(d & 1)) -> find(B(1));
             if :: x == HOSTS -> k = k & 1 :: else -> mem[M(x, 1)] = v1 fi;
             x = 0 }
        :: else
        fi;
        atomic {
#ifdef WRITE_BACK_LOST
          dirty[h] = 0;
#else
          dirty[h] = dirty[h] & ~k;
#endif
          if                               /* all of it is what we wrote: then the copy is good */
          :: d == 3 && dirty[h] == 0 && e2 > stamp[h] -> stamp[h] = e2
          :: else
          fi;
          v0 = 0; v1 = 0; k = 0; d = 0;
#ifdef LOCK_WHILE_WAITING
          if :: dirty[h] == 0 -> lock[h] = 0 :: else fi
#else
          lock[h] = 0
#endif
        }
     :: else
     fi;
     d = 0; e2 = 0;
     if
     :: dirty[h] == 0
     :: QUIET(0) && QUIET(BLOCKS - 1)      /* not now: wait, without the lock */
     fi;
#ifdef LOCK_WHILE_WAITING
     lock[h] = 0
#endif
  od
}

inline release() { if :: dirty[h] == 0 :: else -> write_back(false) fi }
inline acquire() { epoch[h]++ }

#ifdef SETTLE_DISCARDS_DIRTY
#define CLEAN true
#else
#define CLEAN (dirty[h] == 0)
#endif
#ifdef SETTLE_DISCARDS_OPEN
#define CLOSED true
#else
#define CLOSED (pins[h] == 0)
#endif
#ifdef DISCARD_WITHOUT_USE
#define USE_ALL(n)
#else
#define USE_ALL(n) if :: k & 1 -> USES(B(0)) = USES(B(0)) + n :: else fi; if :: k & 2 -> USES(B(1)) = USES(B(1)) + n :: else fi;
#endif
/* Give the pages back: of a unit that is replaced, or of what a block has left behind that is in no unit. Nobody can enter
 * the unit meanwhile (the set's lock), and no block arrive (short uses). */
inline discard() {
  atomic {
    FREE && !set_lock[h] ->
    if
    :: CLEAN && CLOSED ->
       set_lock[h] = 1; here[h] = 0; stamp[h] = 0;
       if :: AWAY(S(B(0))) -> k = 1 :: else fi;
       if :: AWAY(S(B(1))) -> k = k | 2 :: else fi;
       USE_ALL(1) how = 1
    :: else
    fi
  };
  if
  :: atomic { how == 1 ->
       if :: k & 1 -> HERE(0) = GONE :: else fi;
       if :: k & 2 -> HERE(1) = GONE :: else fi;
       USE_ALL(-1)
#ifdef SETTLE_DISCARDS_DIRTY
       dirty[h] = 0;
#endif
       set_lock[h] = 0; k = 0; how = 0 }
  :: else
  fi
}

#if defined(ARRIVAL_OVER_DIRTY)
#define KEPT writing[h]
#elif defined(ARRIVAL_OVER_OPEN)
#define KEPT dirty[h]
#else
#define KEPT (dirty[h] | writing[h])
#endif
#ifdef ABORT
#define GIVES_UP true
#else
#define GIVES_UP false
#endif
#ifdef FREEZE_BEFORE_DRAIN
#define UNUSED(x) true
#else
#define UNUSED(x) (uses[x] == 0)
#endif
inline arrive() {
  atomic {
    if :: (BLOCKS == 1 || u == 0) && !(k & 1) -> HERE(0) = v0 :: else fi;
    if :: (BLOCKS == 1 || u == 1) && !(k & 2) -> HERE(1) = v1 :: else fi
  }
}
inline pull() {                            /* block u is wanted here */
  if
  :: atomic { state[X(0, u)] == OWNED -> state[X(0, u)] = CLOSING; t = 0; how = 1 }
  :: atomic { state[X(1, u)] == OWNED -> state[X(1, u)] = CLOSING; t = 1; how = 1 }
#if HOSTS == 3
  :: atomic { state[X(2, u)] == OWNED -> state[X(2, u)] = CLOSING; t = 2; how = 1 }
#endif
  :: GIVES_UP
  fi;
  if
  :: how == 1 ->
     if
     :: atomic { UNUSED(X(t, u)) -> state[X(t, u)] = FROZEN; how = 2 }
     :: atomic { GIVES_UP -> state[X(t, u)] = OWNED }
     fi
  :: else
  fi;
  if
  :: how == 2 ->
     S(u) = ARRIVING;
#ifndef ARRIVING_NO_DRAIN
     USES(u) == 0;
#endif
     atomic { v0 = mem[M(t, 0)]; v1 = mem[M(t, 1)] };
     if
#ifdef ARRIVAL_WITHOUT_LOCK
     :: k = dirty[h]; k = k | writing[h]; arrive()
#else
     :: atomic { here[h] && FREE -> k = KEPT; arrive() }
     :: !here[h] -> arrive()
#endif
     fi;
     atomic { S(u) = OWNED; v0 = 0; v1 = 0; k = 0 };
     state[X(t, u)] = ELSEWHERE            /* its bytes stay as a copy; whoever wants discards them */
  :: else -> S(u) = ELSEWHERE
  fi;
  atomic { how = 0; t = 0; u = 0 }
}

#define READ 1                             /* checkouts */
#define WRITE 2
#define BOTH 3
#define GET 4
#define PUT 5
#define ATOMIC 6                           /* relaxed; one with an order is this between release and acquire */
#define NEW value[g] = (value[g] + 1) % 8

/* Routes */
#define NONE 0
#define NEAR 1
#define CACHED 2
#define FILL 3

#ifdef FILL_WITHOUT_USE
#define USE(b, n)
#else
#define USE(b, n) USES(b) = USES(b) + n
#endif
#ifdef FILL_SKIPS_FROZEN
#define MAY_SKIP(s) (HAS(s) || (s) == FROZEN)
#else
#define MAY_SKIP(s) HAS(s)
#endif
#define NEW_ENOUGH (stamp[h] >= e || MINE)
/* A checkout through the cache: how = CACHED, or NONE if it is not the time or the place. d: fills also from the other block.
 * The use is taken, or `local` only looked at, before the unit is there: so early may a look be that orders nothing. */
inline open_unit() {
  atomic {
    if
    :: FREE && what == READ && NEW_ENOUGH -> pins[h]++; how = CACHED          /* a hit asks nobody */
    :: !(what == READ && NEW_ENOUGH) && AWAY(S(B(g))) && (what == WRITE || AWAY(S(OTHER)) || MAY_SKIP(S(OTHER))) ->
       how = FILL; USE(B(g), 1);
       if :: BLOCKS == 2 && what != WRITE && AWAY(S(OTHER)) -> d = 1; USE(OTHER, 1) :: else fi
    :: !(what == READ && NEW_ENOUGH) && !(AWAY(S(B(g))) && (what == WRITE || AWAY(S(OTHER)) || MAY_SKIP(S(OTHER))))
    fi
  };
  if
  :: how == FILL ->
     atomic {
       FREE && !set_lock[h] ->
       lock[h] = 1; here[h] = 1; pins[h]++;
       if :: what == WRITE || NEW_ENOUGH -> e = 0 :: else fi
     };
     if
     :: e != 0 ->
        atomic { find(B(g)); k = x;
          if :: x != HOSTS -> v0 = mem[M(x, 0)]; v1 = mem[M(x, 1)] :: else fi; x = 0 };
#if BLOCKS == 2
        if
        :: d == 1 && k != HOSTS ->
           atomic { find(OTHER); k = x;
             if :: x != HOSTS && g == 0 -> v1 = mem[M(x, 1)] :: x != HOSTS && g == 1 -> v0 = mem[M(x, 0)] :: else fi; x = 0 }
        :: else
        fi
#endif
     :: else
     fi;
     atomic {
       if
       :: k == HOSTS -> pins[h]--; how = NONE
       :: else ->
          if
          :: e != 0 ->
             if :: (g == 0 || BLOCKS == 1 || d == 1) && !((dirty[h] | writing[h]) & 1) -> HERE(0) = v0 :: else fi;
             if :: (g == 1 || BLOCKS == 1 || d == 1) && !((dirty[h] | writing[h]) & 2) -> HERE(1) = v1 :: else fi;
             stamp[h] = e
          :: else
          fi;
          if :: what != READ -> writing[h] = writing[h] | BIT(g) :: else fi;
          how = CACHED
       fi;
       USE(B(g), -1);
       if :: d == 1 -> USE(OTHER, -1) :: else fi;
       d = 0; v0 = 0; v1 = 0; k = 0;
#ifdef FILL_LOCKS_WHILE_WAITING
       if :: how == CACHED -> lock[h] = 0 :: else fi
#else
       lock[h] = 0
#endif
     }
  :: else
  fi
}

/* Past the cache: carried out by the owner, which may be this host meanwhile. */
inline carried_out() {
  if :: what == PUT :: else -> assert(mem[M(x, g)] == value[g]) fi;
  if :: what == ATOMIC -> NEW :: else fi;
  mem[M(x, g)] = value[g]
}
inline at_owner() {
  do
  :: atomic { S(B(g)) == OWNED -> x = h; carried_out(); x = 0; break }
  :: atomic {
       AWAY(S(B(g))) -> find(B(g));
       if :: x != HOSTS -> carried_out(); x = 0; break :: else -> x = 0 fi
     };
     QUIET(B(g))
  od
}

inline written() { if :: here[h] -> HERE(g) = value[g] :: else fi }      /* copies follow */

proctype worker(byte me) {
  byte g, u, what, how, e, e2, d, v0, v1, k, t, x, to, h;
  h = HOST(me);
  do
  :: atomic {
       ops > 0 && (holder[0] == me || holder[1] == me) ->
       if
       :: holder[0] == me -> g = 0
       :: holder[1] == me -> g = 1
       fi;
       ops--;
       if :: arrived[g] -> acquire(); arrived[g] = 0 :: else fi;
       if
       :: what = READ
       :: what = WRITE
#ifndef CHECKOUTS
       :: what = BOTH
       :: what = GET
       :: what = PUT
       :: what = ATOMIC
#endif
       fi
     };
     do                                    /* by which way */
     :: atomic { S(B(g)) == OWNED ->
          how = NEAR;
#ifndef NEAR_WITHOUT_USE
          USES(B(g))++
#endif
        };
        atomic {
          if :: what == WRITE || what == PUT :: else -> assert(HERE(g) == value[g]) fi;
          if :: what == READ || what == GET :: else -> NEW; HERE(g) = value[g] fi
        };
#ifndef NEAR_WITHOUT_USE
        USES(B(g))--;
#endif
        break
     :: atomic { S(B(g)) != OWNED || what == READ -> e = epoch[h] };
        if
        :: what <= BOTH ->
           open_unit();
           if
           :: how == CACHED ->
              e = 0;
              atomic {
                if :: what == WRITE :: else -> assert(HERE(g) == value[g]) fi;
                if :: what == READ :: else -> NEW; HERE(g) = value[g] fi
              };
              atomic {                     /* checkin */
                FREE -> assert(HERE(g) == value[g]);
                if
                :: what != READ -> dirty[h] = dirty[h] | BIT(g); writing[h] = writing[h] & ~BIT(g)
                :: else
                fi;
                pins[h]--
              };
              break
           :: else ->                      /* not now: begin again */
              e = 0;
              QUIET(0) && QUIET(BLOCKS - 1) && S(B(g)) != CLOSING;
#ifdef FILL_LOCKS_WHILE_WAITING
              lock[h] = 0
#endif
           fi
        :: what == GET ->
           atomic {
             FREE ->
             if :: stamp[h] >= e || MINE -> assert(HERE(g) == value[g]); how = CACHED :: else fi;
             e = 0 };
           if
           :: how == CACHED
           :: else -> at_owner()
           fi;
           break
        :: what == PUT ->
           atomic { FREE -> NEW; e = 0; written() };
           at_owner();
           atomic { FREE -> written() };
           break
        :: what == ATOMIC ->
           e = 0;
           write_back(true);
           at_owner();
           write_back(true);
           break
        fi
     od;
     how = 0;
     if
     :: atomic { ops > 0 -> what = 0; g = 0 }      /* keep it */
     :: atomic {
          what = 0;
          if
          :: me != 0 -> to = 0
          :: me != 1 -> to = 1
#if WORKERS > 2
          :: me != 2 -> to = 2
#endif
          fi
        };
        if :: HOST(to) != h -> release() :: else fi;
        atomic { arrived[g] = arrived[g] || HOST(to) != h; holder[g] = to; to = 0; g = 0 }
     fi
#if BLOCKS == 2
  :: atomic { ops > 0 && holder[1] == me && arrived[1] -> acquire(); arrived[1] = 0 }      /* and uses the other word first */
#endif
  :: atomic { noise > 0 && ops > 0 -> noise-- };
     if
     :: release()
     :: acquire()
     :: discard()
     fi
#ifndef SECOND_MOVES
  :: atomic { moves > 0 && ops > 0 && S(0) == ELSEWHERE -> S(0) = WANTED; moves--; u = 0 };
     pull()
#endif
#if BLOCKS == 2
  :: atomic { moves > 0 && ops > 0 && S(1) == ELSEWHERE -> S(1) = WANTED; moves--; u = 1 };
     pull()
#endif
  :: ops == 0 -> break
  od;
  release();
  ended++
}

init {
  byte i, b, n;
  atomic {
#ifdef START
    holder[1] = START;
#else
    if :: holder[1] = 0 :: holder[1] = 1 :: holder[1] = WORKERS - 1 fi;
#endif
    i = 0;
    do
    :: i < HOSTS ->
       epoch[i] = 1;
       if
       :: i == HOSTS - 1 -> b = 0; do :: b < BLOCKS -> state[X(i, b)] = OWNED; b++ :: else -> break od
       :: else -> mem[M(i, 0)] = GONE; mem[M(i, 1)] = GONE
       fi;
       i++
    :: else -> break
    od;
    i = 0;
    do :: i < WORKERS -> run worker(i); i++ :: else -> break od
  };
  ended == WORKERS;
  atomic {
    i = 0;
    do
    :: i < HOSTS ->
       assert(dirty[i] == 0 && writing[i] == 0 && pins[i] == 0);
       b = 0;
       do
       :: b < BLOCKS ->
          assert(uses[X(i, b)] == 0);
          if
          :: state[X(i, b)] != ELSEWHERE ->
             assert(state[X(i, b)] == OWNED); n++;
             if :: B(0) == b -> assert(mem[M(i, 0)] == value[0]) :: else fi;
             if :: B(1) == b -> assert(mem[M(i, 1)] == value[1]) :: else fi
          :: else
          fi;
          b++
       :: else -> break
       od;
       i++
    :: else -> break
    od;
    assert(n == BLOCKS)
  }
}
