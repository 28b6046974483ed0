// Violations: <mpi.h> outside the component, what belongs to the component, a layer above.
#include <mpi.h>
#include "plugin/plugin.hpp"
#include "sched/deque.hpp"
