/* Blocks that move between hosts: who owns one now, who may use its bytes, how accesses find it.
 *
 * What it is: docs/protocols/move.md. HOSTS hosts; the home of every block is host 0. X(h, b) is the place of block b on
 * host h: its two words, `place` (owner, version) and `local` (state, who closes, uses; registered), and its bytes, which are
 * a counter. All accesses are additions of one, so whatever is lost or done twice shows in the end. A request to another
 * host is one step there, with everything in between: what a companion does under a use is what a near access does in
 * several steps here. Memory is sequentially consistent. Asserted: an access asks at most MOST times (an answer `not now` is
 * not counted), a redirect is newer than what led to it, a copy is not older than what asked for it, the owner's word is exact
 * and the home's at most one move behind; in the end each block has one owner, no uses, every addition, and its home knows
 * where it is.
 * What it is not: the cache, its units and locks (move_cache.pml); budgets; many blocks in one message.
 *
 * Roles, each of one worker:
 *   user     adds one, twice, from wherever it is to wherever the block is
 *   holder   a long use of a block if it is owned here; meanwhile adds one to another block, then to this one
 *   fetcher  the cache of a host: fills its place with a copy, under the lock of the unit; what arrives takes it too
 *   mover    pulls a block to its host. With ABORT its patience may be over at any moment
 *   greedy   a holder that pulls another block meanwhile: two may wait for each other until one's patience is over (ABORT)
 * With FORWARD a user's requests are small ones: who is asked and does not have the block sends them on. One on its way is a
 * step of its own, and may come to any state, at its own host too.
 * CASE: who is there, see init. Run by models/check.sh. Mutants, must FAIL:
 *   uses     NEAR_WITHOUT_USE, CLOSING_REFUSES_NESTED
 *   source   FREEZE_BEFORE_DRAIN, UNREGISTERED_CLOSES, ABORT_FORGETS, ABORT_KEEPS_CLOSED
 *   arrival  ARRIVE_AT_ONCE, ARRIVAL_WITHOUT_LOCK, LOCK_WHILE_WAITING, OWNED_BEFORE_DATA, LEFT_BEFORE_DATA, TWO_PULLERS
 *   hints    NO_VERSION, HOME_NOT_TOLD, NEVER_ASKS_HOME, LOCAL_BEFORE_PLACE
 *   FORWARD  SENT_ON_FOR_EVER, SENT_ON_PAST_HOME, SENT_ON_AND_DONE
 * and CASE=8 without ABORT.
 */
#ifndef CASE
#define CASE 1
#endif
#if CASE == 10
#define HOSTS 7
#else
#define HOSTS 3
#endif
#if CASE == 2 || CASE == 5 || CASE == 6 || CASE == 8
#define BLOCKS 2
#else
#define BLOCKS 1
#endif
#ifndef MOST
#define MOST 6
#endif
#define X(h, b) ((h) * BLOCKS + (b))
#define HOME 0

#define ELSEWHERE 0
#define WANTED 1
#define ARRIVING 2
#define OWNED 3
#define CLOSING 4
#define FROZEN 5
#ifdef ARRIVE_AT_ONCE
#define FIRST ARRIVING
#else
#define FIRST WANTED
#endif

byte state[HOSTS * BLOCKS];                /* local */
byte uses[HOSTS * BLOCKS];
bit registered[HOSTS * BLOCKS];
byte closer[HOSTS * BLOCKS];               /* for which host it is closing: that + 1 */
bit lock[HOSTS * BLOCKS];                  /* of the unit that the bytes lie in */
byte owner[HOSTS * BLOCKS];                /* place */
byte version[HOSTS * BLOCKS];
byte bytes[HOSTS * BLOCKS];                /* the bytes in this host's window */
byte added[BLOCKS];                        /* what they must be at the owner */
byte ended;

#define AWAY(s) ((s) == ELSEWHERE || (s) == WANTED)
#define HAS(s) ((s) == OWNED || (s) == CLOSING)
#define BETWEEN(s) ((s) == FROZEN || (s) == ARRIVING)
#ifdef CLOSING_REFUSES_NESTED
#define MAY_USE(s) ((s) == OWNED)
#else
#define MAY_USE(s) ((s) == OWNED || ((s) == CLOSING && holds))
#endif

/* What an owner answers */
#define NONE 0
#define DONE 1
#define NOT_NOW 2
#define REDIRECT 3                         /* with its place: t2, v2 */
#define CLOSED 4                           /* for us, but it is in use */
#define MOVED 5                            /* frozen, for us */

inline learn(x, o, v) {                    /* a newer place only: MV1 */
  if
#ifdef NO_VERSION
  :: true ->
#else
  :: v > version[x] ->
#endif
     owner[x] = o; version[x] = v
  :: else
  fi
}

/* First `place`, then `local`: MV2. Who finds the block elsewhere then goes to an owner whose bytes have arrived. */
inline look(h, b) {
#ifndef LOCAL_BEFORE_PLACE
  atomic { t = owner[X(h, b)]; v = version[X(h, b)] }
#else
  skip
#endif
}
#ifndef LOCAL_BEFORE_PLACE
#define GOES_AWAY(h, b) AWAY(state[X(h, b)]) && t != h
#else
#define GOES_AWAY(h, b) AWAY(state[X(h, b)]) }; atomic { t = owner[X(h, b)]; v = version[X(h, b)]; true
#endif

/* What t answers. DONE: what is asked is carried out in the same step. */
inline ask(b) {
  s = state[X(t, b)];
  if
  :: HAS(s) -> reply = DONE
  :: BETWEEN(s) -> reply = NOT_NOW
  :: AWAY(s) -> reply = REDIRECT; t2 = owner[X(t, b)]; v2 = version[X(t, b)]
  fi;
  s = 0
}

/* The answer was REDIRECT. Once it is followed; then the home is asked, and what it says is followed. */
inline redirected(h, b) {
#ifndef FORWARD
  assert(turns == 2 || v2 > v);            /* else the hint led to who has never had it */
#endif
  learn(X(h, b), t2, v2);
  turns++; reply = NONE; t = 0; v = 0; t2 = 0; v2 = 0
}
#ifdef NEVER_ASKS_HOME
#define TURN(h)
#else
#define TURN(h) if :: turns == 2 && h != HOME -> t = HOME :: else fi;
#endif

/* FORWARD: t does not have it, and sends the request on: the second time to the home. No third time. */
#ifdef FORWARD
#ifdef SENT_ON_PAST_HOME
#define NEXT t2
#else
#define NEXT (turns == 1 && t != HOME -> HOME : t2)
#endif
#ifdef SENT_ON_FOR_EVER
#define MAY_SEND true
#else
#define MAY_SEND (turns < 2)
#endif
inline send_on() {
  if
  :: reply == REDIRECT && MAY_SEND && NEXT != t -> on = NEXT + 1; turns++; reply = NONE; t = 0; t2 = 0; v2 = 0
#ifdef SENT_ON_AND_DONE
     ; bytes[X(on - 1, b)]++
#endif
  :: else
  fi
}
#else
#define send_on()
#endif

inline heard() {
  if
#ifdef FORWARD
  :: reply == NONE
#endif
  :: reply == DONE -> break
  :: atomic { reply == NOT_NOW && !BETWEEN(state[X(t, b)]) -> reply = NONE; t = 0; v = 0 }
  :: atomic { reply == REDIRECT -> redirected(h, b) }
  fi
}

inline add_one(x) { bytes[x]++; added[b]++ }

proctype user(byte h; byte b; bit holds; byte times; byte held) {
  byte t, v, t2, v2, s, reply, asked, turns;
#ifdef FORWARD
  byte on;                                 /* where the request goes that was sent on: that + 1 */
#endif
  bit got;
  if                                       /* a holder: a long use, if that block is owned here */
  :: holds ->
     atomic { if :: state[X(h, held)] == OWNED -> uses[X(h, held)]++; got = 1 :: else -> holds = 0 fi }
  :: else
  fi;
  do
  :: times == 0 -> break
  :: times != 0 ->
     asked = 0; turns = 0;
     do
#ifdef FORWARD
     :: atomic {                           /* it comes to who it was sent on to; who answers says that it is the owner */
          on != 0 -> t = on - 1; on = 0; ask(b);
          if
          :: reply == DONE -> add_one(X(t, b)); learn(X(h, b), t, version[X(t, b)])
          :: else
          fi;
          if :: reply != NOT_NOW -> asked++; assert(asked <= MOST) :: else fi;
          send_on()
        };
        heard()
     :: on == 0 ->
#else
     ::
#endif
        look(h, b);
        if
        :: MAY_USE(state[X(h, b)]) ->
           atomic {
             t = 0; v = 0; s = state[X(h, b)];
#ifndef NEAR_WITHOUT_USE
             uses[X(h, b)]++
#endif
           };
           if
           :: atomic { MAY_USE(s) -> add_one(X(h, b)); reply = DONE; s = 0 }
           :: atomic { !MAY_USE(s) -> s = 0 }
           fi;
#ifndef NEAR_WITHOUT_USE
           uses[X(h, b)]--;
#endif
           if :: reply == DONE -> break :: else fi
        :: atomic {
             GOES_AWAY(h, b) -> TURN(h) ask(b);
             if :: reply == DONE -> add_one(X(t, b)) :: else fi;
             if :: reply != NOT_NOW -> asked++; assert(asked <= MOST) :: else fi;
             send_on()
           };
           heard()
        :: atomic {                        /* asked even so: what is not newer then is `not now` */
             BETWEEN(state[X(h, b)]) && t != h -> TURN(h) ask(b);
             if
             :: reply == DONE -> add_one(X(t, b))
             :: reply == REDIRECT && turns != 2 && v2 <= v -> reply = NOT_NOW; t2 = 0; v2 = 0
             :: else
             fi;
             if :: reply != NOT_NOW -> asked++; assert(asked <= MOST) :: else fi;
             send_on()
           };
           heard()
        :: atomic { AWAY(state[X(h, b)]) && t == h -> t = 0; v = 0 }     /* it came and left since we looked */
        :: atomic { !MAY_USE(state[X(h, b)]) && !AWAY(state[X(h, b)]) -> t = 0; v = 0 };
           MAY_USE(state[X(h, b)]) || AWAY(state[X(h, b)])
        fi
     od;
     atomic { reply = NONE; t = 0; v = 0; times-- }
  od;
  if
  :: got -> atomic { bytes[X(h, held)]++; added[held]++ }; uses[X(h, held)]--
  :: else
  fi;
  ended++
}

proctype fetcher(byte h; byte b) {
  byte t, v, t2, v2, s, n, least, reply, turns;
  bit holds;
  least = added[b];
  do
  :: look(h, b);
     if
     :: HAS(state[X(h, b)]) -> break       /* no copy is needed */
     :: atomic { AWAY(state[X(h, b)]) && t != h && !lock[X(h, b)] -> lock[X(h, b)] = 1 };
        atomic { TURN(h) ask(b); if :: reply == DONE -> n = bytes[X(t, b)]; assert(n >= least) :: else fi };
        if
        :: atomic { reply == DONE -> bytes[X(h, b)] = n; n = 0 }
#ifdef LOCK_WHILE_WAITING
        :: reply == NOT_NOW && !BETWEEN(state[X(t, b)])
        :: reply == REDIRECT
#else
        :: reply == NOT_NOW || reply == REDIRECT
#endif
        fi;
        lock[X(h, b)] = 0;
        if
        :: reply == DONE -> break
        :: atomic { reply == NOT_NOW && !BETWEEN(state[X(t, b)]) -> reply = NONE; t = 0; v = 0 }
        :: atomic { reply == REDIRECT -> redirected(h, b) }
        fi
     :: atomic { AWAY(state[X(h, b)]) && t == h -> t = 0; v = 0 }
     :: atomic { BETWEEN(state[X(h, b)]) -> t = 0; v = 0 };
        !BETWEEN(state[X(h, b)])
     fi
  od;
  ended++
}

#ifdef ABORT
#define IMPATIENT true
#else
#define IMPATIENT false
#endif
#ifdef UNREGISTERED_CLOSES
#define MAY_CLOSE(x) (state[x] == OWNED)
#else
#define MAY_CLOSE(x) (state[x] == OWNED && registered[x])
#endif
#ifdef FREEZE_BEFORE_DRAIN
#define UNUSED(x) true
#else
#define UNUSED(x) (uses[x] == 0)
#endif
#ifdef TWO_PULLERS
#define MAY_WANT(s) AWAY(s)
#else
#define MAY_WANT(s) ((s) == ELSEWHERE)
#endif

/* The request `close`, at t. First owned -> closing for us, if it may; then, if it is unused, closing -> frozen. */
#define OURS (closer[X(t, b)] == h + 1)
inline close() {
  if
  :: MAY_CLOSE(X(t, b)) -> state[X(t, b)] = CLOSING; closer[X(t, b)] = h + 1
  :: else
  fi;
  if
  :: state[X(t, b)] == CLOSING && OURS && UNUSED(X(t, b)) -> state[X(t, b)] = FROZEN; reply = MOVED;
     assert(owner[X(t, b)] == t && owner[X(HOME, b)] == t)     /* exact; at most one move behind */
  :: state[X(t, b)] == CLOSING && OURS && !UNUSED(X(t, b)) -> reply = CLOSED
  :: state[X(t, b)] == CLOSING && !OURS -> reply = NOT_NOW
  :: AWAY(state[X(t, b)]) -> reply = REDIRECT; t2 = owner[X(t, b)]; v2 = version[X(t, b)]
  :: BETWEEN(state[X(t, b)]) || (state[X(t, b)] == OWNED && !MAY_CLOSE(X(t, b))) -> reply = NOT_NOW
  fi
}

proctype mover(byte h; byte b; bit holds; byte held) {
  byte t, v, t2, v2, n, reply, turns;
  bit got;
  if                                       /* greedy */
  :: holds -> atomic { if :: state[X(h, held)] == OWNED -> uses[X(h, held)]++; got = 1 :: else fi }
  :: else
  fi;
  if
  :: atomic { MAY_WANT(state[X(h, b)]) -> state[X(h, b)] = FIRST };
     do
     :: atomic { t = owner[X(h, b)]; v = version[X(h, b)]; TURN(h) assert(t != h); close() };
        if
        :: reply == MOVED -> break
        :: atomic { reply == CLOSED && (UNUSED(X(t, b)) || state[X(t, b)] != CLOSING) -> reply = NONE }
        :: reply == CLOSED && IMPATIENT -> break
        :: atomic { reply == NOT_NOW && (AWAY(state[X(t, b)]) || MAY_CLOSE(X(t, b))) -> reply = NONE }
        :: reply == NOT_NOW && IMPATIENT -> break
        :: atomic { reply == REDIRECT -> redirected(h, b) }
        fi
     od;
#ifdef ABORT_FORGETS
     if
     :: reply == MOVED
     :: reply == MOVED -> reply = NOT_NOW
     :: else
     fi;
#endif
     if
     :: reply == MOVED ->
        atomic { v = version[X(t, b)] + 1; owner[X(t, b)] = h; version[X(t, b)] = v };    /* still at t */
        state[X(h, b)] = ARRIVING;
#ifdef OWNED_BEFORE_DATA
        atomic { owner[X(h, b)] = h; version[X(h, b)] = v; registered[X(h, b)] = 0; state[X(h, b)] = OWNED };
#endif
#ifdef LEFT_BEFORE_DATA
        atomic { state[X(t, b)] = ELSEWHERE; closer[X(t, b)] = 0 };
        bytes[X(t, b)] = 0;                /* as the cache of that host may, by discarding or filling */
#endif
        n = bytes[X(t, b)];
#ifdef ARRIVAL_WITHOUT_LOCK
        atomic { bytes[X(h, b)] = n; n = 0 };
#else
        atomic { !lock[X(h, b)] -> bytes[X(h, b)] = n; n = 0 };
#endif
#ifndef OWNED_BEFORE_DATA
        atomic { learn(X(h, b), h, v); registered[X(h, b)] = 0; state[X(h, b)] = OWNED };
#endif
#ifndef HOME_NOT_TOLD
        atomic { learn(X(HOME, b), h, v) };    /* register */
#endif
        registered[X(h, b)] = 1;
        atomic { state[X(t, b)] = ELSEWHERE; closer[X(t, b)] = 0 }     /* left */
     :: reply == CLOSED ->                 /* patience is over */
#ifndef ABORT_KEEPS_CLOSED
        atomic { if :: state[X(t, b)] == CLOSING && OURS -> state[X(t, b)] = OWNED; closer[X(t, b)] = 0 :: else fi };      /* `open`, at t */
#endif
        state[X(h, b)] = ELSEWHERE
     :: reply == NOT_NOW -> state[X(h, b)] = ELSEWHERE
     fi
  :: atomic { state[X(h, b)] == OWNED -> uses[X(h, b)]++ };  /* from worker to worker of this host */
     version[X(h, b)]++;
     uses[X(h, b)]--
  :: IMPATIENT
  fi;
  atomic { reply = NONE; t = 0; v = 0; turns = 0 };
  if
  :: got -> uses[X(h, held)]--
  :: else
  fi;
  ended++
}

#define USER(h, b) run user(h, b, 0, 2, 0)
#define HOLDER(h, b, other) run user(h, other, 1, 1, b)
#define MOVER(h, b) run mover(h, b, 0, 0)
#define GREEDY(h, b, other) run mover(h, other, 1, b)

init {
  byte i, n, owners, all;
  atomic {
    do
    :: i < BLOCKS ->
#if CASE == 6
       n = 0;                              /* both blocks on host 0 */
#else
       n = i;                              /* block i on host i */
#endif
       state[X(n, i)] = OWNED; registered[X(n, i)] = 1;
       owners = n; n = 0;
       do :: n < HOSTS -> owner[X(n, i)] = owners; version[X(n, i)] = 1; n++ :: else -> break od;
       i++
    :: else -> break
    od;
#if CASE == 10                             /* it was on hosts 1, 2, 3, 4, which know the next one only; host 6 knows the first */
    state[0] = ELSEWHERE; state[5] = OWNED; registered[5] = 1;
    owner[0] = 5; version[0] = 6;
    n = 1;
    do :: n < 6 -> owner[n] = (n < 5 -> n + 1 : 5); version[n] = (n < 5 -> n + 2 : 6); n++ :: else -> break od;
    owner[6] = 1; version[6] = 2;
    all = 3; MOVER(1, 0); MOVER(2, 0); USER(6, 0)
#endif
#if CASE == 1                              /* two movers, users */
    all = 4; MOVER(1, 0); MOVER(2, 0); USER(0, 0); USER(1, 0)
#elif CASE == 2                            /* crossed holders and movers */
    all = 4; HOLDER(0, 0, 1); HOLDER(1, 1, 0); MOVER(1, 0); MOVER(0, 1)
#elif CASE == 3                            /* a fill against arrivals */
    all = 4; run fetcher(1, 0); MOVER(1, 0); MOVER(2, 0); USER(0, 0)
#elif CASE == 4                            /* away and back */
    all = 4; MOVER(1, 0); MOVER(2, 0); MOVER(0, 0); USER(2, 0)
#elif CASE == 5                            /* holders, both blocks leave for a third host */
    all = 5; HOLDER(0, 0, 1); HOLDER(1, 1, 0); MOVER(2, 0); MOVER(2, 1); USER(2, 0)
#elif CASE == 6                            /* crossed long uses on one host, both blocks leave */
    all = 4; HOLDER(0, 0, 1); HOLDER(0, 1, 0); MOVER(1, 0); MOVER(2, 1)
#elif CASE == 7                            /* two pullers on one host, and one that takes it back */
    all = 4; MOVER(1, 0); MOVER(1, 0); MOVER(0, 0); USER(2, 0)
#elif CASE == 8                            /* each holds what the other pulls */
    all = 2; GREEDY(0, 0, 1); GREEDY(1, 1, 0)
#elif CASE == 9                            /* a copy at the old owner, and back */
    all = 4; run fetcher(0, 0); MOVER(1, 0); MOVER(0, 0); USER(0, 0)
#endif
  };
  ended == all;
  atomic {
    i = 0;
    do
    :: i < BLOCKS ->
       owners = 0; n = 0;
       do
       :: n < HOSTS ->
          assert(uses[X(n, i)] == 0);
          if
          :: state[X(n, i)] != ELSEWHERE ->
             assert(state[X(n, i)] == OWNED && bytes[X(n, i)] == added[i] && registered[X(n, i)] && owner[X(HOME, i)] == n);
             owners++
          :: else
          fi;
          n++
       :: else -> break
       od;
       assert(owners == 1);
       i++
    :: else -> break
    od
  }
}
