"""Words for claims.py: a limit that a figure keeps or not, a ratio of times, peers."""

from .busy import BUSY, NOT_JUDGED
from .data import Claim, number, ratio_of

AT_OR_AHEAD = 1.1  # of a peer's time: less than 10 % is noise
# Why a peer may be ahead, where the way it works is the reason.
REASONS = {"lace": "Lace's tasks are C functions that their own worker calls, and the compiler inlines the recursion; what has begun cannot move"}
# Why a claim of a row may not be met on this kind of machine.
REASONS_OF_ROWS = {
    "C9": "two workers of one machine wait for a microsecond or so, and which join does is chance; the paper's 576 cores steal over a network",
    "M5": "an emulator turns a trap into a call within itself; a CPU changes its privilege and saves its state",
    "G12": "the hosts are namespaces of this machine: two workers and two companions share its CPUs, and each message wakes a process;"
    " MPI alone has one process for each CPU, which polls",
}
# The numbers: docs/decisions/0011-threads.md.
THREADS = (
    "a create and join takes 818 instructions, MassiveThreads' 328, Argobots' 673: Godwit's thread has a record that anybody may join or leave,"
    " its creator's scopes and rounding mode, and a place in a list of its worker"
)
TASKS = "its tasks are no threads: they have no stack, number or yield of their own and are joined by who made them"


def claim(what, met, seen, short=""):
    return Claim(what, None if met is None else bool(met), seen, short)


def missing(what, why, short=""):
    return Claim(what, None, why, short)


def timed(what, met, seen, busy, short=""):
    """A claim that depends on times."""
    if busy > BUSY:
        return Claim(what, None, f"{NOT_JUDGED}; other programs used {busy:.1f} CPUs", short, True)
    return claim(what, met, seen, short)


def at_most(what, value, limit, busy=0.0, short=""):
    if value is None:
        return missing(what, "not measured", short)
    return timed(f"{what}: at most {number(limit)}", value <= limit, number(value), busy, short)


def at_least(what, value, limit, busy=0.0, short=""):
    if value is None:
        return missing(what, "not measured", short)
    return timed(f"{what}: at least {number(limit)}", value >= limit, number(value), busy, short)


def by_time(what, ours, theirs, limit, busy, short=""):
    """The time of one variant over the other's of the same round, at most limit; judged from three rounds on."""
    r = ratio_of(ours, theirs)
    if r is None:
        return missing(what, "not measured", short)
    n = min(len(ours["seconds"]), len(theirs["seconds"]))
    seen = f"{number(r[0])} ({number(r[1])} to {number(r[2])} in {n} round{'s' if n > 1 else ''})"
    what = f"{what}: at most {number(limit)}"
    if n < 3 and r[2] > limit:
        return missing(what, f"{seen}; too few rounds to judge", short)
    return timed(what, r[0] <= limit, seen, busy, short)


def peers(what, measurement, ours, workers, names, busy, theirs=()):
    """Ours at or ahead of every library that took part; theirs: those that the paper compares with, too."""
    for v in measurement["variants"]:
        if v["name"] not in names or v["workers"] != workers:
            continue
        text = f"{what}: over {v['name']}'s time"
        short = f"{what}, over {v['name']}" if v["name"] in theirs else ""
        if "seconds" in v:
            c = by_time(text, ours, v, AT_OR_AHEAD, busy, short)
            if c.met is False and v["name"] in REASONS:
                c.seen += "; " + REASONS[v["name"]]
            yield c
        elif v["status"].startswith("gave up"):
            yield claim(text + f": at most {AT_OR_AHEAD}", True, f"{v['name']} {v['status']}", short)
