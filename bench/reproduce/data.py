"""Raw data made easy to ask: rows of steps, and comparisons that claim only what all rounds showed."""

import dataclasses
import statistics
import typing

from .busy import BUSY, NOT_JUDGED


@dataclasses.dataclass
class Table:
    title: str
    columns: list
    rows: list
    note: str = ""


class Point(typing.NamedTuple):
    """low, high: the least and the most of the rounds."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass
class Chart:
    """Lines. A label is a counted thing ("workers") or ends in its unit ("time, s"): charts.unit_of."""

    title: str
    x: str
    y: str
    series: dict  # name -> [Point or (x, y)]
    log_x: bool = False
    log_y: bool = False
    papers: dict = dataclasses.field(default_factory=dict)  # name of a series, or of what we have none of -> [(x, y)] of a paper
    note: str = ""


@dataclasses.dataclass
class Panels:
    """Areas and lines over one axis, below each other: {name of a panel: {name of a series: [(x, y)]}}; the first series is the area."""

    title: str
    x: str
    y: str
    panels: dict
    note: str = ""


class Dot(typing.NamedTuple):
    """A row of Dots; low, high as in Point; source: where a paper prints it (empty: ours)."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    source: str = ""


@dataclasses.dataclass
class Dots:
    """A value each of several things, side by side."""

    title: str
    x: str
    dots: list
    log: bool = False
    note: str = ""


@dataclasses.dataclass
class Claim:
    """What is asked of an experiment, and whether it was so."""

    what: str
    met: bool | None  # None: not judged
    seen: str  # the figure, or why it is not judged
    short: str = ""  # what the page's first table calls its figure; empty: the papers do not ask it
    busy: bool = False  # not judged, because the machine was busy


@dataclasses.dataclass
class Content:
    """What a section shows of its data."""

    tables: list = dataclasses.field(default_factory=list)
    charts: list = dataclasses.field(default_factory=list)
    sentences: list = dataclasses.field(default_factory=list)

    def judge(self, busy, sentence):
        """Add a sentence that depends on times: only if the machine was quiet. page.py says once for a section that it was not."""
        if busy <= BUSY and sentence:
            self.sentences.append(sentence)


class Data:
    """The finished steps of one experiment (and of those it reads), by name, in order."""

    def __init__(self, records):
        self.records = {r["step"]: r for r in records if r and r.get("status") == "done"}

    def __bool__(self):
        return bool(self.records)

    def steps(self, prefix=""):
        return [r for name, r in self.records.items() if name.startswith(prefix)]

    def get(self, name):
        return self.records.get(name)

    def busy(self, *records):
        """The most CPUs that others used during these steps (all, if none is named)."""
        return max([others(r) for r in records or self.records.values()] or [0])


def others(record):
    """CPUs that other programs and other virtual machines used during a step."""
    return record.get("foreign_cpus", 0) + record.get("stolen_cpus", 0)


def measurements(record, suffix=None):
    """Measurements of a result; with a suffix only tables of rows whose title ends in it."""
    all_of = record["result"].get("measurements", [])
    if suffix is None:
        return [m for m in all_of if "variants" in m]
    return [m for m in all_of if "rows" in m and m["title"].endswith(suffix)]


def problem_of(measurement):
    """What the title says before the details."""
    return measurement["title"].split(" (geometric")[0].split(":")[0]


def variant(measurement, name, workers=None):
    for v in measurement["variants"]:
        if v["name"] == name and "seconds" in v and (workers is None or v["workers"] == workers):
            return v
    return None


def ratio_of(a, b):
    """(median, least, most) of a's time over b's in the same round; None if one is missing."""
    if a is None or b is None:
        return None
    ratios = [x / y for x, y in zip(a["seconds"], b["seconds"]) if y > 0]
    return (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def versus(name_a, a, name_b, b, busy):
    """One sentence about two variants of one measurement: an order only where every round showed it, none on a busy machine."""
    r = ratio_of(a, b)
    if r is None:
        return f"{name_a} against {name_b}: not measured."
    middle, least, most = (number(x) for x in r)
    n = min(len(a["seconds"]), len(b["seconds"]))
    span = f"{middle} x (from {least} to {most} over {n} round{'s' if n > 1 else ''})"
    if busy > BUSY:
        return ""
    if n < 3:
        return f"{name_a} against {name_b}: {span}; too few rounds to judge."
    if r[2] < 1:
        return f"{name_a} was faster than {name_b} in every round: {span} its time."
    if r[1] > 1:
        return f"{name_a} was slower than {name_b} in every round: {span} its time."
    return f"{name_a} and {name_b}: no order that all rounds agree on; {span}."


def order(title, rounds, theirs, busy=0.0):
    """A sentence: do these {name: [value of round 1, ...]} have the order of the papers' values? Claimed only where every
    round showed it, as by versus(); None stands for a round in which nothing happened."""
    known = sorted((n for n in theirs if any(x is not None for x in rounds.get(n) or [])), key=lambda n: theirs[n])
    if len(known) < 2:
        return ""
    middle = {n: statistics.median(x for x in rounds[n] if x is not None) for n in known}
    text = f"{title}: " + ", ".join(f"{n} {number(middle[n])}" for n in known)
    if busy > BUSY:
        return f"{text}; {NOT_JUDGED}."
    each = list(zip(*(rounds[n] for n in known)))
    if len(each) < 3:
        return f"{text}; too few rounds to judge an order."
    showed = [None not in values and all(a < b for a, b in zip(values, values[1:])) for values in each]
    theirs_in_words = f"The paper's order ({' < '.join(known)})"
    if all(showed):
        return f"{text}. {theirs_in_words} appeared in every round."
    return f"{text}. {theirs_in_words} appeared in {sum(showed)} of {len(each)} rounds: no order is claimed."


def number(value):
    """A value as the page shows it: counts whole, what was measured with three significant digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        value = float(f"{value:.3g}")
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"
    return str(value)


def span_of(values):
    """(median, least, most) of the rounds."""
    return statistics.median(values), min(values), max(values)


ROUNDS = "Bars: least to most of the rounds."
