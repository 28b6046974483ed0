// Legal: the component's own <mpi.h>. Violation: dlopen in it.
#pragma once
#include <mpi.h>
inline void* open_it() { return dlopen("it", 0); }
