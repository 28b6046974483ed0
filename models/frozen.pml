/* Frozen memory: copies that stay good until it is thawed. docs/protocols/frozen.md.
 *
 * What it is: one unit of one allocation, at home on one host; another host with its copy of the descriptor
 * (directory::look, by READERS and by one who reads another unit of the allocation), its copy of the unit, and its
 * words. A writer at home writes, freezes or not, lets the others read, thaws, and writes again, ROUNDS times. Who
 * reads another word of the unit may do so at any time, and fetches the unit with it.
 * Asserted: who reads after a write, and before the next, reads that. What it is not: how a unit is written
 * elsewhere, and locked (global.pml).
 * Must pass: the plain model. Mutants, must FAIL: THAWS_AFTER_LOOKING, LOOK_AFTER_ASKING, THAWS_FIRST,
 * GENERATION_FIRST, NO_GENERATION, NOT_COUNTED, FLAG_WITHOUT_GENERATION.
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef READS
#define READS 1            /* of the neighbour */
#endif
#ifndef LOOKS
#define LOOKS 1
#endif
#define FROZEN 64

byte value;                  /* at home */
bit  flag;                   /* descriptor, at home */
byte generation, thaws;      /* of the reading host, counted by the writer */
byte epoch = 1;              /* of the reading host */
byte d_generation, d_frozen; /* descriptor, its copy */
bit  locked;                 /* the unit */
byte copy, stamp;
byte reading;                /* 0: nobody may read the word; else readers that are still to say that they are done */
byte open;                   /* number of the round in which it may be read */

/* directory::look and is_frozen */
inline look() {
  g = generation;
  if
  :: d_generation == g + 1 -> skip
  :: else ->
     seen = flag;
#ifdef FLAG_WITHOUT_GENERATION
     d_frozen = seen;
#else
     d_frozen = (seen -> g + 1 : 0);
#endif
     d_generation = g + 1
  fi;
#ifdef FLAG_WITHOUT_GENERATION
  seen = d_frozen
#else
  f = d_frozen;
  seen = (f != 0 && f == generation + 1)
#endif
}

proctype looker() {
  byte g, f, n;
  bit seen;
  do
  :: n < LOOKS -> n++; look()
  :: break
  od
}

/* A checkout for reading by worker `mine`: of the word, else of its neighbour in the unit. */
inline read(mine) {
  e = epoch;
  atomic { !locked -> locked = 1 };
  if
  :: (stamp < FROZEN && stamp >= e) || (stamp >= FROZEN && stamp == FROZEN + thaws) -> skip
  :: else ->
#ifndef THAWS_AFTER_LOOKING
     t = thaws;
#endif
#ifdef LOOK_AFTER_ASKING
     new = value;
#endif
     look();
#ifdef THAWS_AFTER_LOOKING
     t = thaws;
#endif
#ifndef LOOK_AFTER_ASKING
     new = value;
#endif
     copy = new;
     stamp = (seen -> FROZEN + t : e)
  fi;
  if
  :: mine -> atomic { assert(copy == value); reading-- }
  :: else -> skip
  fi;
  locked = 0; seen = 0; g = 0; f = 0; t = 0; e = 0; new = 0
}

proctype reader() {
  byte g, f, t, e, new, at;
  bit seen;
  do
  :: at == ROUNDS -> break
  :: at < ROUNDS -> atomic { open == at + 1 -> at++ };
     epoch++;                                       /* an acquire: the write happens before */
     if
     :: read(1)
     :: atomic { reading-- }                        /* it reads something else */
     fi
  od
}

proctype neighbour() {
  byte g, f, t, e, new, n;
  bit seen;
  do
  :: n < READS -> n++; read(0)
  :: break
  od
}

init {
  byte n;
  bit frozen;
  atomic { for (n : 1 .. READERS) { run reader() }; n = 0; run neighbour(); run looker() };
  do
  :: n == ROUNDS -> break
  :: n < ROUNDS ->
     n++;
     value = n;
     if
     :: flag = 1; generation++; frozen = 1
     :: frozen = 0
     fi;
     atomic { reading = READERS; open = n };
     reading == 0;
     if
     :: frozen ->
#ifdef THAWS_FIRST
        thaws++; flag = 0; generation++
#elif defined(GENERATION_FIRST)
        generation++; flag = 0; thaws++
#else
        flag = 0;
#ifndef NO_GENERATION
        generation++;
#endif
#ifndef NOT_COUNTED
        thaws++
#endif
#endif
     :: else -> skip
     fi
  od
}
