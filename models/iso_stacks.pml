/* Policy iso: stacks at addresses of their own, given back by marks. docs/protocols/policies.md
 *
 * What it is: src/sched/stack_range.hpp. Worker 0 owns the stacks; each worker has memory at their addresses.
 * A thread lies in the memory of the worker that it runs on or was saved by; who takes it (a thief from the
 * deque, anybody from a queue of suspended threads) copies it to its own memory, in two parts. Taking is one step
 * here (deque.pml, join.pml). Who ends a thread gives its stack back: worker 0 into its list, others by a mark.
 * `mem` says whose bytes lie somewhere: the life of the stack that wrote them.
 * Asserted: a stack is handed out while no thread uses it; a copy reads the bytes of its thread; a running
 * thread finds its own; nothing enters the list twice; in the end it holds all. Must pass: the plain model.
 * Mutants, must FAIL: COPY_NOT_AWAITED (the thread goes on before its last bytes have come), LEFT_IS_FREE (a
 * worker whose thread was taken gives the stack back), MARK_FIRST (marked before the thread has left it),
 * MARKS_KEPT (not cleared by the sweep), CLEARED_TOGETHER (a sweep looks at all, then clears all), LIST_AND_MARK.
 */
#ifndef W
#define W 3
#endif
#ifndef S
#define S 2
#endif
#ifndef TAKES
#define TAKES 4
#endif
#define UNUSED 0             /* where the thread of a stack is */
#define RUNS(w) (1 + (w))
#define SAVED(w) (1 + W + (w))
#define COPIED(w) (1 + 2 * W + (w))  /* being copied by w */
#define NO S

byte place[S], life[S];
byte mem[W * S];
bit  mark[S];
bit  list[S];
byte takes, ended;

inline push() { assert(!list[s]); list[s] = 1 }

inline sweep() {
  s = 0;
  do
  :: s < S ->
     if
     :: atomic { mark[s] -> skip };
#if !defined(MARKS_KEPT) && !defined(CLEARED_TOGETHER)
        mark[s] = 0;
#endif
        push()
     :: else
     fi;
     s++
  :: else -> break
  od;
#ifdef CLEARED_TOGETHER
  s = 0; do :: s < S -> mark[s] = 0; s++ :: else -> break od;
#endif
  s = NO
}

inline end() {
#ifdef MARK_FIRST
  if :: me != 0 -> mark[s] = 1 :: else fi;
#endif
  place[s] = UNUSED;                       /* on the scheduler's stack from here on */
#ifndef MARK_FIRST
#ifdef LIST_AND_MARK
  mark[s] = 1;
#endif
  if :: me == 0 -> push() :: else -> mark[s] = 1 fi;   /* JH1 */
#else
  if :: me == 0 -> push() :: else fi;
#endif
  atomic { ended++; s = NO }
}

proctype worker(byte me) {
  byte s = NO, v, from, late = NO, tag;
  do
  :: atomic { ended == TAKES && s == NO && late == NO -> break }
  :: atomic { s != NO -> assert(mem[me * S + s] == life[s]); place[s] = SAVED(me); s = NO }
  :: atomic { s != NO && late == NO -> assert(mem[me * S + s] == life[s]) };
     end()
  :: atomic { s != NO && late != NO };
     end()
  :: atomic { s == NO && late == NO ->    /* take a thread over */
       v = 0;
       do
       :: v < S && place[v] >= SAVED(0) && place[v] < COPIED(0) -> break
       :: v < S -> v++
       :: v == S -> break
       od;
       if
       :: v < S && place[v] >= SAVED(0) && place[v] < COPIED(0) ->
          s = v; from = place[v] - SAVED(0); tag = life[v]; place[v] = COPIED(me)
       :: else
       fi;
       v = 0 };
     if
     :: s == NO
     :: else ->
        assert(mem[from * S + s] == tag);
#ifdef COPY_NOT_AWAITED
        if :: from != me -> late = s :: else fi;
#else
        assert(mem[from * S + s] == tag);
#endif
#ifdef LEFT_IS_FREE
        if :: from != me && from != 0 -> mark[s] = 1 :: else fi;
#endif
        atomic { mem[me * S + s] = tag; place[s] = RUNS(me); if :: late == NO -> from = 0; tag = 0 :: else fi }
     fi
  :: atomic { late != NO -> assert(mem[from * S + late] == tag); late = NO; from = 0; tag = 0 }
  :: atomic { me == 0 && takes < TAKES ->  /* spawn; who runs here leaves a continuation behind */
       if
       :: s != NO -> assert(mem[s] == life[s]); place[s] = SAVED(0); s = NO
       :: else
       fi };
     if
     :: sweep()
     :: skip
     fi;
     atomic {
       v = 0; do :: v < S && list[v] -> break :: v < S -> v++ :: v == S -> break od;
       if
       :: v < S && list[v] ->
          assert(place[v] == UNUSED);
          list[v] = 0; life[v]++; mem[v] = life[v]; place[v] = RUNS(0); takes++; s = v
       :: else
       fi;
       v = 0 }
  od;
  if
  :: me == 0 ->
     sweep();
     d_step { s = 0; do :: s < S -> assert(list[s] && place[s] == UNUSED); s++ :: else -> break od; s = NO }
  :: else
  fi
}

init { atomic { byte w; w = 0; do :: w < S -> list[w] = 1; w++ :: else -> break od;
  w = 0; do :: w < W -> run worker(w); w++ :: else -> break od; w = 0 } }
