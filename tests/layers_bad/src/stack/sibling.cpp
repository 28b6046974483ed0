// Violations: getenv outside base; a path that climbs into another layer.
#include "../sched/deque.hpp"
const char* home() { return getenv("HOME"); }
