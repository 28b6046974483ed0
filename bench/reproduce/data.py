"""Raw data made easy to ask: rows of steps, and comparisons that claim only what all rounds showed."""

import dataclasses
import statistics

BUSY = 0.15  # CPUs of other programs from which on times are not compared


@dataclasses.dataclass
class Table:
    title: str
    columns: list
    rows: list
    note: str = ""


@dataclasses.dataclass
class Chart:
    title: str
    x: str
    y: str
    series: dict  # name -> [(x, y)]
    log_x: bool = False
    log_y: bool = False
    areas: tuple = ()  # names of series drawn as filled areas
    x_to: float = 0.0  # where charts to be compared end


@dataclasses.dataclass
class Claim:
    """What is asked of an experiment, and whether it was so."""

    what: str
    met: bool | None  # None: not judged
    seen: str  # the figure, or why it is not judged


@dataclasses.dataclass
class Content:
    """What a section shows of its data."""

    tables: list = dataclasses.field(default_factory=list)
    charts: list = dataclasses.field(default_factory=list)
    sentences: list = dataclasses.field(default_factory=list)


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
        return max(
            [
                0 if r.get("hosts") else r["result"].get("foreign_cpus", 0)  # hosts here: other ranks would count
                for r in records or self.records.values()
            ]
            or [0]
        )


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
    """One sentence about two variants of one measurement: an order only where every round showed it."""
    r = ratio_of(a, b)
    if r is None:
        return f"{name_a} against {name_b}: not measured."
    middle, least, most = r
    span = f"{middle:.3f} x (from {least:.3f} to {most:.3f} over {len(a['seconds'])} rounds)"
    if busy > BUSY:
        return (
            f"{name_a} against {name_b}: {span}; not judged, because other programs used {busy:.1f} CPUs"
            " meanwhile."
        )
    if len(a["seconds"]) < 3:
        return f"{name_a} against {name_b}: {span}; too few rounds to judge."
    if most < 1:
        return f"{name_a} was faster than {name_b} in every round: {span} its time."
    if least > 1:
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
        return f"{text}; order not judged, because the machine was busy."
    each = list(zip(*(rounds[n] for n in known)))
    if len(each) < 3:
        return f"{text}; too few rounds to judge an order."
    showed = [None not in values and all(a < b for a, b in zip(values, values[1:])) for values in each]
    theirs_in_words = f"The paper's order ({' < '.join(known)})"
    if all(showed):
        return f"{text}. {theirs_in_words} appeared in every round."
    return f"{text}. {theirs_in_words} appeared in {sum(showed)} of {len(each)} rounds: no order is claimed."


def number(value):
    """A value as all tables show it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value == 0:
            return "0"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
