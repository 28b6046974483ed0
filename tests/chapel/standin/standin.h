/* What the stand-in counts of the events that Chapel's runtime may ask for. */
#include <stdatomic.h>
extern atomic_long standin_events[3];
extern int standin_callbacks;
