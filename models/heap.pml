/* Blocks that go from worker to worker and are freed where they end. docs/protocols/heap.md
 *
 * What it is: part.hpp, part.cpp. BLOCKS blocks in one run of worker 0's part. Worker 0 allocates and hands blocks to the others, who hand
 * them on or free them: by writing the link, then pushing on `returned`. (A chain is pushed as one block is: its links are private until
 * then.) Worker 0 takes all of `returned` when it has no free block left, and gives the run back to the pool when nothing of it is used.
 * Memory is in program order here; what the orderings at HP1 are for is shown by the mutant LINK_LATE, which is what a push without
 * release allows.
 *
 * Asserted: a block is handed out only when nobody has it; links are written before they are followed; the run goes back only when all its
 * blocks are free; at the end all are.
 * Mutants, must FAIL: ANY_POPS (others take the first one out of `returned` for themselves, by compare-and-exchange of what they saw: ABA),
 * LINK_LATE, COUNTS_EARLY (what is pushed does not count as used any more).
 */
#ifndef BLOCKS
#define BLOCKS 3
#endif
#ifndef OTHERS
#define OTHERS 2
#endif
#ifndef TURNS
#define TURNS 4
#endif
#define none 0
#define unwritten 9

byte link[BLOCKS + 1];              /* of a free or returned block: the next one */
byte returned = none;
byte holder[BLOCKS + 1];            /* ghost: 0 nobody, else a worker's number plus one */
byte used;                          /* the run's */
bool gone;                          /* the run is the pool's */
byte free_list = none;
byte away;                          /* ghost: blocks that nobody has freed yet, and those in `returned` */
byte others_left = OTHERS;
chan hand = [BLOCKS] of { byte };   /* blocks on their way to whoever wants one */

inline push_returned(b)
{
  do
  :: head = returned;
#ifdef LINK_LATE
     link[b] = unwritten;
#else
     link[b] = head;
#endif
     if
     :: atomic { returned == head -> returned = b; holder[b] = 0 };
#ifdef LINK_LATE
        link[b] = head;
#endif
#ifdef COUNTS_EARLY
        used--;
#endif
        break
     :: returned != head
     fi
  od
}

inline free_own(b)
{
  assert(!gone);
  link[b] = free_list; free_list = b; used--;
  if
  :: used == 0 && away == 0 -> skip
  :: used == 0 && away != 0 -> assert(false)  /* it would go to the pool with a block on its way */
  :: else
  fi
}

inline take_returned()
{
  atomic { b = returned; returned = none };
  do
  :: b != none ->
     next = link[b];
     assert(next != unwritten);
     away--;
#ifdef COUNTS_EARLY
     used++;
#endif
     free_own(b);
     b = next
  :: b == none -> break
  od
}

active proctype owner()
{
  byte b, next, turns;
  /* all blocks are carved, none is used */
  b = 1;
  do :: b <= BLOCKS -> link[b] = free_list; free_list = b; b++ :: b > BLOCKS -> break od;
  do
  :: turns < TURNS ->
     turns++;
     if
     :: free_list == none -> take_returned()
     :: free_list != none
     fi;
     if
     :: free_list != none ->
        b = free_list; free_list = link[b]; used++;
        assert(holder[b] == 0);
        holder[b] = 1;
        if
        :: holder[b] = 0; free_own(b)
        :: away++; hand ! b
        fi
     :: free_list == none
     fi
  :: turns == TURNS -> break
  od;
  (others_left == 0);
  do
  :: hand ? b -> holder[b] = 0; away--; free_own(b)
  :: empty(hand) -> break
  od;
  do :: returned != none -> take_returned() :: returned == none -> break od;
  assert(used == 0 && away == 0);
  gone = true
}

active [OTHERS] proctype other()
{
  byte b, head, turns;
#ifdef ANY_POPS
  byte next;
#endif
  do
  :: turns < TURNS ->
     turns++;
     if
#ifdef ANY_POPS
     :: returned != none ->
        b = returned;
        if
        :: b != none ->
           next = link[b];
           if
           :: atomic { returned == b -> returned = next; assert(holder[b] == 0); holder[b] = 1 }; hand ! b
           :: returned != b
           fi
        :: b == none
        fi
#endif
     :: hand ? b ->
        assert(holder[b] <= 1);
        holder[b] = _pid + 1;
        if
        :: holder[b] = 1; hand ! b
        :: push_returned(b)
        fi
     :: empty(hand)
     fi
  :: turns == TURNS -> break
  od;
  others_left--
}
