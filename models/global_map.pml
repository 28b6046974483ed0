/* global_map: writers under a bucket's lock, readers without, copies of other hosts' memory.
 * docs/protocols/map.md (GM1 ... GM6)
 *
 * What it is: include/godwit/global_map_view.hpp (find, change_in, erase, search, guard). One chain of
 * buckets of one slot: bucket 0 is in the table, the others are there when a writer has linked them; before,
 * they are full of garbage. A slot is a key and two words of a value. Whoever holds the lock alone changes
 * the chain, so its search is one step. Stores of a writer between lock and unlock, and loads of a reader
 * between its two looks at the state, come in several orders: what an ordering forbids is a mutant.
 *
 * Plain: a reader that looks FINDS times for any key, WRITERS writers with OPS operations each on any of
 * KEYS keys; at the start the chain is empty, has one entry or two. FAR: the reader and writer 1 are of one
 * host, the chain's home is another; a neighbour on the reader's host fetches copies of any bucket, NOISE
 * times. A copy may be used that was asked for after the host's last acquire (`fresh`; global.md, G3).
 * Asserted: what find gives back was the key's value, or absence, at some time during the find; nobody
 * follows a word that is no address; at the end no key is there twice, each has its last value, and the
 * count is right.
 *
 * Must pass: the plain model and FAR, both also with BITS_FIRST (the slot bit of a further bucket before the
 * slot).
 * Mutants, must FAIL: UNLOCK_FIRST, STATE_LAST, READ_LOCKED, LOCK_IN_TWO (GM1), LOCK_SEEN_LATE, LOOK_FIRST,
 * NO_LOOK (GM2), LINK_FIRST, LINK_LAST (GM3), UPDATE_NOT_COUNTED, SLOTS_NOT_COUNTED, FURTHER_NOT_COUNTED
 * (GM4), FREED_EARLY (GM6), COUNT_ALWAYS; with FAR: KEEPS_COPIES, LOCK_KEEPS_COPIES (GM1), HOP_KEEPS_COPIES,
 * LINK_FIRST (GM5).
 */
#ifndef KEYS
#define KEYS 2               /* and so many buckets */
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef OPS
#define OPS 1
#endif
#ifndef FINDS
#define FINDS 1
#endif
#ifndef NOISE
#define NOISE 1
#endif
#define NONE 9
#define GARBAGE 8            /* as an address */

/* The state of bucket 0: lock, bits[0], version. */
bit  lock, held;             /* what readers see; what writers see. One bit but for a mutant */
byte version;
/* Buckets, at home. */
bit  bits[KEYS];
byte next[KEYS], key[KEYS], a[KEYS], b[KEYS];
/* Copies on the reader's host. */
bit  fresh[KEYS], cbits[KEYS];
byte cnext[KEYS], ckey[KEYS], ca[KEYS], cb[KEYS];

byte used, count;
byte values;                 /* each write has its own */
byte now[KEYS + 1];          /* what each key has; 0: nothing */
byte wanted;                 /* by the reader */
byte may;                    /* values that it has had since the reader began, one bit each */

/* What a copy says that is not fresh does not matter. */
#define FORGET(i) fresh[i] = 0; cbits[i] = 0; cnext[i] = 0; ckey[i] = 0; ca[i] = 0; cb[i] = 0
inline acquire() {
  d_step {
    FORGET(0); FORGET(1)
#if KEYS > 2
    ; FORGET(2)
#endif
  }
}
#ifdef FAR
#define STORE(word, copy, i, v) word[i] = v; if :: here && fresh[i] -> copy[i] = v :: else fi
#else
#define STORE(word, copy, i, v) word[i] = v
#endif

/* ---- reader ---- */

/* Bucket `at` from home: its slot in any order; the next address last (GM3), or in an image at any time. */
inline load_slot() {
  if
  :: kk = key[at]; x = a[at];
#ifdef LOOK_FIRST
     atomic { again = lock; v2 = version; b2 = bits[0] };
#endif
     y = b[at]
  :: y = b[at]; x = a[at];
#ifdef LOOK_FIRST
     atomic { again = lock; v2 = version; b2 = bits[0] };
#endif
     kk = key[at]
  fi
}
inline load_bucket() {
#ifdef FAR
  if
  :: atomic { fresh[at] ->
       if :: at != 0 -> bs = cbits[at] :: else fi;
       kk = ckey[at]; x = ca[at]; y = cb[at]; n = cnext[at]
     }
  :: atomic { !fresh[at] -> if :: at != 0 -> bs = bits[at] :: else fi };
     if
     :: !bs -> n = next[at]
     :: bs -> n = next[at]; load_slot()
     :: bs -> load_slot(); n = next[at]
     fi
  fi
#else
#ifdef LINK_LAST
  if
  :: at != 0 && early -> early = 0; bs = ebits; n = enext
  :: else ->
     if :: at == 0 -> early = 1; ebits = bits[1]; enext = next[1] :: else -> bs = bits[at] fi;
     load_slot();
     n = next[at]
  fi
#else
  if :: at != 0 -> bs = bits[at] :: else fi;
  if :: bs -> load_slot() :: else fi;
  n = next[at]
#endif
#endif
}

proctype reader() {
  byte at, n, kk, x, y, v1, v2, finds;
  bit  bs, b1, b2, again, found;
#ifdef LINK_LAST
  bit  early, ebits;
  byte enext;
#endif
  do
  :: finds < FINDS ->
     finds++;
     if :: wanted = 1 :: wanted = 2
#if KEYS > 2
     :: wanted = 3
#endif
     fi;
     atomic { may = (1 << now[wanted]) };
     do
     :: true ->
#ifdef READ_LOCKED
        atomic { b1 = bits[0]; v1 = version; bs = b1 };
#else
        atomic { !lock -> b1 = bits[0]; v1 = version; bs = b1 };                     /* GM1 */
#endif
#if defined(FAR) && !defined(KEEPS_COPIES)
        acquire();
#endif
        at = 0;
        do
        :: load_bucket();
           atomic { found = (bs && kk == wanted); kk = 0; if :: found -> n = 0 :: else -> x = 0; y = 0 fi };
           if :: found || n == 0 -> break :: else fi;
           assert(n < KEYS);
#if defined(FAR) && !defined(HOP_KEEPS_COPIES)
           acquire();                                                                /* GM5 */
#endif
           atomic { at = n; n = 0 }
        od;
#ifdef STATE_LAST
        atomic { !lock -> v1 = version; b1 = bits[0] };
#endif
#ifndef LOOK_FIRST
        atomic { again = lock; v2 = version; b2 = bits[0] };                         /* GM2 */
#endif
#ifdef READ_LOCKED
        again = 0;
#endif
#ifdef NO_LOOK
        break
#else
        if :: !again && v1 == v2 && b1 == b2 -> break :: else fi                     /* GM4 */
#endif
     od;
     atomic {
       if
       :: found -> assert(x == y); assert(x < 8 && (may & (1 << x)))
       :: else -> assert(may & 1)
       fi;
       wanted = 0; at = 0; n = 0; kk = 0; x = 0; y = 0;
       v1 = 0; v2 = 0; bs = 0; b1 = 0; b2 = 0; again = 0; found = 0
     }
  :: else -> break
  od
}

/* ---- writers ---- */

inline take_lock() {
#ifdef LOCK_IN_TWO
  !held;
  atomic { held = 1; lock = 1 };
#else
#ifdef LOCK_SEEN_LATE
  atomic { !held -> held = 1 };
#else
  atomic { !held -> held = 1; lock = 1 };
#endif
#endif
#if defined(FAR) && !defined(LOCK_KEEPS_COPIES)
  if :: here -> acquire() :: else fi
#endif
}
/* Where key k is, else a free slot, else the last bucket. */
inline search_locked() {
  d_step {
    at = 0; where = NONE; free = NONE; last = 0;
    do
    :: if
#ifdef FAR
       :: here && fresh[at] -> bs = (at == 0 -> bits[0] : cbits[at]); kk = ckey[at]; n = cnext[at]
#endif
       :: else -> bs = bits[at]; kk = key[at]; n = next[at]
       fi;
       if :: bs && kk == k -> where = at; break :: else fi;
       if :: !bs && free == NONE -> free = at :: else fi;
       last = at;
       if :: n == 0 -> break :: else fi;
       assert(n < KEYS);
       at = n
    od;
    at = 0; kk = 0; n = 0; bs = 0
  }
}
/* What the operation does happens here. */
inline commit(value, head, counted) {
  atomic {
    if :: head != NONE -> bits[0] = head :: else fi;
    if :: counted -> version++ :: else fi;
    now[k] = value;
    if :: wanted == k -> may = may | (1 << value) :: else fi;
    lock = 0; held = 0                                                               /* GM1 */
  }
}
inline store_slot(i) {
  if
  :: STORE(key, ckey, i, k);
#ifdef LOCK_SEEN_LATE
     lock = 1;
#endif
     STORE(a, ca, i, v); STORE(b, cb, i, v)
  :: STORE(b, cb, i, v);
#ifdef LOCK_SEEN_LATE
     lock = 1;
#endif
     STORE(a, ca, i, v); STORE(key, ckey, i, k)
  fi
}
#ifdef UPDATE_NOT_COUNTED
#define UPDATE 0
#else
#define UPDATE 1
#endif
#ifdef SLOTS_NOT_COUNTED
#define SLOTS 0
#else
#define SLOTS 1
#endif
#ifdef FURTHER_NOT_COUNTED
#define FURTHER 0
#else
#define FURTHER 1
#endif

inline put_entry() {
  if
  :: where != NONE ->
#ifdef UNLOCK_FIRST
     STORE(a, ca, where, v);
     commit(v, NONE, 1);
     STORE(b, cb, where, v)
#else
     store_slot(where);
     commit(v, NONE, UPDATE)
#endif
  :: else ->
     if
     :: free == 0 -> store_slot(0); commit(v, 1, SLOTS)
     :: free != 0 && free != NONE ->
#ifdef BITS_FIRST
        STORE(bits, cbits, free, 1); store_slot(free);
#else
        store_slot(free); STORE(bits, cbits, free, 1);
#endif
        commit(v, NONE, FURTHER)
     :: free == NONE ->
        assert(used + 1 < KEYS);
        used++;
        at = used;
#ifdef LINK_FIRST
        STORE(next, cnext, last, at);
#endif
        STORE(next, cnext, at, 0);
        STORE(bits, cbits, at, 1);
        store_slot(at);
#ifndef LINK_FIRST
        STORE(next, cnext, last, at);                                                /* GM3, GM5 */
#endif
        commit(v, NONE, 1);
        at = 0
     fi;
     count++
  fi
}
inline erase_entry() {
  if
  :: where == 0 -> commit(0, 0, SLOTS); count--
  :: where != 0 && where != NONE ->
     STORE(bits, cbits, where, 0);
#ifdef FREED_EARLY
     atomic { next[0] = next[where]; if :: fresh[0] -> cnext[0] = next[0] :: else fi; used-- };
     next[where] = GARBAGE;
#endif
     commit(0, NONE, FURTHER);
     count--
  :: else ->
     atomic { lock = 0; held = 0 };
#ifdef COUNT_ALWAYS
     count--
#endif
  fi
}

proctype writer(bit here) {
  byte k, v, at, n, kk, where, free, last, ops;
  bit  bs;
  do
  :: ops < OPS ->
     ops++;
     if :: k = 1 :: k = 2
#if KEYS > 2
     :: k = 3
#endif
     fi;
     take_lock();
     search_locked();
     if
     :: d_step { values++; v = values }; put_entry()
     :: true -> erase_entry()
     fi;
     d_step { k = 0; v = 0; where = 0; free = 0; last = 0 }
  :: else -> break
  od
}

#ifdef FAR
/* Another worker of the reader's host, that has something else to read in the same units. */
proctype neighbour() {
  byte i, n;
  do
  :: n < NOISE ->
     n++;
     if :: i = 0 :: i = 1
#if KEYS > 2
     :: i = 2
#endif
     fi;
     d_step {
       cbits[i] = bits[i]; cnext[i] = next[i]; ckey[i] = key[i]; ca[i] = a[i]; cb[i] = b[i]; fresh[i] = 1
     }
  :: else -> break
  od
}
#endif

init {
  byte i, entries;
  atomic {
    i = 1;
    do :: i < KEYS -> bits[i] = 1; next[i] = GARBAGE; key[i] = 1; a[i] = 7; b[i] = 6; i++ :: else -> break od;
    if
    :: true
    :: values = 1; bits[0] = 1; key[0] = 1; a[0] = 1; b[0] = 1; now[1] = 1; count = 1
    :: values = 2; bits[0] = 1; key[0] = 1; a[0] = 1; b[0] = 1; now[1] = 1; count = 2;
       used = 1; next[0] = 1; next[1] = 0; key[1] = 2; a[1] = 2; b[1] = 2; now[2] = 2
    fi;
    run reader();
    i = 1;
    do :: i <= WRITERS -> run writer(i == 1); i++ :: else -> break od
#ifdef FAR
    ; run neighbour()
#endif
  };
  _nr_pr == 1;
  atomic {
    assert(!lock && !held);
    i = 0;
    do
    :: if
       :: bits[i] ->
          entries++;
          assert(now[key[i]] == a[i] && a[i] == b[i] && a[i] != 0);
          now[key[i]] = 0                 /* so it cannot be there twice */
       :: else
       fi;
       if :: next[i] == 0 -> break :: else -> i = next[i] fi
    od;
    assert(count == entries);
    i = 1;
    do :: i <= KEYS -> assert(now[i] == 0); i++ :: else -> break od
  }
}
