"""From raw data to what stands on the page: the experiments on continuation stealing (C8 to C13)."""

from . import papers
from .data import ROUNDS, Chart, Content, Dot, Dots, Panels, Point, Table, measurements, number, order, ratio_of, span_of, variant, versus


def joins(record):
    """(kind, parameters, rows) of every size of a pfor step."""
    tables = measurements(record, ": joins and steals")
    return [(m["parameters"]["kind"], m, t["rows"]) for m, t in zip(measurements(record), tables)]


def c8(data):
    c = Content()
    for record in data.steps("c8_"):
        rows, lines = [], {}
        for kind, m, table in joins(record):
            p = m["parameters"]
            for r in table:
                rows.append(
                    [
                        r["policy"],
                        p["n"],
                        p["ideal_s"],
                        r["seconds"],
                        100 * r["efficiency"],
                        100 * r["efficiency_over_reference"],
                    ]
                )
                beyond = [100 * (x / p["ideal_s"] - 1) for x in variant(m, r["policy"])["seconds"]]
                lines.setdefault(r["policy"], []).append(Point(p["ideal_s"], *span_of(beyond)))
        c.tables.append(
            Table(
                f"{kind}: efficiency",
                ["policy", "N", "ideal s", "s", "efficiency %", "over serial code %"],
                rows,
                "Efficiency: K M N (log2 N) / workers / time. Over serial code: the same with the time of the"
                " recursion without threads.",
            )
        )
        ideal = papers.TABLE_II_IDEAL[kind]
        theirs = {p: [(ideal, 100 * (x[0] / ideal - 1))] for p, x in papers.TABLE_II[kind].items()}
        c.charts.append(
            Chart(f"{kind}: time beyond the ideal, by size", "ideal time, s", "beyond the ideal, %", lines, True, True, theirs,
                  f"{ROUNDS} The paper: table II, 576 cores; its figure 6 has more points, drawn only.")
        )
        calibration = record["result"]["calibration"]
        c.judge(
            data.busy(record),
            f"{kind}: compute({calibration['asked_us']:g} us) took {number(calibration['cpu_us'])} us of CPU time"
            f" and {number(calibration['wall_us'])} us of wall time in a long run ({calibration['kind']}).",
        )
        last = {r[0]: r[4] for r in rows if r[1] == rows[-1][1]}
        c.judge(data.busy(record), f"{kind}, largest size here: " + ", ".join(f"{p} {number(e)} %" for p, e in last.items()) + ".")
    c.sentences.append(
        "The paper's curves fall to the left, where less work than steals cost remains per core. Steals take"
        " tens of microseconds between its nodes; inside a machine they cost less (a steal and its parts), so the fall is"
        " expected at smaller sizes, and later with few workers."
    )
    return c


def c9(data):
    c = Content()
    columns = [
        "policy",
        "s",
        "efficiency %",
        "outstanding joins",
        "wait us",
        "steals",
        "latency us",
        "failed",
        "bytes",
        "copy us",
        "source",
    ]
    for record in data.steps("c9_"):
        kind, m, table = joins(record)[-1]
        rows = [
            [
                r["policy"],
                r["seconds"],
                100 * r["efficiency"],
                r["outstanding_joins"],
                r["outstanding_us"],
                r["steals"],
                r["steal_us"],
                r["steals_failed"],
                r["stolen_bytes"],
                r["copy_us"],
                "this run",
            ]
            for r in table
        ]
        for policy, (s, count, wait, steals, latency, failed, size, copy) in papers.TABLE_II[kind].items():
            rows.append(
                [
                    policy,
                    s,
                    100 * papers.TABLE_II_IDEAL[kind] / s,
                    count,
                    wait,
                    steals,
                    latency,
                    failed,
                    size,
                    copy,
                    "DC table II, 576 cores",
                ]
            )
        c.tables.append(
            Table(
                m["title"],
                columns,
                rows,
                "wait: from when an outstanding join could go on to when it did. Ours and the paper's differ"
                " in the number of workers, and with it in the number of steals that a run needs.",
            )
        )
        by = {r["policy"]: r for r in table}
        waits = {p: [x for x in r.get("of_rounds", {}).get("outstanding_us", []) if x is not None] for p, r in by.items()}
        dots = [Dot(p, *span_of(x)) for p, x in waits.items() if x]
        dots += [Dot(f"{p}, 576 cores", x[2], source="DC table II") for p, x in papers.TABLE_II[kind].items()]
        c.charts.append(Dots(f"{kind}: wait of an outstanding join that could go on", "time, us", dots, True, ROUNDS))
        for what, column, at in (
            ("outstanding joins", "outstanding_joins", 1),
            ("their average wait, us", "outstanding_us", 2),
        ):
            ours = {p: r.get("of_rounds", {}).get(column, []) for p, r in by.items()}
            paper = {p: v[at] for p, v in papers.TABLE_II[kind].items()}
            for some in (("greedy", "stalling"), ("greedy", "child_full", "child_rtc")):
                c.judge(data.busy(record), order(f"{kind}, {what}", ours, {p: paper[p] for p in some}))
        sizes = {p: r["stolen_bytes"] for p, r in by.items() if r["stolen_bytes"]}
        if "greedy" in sizes and "child_full" in sizes:
            c.sentences.append(
                f"{kind}: a stolen continuation has {number(sizes['greedy'] / sizes['child_full'])} times the"
                " bytes of a stolen child (the paper:"
                f" {papers.TABLE_II[kind]['greedy'][6] / papers.TABLE_II[kind]['child_full'][6]:.0f} times)."
            )
    return c


def c10(data):
    c, rows, panels = Content(), [], {}
    for record in data.steps("c10_"):
        s, policy = record["result"]["series"], record["about"]["policy"]
        xs = [i * s["width_s"] for i in range(len(s["busy"]))]
        panels[policy] = {"busy workers": list(zip(xs, s["busy"])), "joins that could go on": list(zip(xs, s["ready"]))}
        n = max(1, len(s["busy"]))
        idle_ready = sum(1 for b, r in zip(s["busy"], s["ready"]) if r >= 0.5 and b <= s["workers"] - 0.5) / n
        rows.append(
            [
                policy,
                s["workers"],
                sum(s["busy"]) / n,
                max(s["ready"]),
                100 * idle_ready,
                s["events"],
                s["dropped"],
            ]
        )
    c.charts.append(Panels("RecPFor: busy workers, and joins that could go on", "time, s", "workers or joins", panels,
                           "The paper's figure 7 is drawn, without numbers."))
    c.tables.append(
        Table(
            "Averages over the run",
            [
                "policy",
                "workers",
                "busy on average",
                "most ready joins",
                "time with both idle workers and ready joins %",
                "events",
                "dropped",
            ],
            rows,
        )
    )
    bad = [r for r in rows if r[4] > 1]
    if rows:
        c.judge(
            data.busy(),
            "A greedy schedule never leaves a worker idle beside a join that could go on. "
            + ("Both at once for more than 1 % of the time: " + ", ".join(f"{r[0]} ({number(r[4])} %)" for r in bad) + "."
               if bad else "With no policy here that was the case for more than 1 % of the time."),
        )
    return c


def c11(data):
    c, rows, cost, gained = Content(), [], [], []
    saws = data.get("c11_saws")
    c.tables += [
        Table(
            m["title"] + ", beside SAWS",
            ["program", "workers", "s"],
            [[v["name"], v["workers"], v.get("median_s", v.get("status"))] for v in m["variants"]],
            "SAWS keeps a bag of tasks per process over OpenSHMEM; it computes SHA-1 without the CPU's instructions for it.",
        )
        for m in (measurements(saws) if saws else [])
    ]
    for record in [r for r in data.steps("c11_") if r is not saws]:
        for m in measurements(record):
            serial = variant(m, "serial")
            nodes = next(
                (
                    f["value"]
                    for k, f in record["result"]["figures"].items()
                    if k.endswith(".serial_mnodes_s")
                ),
                None,
            )
            for v in m["variants"]:
                if "counts" in v:
                    name, ratio = f"{m['parameters']['tree']}, threads: {m['parameters']['threads']}", ratio_of(v, serial)
                    if v["workers"] == 1:
                        cost.append(Dot(name, *(100 * (x - 1) for x in ratio)))
                    gained.append(Dot(f"{name}, {v['workers']} worker{'s' if v['workers'] > 1 else ''}",
                                      *(100 / x / v["workers"] for x in (ratio[0], ratio[2], ratio[1]))))
                    rows.append(
                        [
                            m["parameters"]["tree"],
                            m["parameters"]["threads"],
                            v["workers"],
                            v["median_s"],
                            nodes * serial["median_s"] / v["median_s"] if nodes else None,
                            100 * (v["over_reference"] - 1) if v["workers"] == 1 else None,
                            100 / v["over_reference"] / v["workers"],
                            v["counts"]["steals"],
                        ]
                    )
    cost += [Dot(name, over, source=source) for name, over, source in papers.UTS_OVERHEAD]
    c.charts.append(Dots("Overhead of one worker over serial code", "overhead, %", cost, note=ROUNDS))
    gained.append(Dot(papers.UTS_EFFICIENCY[0], papers.UTS_EFFICIENCY[1], source=papers.UTS_EFFICIENCY[2]))
    c.charts.append(Dots("Efficiency over serial code (the paper's: over one core of its program)", "efficiency, %", gained, note=ROUNDS))
    c.tables.append(
        Table(
            "Unbalanced tree search",
            [
                "tree",
                "threads",
                "workers",
                "s",
                "Mnodes/s",
                "overhead over serial %",
                "efficiency over serial %",
                "steals",
            ],
            rows,
            "threads: inner, leaves are counted by their parent; every, a thread per node, as in the paper."
            " Totals are checked. T1XXL, 4.2 G nodes, takes most of an hour: bench/uts --tree T1XXL --workers 1,2 --reps 1 --peers none.",
        )
    )
    c.tables.append(
        Table(
            "The paper's",
            ["machine", "serial Mnodes/s", "overhead over serial %"],
            [
                [name, rate, over]
                for (name, rate), (_, over, _) in zip(papers.UTS_SERIAL_MNODES, papers.UTS_OVERHEAD)
            ],
            f"{papers.UTS_EFFICIENCY[0]}: {papers.UTS_EFFICIENCY[1]} % efficiency over one core. Against"
            " SAWS, Charm++ and X10/GLB it is compared in the paper's figure 8; they are not installed"
            " here.",
        )
    )
    every = [r for r in rows if r[1] == "every" and r[5] is not None]
    if every:
        c.judge(
            data.busy(),
            f"A thread per node costs {number(every[0][5])} % over serial code here, 18 % and 27 % in the paper."
            " A creation is cheaper here, and the digest of a node takes a different share of a node's time.",
        )
    return c


def c12(data):
    c, rows, bounds, lines, times = Content(), [], [], {}, {}
    for record in data.steps("c12_"):
        k = record["about"]["k"]
        for t in measurements(record, ": bounds"):
            for r in t["rows"]:
                rows.append(
                    [
                        f"2^{k}",
                        r["policy"],
                        r["workers"],
                        r["seconds"],
                        r["lower_s"],
                        r["upper_s"],
                        r["over_range"],
                        papers.LCS_TABLE_III.get(k, {}).get(r["policy"]),
                    ]
                )
                of = next((v for m in measurements(record) for v in m["variants"] if v.get("policy") == r["policy"] and v["workers"] == r["workers"]), None)
                spans = span_of(of["seconds"]) if of and "seconds" in of else (r["seconds"],)
                times.setdefault(r["policy"], []).append(Point(2**k, *spans))
                lines.setdefault(r["policy"], []).append(Point(2**k, *(x / r["lower_s"] for x in spans)))
            if t["rows"]:
                bounds.append((2**k, t["rows"][0]["lower_s"], t["rows"][0]["upper_s"], t["rows"][0]["tc_ms"]))
    lines["upper bound"] = [(n, high / low) for n, low, high, _ in bounds]
    printed = {p: [(2**k, row[p]) for k, row in papers.LCS_TABLE_III.items()] for p in papers.LCS_TABLE_III[18]}
    lower, upper = papers.lcs_bounds(576)
    theirs = {p: [(n, x / lower(n)) for n, x in points] for p, points in printed.items()}
    theirs["upper bound"] = [(n, upper(n) / lower(n)) for n, _ in printed["greedy"]]
    c.tables.append(
        Table(
            "Longest common subsequence",
            [
                "N",
                "policy",
                "workers",
                "s",
                "max(T1/P, Tinf)",
                "T1/P + Tinf",
                "x the range",
                "paper, 576 cores, s",
            ],
            rows,
            "x the range: 1 inside the bounds, else the time over the upper or the lower one."
            " Run-to-completion threads wait for their own children only and cannot run this. Results are"
            " compared with the plain recurrence.",
        )
    )
    c.charts.append(Chart("Time", "size, bytes", "time, s", times, True, True, printed, f"{ROUNDS} The paper: table III, 576 cores."))
    c.charts.append(Chart("Time over the lower bound of greedy scheduling, max(T1/P, Tinf)", "size, bytes", "ratio, x", lines, True, True, theirs,
                          f"{ROUNDS} The paper: table III over bounds of its block's 0.340 ms and 576 cores."))
    if bounds:
        c.judge(data.busy(), f"A block of C x C takes {number(bounds[-1][3])} ms here; 0.340 ms on ITO-A, 0.872 ms on WISTERIA-O.")
    for record in data.steps("c12_")[-1:]:
        m, busy = measurements(record)[0], data.busy(record)
        by = {v["name"]: v for v in m["variants"]}
        for other in ("stalling", "child_full"):
            c.judge(busy, versus("greedy", by.get("greedy"), other, by.get(other), busy))
        off = next((r for r in reversed(rows) if r[1] == "greedy"), None)
        if off:
            c.judge(
                busy,
                "Greedy lies inside the bounds at the largest size." if off[6] == 1
                else f"Greedy takes {number(off[6])} x the {'upper' if off[6] > 1 else 'lower'} bound at the largest size.",
            )
    c.sentences.append(
        "In the paper child stealing is nearly serial, because its tied tasks are popped and suspended by one"
        " worker faster than others can steal them over the network. Inside one machine a steal costs less,"
        " and thieves are faster in comparison."
    )
    return c


def c13(data):
    c, rows, dots = Content(), [], []
    pairs = [
        ("local collection", "stalling", "stalling_locked_free"),
        ("greedy join", "greedy", "stalling"),
        ("both", "greedy", "stalling_locked_free"),
        ("local collection under greedy join", "greedy", "locked_free"),
        ("over child stealing, full threads", "greedy", "child_full"),
        ("over child stealing, run to completion", "greedy", "child_rtc"),
    ]
    for record in data.steps("c9_"):
        kind, m, _ = joins(record)[-1]
        busy = data.busy(record)
        for what, ours, other in pairs:
            a, b = variant(m, ours), variant(m, other)
            if a is None or b is None:
                continue
            sentence = versus(ours, a, other, b, busy)
            gain = sorted(y / x for x, y in zip(a["seconds"], b["seconds"]))
            theirs, said = papers.GAINS.get((kind, what), (None, ""))
            dots.append(Dot(f"{kind}: {what}", *span_of(gain)))
            dots.append(Dot(f"{kind}: {what}, at most", theirs, source="DC V"))
            rows.append(
                [
                    kind,
                    what,
                    f"{other} / {ours}",
                    gain[len(gain) // 2],
                    gain[0],
                    gain[-1],
                    said,
                ]
            )
            c.judge(busy, f"{kind}: {sentence}")
    c.charts.append(Dots("Gain: time without over time with", "ratio, x", dots, True, ROUNDS))
    c.tables.append(
        Table(
            "Gain: time of the one over time of the other in the same round, at the size of joins and steals",
            ["benchmark", "what", "ratio", "median", "least", "most", "paper"],
            rows,
            "The paper's baseline is stalling_locked_free: stalling join and locked queue. The first two rows are its"
            " steps from there to the default.",
        )
    )
    c.sentences.append(
        "Local collection saves a remote free four round trips in the paper. In shared memory these are"
        " accesses to another core's cache lines, and few workers free few objects remotely: a gain of the"
        " paper's size is not expected here."
    )
    return c


__all__ = ["c8", "c9", "c10", "c11", "c12", "c13"]
