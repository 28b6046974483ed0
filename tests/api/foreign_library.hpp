// A shared library that knows nothing of godwit: its frames lie on the stacks of threads that migrate.
#pragma once

extern "C" {
using foreign_callback = int (*)(void* context, int argument);

/// Sum of back(context, i) for i in [0, n), with checks that this frame's contents stay what they were:
/// -1000000 per damage.
int foreign_sum(foreign_callback back, void* context, int n);
/// Calls back through @p depth frames of this library.
int foreign_nested(foreign_callback back, void* context, int depth);
/// As foreign_sum, but an exception may pass through it; counts destroyed locals in *destroyed.
int foreign_throwing(foreign_callback back, void* context, int* destroyed);
/// Sets the library up, in this process.
void foreign_open(void);
/// What it gives back once it is set up: 7.
int foreign_use(void);
}
