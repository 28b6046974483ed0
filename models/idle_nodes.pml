/* Idleness of several nodes: a count per node, waves along a tree of nodes, letters within a node and between nodes.
 *
 * What it is: docs/protocols/idle_nodes.md. Sleeping and the steps inside one node are idle.pml's; here a worker's
 * deque and ready queue are one pool, taking from a pool is atomic and may fail for no reason, and an idle worker waits
 * until there is something to see: if a wave stops and nobody decides, spin finds an invalid end state.
 * A remote operation that its caller waits for is one step at any moment before it goes on; one that it does not wait
 * for (mutants) is put on the wire, and `net` carries it out at some time. What a wave sends is not waited for either,
 * but is a step all the same: its receiver may look at it as late as it likes.
 * The program: threads that spawn and end; the root thread may wait for all of them, send letters and wait for the
 * reply or not, or wait for something that nobody will ever do. Handling a letter may make a thread.
 * Worker w is on node w / PER; node x > 0 is below node (x - 1) / FAN. The epoch in the upper half of a node's count is
 * one bit here: has it changed since the last visit?
 *
 * Must pass: the plain model; LIVE (with weak fairness, the end comes; no attempt to take fails for ever).
 * Mutants, must FAIL:
 *   of waves      ONE_WAVE (clean or not), LEFT_FIRST (the epoch, then the count), NOT_FULL (a visit does not look at
 *                 the count), OWN_FIRST (a node answers before those below it), RESET_LATE, NO_GATE, KEEPS_CHANGED,
 *                 UNCLEAN_LOST (what those below say of that is not passed on)
 *   of letters    NOT_SUMMED, SUM_LATE (a visit looks at the letters after the count), SENT_NOT_COUNTED,
 *                 DELIVERY_NOT_COUNTED, DELIVERED_FIRST, COUNT_AFTER_PUSH, LOCAL_NOT_COUNTED, RECEIVER_NOT_RUNNING
 *   of the work   TAKE_FIRST, STEAL_NOT_AWAITED, ROOT_NOT_AWAITED
 */
#ifndef N
#define N 3
#endif
#ifndef PER
#define PER 1
#endif
#ifndef FAN
#define FAN 1
#endif
#ifndef SPAWNS
#define SPAWNS 1
#endif
#ifndef LETTERS
#define LETTERS 1
#endif
#define NODES ((N + PER - 1) / PER)
#define NODE(w) ((w) / PER)
#define SIZE(x) ((x) == NODES - 1 -> N - (x) * PER : PER)
#define ABOVE(x) (((x) - 1) / FAN)
#define NONE 0
#define PLAIN 1
#define ROOT 2
#define ASKED 1               /* of a wave: the node above has asked */
#define PASSED_ON 2           /* and those below have been */

short idle[NODES];            /* node: idle workers minus letters within the node */
bit  changed[NODES] = 1;      /* somebody has left idleness since the last visit, or there has been none */
short sent[NODES];            /* letters sent to other nodes minus delivered from them */
byte wave[NODES];             /* NONE, ASKED, PASSED_ON */
byte pending[NODES];          /* answers of those below that are not here yet, */
bit  unclean[NODES];          /* and what the others say together */
short sum[NODES];
bit  gate[NODES];
byte pool[N]; bit poolr[N];   /* deque and ready queue: plain threads, the root thread */
byte near[N];                 /* mailbox */
byte wire[N];                 /* letters of other nodes under way to a worker */
byte task[N];                 /* what a worker runs or holds in its hands */
bit  root_done, shutdown, deadlock, stuck;
byte waiting;                 /* the root thread: 1 for a reply, 2 for all threads */
byte spawns, live, letters;
hidden byte i;

#if defined(STEAL_NOT_AWAITED) || defined(ROOT_NOT_AWAITED)
#define NET
bit  done_put, asked[N];
byte answer[N];
#define HAS_ANSWER(w) (answer[w] != NONE)
#else
#define HAS_ANSWER(w) false
#endif

/* IN1: nobody has anything, or the report is false. */
inline decide() {
  d_step {
    i = 0;
    do
    :: i < N -> assert(task[i] == NONE && pool[i] == 0 && !poolr[i] && near[i] == 0 && wire[i] == 0);
                assert(!HAS_ANSWER(i)); i++
    :: else -> break
    od; i = 0;
    assert(root_done || stuck);
    if :: root_done -> shutdown = 1 :: else -> deadlock = 1 fi
  }
}

inline become_running() {
  if
  :: is_idle ->
#ifdef LEFT_FIRST
     changed[NODE(me)] = 1;
     atomic { is_idle = 0; idle[NODE(me)]-- }
#else
     atomic { is_idle = 0; idle[NODE(me)]--; changed[NODE(me)] = 1 }      /* IN2: one word */
#endif
  :: else
  fi
}

#ifdef NOT_FULL
#define FULL(x) true
#else
#define FULL(x) (idle[x] == SIZE(x))
#endif
#ifdef OWN_FIRST
#define ALL_BELOW(x) true
#else
#define ALL_BELOW(x) (pending[x] == 0)
#endif
#define HAS_STEP(x) (FULL(x) && (wave[x] == ASKED || (wave[x] == NONE && x == 0) || (wave[x] == PASSED_ON && ALL_BELOW(x))))

inline ask_below(x) {
  do
  :: y < NODES ->
     atomic { if :: y > 0 && ABOVE(y) == x -> assert(wave[y] == NONE); wave[y] = ASKED :: else fi; y++ }
  :: else -> y = 0; break
  od
}
inline reset(x) {
  d_step {
    pending[x] = 0; unclean[x] = 0; sum[x] = 0;
    do
    :: y < NODES -> if :: y > 0 && ABOVE(y) == x -> pending[x]++ :: else fi; y++
    :: else -> y = 0; break
    od
  }
}

/* An idle worker's part in a wave that is at its node. */
inline step(x) {
  if
  :: wave[x] != PASSED_ON ->
#ifdef RESET_LATE
     wave[x] = PASSED_ON;
     ask_below(x);
     reset(x)
#else
     atomic { reset(x); wave[x] = PASSED_ON };                    /* IN3: before anybody below can answer */
     ask_below(x)
#endif
  :: else
  fi;
  if
  :: ALL_BELOW(x) ->
#ifndef SUM_LATE
     l = sent[x];                         /* IN4: the letters, then the count */
#endif
     atomic {                             /* the visit: one look at one word */
       all = FULL(x);
       if
       :: all -> c = changed[x];
#ifndef KEEPS_CHANGED
          changed[x] = 0
#endif
       :: else
       fi
     };
#ifdef SUM_LATE
     l = sent[x];
#endif
     if
     :: all ->
#ifndef UNCLEAN_LOST
        c = c || unclean[x];
#endif
        l = l + sum[x];
        if
        :: x == 0 ->
           wave[x] = NONE;
#ifdef ONE_WAVE
           c = 0;
#endif
#ifdef NOT_SUMMED
           l = 0;
#endif
           last = (!c && l == 0)          /* IN1 */
        :: else ->
           wave[x] = NONE;                /* IN3: before the answer, after which the next wave may come */
           atomic { unclean[ABOVE(x)] = unclean[ABOVE(x)] || c; sum[ABOVE(x)] = sum[ABOVE(x)] + l;
                    pending[ABOVE(x)]-- }
        fi
     :: else
     fi;
     atomic { c = 0; l = 0; all = 0 }
  :: else
  fi;
#ifndef NO_GATE
  gate[x] = 0;
#endif
  if :: last -> last = 0; decide() :: else fi
}

inline become_idle() { atomic { is_idle = 1; idle[NODE(me)]++ } }

inline push_letter(to) {
  if
  :: NODE(to) == NODE(me) ->
#ifndef LOCAL_NOT_COUNTED
     idle[NODE(me)]--;                    /* ID2 */
#endif
     near[to]++
  :: else ->
#ifndef SENT_NOT_COUNTED
     sent[NODE(me)]++;                    /* IN4: before the worker becomes idle */
#endif
     wire[to]++
  fi
}

inline handle() {                         /* one letter: completes the root's record, may make a thread */
  atomic {
    if :: waiting == 1 -> waiting = 0; poolr[me] = 1 :: else fi;
    if :: spawns < SPAWNS -> spawns++; live++; pool[me]++ :: true fi
  }
}

inline read_mail() {
#ifndef RECEIVER_NOT_RUNNING
  become_running();
#endif
  atomic { nears = near[me]; near[me] = 0; task[me] = PLAIN };
  do
  :: nears > 0 ->
     nears--;
     handle();
#if !defined(LOCAL_NOT_COUNTED) && !defined(DELIVERY_NOT_COUNTED)
     atomic { idle[NODE(me)]++; assert(idle[NODE(me)] < SIZE(NODE(me))) }         /* ID2: cannot make it full */
#endif
  :: else -> break
  od;
  task[me] = NONE
}

#ifdef LIVE
#define MAY_FAIL else
#else
#define MAY_FAIL true
#endif
#define WORK(w) (pool[w] != 0 || poolr[w])
inline take(w) {
  atomic { if
    :: pool[w] != 0 -> pool[w]--; task[me] = PLAIN
    :: poolr[w] -> poolr[w] = 0; task[me] = ROOT
    :: MAY_FAIL
    fi }
}

#define OWN (WORK(me) || near[me] != 0 || HAS_ANSWER(me))

proctype worker(byte me) {
  byte v, to, nears, y;
  short l;
  bit is_idle, last, waits, c, all;
  if :: me == 0 -> task[0] = ROOT :: else fi;
work:
  do                                      /* running a thread */
  :: atomic { task[me] == NONE -> break }
  :: atomic { task[me] != NONE && spawns < SPAWNS -> spawns++; live++; pool[me]++ }
  :: atomic { task[me] == PLAIN -> live--; task[me] = NONE;
       if
       :: live == 0 && waiting == 2 -> waiting = 0; if :: task[me] = ROOT :: poolr[me] = 1 fi
       :: else
       fi }
  :: atomic { task[me] == ROOT && live > 0 -> waiting = 2; task[me] = NONE }
#ifdef ROOT_NOT_AWAITED
  :: atomic { task[me] == ROOT -> done_put = 1; task[me] = NONE }
#else
  :: atomic { task[me] == ROOT -> root_done = 1; task[me] = NONE }                /* IN5: done before going on */
#endif
  :: atomic { task[me] == ROOT -> stuck = 1; task[me] = NONE }
  :: atomic { task[me] == ROOT && letters < LETTERS ->
       letters++; if :: waiting = 1; waits = 1 :: skip fi;
       select(to : 0 .. N - 1); if :: to == me -> to = (me + 1) % N :: else fi };
     push_letter(to);
     atomic { to = 0; if :: waits -> waits = 0; task[me] = NONE :: else fi }
  od;

  do                                      /* the scheduler loop; an idle worker waits here */
  :: shutdown || deadlock -> goto out
  :: near[me] != 0 -> read_mail()
#ifdef STEAL_NOT_AWAITED
  :: HAS_ANSWER(me) -> become_running(); atomic { task[me] = answer[me]; answer[me] = NONE; goto work }
  :: atomic { !is_idle && !OWN && !asked[me] -> asked[me] = 1 }
#endif
  :: atomic { WORK(0) -> v = 0; goto see }
  :: atomic { WORK(1) -> v = 1; goto see }
#if N > 2
  :: atomic { WORK(2) -> v = 2; goto see }
#endif
#if N > 3
  :: atomic { WORK(3) -> v = 3; goto see }
#endif
#ifdef NO_GATE
  :: is_idle && !shutdown && !deadlock && HAS_STEP(NODE(me)) -> step(NODE(me))
#else
  :: atomic { is_idle && !shutdown && !deadlock && HAS_STEP(NODE(me)) && !gate[NODE(me)] -> gate[NODE(me)] = 1 };
     step(NODE(me))
#endif
  :: !is_idle && !OWN -> become_idle()
  od;
see:
#ifdef TAKE_FIRST
  take(v);
  v = 0;
  if :: task[me] != NONE -> become_running() :: else fi;
#else
  become_running();                       /* IN2: before touching any work, here or there */
  atomic { take(v); v = 0 };
#endif
  goto work;
out:
  assert(shutdown || deadlock)
}

#ifdef NET
inline give(w, from) {
  if :: pool[from] != 0 -> pool[from]--; answer[w] = PLAIN :: else -> poolr[from] = 0; answer[w] = ROOT fi
}

proctype net() {
end:
  do
  :: atomic { done_put -> done_put = 0; root_done = 1 }
  :: atomic { asked[0] && WORK(N - 1) -> asked[0] = 0; give(0, N - 1) }
  :: atomic { asked[N - 1] && WORK(0) -> asked[N - 1] = 0; give(N - 1, 0) }
  od
}
#endif

proctype delivery(byte x) {               /* letters of other nodes: into the mailboxes of node x */
  byte w;
end:
  do
  :: atomic { NODE(0) == x && wire[0] > 0 -> w = 0; goto put }
  :: atomic { NODE(1) == x && wire[1] > 0 -> w = 1; goto put }
#if N > 2
  :: atomic { NODE(2) == x && wire[2] > 0 -> w = 2; goto put }
#endif
#if N > 3
  :: atomic { NODE(3) == x && wire[3] > 0 -> w = 3; goto put }
#endif
  od;
put:
#if defined(DELIVERED_FIRST)
  sent[x]--;
  idle[x]--;
  atomic { near[w]++; wire[w]--; w = 0; goto end }
#elif defined(DELIVERY_NOT_COUNTED)
  sent[x]--;
  atomic { near[w]++; wire[w]--; w = 0; goto end }
#elif defined(COUNT_AFTER_PUSH)
  atomic { near[w]++; wire[w]-- };
  idle[x]--;
  atomic { sent[x]--; w = 0; goto end }
#else
  idle[x]--;                              /* IN4: a letter of the node, then none between nodes, then push */
  sent[x]--;
  atomic { near[w]++; wire[w]--; w = 0; goto end }
#endif
}

init { atomic {
  i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0;
#ifdef NET
  run net();
#endif
  do :: i < NODES -> run delivery(i); i++ :: else -> break od; i = 0
} }

#ifdef LIVE
ltl ends { <> (shutdown || deadlock) }
#endif
