/* Who waits for a lock of its own that thieves take by requests to it (way am): does it get it? docs/protocols/far.md
 *
 * What it is: worker.cpp (turn_at_lock), inbox.cpp, base/lock.hpp. Each of THIEVES other hosts takes the owner's lock without a look and
 * gives it back, again and again, by requests that wait in the owner's inbox in their order and that nobody but the owner carries out. One
 * of them has it when the owner begins to wait.
 *
 * Asserted: the owner gets it, as long as everybody goes on (weak fairness); two never have it.
 * Mutants, must FAIL: SERVES_ALL (the owner carries out what there is, then looks), SERVES_NONE.
 */
#ifndef THIEVES
#define THIEVES 3
#endif
#define OWNER 9
#define take 0
#define give 1

byte lock = 1;                               /* who has it: a thief's number, OWNER; 0: nobody */
bit through;                                 /* the owner has had it */
chan inbox = [THIEVES] of { byte, bit };     /* whose request, what */
bool answered[THIEVES + 1], got[THIEVES + 1];

inline carry_out()                           /* the first one, which is there */
{
  d_step {
    inbox ? t, what;
    if
    :: what == give -> assert(lock == t); lock = 0; got[t] = false
    :: what == take && lock == 0 -> lock = t; got[t] = true
    :: else -> got[t] = false
    fi;
    answered[t] = true; t = 0; what = 0
  }
}

active proctype owner()
{
  byte t; bit what;
  do
  :: lock == 0 -> lock = OWNER; break        /* compare-exchange: nobody else changes the word */
  :: lock != 0 ->
#if defined(SERVES_ALL)
     do
     :: nempty(inbox) -> carry_out()
     :: empty(inbox) -> break
     od
#elif defined(SERVES_NONE)
     skip
#else
     if
     :: nempty(inbox) -> carry_out()
     :: empty(inbox)
     fi
#endif
  od;
  through = true;
  assert(lock == OWNER)
}

proctype thief(byte me)
{
  bit has = (me == 1);
  do
  :: through -> break
  :: else ->
     answered[me] = false;
     inbox ! me, (has -> give : take);
     (answered[me] || through);
     has = got[me]
  od
}

init { byte i = 1; atomic { do :: i <= THIEVES -> run thief(i); i++ :: else -> break od } }

ltl gets_it { <> through }
