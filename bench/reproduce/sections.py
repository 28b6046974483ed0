"""From raw data to what stands on the page: the first paper's and its successor's experiments (U11 to U16).

Each function takes the experiment's data and gives back a Content; sentences are computed, orders only
claimed where the data shows them, and only of a quiet machine (Content.judge). The other experiments: sections_dc.py.
"""

import statistics

from . import papers
from .data import ROUNDS, Chart, Content, Data, Dot, Dots, Table, measurements, number, problem_of, ratio_of, span_of, variant


def u11(data: Data):
    c = Content()
    spawn, tree = data.get("u11_spawn"), data.get("u11_policies")
    rows, dots = [], []
    if spawn:
        for row in spawn["result"]["measurements"][0]["rows"]:
            rows.append([f"godwit, {row['form']}", row["over_ticks"], row["over_ns"], "this run"])
            ends = [row[k] * row["over_ticks"] / row["over_ns"] if k in row else None for k in ("over_ns_p10", "over_ns_p90")]
            dots.append(Dot(f"godwit, {row['form']}", row["over_ticks"], *ends))
    dots += [Dot(name, cycles, source=source) for name, cycles, source in papers.TASK_CYCLES]
    c.charts.append(Dots("Creating and joining a task that nobody steals", "time, cycles", dots, True, "Bars: 10th to 90th percentile of the blocks of calls."))
    rows += [[name, cycles, None, source] for name, cycles, source in papers.TASK_CYCLES]
    c.tables.append(
        Table(
            "Creating and joining a task that nobody steals, over a plain call",
            ["what", "cycles", "ns", "source"],
            rows,
            "Ours in ticks of the constant-rate counter.",
        )
    )
    if tree:
        rate = tree["result"]["machine"]["counter_ticks_per_ns"]
        rows, dots = [], []
        for m in measurements(tree):
            serial, tasks = variant(m, "serial"), m["parameters"]["tasks"] - 1
            for v in m["variants"]:
                if v["workers"] == 1 and "seconds" in v and "policy" in v:
                    of_rounds = [(x - y) * 1e9 / tasks for x, y in zip(v["seconds"], serial["seconds"])]
                    ns = statistics.median(of_rounds)
                    rows.append([v["policy"], ns * rate, ns])
                    dots.append(Dot(v["policy"], *(rate * x for x in span_of(of_rounds))))
        c.charts.append(Dots("A task of BTC over a call, by policy, one worker", "time, cycles", dots, True, ROUNDS))
        c.tables.append(
            Table("A task of BTC over a call, by policy, one worker", ["policy", "cycles", "ns"], rows)
        )
        why = {
            "crude": "the crude scheme copies a stack at every creation",
            "iso": "iso-address takes a stack of its own",
            "child_full": "child stealing with full threads stores a task and takes a stack",
            "child_rtc": "child stealing with run-to-completion threads stores a task",
        }
        for m in measurements(tree):
            by = {v["policy"]: v for v in m["variants"] if v["workers"] == 1 and "policy" in v and "seconds" in v}
            ratios = {p: ratio_of(v, by.get("greedy")) for p, v in by.items() if p in why}
            slower = [
                f"{why[p]} ({number(r[0])} x greedy's time, from {number(r[1])} to {number(r[2])})"
                for p, r in ratios.items()
                if r and r[1] > 1 and len(by[p]["seconds"]) >= 3
            ]
            if slower:
                c.judge(data.busy(tree), "Slower than the default in every round, on one worker where nobody steals: " + "; ".join(slower) + ".")
    if spawn:
        best = min(r["over_ticks"] for r in spawn["result"]["measurements"][0]["rows"])
        c.judge(
            data.busy(spawn),
            f"Ours: from {number(best)} ticks. The papers' creation stores a queue entry in memory that other"
            " nodes read, or polls for messages; ours makes queued continuations public only when somebody"
            " starves, so a creation stays local.",
        )
    return c


def u12(data):
    c, rows, beside = Content(), [], []
    for record in data.steps():
        for m in measurements(record):
            serial, theirs, dots = variant(m, "serial"), variant(m, "massivethreads", 1), []
            for v in m["variants"]:
                if v["workers"] == 1 and "seconds" in v:
                    r = ratio_of(v, serial)
                    dots.append(Dot(v["name"], *r))
                    rows.append([problem_of(m), v["name"], v["median_s"], r[0], v["cpu_over_reference"]])
            c.charts.append(Dots(f"{problem_of(m)}: time on one worker over serial code", "ratio, x", dots, True, ROUNDS))
            if ratio := ratio_of(variant(m, "godwit", 1), theirs):
                beside.append(Dot(f"{problem_of(m)}, godwit", *ratio))
    c.tables.append(
        Table(
            "Time on one worker over serial code", ["problem", "runtime", "s", "/ serial", "CPU / CPU"], rows
        )
    )
    most = Dot("the most of three programs", papers.OVERHEAD_OVER_MASSIVETHREADS, source="WS 7.2")
    c.charts.append(Dots("Time on one worker over MassiveThreads", "ratio, x", [*beside, most], note=ROUNDS))
    c.sentences.append(
        f"The paper gives the ratio to MassiveThreads, at most {papers.OVERHEAD_OVER_MASSIVETHREADS}"
        + (
            "."
            if any(r[1] == "massivethreads" for r in rows)
            else "; this build has no MassiveThreads (bench/CMakeLists.txt: GODWIT_PEERS_DIR)."
        )
        + " BTC's tasks do nothing, so that its ratio is the whole cost of a task; trees with work in every node"
        " hide it. Under policy lazy a spawn is a plain call."
    )
    return c


def u13(data):
    c, rows, dots = Content(), [], []
    near = data.get("u13_near")
    far = [r for r in data.steps("u13_") if r is not near]
    for record in ([near] if near else []) + far:
        rate = record["result"]["machine"]["counter_ticks_per_ns"]
        where = "one machine" if record is near else f"two hosts, {record['step'].split('_', 1)[1].replace('_', ', ')}"
        for r in record["result"]["measurements"][0]["rows"]:
            rows.append([where, r["stolen_bytes"], r["median_us"], r["p90_us"], r["median_us"] * 1e3 * rate, "this run"])
            dots.append(Dot(f"{where}, {number(r['asked_bytes'])} bytes", *(r[k] * 1e3 * rate for k in ("median_us", "median_us", "p90_us"))))
    dots += [Dot(name, cycles, source=source) for name, cycles, source in papers.STEAL_CYCLES]
    c.charts.append(Dots("A successful steal", "time, cycles", dots, True, "Bars: median to 90th percentile of the steals."))
    rows += [[name, None, None, None, cycles, source] for name, cycles, source in papers.STEAL_CYCLES]
    c.tables.append(
        Table(
            "A successful steal",
            ["where", "stolen bytes", "median us", "p90 us", "cycles", "source"],
            rows,
            "The first steals are left out.",
        )
    )
    if near:
        c.tables.append(
            Table(
                "Its parts on one machine, us",
                ["stolen bytes", "copy", "one cache line", "rest"],
                [
                    [r["stolen_bytes"], r["copy_us"], r["line_us"], r["rest_us"]]
                    for r in near["result"]["measurements"][0]["rows"]
                ],
            )
        )
    turns = [m for m in near["result"]["measurements"] if m["title"] == "suspend and resume"] if near else []
    c.tables.append(
        Table(
            "Suspending one thread and resuming another, one worker",
            ["stack bytes", "times", "cycles", "source"],
            [[r["stolen_bytes"], r["suspensions"], r["cycles"], "this run"] for m in turns for r in m["rows"]]
            + [[None, None, cycles, f"{name}, {source}"] for name, cycles, source in papers.SUSPEND_RESUME_CYCLES],
            "Ours in ticks of the constant-rate counter: a yield to the other of two threads, whose stack is copied in where this one's was.",
        )
    )
    dots = [Dot(f"{number(r['stolen_bytes'])} bytes of stack", r["cycles"]) for m in turns for r in m["rows"]]
    dots += [Dot(name, cycles, source=source) for name, cycles, source in papers.SUSPEND_RESUME_CYCLES]
    c.charts.append(Dots("Suspending one thread and resuming another", "time, cycles", dots, True))
    steps = ["carry_us", "serve_us", "check_us", "lock_us", "entry_us", "stack_us", "unlock_us"]
    if far:
        c.tables.append(
            Table(
                "Its parts between two hosts, us",
                ["way", "stolen bytes", "mean", *[s[:-3] for s in steps]],
                [
                    [
                        rec["step"].split("_", 1)[1].replace("_", ", "),
                        r["stolen_bytes"],
                        r["mean_us"],
                        *[r[s] for s in steps],
                    ]
                    for rec in far
                    for r in rec["result"]["measurements"][0]["rows"]
                ],
                "carry: between the two companions, of that serve: at the victim's host. Only the way `words`"
                " has the papers' steps: empty check, lock, entry, stack transfer, unlock.",
            )
        )
    c.sentences.append(
        "On one machine a thief reads its victim's memory: what remains is cache lines and a copy. Between"
        " the hosts here, messages go through the kernel's TCP over a bridge; the papers had InfiniBand or"
        " Tofu, where a round trip takes microseconds."
    )
    return c


def u14(data):
    c, rows, gained, stacks = Content(), [], [], []
    for record in data.steps():
        for m in measurements(record):
            ours = [v for v in m["variants"] if v["name"] == "godwit" and "seconds" in v]
            one = next((v for v in ours if v["workers"] == 1), None)
            many = ours[-1] if ours else None
            if many is None:
                continue
            r = ratio_of(one, many)
            efficiency = r[0] / many["workers"] * 100 if r and many["workers"] > 1 else None
            stacks.append(Dot(problem_of(m), many["counts"]["stack_high_bytes"]))
            if efficiency:
                gained.append(Dot(f"{problem_of(m)}, {many['workers']} workers over one", *(x / many["workers"] * 100 for x in r)))
                if efficiency < 97:
                    c.judge(data.busy(record), f"{problem_of(m)}: {number(efficiency)} %, below the papers' 97 %.")
            rows.append(
                [
                    problem_of(m),
                    many["workers"],
                    many["median_s"],
                    efficiency,
                    many["counts"]["steals"],
                    many["counts"]["stack_high_bytes"],
                    papers.STACK_LIMIT,
                ]
            )
    gained += [Dot(f"{what}, 8 times the cores", value, source=source) for what, value, source in papers.EFFICIENCY]
    c.charts.append(Dots("Efficiency", "efficiency, %", gained, note=ROUNDS))
    stacks += [Dot(*x[:2], source=x[2]) for x in papers.STACKS]
    c.charts.append(Dots("The most of a worker's stack region that was used", "size, bytes", stacks))
    c.tables.append(
        Table(
            "Trees of tasks",
            ["problem", "workers", "s", "efficiency %", "steals", "stack bytes", "papers' most"],
            rows,
            "Efficiency: time on one worker / time / workers. Every result was checked.",
        )
    )
    c.tables.append(
        Table(
            "The papers' stacks (3,840 and 1,800 cores)",
            ["problem", "bytes", "source"],
            [list(x) for x in papers.STACKS],
        )
    )
    over = [r[0] for r in rows if r[5] > papers.STACK_LIMIT]
    c.sentences.append(
        "No worker touched more of its stack region than the papers' most, 147,392 bytes."
        if rows and not over
        else "More than the papers' most was touched in " + ", ".join(over) + "." if over else ""
    )
    return c


def compared(data):
    """U15: active messages over RDMA-emulated, ours and WS table 4's."""
    found, dots, known = {}, [], {x[:3]: x[3] for x in papers.WS_TABLE_4}
    for record in data.steps():
        a = record["about"]
        for v in (v for m in measurements(record) for v in m["variants"] if "counts" in v):
            found[a["problem"], a["hosts"], a["way"], a["check"]] = v["seconds"]
    for (problem, hosts, way, check), am in found.items():
        other = found.get((problem, hosts, "assist", check))
        if way == "am" and other:
            ratios = [x / y for x, y in zip(am, other)]
            dots.append(Dot(f"{problem}, {hosts} hosts, {'with' if check else 'without'} empty check", *span_of(ratios)))
    for problem, way, check, seconds in papers.WS_TABLE_4:
        if way == "am" and (problem, "assist", check) in known:
            ratio = seconds / known[problem, "assist", check]
            dots.append(Dot(f"{problem}, 1,800 cores, {'with' if check else 'without'} empty check", ratio, source="WS table 4"))
    return dots


def u15(data):
    c, rows, cells = Content(), [], {}
    for record in data.steps():
        about = record["about"]
        for m in measurements(record):
            for v in m["variants"]:
                if "counts" not in v:
                    continue
                n = v["counts"]
                share = 100 * n["message_ns"] * 1e-9 / (v["median_s"] * about["hosts"])
                cells[about["problem"], about["way"], about["check"], about["hosts"]] = (
                    share,
                    n["far_steals"],
                    v["median_s"],
                )
                paper = next(
                    (
                        s
                        for p, w, e, s in papers.WS_TABLE_4
                        if (p, w, e) == (about["problem"], about["way"], about["check"])
                    ),
                    None,
                )
                rows.append(
                    [
                        about["problem"],
                        {"assist": "RDMA-emulated", "am": "AM", "server": "server"}[about["way"]],
                        bool(about["check"]),
                        about["hosts"],
                        v["median_s"],
                        n["messages"],
                        share,
                        n["far_steals"],
                        n["far_failed"],
                        paper,
                    ]
                )
    c.tables.append(
        Table(
            "Two hosts or more, a worker each",
            [
                "problem",
                "fetch-and-add",
                "empty check",
                "P",
                "s",
                "messages",
                "share %",
                "steals",
                "failed",
                "paper, 1,800 cores, s",
            ],
            rows,
            "messages, share: requests of other hosts that workers carried out at spawns, and the part of all"
            " workers' time that took; with RDMA-emulated a companion does it. server, the default: a companion carries out whole"
            " steals.",
        )
    )
    c.charts.append(Dots("Time with active messages over that with RDMA-emulated fetch-and-add", "ratio, x", compared(data), True, ROUNDS))
    am, busy = [x for (_, way, _, _), x in cells.items() if way == "am"], data.busy()
    if am and max(x[0] for x in am) > 100:
        c.judge(busy, "The runs were too short for shares: messages at a run's start and end outweigh it.")
    elif am:
        c.judge(busy, f"With active messages workers spent up to {number(max(x[0] for x in am))} % of their time on others' messages.")
    c.sentences.append(
        "The share grows with the number of workers that look for work at once, of which there are few here. The papers' gap"
        " between the two opens at hundreds of cores; two hosts on one machine show the mechanism, not that gap."
    )
    return c


def u16(data):
    c = Content()
    w, d, s = papers.ISO_BYTES_LOG2
    c.tables.append(
        Table(
            "Computed: address space for stacks",
            ["scheme", "bytes", "as a power of two"],
            [
                [
                    "iso-address, 2^22 workers, depth 2^13, stacks of 2^14 bytes",
                    2 ** (w + d + s),
                    f"2^{w + d + s}",
                ],
                [
                    "uni-address, the same: one region, whatever the number of workers",
                    2 ** (d + s),
                    f"2^{d + s}",
                ],
            ],
        )
    )
    rows, per_policy = [], {}
    for record in data.steps():
        about, workers = record["about"], [x for x in record["result"]["processes"] if x["role"] == "worker"]
        if not workers:
            continue
        m = measurements(record)[0]
        v = next(x for x in m["variants"] if "counts" in x)
        virtual = max(x["virtual_bytes"] for x in workers)
        per_policy.setdefault(about["policy"], []).append((about["workers"], virtual))
        rows.append(
            [
                about["policy"],
                about["workers"],
                virtual,
                max(x.get("resident_bytes", 0) for x in workers),
                v["counts"]["stack_high_bytes"],
            ]
        )
    c.tables.append(
        Table(
            "Measured: a worker process (VmPeak, VmHWM)",
            ["policy", "workers", "virtual bytes", "resident bytes", "stack region touched"],
            rows,
            "Virtual bytes have every worker of the host in them, because on one machine all memory is mapped"
            " by all; without the reservation that keeps workers' own heaps apart. The stack region touched"
            " is counted for the uni-address region only.",
        )
    )
    if per_policy:
        grown = {p: [(n, (b - points[0][1]) / 2**30) for n, b in points] for p, points in per_policy.items()}
        most = max(n for points in per_policy.values() for n, _ in points)
        iso = [(n, (n - 1) * 2 ** (d + s) / 2**30) for n in (2**e for e in range(12)) if n <= most]
        c.charts.append(
            Chart("Addresses that a process has beyond those of a run with one worker", "workers", "addresses, GiB", grown, papers={"iso": iso},
                  note="The paper's iso-address: 2^13 stacks of 2^14 bytes a worker. Ours have heaps and queues in them, too.")
        )
    for policy, points in per_policy.items():
        if len(points) > 1:
            (n0, b0), (n1, b1) = points[0], points[-1]
            c.sentences.append(
                f"{policy}: {number((b1 - b0) / (n1 - n0) / 2**30)} GiB of addresses more per worker of the"
                " host."
            )
    if "iso" not in per_policy:
        c.sentences.append("Iso-address was not measured: this build does not have it, or its step failed.")
    return c


__all__ = ["u11", "u12", "u13", "u14", "u15", "u16"]
