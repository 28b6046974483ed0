"""The first table of the page: a row for each experiment of the run, with what the papers say of it, what was seen here, and a verdict.

The papers' side is papers.SAYS; ours are the claims that have a short name (claims.py). Below it stand the rows of the kept table
(table.py) that tests decide. page.py writes both.
"""

import dataclasses
import re

from . import papers
from .busy import NOT_JUDGED
from .rows import ROWS
from .table import told

AGREES, DIFFERS, UNSEEN = "agrees", "differs", "cannot be seen here"
VERDICTS = (AGREES, DIFFERS, UNSEEN, NOT_JUDGED)
OF_TABLE = {"pass": AGREES, "not met": DIFFERS, "failed": DIFFERS, "not judged": UNSEEN, "not run": UNSEEN}
PARTS = {"U": "Stacks at one address", "M": "Threads in one process", "C": "Continuation stealing", "G": "Global address space"}

MOST = 4  # figures in a cell


@dataclasses.dataclass
class Line:
    part: str  # of PARTS
    title: str
    link: str
    paper: str
    ours: str
    verdict: str  # of VERDICTS


def slug(title):
    """The name by which a heading can be linked to, as code hosting sites make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def verdict(claims):
    """Of the claims that are the papers': one that is not so decides, then a busy machine; agrees: all that could be judged was so."""
    asked = [c for c in claims if c.short]
    if any(c.met is False for c in asked):
        return DIFFERS
    if any(c.busy for c in asked):
        return NOT_JUDGED
    return AGREES if any(c.met for c in asked) else UNSEEN


def ours(claims):
    """What was seen, in a cell: first what was not so; one reason for all that could not be judged."""
    asked, rest = [c for c in claims if c.short], [c for c in claims if not c.short and c.met is not None]
    order = [c for met in (False, True, None) for c in asked if c.met is met and not c.busy]
    seen = {}  # what was seen -> of what
    for c in order:
        seen.setdefault(("not so: " if c.met is False else "") + c.seen, []).append(c.short)
    words = [f"{', '.join(of)}: {what}" for what, of in list(seen.items())[:MOST]]
    if len(seen) > MOST:
        words.append(f"and {len(seen) - MOST} more")
    if not asked:
        words.append("no figure to compare with" if claims else "not measured")
    if n := sum(c.busy for c in asked):
        words.append(f"{n} of {len(asked)} not judged")
    if n := sum(c.met is False for c in rest):
        words.append(f"of what is asked here beyond the papers, {n} of {len(rest)} was not so")
    return "; ".join(words)


def lines(sections):
    """A Line for each experiment of this run."""
    return [
        Line(PARTS[s["name"][0]], s["title"], "#" + slug(s["title"]), "{} ({})".format(*papers.SAYS[s["name"]]), ours(s["claims"]),
             verdict(s["claims"]))
        for s in sections
    ]


def kept_lines(kept, page):
    """A Line for each row of the kept table that tests alone decide; page: the path of table.md."""
    return [
        Line(PARTS[r.name[0]], r.what, f"{page}#{slug(r.name)}", r.what, told(kept.result(r)) or kept.result(r)["status"],
             OF_TABLE[kept.result(r)["status"]])
        for r in ROWS
        if not r.experiments
    ]


def count(of):
    """How many of each verdict, in words."""
    return "; ".join(f"{v}: {n}" for v in VERDICTS if (n := sum(x.verdict == v for x in of)))
