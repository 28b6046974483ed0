/* A thread that sleeps in a scope, and who cancels it. docs/protocols/cancel.md (CA5)
 *
 * What it is: start_cancellable_timer and hasten_timers (src/io/timers.cpp), worker::when_to_stop, scopes::request;
 * one step per access to a shared word. Until it finds itself cancelled, the sleeper notes how often timers were hastened,
 * asks, and starts a timer that nothing but a cancellation ends. A canceller sets its
 * request and hastens; NOISE others cancel scopes that are none of the sleeper's. Under the timers' lock is one step.
 * Invalid end state: a sleeper that is cancelled and sleeps on.
 *
 * Mutants, must FAIL: HASTENED_FIRST (before the request is set), SEEN_LATE (how often is noted after the question),
 * NOT_COMPARED (the timer starts whatever has happened since), NOT_COUNTED (nothing is noted when no timer runs).
 */
#ifndef NOISE
#define NOISE 1
#endif
bit  request;              /* the sleeper's scope is cancelled */
byte hastenings;
bit  listed, due;          /* the timer runs; it expires at once */

inline hasten() {
  atomic {
#ifdef NOT_COUNTED
    if :: listed -> hastenings++ :: else fi;
#else
    hastenings++;                                                              /* CA5 */
#endif
    if :: listed -> due = 1 :: else fi
  }
}

active proctype sleeper() {
  byte seen;
  bit cancelled;
  do
  :: cancelled -> break
  :: else ->
#ifdef SEEN_LATE
     cancelled = request;
     seen = hastenings;
#else
     seen = hastenings;                                                        /* CA5 */
     cancelled = request;
#endif
     if
     :: cancelled -> skip
     :: else ->
        atomic {                                                               /* the timers' lock */
          listed = 1;
#ifdef NOT_COMPARED
          due = 0
#else
          due = (seen != hastenings)                                           /* CA5 */
#endif
        };
        atomic { due -> listed = 0 }                                           /* expired, and woken */
     fi
  od
}

active proctype canceller() {
#ifdef HASTENED_FIRST
  hasten();
  request = 1
#else
  request = 1;                                                                 /* CA1 */
  hasten()
#endif
}

active [NOISE] proctype other() { hasten() }
