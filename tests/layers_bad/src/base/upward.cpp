// Violations: base includes sched, a public header of a higher layer, and maps memory.
#include <godwit/runtime.hpp>
#include <sys/mman.h>
#include "sched/deque.hpp"
