"""What is asked of each experiment: the papers' figures where they mean something on another machine, orders, and peers.

A function per experiment takes its data and gives claims (data.Claim). Figures are the medians over the rounds; what depends on times is not
judged if the machine was busy (busy.py). "At or ahead" allows 10 %, which is noise. A claim with a short name is what the papers say: it stands
in the page's first table (overview.py). claims_gas.py has those of the address space.
"""

import statistics

from . import claims_gas, papers
from .claim import AT_OR_AHEAD, REASONS_OF_ROWS, TASKS, THREADS, at_least, at_most, by_time, claim, missing, peers, timed
from .data import measurements, number, problem_of, ratio_of, variant

THEIRS = ("tbb", "openmp", "std::thread", "argobots", "massivethreads", "qthreads", "lace", "libfork")


def tables(record):
    return [m for m in record["result"].get("measurements", []) if "rows" in m]


def u11(data):
    spawn, tree = data.get("u11_spawn"), data.get("u11_policies")
    limit = next(cycles for name, cycles, _ in papers.TASK_CYCLES if name.startswith("uni-address threads, Xeon E5"))
    if spawn:
        most = max(tables(spawn)[0]["rows"], key=lambda r: r["over_ticks"])
        yield at_most(f"creating and joining a task, whatever its result ({most['form']} is the dearest), cycles; the paper's {limit}",
                      most["over_ticks"], limit, data.busy(spawn), "cycles, whatever the result")
    for m in measurements(tree) if tree else []:
        by = {v["policy"]: v for v in m["variants"] if v["workers"] == 1 and "policy" in v and "seconds" in v}
        for p in ("iso", "crude"):
            yield at_least(f"a task of {p} over one of greedy, BTC on one worker", (ratio_of(by.get(p), by.get("greedy")) or [None])[0], 1, data.busy(tree),
                           f"{p} over uni-address")


def fastest(measurement, name, workers):
    """Ours by the policy that is faster here, and what to say of it: greedy needs no words."""
    greedy, lazy = variant(measurement, name, workers), variant(measurement, f"{name}, lazy", workers)
    if lazy and (greedy is None or lazy["median_s"] < greedy["median_s"]):
        return lazy, " (policy lazy)"
    return greedy, ""


def u12(data):
    most = papers.OVERHEAD_OVER_MASSIVETHREADS
    for record in data.steps():
        for m in measurements(record):
            ours, theirs = variant(m, "godwit", 1), variant(m, "massivethreads", 1)
            what = f"{problem_of(m)} on one worker, over MassiveThreads' time"
            if theirs is None:
                yield missing(what, "this build has no MassiveThreads (GODWIT_PEERS_DIR)", problem_of(m))
            else:
                yield by_time(what, ours, theirs, most, data.busy(record), problem_of(m))
            best, policy = fastest(m, "godwit", 1)
            yield from peers(f"{problem_of(m)} on one worker{policy}", m, best, 1, [x for x in THEIRS if x != "massivethreads"], data.busy(record))


def u13(data):
    near, far = data.get("u13_near"), [r for r in data.steps("u13_") if r["step"] != "u13_near"]
    for record in ([near] if near else []) + far:
        where = "one machine" if record is near else "two hosts, " + record["step"].split("_", 1)[1].replace("_", ", ")
        for r in tables(record)[0]["rows"]:
            n, off = r.get("samples", r.get("steals")), r["stolen_bytes"] - r["asked_bytes"]
            yield claim(f"{where}: at least 100 steals of {r['asked_bytes']} bytes, within 5 %", n >= 100 and abs(off) <= 0.05 * r["asked_bytes"],
                        f"{number(n)} of {number(r['stolen_bytes'])} bytes")
    least = min(c for _, c, _ in papers.STEAL_CYCLES)
    if near:
        rate, busy = near["result"]["machine"]["counter_ticks_per_ns"], data.busy(near)
        cycles = max(r["median_us"] for r in tables(near)[0]["rows"]) * 1e3 * rate
        yield at_most(f"a steal on one machine, cycles; the papers' between nodes {number(least)}", cycles, least, busy, "a steal, cycles")
        turn = next((t for t in tables(near) if t["title"] == "suspend and resume"), None)
        limit = min(c for _, c, _ in papers.SUSPEND_RESUME_CYCLES)
        for r in turn["rows"] if turn else []:
            yield at_most(f"suspend and resume with {r['stolen_bytes']:.0f} bytes, cycles; the papers' {number(limit)}", r["cycles"], limit, busy,
                          f"suspend and resume with {number(float(r['stolen_bytes']))} bytes, cycles")
        if turn is None:
            yield missing("suspend and resume, cycles", "not measured")
    words = [r for r in far if r["step"].endswith("_words")]
    if not words:
        yield missing("the papers' operations one by one, between two hosts", "no two hosts here")
    for record in words:
        for r in tables(record)[0]["rows"]:
            parts = [r[k] for k in ("check_us", "lock_us", "entry_us", "stack_us", "unlock_us")]
            yield claim(f"two hosts, word by word, {r['asked_bytes']} bytes: empty check, lock, entry, stack and unlock were each timed",
                        min(parts) > 0, ", ".join(number(x) for x in parts) + " us")


def u14(data):
    for record in data.steps():
        for m in measurements(record):
            ours = [v for v in m["variants"] if v["name"] == "godwit" and "seconds" in v]
            if not ours:
                continue
            most = max(v["counts"]["stack_high_bytes"] for v in ours)
            what = problem_of(m)
            yield claim(f"{what}: stacks of a worker at most {papers.STACK_LIMIT:,} bytes", most <= papers.STACK_LIMIT, f"{most:,}", f"{what}, bytes")
            one, many = ours[0], ours[-1]
            if many["workers"] > one["workers"]:
                r = ratio_of(one, many)
                yield at_least(f"{what}: efficiency of {many['workers']} workers over one, %", r[0] / many["workers"] * 100, 97, data.busy(record),
                               f"{what}, %")


def u15(data):
    cells = {}
    for record in data.steps():
        a = record["about"]
        for m in measurements(record):
            for v in m["variants"]:
                if "counts" in v:
                    cells[a["problem"], a["hosts"], a["way"], a["check"]] = (v, record)
    for problem, hosts in sorted({k[:2] for k in cells}):
        of = {k[2:]: v for k, v in cells.items() if k[:2] == (problem, hosts)}
        four = [(w, c) for w in ("assist", "am") for c in (1, 0)]
        where = f"{problem} on {hosts} hosts"
        yield claim(f"{where}: RDMA-emulated and AM, with and without empty check, gave the right totals", all(k in of for k in four),
                    f"{sum(k in of for k in four)} of 4")
        if all(k in of for k in four):
            handled = {w: sum(of[w, c][0]["counts"]["messages"] for c in (1, 0)) for w in ("assist", "am")}
            yield claim(f"{where}: workers handle more messages at spawns with AM than RDMA-emulated", handled["am"] > handled["assist"],
                        f"{handled['am']:,} and {handled['assist']:,}", f"{where}, messages")


def u16(data):
    grown = {}
    for record in data.steps():
        workers = [x for x in record["result"]["processes"] if x["role"] == "worker"]
        if workers:
            grown.setdefault(record["about"]["policy"], []).append((record["about"]["workers"], max(x["virtual_bytes"] for x in workers)))
    per = {p: (x[-1][1] - x[0][1]) / (x[-1][0] - x[0][0]) / 2**30 for p, x in grown.items() if len(x) > 1}
    if {"iso", "greedy"} <= set(per):
        yield claim("a worker more takes more addresses under iso-address than under uni-address", per["iso"] > per["greedy"],
                    f"{number(per['iso'])} and {number(per['greedy'])} GiB", "a worker more, iso- and uni-address")
    else:
        yield missing("addresses per worker, iso and uni", "only measured: " + (", ".join(per) or "neither"), "a worker more")


def of_loops(record):
    rows = [m for m in tables(record) if m["title"].endswith(": joins and steals")]
    return [(m["parameters"]["kind"], m, t["rows"]) for m, t in zip(measurements(record), rows)]


def c8(data):
    for record in data.steps("c8_"):
        kind, m, rows = of_loops(record)[-1]
        r = next((r for r in rows if r["policy"] == "greedy"), None)
        if r:
            yield at_least(f"{kind}, the largest size here: greedy's efficiency over serial code, %", 100 * r["efficiency_over_reference"], 95,
                           data.busy(record), f"{kind}, %")
        policies = {r["policy"] for r in rows}
        five = {"greedy", "stalling", "stalling_locked_free", "child_full", "child_rtc"}
        yield claim(f"{kind}: the five policies gave the right results", five <= policies, ", ".join(sorted(policies)))


def c9(data):
    for record in data.steps("c9_"):
        kind, _, rows = of_loops(record)[-1]
        by = {r["policy"]: r for r in rows}
        waits = {p: r.get("of_rounds", {}).get("outstanding_us", []) for p, r in by.items()}
        for other in ("stalling", "child_rtc"):
            two = {"greedy": waits.get("greedy", []), other: waits.get(other, [])}
            what, short = f"{kind}: outstanding joins wait for less time under greedy than under {other}, in every round", f"{kind}, wait, greedy and {other}"
            rounds = list(zip(*two.values()))  # None: a round without outstanding joins, which shows no order
            some = [[x for x in values if x is not None] for values in two.values()]
            if not all(some) or len(rounds) < 3:
                yield missing(what, "too few rounds to judge" if all(some) else "no outstanding joins", short)
            else:
                shown = sum(None not in (a, b) and a < b for a, b in rounds)
                seen = f"{' and '.join(number(statistics.median(x)) for x in some)} us, so in {shown} of {len(rounds)} rounds"
                yield timed(what, shown == len(rounds), seen, data.busy(record), short)
        sizes = {p: by[p]["stolen_bytes"] for p in ("greedy", "child_full") if p in by and by[p]["stolen_bytes"]}
        if len(sizes) == 2:
            yield claim(f"{kind}: a stolen continuation has more bytes than a stolen child", sizes["greedy"] > sizes["child_full"],
                        f"{number(sizes['greedy'])} and {number(sizes['child_full'])}", f"{kind}, bytes of a stolen continuation and child")
        else:
            yield missing(f"{kind}: bytes of what is stolen", "nothing was stolen under one of greedy and child_full")


def c10(data):
    for record in data.steps("c10_"):
        if record["about"]["policy"] != "greedy":
            continue
        s = record["result"]["series"]
        both = sum(1 for b, r in zip(s["busy"], s["ready"]) if r >= 0.5 and b <= s["workers"] - 0.5) / max(1, len(s["busy"]))
        yield at_most("greedy: time with both an idle worker and a join that could go on, %", 100 * both, 1, data.busy(record),
                      "idle worker and ready join at once, %")
        yield claim("greedy: the trace is whole", s["dropped"] == 0, f"{s['dropped']} of {s['events']} events dropped")


def c11(data):
    limit = min(x for _, x, _ in papers.UTS_OVERHEAD)
    saws = data.get("c11_saws")
    for v in measurements(saws)[0]["variants"] if saws else []:
        if v["name"] == "saws":
            m = measurements(saws)[0]
            yield from peers(f"{m['title']}, {v['workers']} workers", m, variant(m, "godwit", v["workers"]), v["workers"], ["saws"], data.busy(saws), ["saws"])
    for record in data.steps("c11_"):
        if record is saws:
            continue
        for m in measurements(record):
            serial, p = variant(m, "serial"), m["parameters"]
            for v in m["variants"]:
                if "counts" not in v:
                    continue
                over, what = ratio_of(v, serial), f"{p['tree']}, threads for {'every node' if p['threads'] == 'every' else 'inner nodes'}"
                if v["workers"] == 1:
                    yield at_most(f"{what}, one worker: overhead over serial code, %; the papers' {limit}", 100 * (over[0] - 1), limit,
                                  data.busy(record), f"{p['tree']}, {p['threads']}, overhead %")
                elif p["threads"] == "inner":
                    yield at_least(f"{what}, {v['workers']} workers: efficiency over serial code, %; 96.4 in the paper, over one core of its program",
                                   100 / over[0] / v["workers"], papers.UTS_EFFICIENCY[1], data.busy(record), f"{p['tree']}, {v['workers']} workers, efficiency %")
    if not any(m["parameters"]["threads"] == "every" and m["parameters"]["tree"] == "T1L"
               for r in data.steps("c11_") if r is not saws for m in measurements(r)):
        yield missing("T1L with a thread for every node", "not in this preset, or its step failed")


def c12(data):
    for record in data.steps("c12_")[-1:]:
        k, busy, m = record["about"]["k"], data.busy(record), measurements(record)[0]
        for r in [r for t in tables(record) if t["title"].endswith(": bounds") for r in t["rows"]]:
            if r["policy"] == "greedy":
                yield at_most(f"2^{k}, greedy: time over T1/P + Tinf", r["seconds"] / r["upper_s"], 1.02, busy, f"2^{k}, over the upper bound")
        greedy = next((v for v in m["variants"] if v.get("policy") == "greedy" and v["workers"] > 0), None)
        for other in ("stalling", "child_full"):
            theirs = next((v for v in m["variants"] if v.get("policy") == other and v["workers"] == greedy["workers"]), None)
            if theirs:
                yield by_time(f"2^{k}: greedy over {other}", greedy, theirs, AT_OR_AHEAD, busy, f"2^{k}, greedy over {other}")


def c13(data):
    pairs = [("local collection", "stalling", "stalling_locked_free"), ("greedy join", "greedy", "stalling"),
             ("continuation stealing over full threads", "greedy", "child_full"),
             ("continuation stealing over run-to-completion", "greedy", "child_rtc")]
    for record in data.steps("c9_"):
        kind, m, _ = of_loops(record)[-1]
        for what, ours, other in pairs:
            a, b = variant(m, ours), variant(m, other)
            if a and b:
                yield by_time(f"{kind}: with {what} at most the time without", a, b, 1.05, data.busy(record), f"{kind}, {what}, time over that without")


def m5(data):
    limits = {"ucontext": papers.SWITCHES[0][1]}
    for record in data.steps("m5_"):
        for key, f in record["result"].get("figures", {}).items():
            name = key.split(".")[1] if key.endswith(".over_asm") else None
            if name in limits:
                yield at_least(f"fib({key[1:].split('.')[0]}), one worker: {f['what']}, by CPU time; the paper's {limits[name]}", f["value"],
                               limits[name], data.busy(record), f"fib({key[1:].split('.')[0]}), ucontext over asm")
    least = papers.SWITCHES[1][1]
    what = f"SPARC V9, emulated: a spawn with windows flushed by the trap over one with flushw, time; on the paper's machine {least}"
    flush = data.get("m5_flush")
    if flush:
        yield at_least(what, flush["result"]["times"]["trap"]["over_first"], least, data.busy(flush), "the trap over flushw, emulated")
    else:
        yield missing(what, "needs the cross build for SPARC V9, and qemu-user 8 or later", "the trap over flushw")


def m6(data):
    record = data.get("m6_costs")
    rows = tables(record)[0]["rows"] if record else []
    ours = {r["what"]: r for r in rows if r["library"] == "godwit"}
    for r in rows:
        if r["library"] != "godwit" and r["what"] in ours:
            short = f"{r['what']}, over {r['library']}" if r["library"] in papers.COMPARED and r["what"].startswith("create") else ""
            c = at_most(f"{r['what']}: over {r['library']}'s time", ours[r["what"]]["median_ns"] / r["median_ns"], AT_OR_AHEAD, data.busy(record), short)
            if c.met is False:
                c.seen += "; " + (TASKS if r["library"] in ("tbb", "openmp", "lace", "libfork") else THREADS)
            yield c


def m7(data):
    for record in data.steps("m7_"):
        for m in measurements(record):
            for w in sorted({v["workers"] for v in m["variants"]} - {0}):
                ours, policy = fastest(m, "spawn+join", w)
                if ours is None:
                    ours, policy = fastest(m, "godwit", w)
                if ours:
                    title = m["title"].split(" (")[0].split(":")[0]
                    what = f"{title}, {w} worker{'s' if w > 1 else ''}{policy}"
                    yield from peers(what, m, ours, w, THEIRS, data.busy(record), papers.COMPARED)


def of(name, data):
    """The claims of an experiment."""
    own = globals().get(name.lower()) or getattr(claims_gas, name.lower())
    found = [c for c in own(data) if c is not None]
    for c in found:
        if c.met is False and name in REASONS_OF_ROWS:
            c.seen += "; " + REASONS_OF_ROWS[name]
    return found
