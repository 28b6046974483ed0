"""Words for claims.py: a limit that a figure keeps or not, a ratio of times, peers."""

from .data import BUSY, Claim, number, ratio_of

AT_OR_AHEAD = 1.1  # of a peer's time: less than 10 % is noise
# Why a peer may be ahead, where the way it works is the reason.
REASONS = {"lace": "Lace's tasks are C functions that their own worker calls, and the compiler inlines the recursion; what has begun cannot move"}
TASKS = "its tasks are no threads: they have no stack, number or yield of their own and are joined by who made them"


def claim(what, met, seen):
    return Claim(what, None if met is None else bool(met), seen)


def missing(what, why):
    return Claim(what, None, why)


def judged(what, met, seen, busy):
    if busy > BUSY:
        return Claim(what, None, f"{seen}; not judged, because other programs used {busy:.1f} CPUs")
    return Claim(what, bool(met), seen)


def at_most(what, value, limit, busy=0.0):
    return missing(what, "not measured") if value is None else judged(f"{what}: at most {number(limit)}", value <= limit, number(value), busy)


def at_least(what, value, limit, busy=0.0):
    return missing(what, "not measured") if value is None else judged(f"{what}: at least {number(limit)}", value >= limit, number(value), busy)


def by_time(what, ours, theirs, limit, busy):
    """The time of one variant over the other's of the same round, at most limit; judged from three rounds on. On one worker CPU time says
    the same, also beside other programs."""
    r = ratio_of(ours, theirs)
    if r and busy > BUSY and ours["workers"] == theirs["workers"] == 1 and theirs.get("cpu_median_s"):
        ratio = ours["cpu_median_s"] / theirs["cpu_median_s"]
        return Claim(f"{what}: at most {number(limit)}", ratio <= limit, f"{number(ratio)} by CPU time, because other programs used {busy:.1f} CPUs")
    if r is None:
        return missing(what, "not measured")
    n = min(len(ours["seconds"]), len(theirs["seconds"]))
    seen = f"{number(r[0])} ({number(r[1])} to {number(r[2])} in {n} rounds)"
    what = f"{what}: at most {number(limit)}"
    return judged(what, r[0] <= limit, seen, busy) if n >= 3 or r[2] <= limit else missing(what, f"{seen}; too few rounds to judge")


def peers(what, measurement, ours, workers, names, busy):
    """Ours at or ahead of every library that took part."""
    for v in measurement["variants"]:
        if v["name"] not in names or v["workers"] != workers:
            continue
        text = f"{what}: over {v['name']}'s time"
        if "seconds" in v:
            c = by_time(text, ours, v, AT_OR_AHEAD, busy)
            if c.met is False and v["name"] in REASONS:
                c.seen += "; " + REASONS[v["name"]]
            yield c
        elif v["status"].startswith("gave up"):
            yield claim(text + f": at most {AT_OR_AHEAD}", True, f"{v['name']} {v['status']}")
