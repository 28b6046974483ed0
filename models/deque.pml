/* Split deque with stolen continuations: one owner, thieves, the expose signal, suspension of the owner's thread.
 *
 * What it is: the protocol of docs/protocols/deque.md, load by load where two sides meet. The run never ends:
 * ids and records are recycled, so the search covers every history of at most DEPTH queued continuations.
 * What it is not: the thief's own deque (it is the same protocol), choice of victims, sleeping (idle.pml).
 * Memory: every process has a FIFO store buffer of two entries that a daemon drains at any time; an atomic
 * exchange and a fence wait until it is empty. Slot fields and stack bytes go straight to memory: behind them
 * in the FIFO is always the split or lock store that publishes them, so that early visibility only adds
 * behaviours. Loads and stores that a weaker CPU or the compiler may move are mutants.
 *
 * Run by models/check.sh. Every -D name in an #ifdef below is a mutant that must FAIL, except the sizes and
 * ANY_SPLIT (the owner under the lock lowers split to any value from top to b) and STAYS (a thief of another
 * host may leave what it has claimed), which must pass.
 * Labels DQ1.. are those of the document and of the code.
 */
#ifndef DEPTH
#define DEPTH 3            /* most entries in the deque at a time */
#endif
#ifndef THIEVES
#define THIEVES 2
#endif
#ifndef LEVELS
#define LEVELS (DEPTH + 2) /* stack memory: threads that fit above each other */
#endif
#define IDS (DEPTH + 3 + 2 * THIEVES)
#define RECS (2 * DEPTH + 5)

#define SPLIT 0
#define TOP 1
#define LOCK 2
byte word[3];                              /* memory: split, top, lock */
chan sb0 = [2] of { byte, byte };          /* store buffer of the owner */
chan sb1 = [2] of { byte, byte };          /* ... of the thieves */
chan sb2 = [2] of { byte, byte };

byte sp[DEPTH + 1];      /* slot: stack level of the child that this slot's spawn started = end of the parent's */
byte id[DEPTH + 1];      /* slot: which continuation; named by the child whose spawn made it */
byte rec[DEPTH + 1];     /* slot: record */
byte mem[LEVELS + 1];    /* owner's stack memory: the thread that lives at each level; 0 = overwritten */

/* ghosts: what ought to be. Index: thread. */
byte parent[IDS];        /* who spawned it */
byte must[IDS];          /* record that it must complete, since its parent has left; 0: parent is still here */
bit  live[IDS];          /* it (or its stolen parent's slot) is still in the owner's deque or running there */
byte held[IDS];          /* thieves that work on its continuation or stack */

#define EMPTY(b) (len(b) == 0)

/* ------------------------------------------------------------------ owner ---------------------------- */
byte bottom = 1, split_private = 1;        /* owner's words */
byte cur, level;                           /* running thread; stack level of the bottom-most thread */
hidden byte i, j, n;                       /* scratch inside atomics only */
byte b, t, ns, r, s0;
bit  left, popped;

inline new_id(x) {                         /* the lowest free one */
  i = 1; do :: i < IDS && (live[i] || held[i]) -> i++ :: else -> break od;
  assert(i < IDS); live[i] = 1; must[i] = 0; x = i; i = 0
}
inline new_rec(x) {
  n = 1;
  do
  :: j = 0; i = 0;
     do :: i <= DEPTH -> j = j || rec[i] == n; i++ :: else -> break od; i = 1;
     do :: i < IDS -> j = j || ((live[i] || held[i]) && must[i] == n); i++ :: else -> break od;
     if :: j -> n++ :: else -> break fi
  od;
  assert(n < RECS); x = n; n = 0; i = 0; j = 0
}
inline in_no_slot(x) {                     /* the record has left the deque */
  i = 1; do :: i <= DEPTH -> assert(rec[i] != x); i++ :: else -> break od; i = 0
}
inline all_gone() {                        /* the region is empty again */
  i = 1; do :: i < IDS -> live[i] = 0; if :: !held[i] -> must[i] = 0; parent[i] = 0 :: else fi; i++ :: else -> break od;
  i = 0; do :: i <= LEVELS -> mem[i] = 0; i++ :: else -> break od; i = 0
}
inline dead(k) { live[k] = 0; must[k] = 0; parent[k] = 0; id[b] = 0; sp[b] = 0; mem[level + b] = 0 }

/* The expose signal, or the slow path of a spawn: make half of the private entries public. */
inline expose() {
#ifdef EXPOSE_AT_LEAST_ONE
  atomic { bottom <= DEPTH && nfull(sb0) -> ns = (bottom > split_private ->
    split_private + (bottom - split_private + 1) / 2 : split_private + 1);
#else
  atomic { bottom > split_private && nfull(sb0) -> ns = split_private + (bottom - split_private + 1) / 2;
#endif
#ifdef RECORD_AFTER_SPLIT
    sb0 ! SPLIT, ns };
  atomic {
#endif
    s0 = split_private;
    do
    :: s0 < ns -> if :: rec[s0] == 0 -> new_rec(rec[s0]) :: else fi; s0++
    :: else -> break
    od;
    s0 = 0;
#ifndef RECORD_AFTER_SPLIT
    sb0 ! SPLIT, ns;                       /* DQ2 release: slots and records before it */
#endif
    split_private = ns; ns = 0
  }
}
inline signal() { if :: true :: expose() fi }       /* it may come here */

/* A thread that comes from elsewhere starts on the empty region. */
inline fresh() {
  atomic {
    all_gone(); cur = 0; r = 0;
    new_id(cur);
    level = 0; mem[0] = cur;
    sp[0] = 0; id[0] = cur; rec[0] = 0; new_rec(rec[0]);
    must[cur] = rec[0];
    bottom = 1
  }
}

inline push() {
  atomic {
    new_id(s0); parent[s0] = cur;
    id[bottom] = s0; sp[bottom] = level + bottom; mem[level + bottom] = s0;
    cur = s0; s0 = 0
  }
  signal();                                /* the entry does not count yet */
  bottom++
}

/* The entry b is or was public. Sets left, and then the record r to complete. No signal acts in here. */
inline pop_public() {
  if
  :: b == 0 -> atomic { left = 1; r = rec[0] }
  :: else ->
     assert(!(sb0 ?? [TOP, _]));           /* no own store of top is pending: no forwarding to model */
     t = word[TOP];
     if
     :: t <= b ->
        atomic { ns = t + (b - t + 1) / 2; sb0 ! SPLIT, ns };
#ifndef NO_FENCE_OWNER
        EMPTY(sb0);                        /* DQ3 fence: split, then top */
#endif
        t = word[TOP];
        atomic { if :: t <= ns -> split_private = ns; popped = 1 :: else fi; ns = 0 }
     :: else
#ifdef OWNER_NO_LOCK
        -> atomic { left = 1; popped = 1; r = rec[b]; s0 = sp[b];
             i = 1; do :: i <= b -> rec[i] = 0; i++ :: else -> break od; i = 0;
             split_private = 1; bottom = 1 };
           sb0 ! TOP, 1; sb0 ! SPLIT, 1
#endif
     fi;
     if
     :: popped -> popped = 0
     :: else ->
        atomic { EMPTY(sb0) && word[LOCK] == 0 -> word[LOCK] = 1 };   /* DQ4 acquire: no copy is under way */
        t = word[TOP];
        if
        :: t <= b ->
           ns = b;
#ifdef ANY_SPLIT
           do :: ns > t -> ns-- :: break od;
#endif
           atomic { sb0 ! SPLIT, ns; split_private = ns; ns = 0 };
           sb0 ! LOCK, 0                   /* DQ4 release */
        :: else ->
           assert(t == b + 1);
           atomic {
             left = 1; r = rec[b];
#ifndef NO_RECORD_CLEAR
             i = 1; do :: i <= b -> rec[i] = 0; i++ :: else -> break od; i = 0;
#endif
             s0 = sp[b]; split_private = 1; bottom = 1
           };
           sb0 ! TOP, 1; sb0 ! SPLIT, 1;
           sb0 ! LOCK, 0                   /* DQ4 release */
        fi
     fi;
     t = 0
  fi
}

inline pop() {
  b = bottom - 1;
  signal();
#ifdef SPLIT_BEFORE_BOTTOM
  t = split_private; signal(); bottom = b; signal();     /* what the compiler might do without DQ1 */
#else
  bottom = b;                              /* DQ1 */
  signal();
  t = split_private;
  signal();
#endif
  if
  :: b >= t -> t = 0
  :: else -> t = 0; pop_public()
  fi
}

proctype owner() {
  fresh();
  do
  :: expose()
  :: bottom <= DEPTH && level + bottom <= LEVELS -> push()
  :: true ->                                                     /* the thread ends */
     pop();
     if
     :: atomic { !left -> assert(id[b] == cur && must[cur] == 0 && mem[level + b - 1] == parent[cur]);
          cur = parent[cur]; dead(id[b]); b = 0 }
     :: atomic { left -> assert(r != 0 && r == must[cur]); in_no_slot(r); left = 0; b = 0; s0 = 0 }; fresh()
     fi
  :: true ->                                                     /* the thread must wait: detach it from its parent */
     pop();
     if
     :: atomic { !left -> assert(id[b] == cur && must[cur] == 0); r = rec[b];
          if :: r == 0 -> new_rec(r) :: else fi
#ifndef SUSPEND_KEEPS_RECORD
          ; rec[b] = 0
#endif
        };
        if
        :: atomic { true -> in_no_slot(r); cur = parent[cur]; dead(id[b]) }    /* it left; the parent goes on here */
        :: atomic { true -> rec[b] = r; bottom = b + 1 }                       /* cancelled: the entry goes back */
        fi;
        atomic { b = 0; r = 0 }
     :: atomic { left -> assert(r != 0 && r == must[cur]); in_no_slot(r); left = 0 };
        if
        :: atomic { true -> b = 0; s0 = 0 }; fresh()                           /* it left, nothing remains */
        :: atomic { true ->                                                    /* cancelled: now it is bottom-most */
             if
             :: b == 0 -> bottom = 1
             :: else ->
                level = s0;
                i = 1; do :: i < IDS -> if :: i != cur -> live[i] = 0; if :: !held[i] -> must[i] = 0; parent[i] = 0
                    :: else fi :: else fi; i++ :: else -> break od;
                i = 0; do :: i <= LEVELS -> if :: i != level -> mem[i] = 0 :: else fi; i++ :: else -> break od; i = 0;
                id[0] = cur; parent[cur] = 0;
#ifndef CANCEL_KEEPS_SENTINEL
                sp[0] = level; rec[0] = r;
#endif
                bottom = 1
             fi;
             b = 0; r = 0; s0 = 0 }
        fi
     fi
  od
}

/* ------------------------------------------------------------------ thieves -------------------------- */
proctype thief(chan sb) {
  byte at, s, c, cr, lo;
  do
  :: word[TOP] < word[SPLIT] ->            /* without the lock: only an optimisation */
     atomic { EMPTY(sb) && word[LOCK] == 0 -> word[LOCK] = 1 };  /* try-lock, an exchange; a loser just gives up */
     at = word[TOP];
     s = word[SPLIT];
     if
     :: at >= s -> goto unlock
     :: else
     fi;
     atomic { sb ! TOP, at + 1; s = 0 };
#ifndef NO_FENCE_THIEF
     EMPTY(sb);                            /* DQ3 fence: top, then split */
#endif
#ifdef SLOT_BEFORE_SPLIT
     atomic { c = id[at]; cr = rec[at]; held[c]++ };   /* a weak CPU, were the load of split not an acquire */
#endif
#ifndef NO_RECHECK
     s = word[SPLIT];                      /* DQ2 acquire */
     if
     :: at + 1 > s ->
#ifdef SLOT_BEFORE_SPLIT
        atomic { held[c]--; c = 0; cr = 0 };
#endif
#ifndef TOP_NOT_RESTORED
        sb ! TOP, at;
#endif
        goto unlock
     :: else
     fi;
#endif
#if defined(STAYS) || defined(STAYS_CLAIMED)
     if                                    /* it names its host's heap, and the thief is of another one */
     :: atomic { assert(mem[sp[at - 1]] == parent[id[at]]);
#ifndef STAYS_CLAIMED
          sb ! TOP, at;
#endif
          s = 0 }; goto unlock
     :: true
     fi;
#endif
     atomic {
#ifndef SLOT_BEFORE_SPLIT
       c = id[at]; cr = rec[at]; held[c]++;
#endif
       s = 0; lo = sp[at - 1];
       /* a queued continuation that nobody has run */
       assert(c != 0 && c == id[at] && live[c] && must[c] == 0);
       /* its record: there, the slot's, nobody else's */
       assert(cr != 0 && cr == rec[at]); 
       n = 1; do :: n < IDS -> assert(!live[n] || must[n] != cr); n++ :: else -> break od; n = 0;
       must[c] = cr;
       /* the neighbour slot describes the stolen thread: its record, and where its stack ends */
       assert(id[at - 1] == parent[c] && sp[at] == lo + 1);
       assert(rec[at - 1] != 0 && rec[at - 1] == must[parent[c]]);
       held[parent[c]]++; cr = 0
     };
#ifdef UNLOCK_BEFORE_COPY
     sb ! LOCK, 0;
#endif
     assert(mem[lo] == parent[c]);         /* first byte of the copy */
     atomic {                              /* last byte of the copy */
       assert(mem[lo] == parent[c]); held[parent[c]]--; held[c]--; c = 0; lo = 0
     };
#ifdef UNLOCK_BEFORE_COPY
     goto again;
#endif
unlock:
     atomic { sb ! LOCK, 0; s = 0 };       /* DQ4 release: the copy's loads before it */
#ifdef UNLOCK_BEFORE_COPY
again:
#endif
     at = 0
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
    word[SPLIT] = 1; word[TOP] = 1;
    run owner(); run drain(sb0);
    run thief(sb1); run drain(sb1);
#if THIEVES > 1
    run thief(sb2); run drain(sb2);
#endif
  }
}
