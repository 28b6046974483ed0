/* Requests to other hosts: a worker and its companion (the ring, sleeping on both sides); with AM, workers that carry
 * out each other's requests themselves.
 *
 * What it is: docs/protocols/far.md. Plain: WORKERS workers post requests with and without answer for ever, one
 * companion takes, answers and frees them (two workers: one each); both sides sleep as the code does. AM: two hosts with a worker and a
 * companion each; the workers steal from each other word by word (lock, read, unlock without waiting), take their own
 * lock, idle and exit, in any order. What it is not: what a request does (deque.pml, join.pml); MPI is a queue that
 * keeps the order of messages between two ranks.
 * Memory, plain: every process has a FIFO store buffer of two entries that a daemon drains at any time; an atomic
 * addition and a fence wait until it is empty. Contents of entries go straight to memory: behind them in the
 * FIFO is always the store that publishes them; what a weaker CPU could do is in the mutants. AM: sequentially
 * consistent; its sleeps are those of the plain model.
 * SIGNAL: the companion sleeps in a poll, and a signal is the bell.
 * Sleep has no end of its own here: a wake-up that is lost is an invalid end state. TIMEOUT: a sleeper may also wake when
 * there is something for it to see; then the mutants of FA3 must pass, that is, they cost time only.
 *
 * Run by models/check.sh. Mutants, must FAIL:
 *   plain  CONTENTS_AFTER_POSTED, CONTENTS_BEFORE_LOOK (FA1), REPLY_AFTER_DONE, REPLY_BEFORE_LOOK (FA2), FREE_BEFORE_READ,
 *          NO_FENCE_POST, NO_FENCE_SLEEP, NO_FENCE_DONE, NO_FENCE_WAIT, NO_LOOK_SLEEP, NO_LOOK_WAIT, SEEN_LATE_SLEEP,
 *          SEEN_LATE_WAIT (FA3), SLEEP_UNANSWERED; with WORKERS=2: LOOK_AT_FIRST; with SIGNAL: UNBLOCKED;
 *          with RING=2: BEGIN_FIRST, GOES_ON_FIRST (FA4)
 *   AM     NO_SERVE_IN_WAIT, NO_SERVE_IN_LOCK, NO_ALERT, NO_INBOX_LOOK, INBOX_SILENT, NOT_TAKEN_OVER,
 *          SHUTDOWN_IS_GONE, LOOK_BEFORE_GONE
 * With TIMEOUT, must pass: the fences, NO_INBOX_LOOK, INBOX_SILENT.
 */
#define FREE 0
#define POSTED 1
#define TAKEN 2
#define DONE 3

#ifndef AM
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef RING
#define RING 2
#endif
#ifndef POSTS
#define POSTS 1                            /* with two workers: then each computes, and looks at nothing */
#endif
#define E(w, s) ((w) * RING + (s))         /* word: state of an entry */
#define DEAF (WORKERS * RING)              /* word */
#define WAITING(w) (DEAF + 1 + (w))        /* words */
byte word[DEAF + 1 + WORKERS];
chan sbc = [2] of { byte, byte };          /* store buffers: companion, workers */
chan sb0 = [2] of { byte, byte };
chan sb1 = [2] of { byte, byte };
byte bell, answers[WORKERS];               /* only changed by atomic additions */
bit  asleep_c, asleep[WORKERS], pending;   /* SIGNAL: of the companion */
#define NONE 0                             /* contents of an entry: what is not there (yet) */
#define ASYNC 1
#define ASKS 2
#define REPLY 3
byte contents[WORKERS * RING];
#if RING > 1                                /* one worker */
bit  begins;                               /* contents of the first entry: all before it had ended */
chan order = [RING] of { byte };           /* ghost: what has been posted and not been taken */
#endif

#define EMPTY(b) (len(b) == 0)
#ifdef TIMEOUT
#define OR_SEES(x) || (x)
#else
#define OR_SEES(x)
#endif

#if !defined(SIGNAL)                       /* the companion sleeps on the bell's futex */
#define RING_BELL atomic { EMPTY(sb) -> bell = (bell + 1) % 8 }; asleep_c = 0
#define FALL_ASLEEP if :: bell == seen -> asleep_c = 1 :: else fi; seen = 0
#elif !defined(UNBLOCKED)                  /* in a poll that a signal ends: one before it stays pending */
#define RING_BELL atomic { EMPTY(sb) -> if :: asleep_c -> asleep_c = 0 :: else -> pending = 1 fi }
#define FALL_ASLEEP asleep_c = !pending; pending = 0; seen = 0
#else                                      /* one before it is over */
#define RING_BELL atomic { EMPTY(sb) -> asleep_c = 0 }
#define FALL_ASLEEP asleep_c = 1; seen = 0
#endif

proctype worker(byte me; chan sb) {
  byte s, seen, early;
  bit asks, done;
#if RING > 1
  bit again;
#endif
#if WORKERS > 1
  byte posts;
#endif
#define MINE E(me, s)
#define IS_FREE ((word[MINE] == FREE || sb ?? [eval(MINE), FREE]) && !(sb ?? [eval(MINE), POSTED]))   /* own stores first */
#define FREE_AT(i) ((word[E(me, i)] == FREE || sb ?? [eval(E(me, i)), FREE]) && !(sb ?? [eval(E(me, i)), POSTED]))
#define ALL_FREE (FREE_AT(0) && FREE_AT(RING - 1))
#define IS_DONE (word[MINE] == DONE && !(sb ?? [eval(MINE), _]))
  do
#if WORKERS > 1
  :: posts == POSTS -> break
  :: posts < POSTS -> posts++;
#else
  :: true ->
#endif
#if RING > 1
     atomic { if :: ALL_FREE -> s = 0; again = 1 :: else -> again = 0 fi };   /* FA4: no request is under way */
#endif
     atomic { IS_FREE -> if :: asks = 0 :: asks = 1 fi; contents[MINE] = NONE };
#if RING > 1
     atomic { if :: s == 0 -> begins = again :: else fi; again = 0; order ! s };
#endif
#ifdef CONTENTS_AFTER_POSTED
     sb ! MINE, POSTED;
     contents[MINE] = ASYNC + asks;
#else
     contents[MINE] = ASYNC + asks;
     sb ! MINE, POSTED;                    /* FA1 release */
#endif
#ifndef NO_FENCE_POST
     EMPTY(sb);                            /* FA3 fence: posted, then deaf */
#endif
     if
     :: word[DEAF] -> RING_BELL
     :: else
     fi;
     do
     :: !asks -> break
     :: asks ->
#ifdef REPLY_BEFORE_LOOK
        early = contents[MINE];
#endif
        if
        :: IS_DONE -> break                /* FA2 acquire */
        :: else
        fi;
#ifndef SEEN_LATE_WAIT
        seen = answers[me];
#endif
        sb ! WAITING(me), 1;
#ifndef NO_FENCE_WAIT
        EMPTY(sb);                         /* FA3 fence: waiting, then done */
#endif
#ifndef NO_LOOK_WAIT
        done = IS_DONE;
#endif
#ifdef SEEN_LATE_WAIT
        seen = answers[me];
#endif
        if
        :: !done ->
           atomic { if :: answers[me] == seen -> asleep[me] = 1 :: else fi; seen = 0 };
           atomic { !asleep[me] OR_SEES(IS_DONE) -> asleep[me] = 0 }
        :: else
        fi;
        atomic { nfull(sb) -> sb ! WAITING(me), 0; done = 0; seen = 0 }
     od;
     if
     :: asks ->
#ifdef REPLY_BEFORE_LOOK
        assert(early == REPLY);
#else
        assert(contents[MINE] == REPLY);
#endif
        atomic { nfull(sb) -> sb ! MINE, FREE; early = 0 }
     :: else
     fi;
     atomic { s = (s + 1) % RING; asks = 0 }
  od
}

#define OWN(w) E(w, next[w])
#define IS_POSTED(w) (word[OWN(w)] == POSTED && !(sbc ?? [eval(OWN(w)), _]))
#if RING > 1
#define BEGINS (next[0] != 0 && word[E(0, 0)] == POSTED && !(sbc ?? [eval(E(0, 0)), _]) && begins)
#else
#define BEGINS false
#endif
#ifdef LOOK_AT_FIRST
#define ANY_POSTED IS_POSTED(0)
#else
#define ANY_POSTED (IS_POSTED(0) || IS_POSTED(WORKERS - 1) || BEGINS)
#endif

inline take(w) {
#if RING > 1                                /* two looks: where the ring goes on, then where it begins (FA4) */
  atomic {
#ifdef BEGIN_FIRST
    nfull(sbc) -> from = (BEGINS -> 0 : RING)
#else
    (IS_POSTED(w) || BEGINS) && nfull(sbc) -> from = (IS_POSTED(w) -> next[w] : RING)
#endif
  };
  atomic {
    nfull(sbc) && (from != RING || IS_POSTED(w) || BEGINS) ->
    if
#ifdef BEGIN_FIRST
    :: from == RING && IS_POSTED(w) -> from = next[w]
#elif !defined(GOES_ON_FIRST)
    :: BEGINS -> from = 0
#else
    :: from == RING && BEGINS -> from = 0
#endif
    :: else
    fi;
    at = E(w, from); order ? from; assert(E(w, from) == at);
    next[w] = (from + 1) % RING; from = 0; sbc ! at, TAKEN
  };
#else
  atomic {
    IS_POSTED(w) && nfull(sbc) ->          /* FA1 acquire */
#ifdef CONTENTS_BEFORE_LOOK
    m = before[w]; before[w] = NONE;
#endif
    at = OWN(w); next[w] = (next[w] + 1) % RING; sbc ! at, TAKEN
  };
#endif
#ifdef FREE_BEFORE_READ
  if :: contents[at] != ASKS -> sbc ! at, FREE :: else fi;
#endif
#ifndef CONTENTS_BEFORE_LOOK
  m = contents[at];
#endif
  assert(m == ASYNC || m == ASKS);
  if
  :: m == ASKS -> atomic { asked[w] = 1 + at; m = NONE; at = 0 }
  :: else -> 
#ifndef FREE_BEFORE_READ
     sbc ! at, FREE;                       /* the message is a copy */
#endif
     atomic { m = NONE; at = 0 }
  fi
}

inline finish(w) {                         /* the answer has arrived */
  atomic { asked[w] != 0 -> at = asked[w] - 1; asked[w] = 0 };
#ifdef REPLY_AFTER_DONE
  sbc ! at, DONE;
  contents[at] = REPLY;
#else
  contents[at] = REPLY;
  sbc ! at, DONE;                          /* FA2 release */
#endif
#ifndef NO_FENCE_DONE
  EMPTY(sbc);                              /* FA3 fence: done, then waiting */
#endif
  at = 0;
  if
  :: word[WAITING(w)] -> atomic { EMPTY(sbc) -> answers[w] = (answers[w] + 1) % 4 }; asleep[w] = 0
  :: else
  fi
}

proctype companion() {
  byte next[WORKERS], asked[WORKERS], before[WORKERS];
  byte at, m, seen;
#if RING > 1
  byte from;
#endif
  bit posted;
end:
  do
#ifdef CONTENTS_BEFORE_LOOK
  :: before[0] = contents[OWN(0)]
#endif
  :: take(0)
  :: finish(0)
#if WORKERS > 1
  :: take(1)
  :: finish(1)
#endif
#ifdef SLEEP_UNANSWERED
  :: true ->
#else
  :: asked[0] == 0 && asked[WORKERS - 1] == 0 ->   /* the network cannot wake it: no sleep while answers are due */
#endif
#ifndef SEEN_LATE_SLEEP
     seen = bell;
#endif
     sbc ! DEAF, 1;
#ifndef NO_FENCE_SLEEP
     EMPTY(sbc);                           /* FA3 fence: deaf, then posted */
#endif
#ifndef NO_LOOK_SLEEP
     posted = ANY_POSTED;
#endif
#ifdef SEEN_LATE_SLEEP
     seen = bell;
#endif
     if
     :: !posted ->
        atomic { FALL_ASLEEP };
end_asleep:
        atomic { !asleep_c OR_SEES(IS_POSTED(0) || IS_POSTED(WORKERS - 1)) -> asleep_c = 0 }
     :: else
     fi;
     atomic { nfull(sbc) -> sbc ! DEAF, 0; posted = 0; seen = 0 }
  od
}

proctype drain(chan sb) {
  byte w, v;
end:
  do
  :: atomic { sb ? w, v -> word[w] = v; w = 0; v = 0 }
  od
}

init {
  atomic {
    run companion(); run drain(sbc);
    run worker(0, sb0); run drain(sb0);
#if WORKERS > 1
    run worker(1, sb1); run drain(sb1);
#endif
  }
}

#else  /* ------------------------------------------------------------------ AM ------------------------ */
#ifndef OPS
#define OPS 1
#endif
#define XCHG 1                             /* requests: set the target's lock, answer: what it was; */
#define GET 2                              /* read what the lock protects; */
#define UNLOCK 3                           /* no answer */
#define ANSWER 4                           /* a message that is no request */
chan ring0 = [2] of { byte };              /* host: requests of its worker, in order */
chan ring1 = [2] of { byte };
chan net0 = [4] of { byte, bit };          /* messages to a host: one tag, so they keep their order */
chan net1 = [4] of { byte, bit };
chan back0 = [4] of { byte };              /* requests that do not fit into the inbox */
chan back1 = [4] of { byte };
byte in[2], in_op[2]; bit in_result[2];    /* the inbox: one entry */
byte executed[2];                          /* ghost: how often the request in the inbox was carried out */
bit  lock[2], thief_has[2], owner_has[2];  /* the deque's lock of a worker; ghosts */
bit  answered[2], result[2];
bit  asleep[2];
bit  gone[2], shutdown;
#ifdef INBOX_SILENT
bit  awake[2];                             /* companion: else it sleeps only when there is nothing to do */
#define WAKE(h) awake[h] = 1
#define AWAKE(h) awake[h]
#else
#define WAKE(h) skip
#define AWAKE(h) true
#endif

#ifdef TIMEOUT
#define OR_SEES(x) || (x)
#else
#define OR_SEES(x)
#endif
#ifdef SHUTDOWN_IS_GONE
#define GONE(h) shutdown
#else
#define GONE(h) gone[h]
#endif

inline execute(h) {                        /* by the worker, or by the companion if that is gone */
  atomic {
    executed[h]++; assert(executed[h] == 1);
    if
    :: in_op[h] == XCHG -> in_result[h] = lock[h]; lock[h] = 1
    :: in_op[h] == GET -> assert(lock[h] && thief_has[h])
    :: in_op[h] == UNLOCK -> assert(lock[h] && !thief_has[h]); lock[h] = 0
    fi
  }
}

inline serve() {                           /* in[me] == POSTED */
  execute(me);
  in[me] = DONE                            /* FA2, and the bell */
}

inline await() {                           /* look, then sleep: the plain model */
  do
  :: atomic { answered[me] -> answered[me] = 0; got = result[me]; result[me] = 0 }; break
#ifdef NO_SERVE_IN_WAIT
  :: !answered[me] ->
     atomic { if :: !answered[me] -> asleep[me] = 1 :: else fi };
     atomic { !asleep[me] OR_SEES(answered[me]) -> asleep[me] = 0 }
#else
  :: in[me] == POSTED -> serve()
  :: !answered[me] && in[me] != POSTED ->
#ifdef NO_INBOX_LOOK
     atomic { if :: !answered[me] -> asleep[me] = 1 :: else fi };
#else
     atomic { if :: !answered[me] && in[me] != POSTED -> asleep[me] = 1 :: else fi };
#endif
     atomic { !asleep[me] OR_SEES(answered[me] || in[me] == POSTED) -> asleep[me] = 0 }
#endif
  od
}
proctype worker(byte me; chan ring) {
  byte ops;
  bit got;
  do
  :: atomic { ops < OPS && nfull(ring) -> ops++; ring ! XCHG; WAKE(me) };    /* steal word by word */
     await();
     if
     :: !got ->
        atomic { assert(!thief_has[1 - me] && !owner_has[1 - me] && nfull(ring)); thief_has[1 - me] = 1; ring ! GET; WAKE(me) };
        await();
        atomic { nfull(ring) -> thief_has[1 - me] = 0; ring ! UNLOCK; WAKE(me) }
     :: else -> got = 0
     fi
  :: atomic { ops < OPS -> ops++ };        /* pop what was public: wait for the own lock */
     do
     :: atomic { !lock[me] -> lock[me] = 1; owner_has[me] = 1; assert(!thief_has[me]) }; break
#ifndef NO_SERVE_IN_LOCK
     :: in[me] == POSTED -> serve()
#endif
     od;
     atomic { assert(lock[me] && !thief_has[me]); owner_has[me] = 0; lock[me] = 0 }
  :: true ->                               /* idle: sleeps until there is something to see */
     do
     :: in[me] == POSTED -> serve()
     :: shutdown -> goto out
     :: shutdown = 1                       /* decides */
     :: ops < OPS -> break
     od
  od;
out:
  gone[me] = 1                             /* the last thing it does */
}

inline fill() {                            /* the inbox takes the next request */
  atomic { in_op[h] = x; x = 0; in[h] = POSTED };
#ifndef NO_ALERT
  asleep[h] = 0
#endif
}

inline answer() {
  atomic {
    if :: in_op[h] != UNLOCK -> to ! ANSWER, in_result[h] :: else fi;
    in[h] = FREE; in_op[h] = 0; in_result[h] = 0; executed[h] = 0
  }
}

proctype companion(byte h; chan ring; chan from; chan to; chan back) {
  byte x; bit r, g;
end:
  do
  :: atomic { ring ? x -> to ! x, 0; x = 0; WAKE(h) }
  :: atomic { from ? x, r -> WAKE(h) };
     if
     :: x == ANSWER ->
        atomic { result[h] = r; answered[h] = 1; x = 0; r = 0; asleep[h] = 0 }
     :: x != ANSWER && in[h] == FREE && empty(back) -> fill()
     :: else -> back ! x; x = 0
     fi
  :: in[h] == FREE && nempty(back) -> back ? x; fill()
  :: in[h] == DONE && (AWAKE(h) OR_SEES(true)) -> answer()
#ifndef NOT_TAKEN_OVER
#ifdef LOOK_BEFORE_GONE
  :: atomic { in[h] == POSTED -> g = 1 };
     if
     :: GONE(h) && g -> execute(h); answer()
     :: else
     fi;
     g = 0
#else
  :: atomic { GONE(h) && in[h] == POSTED -> g = 1 };       /* gone first, then the entry: it is the last word */
     execute(h); g = 0; answer()
#endif
#endif
#ifdef INBOX_SILENT
  :: atomic { awake[h] && empty(ring) && empty(from) && in[h] != DONE -> awake[h] = 0 }     /* sleeps */
#endif
  od
}

init {
  atomic {
    run companion(0, ring0, net0, net1, back0); run companion(1, ring1, net1, net0, back1);
    run worker(0, ring0); run worker(1, ring1)
  }
}
#endif
