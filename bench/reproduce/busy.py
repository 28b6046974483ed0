"""Did something else keep the machine busy while a step ran? The one place that measures it, and the limit (BUSY).

store.py keeps what cpus() says beside a step's data; data.py asks it (Data.busy, Content.judge); nothing that depends on times is
judged above the limit, in no section, claim or row. Test: tests/reproduce.
"""

import os
import resource
import time

from .addresses import children_of

BUSY = 0.15  # CPUs that others used on average, from which on times say nothing about Godwit
NOT_JUDGED = "machine was busy: not judged"
TICK = os.sysconf("SC_CLK_TCK")


def machine_seconds():
    """CPU seconds so far (of all programs, taken by other virtual machines); zeros where the kernel does not say. Interrupts are left
    out: they are nobody's."""
    try:
        with open("/proc/stat", encoding="ascii") as f:
            user, nice, system, _, _, _, _, stolen = (int(x) for x in f.readline().split()[1:9])
    except (OSError, ValueError):
        return 0.0, 0.0
    return (user + nice + system) / TICK, stolen / TICK


def waited_seconds():
    """CPU seconds so far of this process and of all that it waited for."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in own)


def seconds_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK
    except (OSError, ValueError, IndexError):
        return 0.0


class Others:
    """From its making on: the CPUs that are used by programs that are not the step's."""

    def __init__(self):
        self._seen = {}
        self._from = (time.monotonic(), *machine_seconds(), waited_seconds())

    def look(self, pid):
        """At the step's processes. Some are waited for by nobody who tells (an MPI's daemons), so that they are looked at meanwhile."""
        self._seen[pid] = max(self._seen.get(pid, 0.0), seconds_of(pid))
        for child in children_of(pid):
            self.look(child)

    def cpus(self):
        """(CPUs that other programs used, CPUs that other virtual machines took), on average."""
        now = (time.monotonic(), *machine_seconds(), waited_seconds())
        spent, used, stolen, waited = (b - a for a, b in zip(self._from, now))
        ours = max(waited, sum(self._seen.values()))
        return max(0.0, used - ours) / max(spent, 1e-3), stolen / max(spent, 1e-3)
