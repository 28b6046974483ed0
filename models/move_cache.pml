/* Blocks that move, and the caches of the hosts that they come to and leave.
 *
 * What it is: docs/protocols/move.md, where it meets docs/protocols/global.md. One unit of two words; they are one block, or
 * one block each (BLOCKS=2). mem[M(h, i)] is word i in the window of host h: the word itself where its block is owned, else a
 * copy, or nothing (GONE). All hosts may cache the unit. As in global.pml each word has a token; who holds it may read
 * and write the word in every way that there is, then passes the token on: inside the host just so, to another host with
 * release before and acquire after. So all race-free programs of at most OPS operations run. Besides, any worker may pull a
 * block to its host (MOVES times; with ABORT it may give up), and release, acquire or discard (NOISE times).
 * Whatever the schedule, no read is stale, and in the end the owner has what the last writer wrote.
 * Whatever the cache does with bytes of a place it does under the unit's lock, or, if the unit is not here, under the lock of
 * its set: the fill, with the look at `local`; entering a range; discarding; what arrives; what is done about a block that
 * has left, there by trying the locks. Uses are those of near accesses. A checkout may go through the cache wherever the
 * block is, as it does in the code when another block of its range is not here.
 * How an owner is found is move.pml's: here a request goes to the host that owns the block, or is answered `not now`.
 * Registration too: a block is closed as soon as it is owned. Memory is sequentially consistent. To lock and to look is one
 * step, as is all that is done under locks at once. ON0 workers are on host 0, one on each further host.
 * What it is not: full ranges, tags, blocks of several units, long uses of several blocks.
 *
 * Smaller searches: START (who holds word 1 at first; word 0: worker 0), CHECKOUTS (no other operations),
 * SECOND_MOVES (of two blocks only the second moves).
 * Run by models/check.sh. Mutants, must FAIL:
 *   arrival     ARRIVAL_OVER_DIRTY, ARRIVAL_OVER_OPEN, ARRIVAL_WITHOUT_LOCK, ABSENT_WITHOUT_LOCK
 *   leaving     LEFT_DISCARDS_DIRTY, LEFT_DISCARDS_OPEN, LEFT_WITHOUT_LOCK, LEFT_KEEPS_EPOCH, ELSEWHERE_FIRST
 *   write-back  WRITE_BACK_LOST, ARRIVING_CLEARS, FROZEN_CLEARS, LOCK_WHILE_WAITING
 *   fill        LOOK_BEFORE_LOCK, FILL_LOCKS_WHILE_WAITING, FILL_SKIPS_FROZEN (with BLOCKS=2)
 *   discard     DISCARD_WITHOUT_LOCK
 *   put         WRITTEN_KEEPS_COPY, WRITTEN_KEEPS_DIRTY
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
#else
#define B(i) 0
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
#define ENTERED (FREE && (here[h] || !set_lock[h]))      /* the unit's lock may be had, also by putting it there */
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

#if defined(ARRIVING_CLEARS)
#define WHERE_IT_BELONGS(s) (HAS(s) || (s) == ARRIVING)
#elif defined(FROZEN_CLEARS)
#define WHERE_IT_BELONGS(s) (HAS(s) || (s) == FROZEN)
#else
#define WHERE_IT_BELONGS(s) HAS(s)
#endif
#define LATER 4                            /* some of it not now */
/* Put the dirty ranges to the owner, until all are there; then forget the copy if `drop`. */
inline write_back(drop) {
  do
  :: atomic {
       FREE ->
       e2 = epoch[h];
       k = dirty[h];                       /* what is to be sent */
       if
       :: !(k & 1) || AWAY(S(B(0)))
       :: (k & 1) && WHERE_IT_BELONGS(S(B(0))) -> k = k & ~1
       :: (k & 1) && !AWAY(S(B(0))) && !WHERE_IT_BELONGS(S(B(0))) -> k = (k & ~1) | LATER
       fi;
       if
       :: !(k & 2) || AWAY(S(B(1)))
       :: (k & 2) && WHERE_IT_BELONGS(S(B(1))) -> k = k & ~2
       :: (k & 2) && !AWAY(S(B(1))) && !WHERE_IT_BELONGS(S(B(1))) -> k = (k & ~2) | LATER
       fi;
       if
       :: k == 0 ->                        /* nothing is left */
          if :: dirty[h] == 3 && e2 > stamp[h] -> stamp[h] = e2 :: else fi;
          dirty[h] = 0;
          if :: drop -> stamp[h] = 0 :: else fi;
          e2 = 0; break
       :: k == LATER
       :: else -> lock[h] = 1
       fi
     };
     if
     :: k & 3 ->
        if
        :: atomic { k & 1 -> find(B(0));
             if
             :: x == HOSTS -> k = k | LATER
             :: else -> mem[M(x, 0)] = HERE(0);
                if :: BLOCKS == 1 && (k & 2) -> mem[M(x, 1)] = HERE(1) :: else fi
             fi;
             if :: BLOCKS == 1 -> k = k & ~2 :: else fi;
             x = 0 }
        :: else
        fi;
        if
        :: atomic { k & 2 -> find(B(1));
             if :: x == HOSTS -> k = k | LATER :: else -> mem[M(x, 1)] = HERE(1) fi;
             x = 0 }
        :: else
        fi;
        atomic {
          if
#ifndef WRITE_BACK_LOST
          :: k & LATER                     /* then all of the unit stays dirty */
          :: else ->
#else
          :: true ->
#endif
             if                            /* all of it is what we wrote: then the copy is good */
             :: dirty[h] == 3 && e2 > stamp[h] -> stamp[h] = e2
             :: else
             fi;
             dirty[h] = 0; k = 0
          fi;
#ifdef LOCK_WHILE_WAITING
          if :: dirty[h] == 0 -> lock[h] = 0 :: else fi
#else
          lock[h] = 0
#endif
        }
     :: else
     fi;
     k = 0; e2 = 0;
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

/* The unit is replaced: its pages are given back, those of places that are away. Under both locks. */
inline discard() {
  atomic {
    FREE && !set_lock[h] ->
    if
    :: here[h] && pins[h] == 0 && dirty[h] == 0 ->
#ifndef DISCARD_WITHOUT_LOCK
       set_lock[h] = 1; lock[h] = 1;
#endif
       if :: AWAY(S(B(0))) -> k = 1 :: else fi;
       if :: AWAY(S(B(1))) -> k = k | 2 :: else fi;
       how = 1
    :: else
    fi
  };
  if
  :: atomic { how == 1 ->
       if :: k & 1 -> HERE(0) = GONE :: else fi;
       if :: k & 2 -> HERE(1) = GONE :: else fi;
       here[h] = 0; stamp[h] = 0;
#ifndef DISCARD_WITHOUT_LOCK
       set_lock[h] = 0; lock[h] = 0;
#endif
       k = 0; how = 0 }
  :: else
  fi
}

#ifdef LEFT_DISCARDS_DIRTY
#define CLEAN true
#else
#define CLEAN (dirty[t] == 0)
#endif
#ifdef LEFT_DISCARDS_OPEN
#define CLOSED true
#else
#define CLOSED (pins[t] == 0)
#endif
/* At the source: copies that nobody needs go, and none is new enough any more; then the cache may have the place. Locks are
 * tried; `not now` while somebody has one. */
inline left() {
#ifdef ELSEWHERE_FIRST
  state[X(t, u)] = ELSEWHERE;
#endif
#ifdef LEFT_WITHOUT_LOCK
  if :: !here[t] || (CLOSED && CLEAN) -> how = 3 :: else fi;
  atomic {
    if
    :: how == 3 ->
#else
  atomic {
    !set_lock[t] && (!here[t] || !lock[t]) ->
    if
    :: !here[t] || (CLOSED && CLEAN) ->
#endif
       if :: B(0) == u -> mem[M(t, 0)] = GONE :: else fi;
       if :: B(1) == u -> mem[M(t, 1)] = GONE :: else fi
    :: else
    fi;
#ifdef LEFT_DISCARDS_DIRTY
    dirty[t] = 0;
#endif
#ifndef LEFT_KEEPS_EPOCH
    stamp[t] = 0
#endif
  };
#ifndef ELSEWHERE_FIRST
  state[X(t, u)] = ELSEWHERE
#endif
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
     atomic { v0 = mem[M(t, 0)]; v1 = mem[M(t, 1)] };
     if
#ifdef ARRIVAL_WITHOUT_LOCK
     :: here[h] -> k = dirty[h]; k = k | writing[h]; arrive()
#else
     :: atomic { here[h] && FREE -> k = KEPT; arrive() }
#endif
#ifdef ABSENT_WITHOUT_LOCK
     :: !here[h] -> arrive()
#else
     :: atomic { !here[h] && !set_lock[h] -> set_lock[h] = 1 };
        atomic { arrive(); set_lock[h] = 0 }
#endif
     fi;
     atomic { S(u) = OWNED; v0 = 0; v1 = 0; k = 0 };
     left()
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
#define NEAR 1
#define CACHED 2

#ifdef FILL_SKIPS_FROZEN
#define MAY_SKIP(s) (HAS(s) || (s) == FROZEN)
#else
#define MAY_SKIP(s) HAS(s)
#endif
/* d: words to ask for, and LATER */
inline look() {
  if :: AWAY(S(B(0))) -> d = 1 :: MAY_SKIP(S(B(0))) -> d = 0 :: else -> d = LATER fi;
  if :: AWAY(S(B(1))) -> d = d | 2 :: MAY_SKIP(S(B(1))) :: else -> d = d | LATER fi
}
#ifdef LOOK_BEFORE_LOCK
#define LOOK_EARLY atomic { look() };
#define LOOK
#else
#define LOOK_EARLY
#define LOOK look()
#endif
#define NEW_ENOUGH (stamp[h] >= e || MINE)
inline hand_out() { if :: what != READ -> writing[h] = writing[h] | BIT(g) :: else fi; how = CACHED }
/* A checkout through the cache. What was not now is asked for again, until it is here; the unit stays open meanwhile. */
inline open_unit() {
  LOOK_EARLY
  atomic {
    ENTERED ->
    here[h] = 1; pins[h]++;
    if
    :: what == WRITE || NEW_ENOUGH -> hand_out()      /* a hit asks nobody */
    :: else -> lock[h] = 1; LOOK
    fi
  };
  do
  :: how == CACHED -> break
  :: else ->
     if
     :: atomic { d & 1 -> find(B(0));
          if
          :: x != HOSTS -> v0 = mem[M(x, 0)]; v1 = mem[M(x, 1)]
          :: else -> d = (d & ~1) | LATER; if :: BLOCKS == 1 -> d = LATER :: else fi
          fi;
          x = 0 }
     :: else
     fi;
#if BLOCKS == 2
     if
     :: atomic { d & 2 -> find(1);
          if :: x != HOSTS -> v1 = mem[M(x, 1)] :: else -> d = (d & ~2) | LATER fi;
          x = 0 }
     :: else
     fi;
#endif
     atomic {
       k = dirty[h] | writing[h];
       if                                  /* into place at once if there is nothing to go around, else when all is here */
       :: !(d & LATER) || k == 0 ->
          if :: (d & 1) && !(k & 1) -> HERE(0) = v0 :: else fi;
          if :: (d & 2) && !(k & 2) -> HERE(1) = v1 :: else fi
       :: else
       fi;
       if :: !(d & LATER) -> stamp[h] = e; hand_out() :: else fi;
       d = 0; v0 = 0; v1 = 0; k = 0;
#ifdef FILL_LOCKS_WHILE_WAITING
       if :: how == CACHED -> lock[h] = 0 :: else fi
#else
       lock[h] = 0
#endif
     };
     if
     :: how == CACHED
     :: else ->                            /* not now */
        QUIET(0) && QUIET(BLOCKS - 1);
#ifdef FILL_LOCKS_WHILE_WAITING
        lock[h] = 0;
#endif
        LOOK_EARLY
        atomic { FREE -> if :: stamp[h] >= e -> hand_out() :: else -> lock[h] = 1; LOOK fi }
     fi
  od;
  d = 0
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

/* Copies follow a put, if they are copies; else they are forgotten. What is dirty follows in any case. */
#ifdef WRITTEN_KEEPS_DIRTY
#define FOLLOWS AWAY(S(B(g)))
#else
#define FOLLOWS (AWAY(S(B(g))) || MINE)
#endif
inline written() {
  if :: here[h] && FOLLOWS -> HERE(g) = value[g] :: else fi;
#ifndef WRITTEN_KEEPS_COPY
  if :: here[h] && !AWAY(S(B(g))) -> stamp[h] = 0 :: else fi
#endif
}

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
     :: atomic { S(B(g)) != OWNED || what <= BOTH -> e = epoch[h] };
        if
        :: what <= BOTH ->
           open_unit();
           e = 0;
           atomic {
             if :: what == WRITE :: else -> assert(HERE(g) == value[g]) fi;
             if :: what == READ :: else -> NEW; HERE(g) = value[g] fi
           };
           atomic {                        /* checkin */
             FREE -> assert(HERE(g) == value[g]);
             if
             :: what != READ -> dirty[h] = dirty[h] | BIT(g); writing[h] = writing[h] & ~BIT(g)
             :: else
             fi;
             pins[h]--
           };
           break
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
