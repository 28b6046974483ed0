/* A group: when is no member left? (docs/protocols/group.md, include/godwit/group.hpp)
 *
 * Two workers, each with a leaf. Members end, spawn members, and are stolen with what they are charged to, at any
 * moment. OUTSIDE threads that are no members spawn one each, INSIDE are spawned by members. WAITERS threads wait,
 * PHASES times each; the first one, when the others have done and nobody spawns from outside any more, waits for the
 * last time, and frees the group. A step is one access to a leaf, or one operation at the root.
 * Asserted: whoever waits goes on at a moment without members; nothing is touched that was freed. Invalid end state:
 * somebody waits for ever.
 *
 * Mutants, must FAIL: STAYS_LATE (the bit after the worker is registered), REGISTER_LATE (after the member has begun),
 * IGNORES_WAITING (the answer of the root is not looked at), NOT_OWNER (members are charged to a leaf that two workers
 * raise from 0), UNREGISTER_FIRST, LOOK_AGAIN (the leaf is looked at again after the last member left it),
 * ANNOUNCE_LATE (who waits says so after it has looked at the leaves), NO_VISIT, VISIT_EMPTY (unregisters leaves that
 * are 0 already), WAITS_ONCE (the root forgets that others are about to wait when it lets somebody go).
 */
#ifndef INSIDE
#define INSIDE 2
#endif
#ifndef WAITERS
#define WAITERS 1
#endif
#ifndef PHASES
#define PHASES 1
#endif
#ifndef OUTSIDE
#define OUTSIDE 2
#endif
#define WORKERS 2

byte leaf[WORKERS];           /* 2 * members charged to it + stays */
byte registered, waiting;     /* the root */
bit  queued[WAITERS], go[WAITERS];
byte here[4];                 /* members at worker w that are charged to leaf l: [2 * w + l] */
byte live, outside, began, inside, done;
bit  freed;
hidden byte q;

#define TOUCH assert(!freed)

/* In one operation with what made it 0. */
inline let_go() {
  if
  :: registered == 0 ->
     q = 0;
     do
     :: q < WAITERS ->
        if
        :: queued[q] ->
           assert(live == 0);
           queued[q] = 0; go[q] = 1; waiting--
        :: else
        fi;
        q++
     :: else -> break
     od;
#ifdef WAITS_ONCE
     waiting = 0
#endif
  :: else
  fi
}
inline unregister() { d_step { TOUCH; assert(registered > 0); registered--; let_go() } }
inline begins() { live++; here[2 * me + l]++ }

inline arrive() {
#ifdef NOT_OWNER
  l = 0;
#else
  l = me;
#endif
  if
  :: d_step { leaf[l] != 0 -> TOUCH; leaf[l] = leaf[l] + 2; begins() }
  :: atomic { leaf[l] == 0 -> TOUCH };
#ifdef REGISTER_LATE
     d_step { begins() };
#endif
#ifdef STAYS_LATE
     leaf[l] = 2;
#else
     leaf[l] = 3;                                                        /* GR2 */
#endif
     d_step { TOUCH; registered++; waits = (waiting != 0) };                 /* GR1 */
#ifdef IGNORES_WAITING
     waits = 0;
#endif
#ifdef STAYS_LATE
     if :: !waits -> d_step { TOUCH; leaf[l] = leaf[l] | 1 } :: else fi;
#else
     if :: waits -> d_step { TOUCH; leaf[l] = leaf[l] - leaf[l] % 2 } :: else fi;
#endif
#ifndef REGISTER_LATE
     d_step { begins() }
#endif
  fi;
  d_step { waits = 0; l = 0 }
}

inline depart() {
#ifdef UNREGISTER_FIRST
  if :: leaf[l] == 2 -> unregister() :: else fi;
  d_step { TOUCH; leaf[l] = leaf[l] - 2 };
#else
  d_step { TOUCH; assert(leaf[l] >= 2); was = leaf[l]; leaf[l] = was - 2 };      /* GR3 */
#ifdef LOOK_AGAIN
  d_step { TOUCH; was = (leaf[l] == 0 -> 2 : 0) };
#endif
  if :: was == 2 -> unregister() :: else fi;
#endif
  d_step { was = 0; l = 0 }
}

proctype worker(bit me) {
  byte l, was, c;
  bit waits;
end:
  do
  :: atomic { outside < OUTSIDE -> outside++ };
     arrive();
     began++
  :: atomic {                   /* a member spawns: it is here until it has done so */
       inside < INSIDE && here[2 * me] + here[2 * me + 1] != 0 -> inside++;
       if :: here[2 * me] != 0 -> c = 0 :: here[2 * me + 1] != 0 -> c = 1 fi;
       here[2 * me + c]--
     };
     arrive();
     d_step { here[2 * me + c]++; c = 0 }
  :: atomic {
       here[2 * me] + here[2 * me + 1] != 0 ->
       if :: here[2 * me] != 0 -> l = 0 :: here[2 * me + 1] != 0 -> l = 1 fi;
       here[2 * me + l]--; live--
     };
     depart()
  :: d_step { here[2 * (1 - me)] != 0 -> here[2 * (1 - me)]--; here[2 * me]++ }
  :: d_step { here[2 * (1 - me) + 1] != 0 -> here[2 * (1 - me) + 1]--; here[2 * me + 1]++ }
  od
}

proctype waiter(byte me) {
  byte phase, w, was;
  bit none_left;
  do
  :: phase < PHASES ->
     phase++;
     if :: me == 0 && phase == PHASES -> atomic { done == WAITERS - 1 && began == OUTSIDE -> skip } :: else fi;
     d_step {                                                            /* GR2 */
       TOUCH;
       none_left = (registered == 0);
       if
       :: none_left -> assert(live == 0)
       :: else ->
#ifndef ANNOUNCE_LATE
          waiting++
#else
          skip
#endif
       fi
     };
     if
     :: none_left
     :: else ->
        w = 0;
#ifndef NO_VISIT
        do
        :: w < WORKERS ->
           d_step { TOUCH; was = leaf[w]; leaf[w] = was - was % 2 };
#ifdef VISIT_EMPTY
           if :: was < 2 -> unregister() :: else fi;
#else
           if :: was == 1 -> unregister() :: else fi;
#endif
           w++
        :: else -> break
        od;
#endif
        skip;
        d_step {
          TOUCH;
#ifdef ANNOUNCE_LATE
          waiting++;
#endif
          if
          :: registered == 0 -> assert(live == 0); go[me] = 1; if :: waiting != 0 -> waiting-- :: else fi
          :: else -> queued[me] = 1
          fi
        };
        atomic { go[me] -> go[me] = 0 }
     fi;
     d_step { w = 0; was = 0; none_left = 0 }
  :: else -> break
  od;
  atomic { done++; if :: me == 0 -> freed = 1 :: else fi }
}

init {
  byte i;
  atomic {
    run worker(0);
    run worker(1);
    do :: i < WAITERS -> run waiter(i); i++ :: else -> break od
  }
}
