// Spawns that leave nothing behind, and a signal that finds them (docs/protocols/lazy.md, LZ). What the deque
// does with slots that it has is deque.pml; here a pop takes the lock.
//
// An owner calls, returns, and is interrupted between any two of its steps; thieves steal; somebody cancels all.
// Asserts: each continuation goes on once, from its own slot, and never before its child has taken its closure;
// those that the canceller's signal has found stop.
// Mutants: SIGNAL_IN_STUB RETURN_STAYS NOT_READY WITH_GAP SPLIT_FIRST SIGNAL_BEFORE_HANDLER TELL_FIRST
#ifndef DEPTH
#define DEPTH 3
#endif
#ifndef SPAWNS
#define SPAWNS 4
#endif
#ifndef SIGNALS
#define SIGNALS 2
#endif
#ifndef THIEVES
#define THIEVES 2
#endif

#define PLAIN 0
#define STUB 1
#define NOBODY 255

// The owner's stack: frame f, from 1, is a child's; its parent goes on when it returns.
byte parent[DEPTH + 1];    // the number of the spawn that frame f is
bit returns_to[DEPTH + 1]; // PLAIN or STUB
bit ready[DEPTH + 1];      // the child has its closure
byte depth = 0, spawned = 0, signals = 0;

byte slot[DEPTH + 1];  // what thieves read of slot f
byte bottom = 1, split = 1, top = 1;
byte lock = NOBODY;

byte went_on[SPAWNS];
bit over = 0;

bit request = 0, told = 0;  // to stop; a signal is on its way
bit must_stop[DEPTH + 1];   // the canceller's signal has found the spawn of frame f

inline goes_on(spawn) {
  went_on[spawn]++;
  assert(went_on[spawn] == 1)
}
// Where it does not go on by a plain return: it asks whether it is cancelled.
inline asks(f) { assert(request || !must_stop[f]) }

// In the signal handler. Thieves may come between its steps, the owner's program cannot.
inline expose(f, n) {
  signals++;
  n = bottom;  // how far: up to the oldest that is not ready
  do
#if defined(NOT_READY)
  :: n <= depth -> n++
#elif defined(WITH_GAP)
  :: n <= depth && (ready[n] || n < depth) -> n++
  :: n == depth && !ready[n] -> break
#else
  :: n <= depth && ready[n] -> n++
  :: n <= depth && !ready[n] -> break
#endif
  :: n > depth -> break
  od;
#ifdef SPLIT_FIRST
  if
  :: n > split -> split = split + (n - split + 1) / 2
  :: else -> skip
  fi;
#endif
  f = bottom;
  do
  :: f < n ->
     slot[f] = parent[f];
#ifndef RETURN_STAYS
     returns_to[f] = STUB;
#endif
     f++
  :: else -> break
  od;
  bottom = n;
#ifndef SPLIT_FIRST
  if
  :: bottom > split -> split = split + (bottom - split + 1) / 2  // LZ1, DQ2
  :: else -> skip
  fi;
#endif
  f = 0; n = 0
}

proctype owner() {
  byte b, f, n;
again:
  do
  :: depth < DEPTH && spawned < SPAWNS ->
     atomic {  // a call, and nothing else
       depth++;
       parent[depth] = spawned;
       returns_to[depth] = PLAIN;
       ready[depth] = 0;
       must_stop[depth] = 0;
       spawned++
     }
  :: depth > 0 && !ready[depth] -> ready[depth] = 1
  :: signals < SIGNALS && depth > 0 -> expose(f, n)
  :: told && depth > 0 ->
     told = 0;
     expose(f, n);
     atomic {
       f = 1;
       do
       :: f < bottom -> must_stop[f] = 1; f++
       :: else -> break
       od;
       f = 0
     }
  :: depth > 0 && ready[depth] && returns_to[depth] == PLAIN ->
     atomic { goes_on(parent[depth]); depth-- }
  :: depth > 0 && ready[depth] && returns_to[depth] == STUB -> break
  :: depth == 0 && spawned == SPAWNS -> goto done
  od;
  // The stub: from here on the signal keeps its hands off. LZ2
  b = bottom - 1;
  bottom = b;
#ifdef SIGNAL_IN_STUB
  if
  :: signals < SIGNALS -> expose(f, n)
  :: skip
  fi;
#endif
  atomic { lock == NOBODY -> lock = THIEVES };
  if
  :: top <= b ->
     if
     :: split > b -> split = b
     :: else -> skip
     fi;
     lock = NOBODY;
     asks(depth);
     if
     :: request ->  // it goes on in its handler, and looks as if it were calling until that runs. LZ3
        returns_to[depth] = PLAIN;
#ifdef SIGNAL_BEFORE_HANDLER
        if
        :: signals < SIGNALS -> expose(f, n)
        :: skip
        fi
#endif
     :: else -> skip
     fi;
     atomic { goes_on(parent[depth]); depth-- }
  :: else ->  // all have left: this thread ends, and nothing is below it
     assert(top == b + 1);
     bottom = 1; split = 1; top = 1;
     depth = 0;
     lock = NOBODY
  fi;
  b = 0;
  goto again;
done:
  over = 1
}

proctype thief(byte me) {
  byte t;
  do
  :: atomic { lock == NOBODY && top < split -> lock = me };
     t = top;
     if
     :: t < split ->
        // the frame lies on the owner's stack, where the child runs on
        assert(slot[t] == parent[t] && ready[t]);
        top = t + 1;
        asks(t);
        goes_on(slot[t])
     :: else -> skip
     fi;
     t = 0;
     lock = NOBODY
  :: over && top >= split -> break
  od
}

proctype canceller() {
#ifdef TELL_FIRST
  told = 1;
  request = 1
#else
  request = 1;  // LZ5
  told = 1
#endif
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i <= DEPTH -> slot[i] = NOBODY; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < THIEVES -> run thief(i); i++
    :: else -> break
    od;
    run owner();
    run canceller();
    i = 0
  }
  (over && _nr_pr == 1);
  i = 0;
  do
  :: i < SPAWNS -> assert(went_on[i] == 1); i++
  :: else -> break
  od
}
