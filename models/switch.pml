/* Calls by datagram to who has a block, by a switch whose rules may be old. docs/protocols/switch.md (SW).
 *
 * What it is: HOSTS hosts, a block, askers on the first ASKERS of them. Each makes OPS additions of one: by datagram,
 * one at a time, sent again until it is answered, or directly where its host has the block. The block moves up to
 * MOVES times. LIVES - 1 times the memory is freed, when all are done: what is left there is zero, which means that
 * the home, host 0, has it. Then it is given out again.
 * Datagrams are lost, overtaken, and DOUBLES of them doubled.
 * Asserted: each addition is made once, and before it is answered; its asker hears the value that it found; at the
 * end the block has them all, and the rule names its owner; memory that is given out again is zero. Not here: how a
 * block moves (move.pml), several blocks.
 * Must pass: the plain model. Mutants, must FAIL: NO_TABLE, TABLE_STAYS, TABLE_LATE, EQUAL_ONLY, NEW_NUMBER, NO_LIFE,
 * FROZEN_SERVES, OLD_RULE, BIND_ONCE, LIFE_AT_REUSE.
 */
#ifndef HOSTS
#define HOSTS 3
#endif
#ifndef ASKERS
#define ASKERS 2
#endif
#ifndef OPS
#define OPS 1
#endif
#ifndef MOVES
#define MOVES 2
#endif
#ifndef LIVES
#define LIVES 1
#endif
#ifndef DOUBLES
#define DOUBLES 1
#endif
#define MOST (OPS * LIVES + 2)    /* numbers of an asker are below */
#ifndef ROOM
#define ROOM 3
#endif

mtype = { access, direct, answer, rebind };        /* of datagrams */
mtype = { elsewhere, owned, frozen, arriving };    /* of places */

/* kind, host (direct; rebind: the owner), asker, number (rebind: version), life, value */
chan net = [ROOM] of { mtype, byte, byte, byte, byte, byte };

typedef records { byte number[ASKERS]; byte said[ASKERS] };
records table[HOSTS];        /* SW2 */
mtype at[HOSTS];
byte hint[HOSTS], value[HOSTS], life[HOSTS];
byte owner, version, rule, rule_version;
byte made[ASKERS * MOST], found[ASKERS * MOST];    /* by number: how often, and the value it was added to */
byte asked[ASKERS], heard[ASKERS];                 /* under way; 1 + what was answered */
byte doubles, moves, done;
byte now_lives = 1;
bit moving;

inline post(what, to_host, by_whom, num, of_life, val) {    /* what finds no room is lost */
  if
  :: nfull(net) -> net!what, to_host, by_whom, num, of_life, val
  :: full(net)
  fi
}

/* a call at host h */
inline serve(here) {
  if
#ifndef NO_LIFE
  :: l < life[here]                                   /* SW3 */
#endif
#ifndef NO_TABLE
#ifndef EQUAL_ONLY
  :: n < table[here].number[a]
#endif
  :: n == table[here].number[a] -> post(answer, a, a, n, l, table[here].said[a])
#endif
  :: else ->
     if
#ifdef FROZEN_SERVES
     :: at[here] == owned || at[here] == frozen ->
#else
     :: at[here] == owned ->
#endif
        made[a * MOST + n]++;
        assert(made[a * MOST + n] == 1);
        found[a * MOST + n] = value[here];
        table[here].number[a] = n;
        table[here].said[a] = value[here];
        post(answer, a, a, n, l, value[here]);
        value[here]++
     :: at[here] == elsewhere -> post(direct, hint[here], a, n, l, 0)
     :: else -> post(direct, here, a, n, l, 0)        /* SW5: kept */
     fi
  fi
}

active proctype datagrams() {
  byte h, a, n, l, v;
  mtype k;
end:
  do
  :: atomic {
       nempty(net);
       a = 0; n = 1;
       do :: a < ASKERS - 1 -> a++ :: break od;
       do :: n < MOST + 4 -> n++ :: break od;
       if
       :: net??[access, h, eval(a), eval(n), l, v] -> net??access, h, eval(a), eval(n), l, v; k = access
       :: net??[direct, h, eval(a), eval(n), l, v] -> net??direct, h, eval(a), eval(n), l, v; k = direct
       :: net??[answer, h, eval(a), eval(n), l, v] -> net??answer, h, eval(a), eval(n), l, v; k = answer
       :: net??[rebind, h, eval(a), eval(n), l, v] -> net??rebind, h, eval(a), eval(n), l, v; k = rebind
       :: else -> k = 0
       fi;
       if
       :: k != 0 && doubles < DOUBLES && nfull(net) -> doubles++; net!k, h, a, n, l, v
       :: true
       fi;
       if
       :: true                                     /* lost */
       :: k == access -> serve(rule)
       :: k == direct -> serve(h)
       :: k == rebind ->
#ifdef OLD_RULE
          rule = h; rule_version = n
#else
          if
          :: n > rule_version -> rule = h; rule_version = n    /* SW4 */
          :: else
          fi
#endif
       :: k == answer && asked[a] == n && heard[a] == 0 -> heard[a] = v + 1
       fi;
       h = 0; a = 0; n = 0; l = 0; v = 0; k = 0
     }
  od
}

proctype asker(byte me) {
  byte n, i, lived;
  do
  :: lived == now_lives - 1 ->
     i = 0;
     do
     :: i < OPS ->
        if
        :: atomic { at[me] == owned -> value[me]++ }    /* at hand: under a use, no number */
        :: atomic { at[me] != owned -> n++; heard[me] = 0; asked[me] = n }
           do
           :: atomic { heard[me] != 0 ->
                assert(made[me * MOST + n] == 1 && heard[me] == found[me * MOST + n] + 1);
                asked[me] = 0; break }
           :: atomic { heard[me] == 0 && nfull(net) && !net??[access, 0, eval(me), eval(n), eval(life[me]), 0] ->
#ifdef NEW_NUMBER
                if :: n < MOST - 1 -> n++; asked[me] = n :: else fi;
#endif
                net!access, 0, me, n, life[me], 0 }            /* again: SW1 */
           od
        fi;
        i++
     :: else -> break
     od;
     atomic { lived++; done++ }
  :: lived == LIVES -> break
  od
}

inline merge(to, from) {
  i = 0;
  do
  :: i < ASKERS ->
     if
     :: table[from].number[i] > table[to].number[i] ->
        table[to].number[i] = table[from].number[i]; table[to].said[i] = table[from].said[i]
     :: else
     fi;
     i++
  :: else -> i = 0; break
  od
}

proctype mover() {
  byte from, to, i;
  do
  :: atomic { moves < MOVES && done < ASKERS * now_lives -> moves++; moving = 1; from = owner;
       if :: to = 0 :: to = 1 :: to = HOSTS - 1 fi;
       if
       :: to == from -> moving = 0
       :: else ->
          at[from] = frozen; at[to] = arriving; version++
       fi }
     if
     :: moving ->
        atomic {
          value[to] = value[from];
#if !defined(TABLE_STAYS) && !defined(TABLE_LATE)
          merge(to, from);
#endif
        }
        do                                         /* until the switch says so */
        :: atomic { rule_version < (life[to] - 1) * 4 + version && nfull(net) && !net??[rebind, eval(to), 0, eval((life[to] - 1) * 4 + version), 0, 0] ->
             net!rebind, to, 0, (life[to] - 1) * 4 + version, 0, 0 }
#ifdef BIND_ONCE
        :: break                                   /* without hearing that it is known */
#else
        :: rule_version >= (life[to] - 1) * 4 + version -> break
#endif
        od;
        atomic { owner = to; at[to] = owned; hint[to] = to }
#ifdef TABLE_LATE
        atomic { merge(to, from) }
#endif
        atomic { at[from] = elsewhere; hint[from] = to;
          if :: at[0] == elsewhere -> hint[0] = to :: else fi;
          moving = 0 }
     :: else
     fi
  :: atomic { done == ASKERS * LIVES && !moving -> break }
  od
}

inline new_life() {
  h = 0;
  do
  :: h < HOSTS -> life[h] = life[h] + 1; h++
  :: else -> break
  od
}

/* freed and given out again; what datagrams say of the memory before is still under way */
proctype memory() {
  byte h;
  do
  :: now_lives < LIVES ->
     atomic { done == ASKERS * now_lives && !moving; assert(value[owner] == ASKERS * OPS); moving = 1 }
#ifndef LIFE_AT_REUSE
     new_life();
#endif
     atomic {                                       /* the pages are given back: zero */
       at[owner] = elsewhere; at[0] = owned; value[0] = 0; owner = 0; version = 0;
       h = 0;
       do
       :: h < HOSTS -> hint[h] = 0; h++
       :: else -> break
       od
     }
#ifdef LIFE_AT_REUSE
     new_life();
#endif
     atomic { assert(value[0] == 0); moving = 0; now_lives++ }
  :: else -> break
  od
}

init {
  atomic {
    byte i;
    do
    :: i < HOSTS -> at[i] = elsewhere; life[i] = 1; i++
    :: else -> break
    od;
    at[0] = owned;
    run mover(); run memory();
    i = 0;
    do
    :: i < ASKERS -> run asker(i); i++
    :: else -> break
    od
  }
  (done == ASKERS * LIVES && !moving && now_lives == LIVES);
  assert(value[owner] == ASKERS * OPS);
  assert(version == 0 || rule == owner)
}
