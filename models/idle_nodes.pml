/* Idleness of several nodes: a counter per node, one word for the job, letters within a node and between nodes.
 *
 * What it is: docs/protocols/idle_nodes.md. Sleeping and the steps inside one node are idle.pml's; here a worker's
 * deque and ready queue are one pool, taking from a pool is atomic and may fail for no reason, and an idle worker waits
 * until there is something to see: if nobody decides although nothing can happen, spin finds an invalid end state.
 * A remote operation that its caller waits for is one step at any moment before it goes on; one that it does not wait
 * for (mutants) is put on the wire, and `net` carries it out at some time.
 * The program: threads that spawn and end; the root thread may wait for all of them, send letters and wait for the
 * reply or not, or wait for something that nobody will ever do. Handling a letter may make a thread.
 * Worker w is on node w / PER.
 *
 * Variants, must pass: the plain model, ONE_WORD (count and announced in one atomic word), MERGE (a letter that finds
 * its node announced hands its unit to the node), SERVED (letters between nodes become letters within the receiver's
 * node, counted there by its server), PREPAID (a node subtracts K at once, and every letter between nodes takes one of
 * them along; it is delivered as a letter within the node, and what is left goes back when the node announces itself),
 * LATE (an idle worker announces, whenever it finds the count full; with PREPAID also if units are left), LIVE (with weak
 * fairness, the end comes; no attempt to take fails for ever).
 * Mutants, must FAIL:
 *   of the node's count     NO_RETEST, TEST_FIRST, LOOK_FIRST, FIRST_ONLY, CLEAR_FIRST, RUN_NOT_AWAITED, ADD_FIRST,
 *                           NO_GATE_RUN, NO_GATE_IDLE, SUB_TWICE, ADD_TWICE, TRY_GATE
 *   of the work             TAKE_FIRST, STEAL_NOT_AWAITED, ROOT_NOT_AWAITED
 *   of letters              LETTER_NOT_COUNTED, LETTER_AFTER_PUSH, LETTER_NOT_AWAITED, ADD_NOT_AWAITED, ADD_WHEN_IDLE,
 *                           RECEIVER_NOT_RUNNING, LOCAL_NOT_COUNTED; with MERGE: KEEPS_UNIT; with SERVED:
 *                           SERVER_NOT_AWAITED, SERVER_IGNORES_ANNOUNCED; with PREPAID: UNIT_BEFORE_COUNT,
 *                           UNIT_AFTER_PUSH, DELIVERY_NOT_COUNTED, NO_UNIT, UNITS_AFTER_LOOK, UNITS_KEPT, UNITS_LOST,
 *                           ANNOUNCED_KEEPS, PREPAY_NOT_AWAITED; with LATE and PREPAID: LATE_KEEPS
 */
#ifndef N
#define N 3
#endif
#ifndef PER
#define PER 2
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
#define NONE 0
#define PLAIN 1
#define ROOT 2

short idle_nodes = 0;         /* job: announced nodes minus letters between nodes */
short idle[NODES];            /* node: idle workers minus letters within the node */
bit  announced[NODES], gate[NODES];
byte pool[N]; bit poolr[N];   /* deque and ready queue: plain threads, the root thread */
byte near[N], far[N];        /* mailbox: letters of this node, of other nodes */
byte task[N];                 /* what a worker runs or holds in its hands */
bit  root_done, shutdown, deadlock, stuck;
byte waiting;                 /* the root thread: 1 for a reply, 2 for all threads */
byte spawns, live, letters;
hidden byte i;

#if defined(RUN_NOT_AWAITED) || defined(LETTER_NOT_AWAITED) || defined(ADD_NOT_AWAITED) || \
  defined(STEAL_NOT_AWAITED) || defined(ROOT_NOT_AWAITED)
#define NET
byte subs, adds;              /* on the wire */
bit  done_put, asked[N];
byte answer[N];
#define HAS_ANSWER(w) (answer[w] != NONE)
#else
#define HAS_ANSWER(w) false
#endif
#ifdef PREPAID
#ifndef K
#define K 2
#endif
byte units[NODES];            /* node: units of idle_nodes that it may give to letters */
byte wire[N];                 /* letters under way to a worker, each with a unit */
#define UNDER_WAY(w) (wire[w] != 0)
#else
#define UNDER_WAY(w) false
#endif
#ifdef SERVED
byte sent[N];                 /* 1 + whom the worker's letter is for, until the server there has answered */
#define AWAITS(w) (sent[w] != 0)
#else
#define AWAITS(w) false
#endif

/* IN1: nobody has anything, or the report is false. */
inline decide() {
  d_step {
    i = 0;
    do
    :: i < N -> assert(task[i] == NONE && pool[i] == 0 && !poolr[i] && near[i] == 0 && far[i] == 0);
                assert(!HAS_ANSWER(i) && !AWAITS(i) && !UNDER_WAY(i)); i++
    :: else -> break
    od; i = 0;
    assert(root_done || stuck);
    if :: root_done -> shutdown = 1 :: else -> deadlock = 1 fi
  }
}

inline lock(x) { atomic { !gate[x] -> gate[x] = 1 } }
inline unlock(x) { gate[x] = 0 }

/* Something on node x is about to run or to be handled: returns when the job's word no longer counts x as idle. */
inline count_in(x) {
#if defined(ONE_WORD)
  atomic { idle[x]--; seen = announced[x] };
#elif defined(LOOK_FIRST)
  seen = announced[x];
  idle[x]--;
#elif defined(FIRST_ONLY)
  atomic { seen = (idle[x] == SIZE(x)); idle[x]-- };
#else
  idle[x]--;                              /* IN2: count, then look */
  seen = announced[x];
#endif
  if
  :: seen ->
#ifndef NO_GATE_RUN
     lock(x);
#endif
#ifndef SUB_TWICE
     seen = announced[x];
#endif
     if
     :: seen ->
#if defined(CLEAR_FIRST)
        announced[x] = 0;
        idle_nodes--
#elif defined(RUN_NOT_AWAITED)
        subs++;
        announced[x] = 0
#elif defined(PREPAID)
        atomic { if :: units[x] > 0 -> units[x]--; seen = 0 :: else fi };
        if :: seen -> idle_nodes-- :: else fi;   /* IN6: a unit that came with a letter will do */
        announced[x] = 0
#else
        idle_nodes--;                     /* IN3: remote; when it is done, */
        announced[x] = 0                  /* let the others pass */
#endif
     :: else
     fi;
     seen = 0;
#ifndef NO_GATE_RUN
     unlock(x)
#endif
  :: else
  fi
}

inline become_running() {
  if :: is_idle -> is_idle = 0; count_in(NODE(me)) :: else fi
}

/* The addition made the node's count full: tell the job, unless that is no longer so. */
inline announce(x) {
#if defined(TRY_GATE)
  atomic { if :: gate[x] -> goto announced_end :: else -> gate[x] = 1 fi };
#elif !defined(NO_GATE_IDLE)
  lock(x);
#endif
#ifdef ADD_TWICE
  if
  :: true ->
#else
  if
  :: !announced[x] ->
#endif
#if defined(ONE_WORD)
     atomic { if :: idle[x] == SIZE(x) -> announced[x] = 1; seen = 1 :: else fi };
#elif defined(NO_RETEST)
     announced[x] = 1; seen = 1;
#elif defined(TEST_FIRST)
     seen = (idle[x] == SIZE(x));
     if :: seen -> announced[x] = 1 :: else fi;
#else
     announced[x] = 1;                    /* IN2: announce, then look again */
     seen = (idle[x] == SIZE(x));
#ifndef ADD_FIRST
     if :: !seen -> announced[x] = 0 :: else fi;
#endif
#endif
#ifdef ADD_FIRST
     atomic { idle_nodes++; last = (idle_nodes == NODES) };
     if :: !seen -> idle_nodes--; announced[x] = 0 :: else fi;
#else
     if
     :: seen -> atomic { idle_nodes++; last = (idle_nodes == NODES) }     /* IN1 */
     :: else
     fi;
#endif
     seen = 0
  :: else
  fi;
#ifndef NO_GATE_IDLE
  unlock(x);
#endif
#ifdef TRY_GATE
announced_end:
#endif
  if :: last -> last = 0; decide() :: else fi
}

#ifdef PREPAID
/* The same, and what the node has left of prepaid units goes back: also if it was announced meanwhile. */
inline announce_all(x) {
  lock(x);
#ifndef UNITS_AFTER_LOOK
  atomic { took = units[x]; units[x] = 0 };      /* IN6: take what is left, then announce, then look */
#endif
  if :: !announced[x] -> announced[x] = 1; now = 1 :: else fi;
  seen = (idle[x] == SIZE(x));
#ifdef UNITS_AFTER_LOOK
  atomic { took = units[x]; units[x] = 0 };
#endif
#ifdef ANNOUNCED_KEEPS
  if :: !now && seen -> seen = 0 :: else fi;
#endif
  if
  :: !seen ->
     if :: now -> announced[x] = 0 :: else fi;
#ifndef UNITS_LOST
     atomic { units[x] = units[x] + took }
#endif
  :: else ->
#ifdef UNITS_KEPT
     took = 0;
#endif
     if
     :: now || took > 0 -> atomic { idle_nodes = idle_nodes + now + took; last = (idle_nodes == NODES) }   /* IN1 */
     :: else
     fi
  fi;
  atomic { took = 0; now = 0; seen = 0 };
  unlock(x);
  if :: last -> last = 0; decide() :: else fi
}
#endif

inline become_idle() {
  is_idle = 1;
  atomic { idle[NODE(me)]++; seen = (idle[NODE(me)] == SIZE(NODE(me))) };
#if defined(LATE)
  seen = 0
#elif defined(PREPAID)
  if :: seen -> seen = 0; announce_all(NODE(me)) :: else fi
#else
  if :: seen -> seen = 0; announce(NODE(me)) :: else fi
#endif
}

inline push_letter(to) {
  if
  :: NODE(to) == NODE(me) ->
#ifndef LOCAL_NOT_COUNTED
     idle[NODE(me)]--;                    /* IN4 */
#endif
     near[to]++
  :: else ->
#if defined(SERVED)
     atomic { !AWAITS(me) -> sent[me] = to + 1 }
#elif defined(PREPAID)
     atomic { if :: units[NODE(me)] > 0 -> units[NODE(me)]-- :: else -> seen = 1 fi };
#ifdef NO_UNIT
     seen = 0;
#endif
#ifdef PREPAY_NOT_AWAITED
     atomic { if :: seen -> units[NODE(me)] = units[NODE(me)] + K - 1 :: else fi; wire[to]++ };
     if :: seen -> seen = 0; idle_nodes = idle_nodes - K :: else fi
#else
     if
     :: seen -> seen = 0;
        idle_nodes = idle_nodes - K;      /* IN6: remote; when it is done, */
        atomic { units[NODE(me)] = units[NODE(me)] + K - 1 }
     :: else
     fi;
     atomic { wire[to]++ }                /* the letter takes one along */
#endif
#elif defined(LETTER_NOT_COUNTED)
     far[to]++
#elif defined(LETTER_AFTER_PUSH)
     far[to]++;
     idle_nodes--
#elif defined(LETTER_NOT_AWAITED)
     subs++;
     far[to]++
#else
     idle_nodes--;                        /* IN4: remote; when it is done, */
     far[to]++                            /* the letter may be seen */
#endif
  fi
}

inline handle() {                         /* one letter: completes the root's record, may make a thread */
  atomic {
    if :: waiting == 1 -> waiting = 0; poolr[me] = 1 :: else fi;
    if :: spawns < SPAWNS -> spawns++; live++; pool[me]++ :: true fi
  }
}

inline read_mail() {
#ifdef MERGE
  /* Taken first: until its unit is given back, a letter in the hand counts like one in the box. */
  atomic { nears = near[me]; fars = far[me]; fees = fars; near[me] = 0; far[me] = 0; task[me] = PLAIN };
  if
  :: is_idle ->
     is_idle = 0;
     idle[NODE(me)]--;
     if
     :: announced[NODE(me)] ->
        lock(NODE(me));
        if
        :: announced[NODE(me)] ->
           assert(fees > 0);             /* a letter of the own node would have kept it from being announced */
#ifndef KEEPS_UNIT
           fees--;
#endif
           announced[NODE(me)] = 0        /* the letter's unit is now the node's: no remote operation */
        :: else
        fi;
        unlock(NODE(me))
     :: else
     fi
  :: else
  fi;
#else
#ifndef RECEIVER_NOT_RUNNING
  become_running();
#endif
  atomic { nears = near[me]; fars = far[me]; fees = fars; near[me] = 0; far[me] = 0; task[me] = PLAIN };
#endif
  do
  :: nears > 0 ->
     nears--;
     handle();
#ifndef LOCAL_NOT_COUNTED
     atomic { idle[NODE(me)]++; assert(idle[NODE(me)] < SIZE(NODE(me))) }         /* IN4: cannot make it full */
#endif
  :: fars > 0 -> fars--; handle()
  :: else -> break
  od;
  task[me] = NONE;
#if defined(ADD_NOT_AWAITED)
  d_step { adds = adds + fees; fees = 0 }
#elif defined(LETTER_NOT_COUNTED)
  fees = 0
#elif defined(ADD_WHEN_IDLE)
  if
  :: fees > 0 ->
     if
     :: pool[me] == 0 && !poolr[me] && near[me] == 0 && far[me] == 0 -> become_idle()
     :: else
     fi;
     atomic { idle_nodes = idle_nodes + fees; fees = 0 }
  :: else
  fi
#else
  if
  :: fees > 0 -> atomic { idle_nodes = idle_nodes + fees; fees = 0; assert(idle_nodes < NODES) }    /* IN4 */
  :: else
  fi
#endif
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

#define OWN (WORK(me) || near[me] != 0 || far[me] != 0 || HAS_ANSWER(me))

proctype worker(byte me) {
#ifdef PREPAID
  byte took; bit now;
#endif
  byte v, to, nears, fars, fees;
  bit is_idle, seen, last, waits;
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
  :: near[me] != 0 || far[me] != 0 -> read_mail()
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
#if defined(LATE) && defined(PREPAID) && !defined(LATE_KEEPS)
  :: is_idle && (!announced[NODE(me)] || units[NODE(me)] > 0) && idle[NODE(me)] == SIZE(NODE(me)) ->
       announce_all(NODE(me))
#elif defined(LATE) && defined(PREPAID)
  :: is_idle && !announced[NODE(me)] && idle[NODE(me)] == SIZE(NODE(me)) -> announce_all(NODE(me))
#elif defined(LATE)
  :: is_idle && !announced[NODE(me)] && idle[NODE(me)] == SIZE(NODE(me)) -> announce(NODE(me))
#endif
#ifdef SERVER_NOT_AWAITED
  :: !is_idle && !OWN -> become_idle()
#else
  :: !is_idle && !OWN && !AWAITS(me) -> become_idle()           /* IN4: not before the answer */
#endif
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
  bit seen;
end:
  do
  :: atomic { subs > 0 -> subs--; idle_nodes-- }
  :: atomic { adds > 0 -> adds--; idle_nodes++ }
  :: atomic { done_put -> done_put = 0; root_done = 1 }
  :: atomic { asked[0] && WORK(N - 1) -> asked[0] = 0; give(0, N - 1) }
  :: atomic { asked[N - 1] && WORK(0) -> asked[N - 1] = 0; give(N - 1, 0) }
  od
}
#endif

#ifdef SERVED
#define FOR_X(w) (AWAITS(w) && NODE(sent[w] - 1) == x)
proctype server(byte x) {                 /* puts letters of other nodes into the mailboxes of node x */
  byte w; bit seen;
end:
  do
  :: atomic { FOR_X(0) -> w = 0; goto put }
  :: atomic { FOR_X(1) -> w = 1; goto put }
#if N > 2
  :: atomic { FOR_X(2) -> w = 2; goto put }
#endif
#if N > 3
  :: atomic { FOR_X(3) -> w = 3; goto put }
#endif
  od;
put:
#ifdef SERVER_IGNORES_ANNOUNCED
  idle[x]--;
#else
  count_in(x);                            /* IN4: the letter counts before it can be seen; till then its sender runs */
#endif
  atomic { near[sent[w] - 1]++ };
  atomic { sent[w] = 0; w = 0; goto end } /* the answer */
}
#endif

#ifdef PREPAID
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
#if defined(UNIT_BEFORE_COUNT)
  atomic { units[x]++ };
  idle[x]--;
  atomic { near[w]++; wire[w]--; w = 0; goto end }
#elif defined(UNIT_AFTER_PUSH)
  idle[x]--;
  atomic { near[w]++; wire[w]-- };
  atomic { units[x]++; w = 0; goto end }
#elif defined(DELIVERY_NOT_COUNTED)
  atomic { units[x]++ };
  atomic { near[w]++; wire[w]--; w = 0; goto end }
#else
  idle[x]--;                              /* IN6: count the letter, then its unit is the node's, then push */
  atomic { units[x]++ };
  atomic { near[w]++; wire[w]--; w = 0; goto end }
#endif
}
#endif

init { atomic {
  i = 0; do :: i < N -> run worker(i); i++ :: else -> break od; i = 0;
#ifdef NET
  run net();
#endif
#ifdef PREPAID
  do :: i < NODES -> run delivery(i); i++ :: else -> break od; i = 0;
#endif
#ifdef SERVED
  do :: i < NODES -> run server(i); i++ :: else -> break od; i = 0
#endif
} }

#ifdef LIVE
ltl ends { <> (shutdown || deadlock) }
#endif
