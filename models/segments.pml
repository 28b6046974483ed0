/* Segments: are they in serial order, and is no value lost? (docs/protocols/segments.md, src/sched/segment_list.hpp,
 * segments.cpp)
 *
 * A worker runs a thread R above DEPTH continuations, all of them one segment. R ends, or suspends and goes on at
 * another worker, where its own continuation is stolen; then the owner goes on with the continuations that are left,
 * in place. THIEVES take the oldest ones. Each piece has its place in the serial order: R 0, what R spawns from 1,
 * the newest continuation 2, the next one 4, and so on. A list operation is one step: it has a lock of its own.
 * Asserted in the end: the places of the segments in the list rise.
 *
 * With MERGES: three segments side by side end, each by its worker, while a thread asks for the value. Asserted: it
 * gets all; in the end one segment is left.
 *
 * Mutants, must FAIL: INSERT_UNLOCKED (the thief makes the segment after it has unlocked the deque), PART_LATE (the
 * owner makes its parents' segment after R can be resumed), PART_UNLOCKED (without the deque's lock);
 * with MERGES: ASKS_UNLOCKED (who asks does not lock merges), MARK_LATE (not in one step with the look at the
 * neighbours).
 */
#ifndef DEPTH
#define DEPTH 3
#endif
#ifndef THIEVES
#define THIEVES 2
#endif

#define LOCK(l) atomic { !l -> l = 1 }
#define UNLOCK(l) l = 0

#ifndef MERGES

#define MOST (3 + DEPTH)
byte list[MOST], length = 1;        /* segment 0 is the owner's */
byte low[MOST], high[MOST];         /* of the places that a segment has had, plus one; 0: none */
byte segment, fresh = 1;            /* the owner's word; the next one that is made */
byte top = 1, bottom = DEPTH + 1;   /* continuations top .. bottom - 1 are here, the oldest first */
bit  deque, published, whole;       /* whole: nobody resumes R */
byte ended;
hidden byte q;

#define PLACE(i) (2 + 2 * (DEPTH - (i)))

inline insert(made, place) {
  d_step {
    made = fresh; fresh++;
    q = length;
    do
    :: list[q - 1] != place -> list[q] = list[q - 1]; q--
    :: else -> break
    od;
    list[q] = made; length++
  }
}

inline runs(s, place) {
  d_step {
    if
    :: low[s] == 0 || low[s] > place + 1 -> low[s] = place + 1
    :: else
    fi;
    if
    :: high[s] < place + 1 -> high[s] = place + 1
    :: else
    fi
  }
}

active proctype owner() {
  byte made, mine;
  runs(0, 0);
  if
  :: whole = 1
  ::
#ifdef PART_LATE
     published = 1;
#endif
#ifdef PART_UNLOCKED
     if
     :: top < bottom -> insert(made, segment); segment = made
     :: else
     fi;
#else
     LOCK(deque);
     if
     :: top < bottom -> insert(made, segment); segment = made
     :: else
     fi;
     UNLOCK(deque);
#endif
     published = 1
  fi;
  do
  :: LOCK(deque);
     if
     :: top < bottom -> bottom--; mine = bottom; UNLOCK(deque); runs(segment, PLACE(mine))
     :: else -> UNLOCK(deque); break
     fi
  od;
  ended++
}

active [THIEVES] proctype thief() {
  byte made, taken, victims;
  LOCK(deque);
  if
  :: top < bottom ->
     taken = top; top++; victims = segment;
#ifdef INSERT_UNLOCKED
     UNLOCK(deque);
     insert(made, victims);
#else
     insert(made, victims);
     UNLOCK(deque);
#endif
     runs(made, PLACE(taken))
  :: else -> UNLOCK(deque)
  fi;
  ended++
}

active proctype resumer() {
  byte made;
  if
  :: published -> insert(made, 0); runs(made, 1)
  :: whole
  fi;
  ended++
}

active proctype order() {
  byte i, last;
  ended == 2 + THIEVES;
  d_step {
    do
    :: i < length ->
       if
       :: low[list[i]] != 0 -> assert(last < low[list[i]]); last = high[list[i]]
       :: else
       fi;
       i++
    :: else -> break
    od
  }
}

#else

#define N 3
byte value[N] = { 1, 2, 4 };        /* bits: whose updates it holds */
bit  has_ended[N], unlinked[N];
bit  list, merges;
byte ended;
hidden byte q;

/* One beside x that has ended; N: none. */
inline ended_beside(x, found) {
  d_step {
    found = N; q = x;
    do
    :: q > 0 -> q--; if :: !unlinked[q] -> found = q; break :: else fi
    :: else -> break
    od;
    if
    :: found != N && has_ended[found]
    :: else ->
       found = N; q = x;
       do
       :: q < N - 1 -> q++; if :: !unlinked[q] -> found = q; break :: else fi
       :: else -> break
       od;
       if
       :: found != N && has_ended[found]
       :: else -> found = N
       fi
    fi
  }
}

active [N] proctype worker() {
  byte me = _pid, other;
  bit has_merges;
  do
  :: LOCK(list);
     ended_beside(me, other);
     if
     :: other == N -> break
     :: other != N && !has_merges -> UNLOCK(list); LOCK(merges); has_merges = 1
     :: else ->
        unlinked[other] = 1;
        UNLOCK(list);
        d_step { value[me] = value[me] | value[other]; value[other] = 0 }
     fi
  od;
#ifdef MARK_LATE
  UNLOCK(list);
  LOCK(list);
#endif
  has_ended[me] = 1;
  UNLOCK(list);
  if
  :: has_merges -> UNLOCK(merges)
  :: else
  fi;
  ended++
}

active proctype asks() {
  byte all;
#ifndef ASKS_UNLOCKED
  LOCK(merges);
#endif
  LOCK(list);
  d_step {
    q = 0;
    do
    :: q < N -> if :: !unlinked[q] -> all = all | value[q] :: else fi; q++
    :: else -> break
    od
  };
  UNLOCK(list);
  assert(all == 7);
#ifndef ASKS_UNLOCKED
  UNLOCK(merges);
#endif
  ended == N;
  assert(unlinked[0] + unlinked[1] + unlinked[2] == N - 1)
}
#endif
