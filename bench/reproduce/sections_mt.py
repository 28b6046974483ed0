"""From raw data to what stands on the page: threads in one process, the paper on MassiveThreads (M5 to M7)."""

from . import papers
from .data import ROUNDS, Chart, Content, Dot, Dots, Point, Table, measurements, number, ratio_of, span_of, variant, versus


def problem_of(m):
    """What the title says before its details."""
    return m["title"].split(" (")[0].split(", threads:")[0].split(":")[0]


def m5(data):
    c, rows, counted, dots = Content(), [], [], []
    for record in data.steps("m5_"):
        for m in measurements(record):
            lines = {}
            for v in m["variants"]:
                if "seconds" not in v:
                    continue
                over = ratio_of(v, variant(m, "asm", v["workers"])) if v["workers"] else None
                rows.append(
                    [
                        problem_of(m),
                        v["name"],
                        v["workers"] or None,
                        v["median_s"],
                        v["cpu_median_s"],
                        v["over_reference"],
                        over[0] if over else None,
                        "this run",
                    ]
                )
                if v["workers"]:
                    lines.setdefault(v["name"], []).append(Point(v["workers"], *span_of(v["seconds"])))
                    if over and v["name"] != "asm":
                        dots.append(Dot(f"{problem_of(m)}, {v['name']}, {v['workers']} worker{'s' if v['workers'] > 1 else ''}", *over))
            c.charts.append(Chart(problem_of(m), "workers", "time, s", lines, log_y=True, note=f"{ROUNDS} The paper's figures 6 and 8 are drawn, without numbers."))
        for key, f in record["result"].get("figures", {}).items():
            if key.endswith(".over_asm"):
                c.judge(
                    data.busy(record),
                    f"fib({key[1:].split('.')[0]}), one worker, by CPU time beyond that of the plain calls:"
                    f" {f['what']} {number(f['value'])} x.",
                )
        for name, v in record["result"].get("variants", {}).items():
            counted.append(
                [record["about"]["cpu"], name, v["instructions"], v["over_plain"], v["over_first"], v["system_calls"],
                 v.get("window_flushes")]
            )
    dots += [Dot(f"{what}, at least", least, source=source) for what, least, source in papers.SWITCHES]
    c.charts.append(Dots("Time over that of asm", "ratio, x", dots, True, ROUNDS))
    rows += [[what, None, None, None, None, None, at_least, source] for what, at_least, source in papers.SWITCHES]
    c.tables.append(
        Table(
            "Time of fib without a cutoff",
            ["problem", "switch", "workers", "s", "CPU s", "/ plain calls", "/ asm", "source"],
            rows,
            "/ asm: of as many workers. The paper's are lower limits ('over 30x'), whole runs on SPARC64 IXfx. " + papers.SWITCHES_NOTE + ".",
        )
    )
    c.tables.append(
        Table(
            "Instructions in user mode of a spawn and join",
            ["CPU", "switch", "instructions", "over plain calls", "over asm", "kernel entered", "windows flushed"],
            counted,
            "Differences of two arguments of fib. What the kernel does when it is entered is not counted, and ucontext's time is mostly"
            " that; nor what a flush of register windows writes.",
        )
    )
    flush = data.get("m5_flush")
    if flush:
        c.tables.append(
            Table(
                "Flushing register windows on SPARC V9, in an emulator: CPU time of a spawn and join",
                ["by", "ns", "over plain calls, ns", "over flushw"],
                [[{"asm": "flushw", "trap": "the trap of V8"}.get(n, n), v["ns"], v["over_plain_ns"], v["over_first"]]
                 for n, v in flush["result"]["times"].items()],
                "The emulator's time, in which a trap is cheap: it leaves the translated code and comes back, as its flushw does for each window.",
            )
        )
    for m in [m for r in data.steps("m5_") for m in measurements(r)]:
        one = min((v["workers"] for v in m["variants"] if v["workers"]), default=1)
        others = {v["name"] for v in m["variants"]} - {"asm", "plain calls"}
        for name in sorted(others):
            c.judge(data.busy(), problem_of(m) + ": " + versus("asm", variant(m, "asm", one), name, variant(m, name, one), data.busy()))
    return c


def m6(data):
    c = Content()
    record = data.get("m6_costs")
    if record is None:
        return c
    rows = next(m["rows"] for m in record["result"]["measurements"] if "rows" in m)
    libraries = list(dict.fromkeys(r["library"] for r in rows))
    lines, table = {}, []
    for what in dict.fromkeys(r["what"] for r in rows):
        of = {r["library"]: r for r in rows if r["what"] == what}
        table.append([what, *[x for n in libraries for x in (of.get(n, {}).get("median_ns"), of.get(n, {}).get("least_ns"))]])
        for name, r in of.items():
            if what.startswith("create + join") and r["workers"] == 1:
                lines.setdefault(name, []).append(Point(r["live"], r["median_ns"], r["least_ns"], r["median_ns"]))
    c.tables.append(
        Table(
            "ns per operation",
            ["what", *[x for n in libraries for x in (n, "least")]],
            table,
            "Medians, and the least of the rounds. One worker: OS threads stay on one CPU. TBB's and OpenMP's tasks are no threads:"
            " they run to their end where they began, and cannot wait for each other. " + papers.CREATE_JOIN + ".",
        )
    )
    c.tables.append(
        Table(
            "Of ours alone",
            ["what", "median", "least", "unit"],
            [
                [f["what"], f["value"], f.get("least"), f["unit"]]
                for k, f in record["result"]["figures"].items()
                if k in ("mutex", "created_bytes", "blocked_bytes")
            ],
        )
    )
    c.charts.append(Chart("Create + join, one worker", "live at a time, threads", "time, ns", lines, True, True,
                          note="Bars: least of the rounds to their median. The paper's figures 11 and 12 are drawn, without numbers."))
    return c


def m7(data):
    c, rows = Content(), []
    for record in data.steps("m7_"):
        for m in measurements(record):
            serial, lines = variant(m, "serial"), {}
            for v in m["variants"]:
                if "seconds" not in v or v is serial:
                    continue
                r = ratio_of(v, serial)
                rows.append([problem_of(m), v["name"], v["workers"] or None, v["median_s"], r[0] if r else None])
                if v["workers"] and r:
                    lines.setdefault(v["name"], []).append(Point(v["workers"], *r))
            c.charts.append(Chart(f"{problem_of(m)}: time over plain calls", "workers", "ratio, x", lines, log_y=True,
                                  note=f"{ROUNDS} The paper's figures 13 to 15 are drawn, without numbers."))
    c.tables.append(
        Table(
            "Time over plain calls",
            ["problem", "library", "workers", "s", "/ plain calls"],
            rows,
            "Ordinary memory. fib by the default policy and by lazy, whose spawn is a plain call. Plain calls: what is compared with has the same leaves and no library. "
            + papers.FORK_JOIN
            + ".",
        )
    )
    return c


__all__ = ["m5", "m6", "m7"]
