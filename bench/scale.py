#!/usr/bin/env python3
"""The papers' experiments at their size, in the simulator: prints the tables of docs/results/scale.md.

    scripts/reproduce --scale                       the papers' sizes: hours; goes on where it was when called again
    bench/scale.py --build build/release            the same without keeping anything
    bench/scale.py --build build/release --quick    a 64th of their work, up to 4,800 workers: some minutes
    bench/scale.py --build build/release --tiny     seconds, for tests: its figures mean nothing

Everything here is model: the scheduler is the real one, the machines are text files (src/sim/machines), and what
threads compute is charged. The papers' figures beside ours are those printed in their text, at their sizes; what is
asked of ours is checked at the end (numbers V1 ... of the checks: docs/scale.md). scripts/results --only scale writes
the page of docs/results. Document: docs/scale.md. Test: tests/reproduce.
"""
import argparse
import json
import math
import os
import sys
import tempfile

import scale_program
from reproduce import papers
from reproduce.data import Chart, Panels
from reproduce.trace import time_series
from scale_page import Page
from scale_program import Failed

# As in the papers: every core is a process that reaches all others, also those of its node, by one-sided operations.
PAPER = {"way": "rma", "rma_atomics": 1, "victims": "uniform", "expose_signal": 0}
OURS = {"way": "server", "companions": 4}  # of each host
CORES = {"wisteria": 48, "ito": 36}  # of a node
NODE_NS = {"wisteria": 819, "ito": 224}  # UTS: a node where all cores of the machine's node are busy (003, V-E)
MOST_LATENESS = 0.005
FAILED = "failed: see standard error"
STEALS_BY = {True: "the papers'", False: "Godwit's"}

# Distributed continuation stealing (Cluster 2022): table II.
PRINTED_STEAL_US = {"wisteria": 20.7, "ito": 28.8}


class Runner:
    """Runs the program; with a folder to keep results in, each run once. A run that fails costs its row only."""

    def __init__(self, build, keep):
        self.program = scale_program.find(build)
        self.keep = keep
        self.failed = []
        if keep:
            os.makedirs(keep, exist_ok=True)
        self.made_from = os.stat(self.program).st_mtime_ns

    def kept(self, words):
        return self.keep and os.path.join(self.keep, "-".join(str(w).strip("-") for w in words) + ".json")

    def run(self, arguments, machine, workers, paper=True, policy="greedy", lead_ns=0, traced=False, **more):
        """Statistics of one run, none if it failed; `time_s` and `efficiency` are those of the computation without start and end.
        `series`, if it is traced: busy workers, and joins that could go on, over time."""
        cores = CORES[machine]
        options = {**(PAPER if paper else OURS), **more}
        name = f"{machine},hosts_per_node={cores}" if paper else machine
        options.update(substrate="sim", sim_machine=name, workers=workers, policy=policy,
                       sim_hosts=workers if paper else -(-workers // cores), sim_lead_ns=lead_ns)
        kept = self.kept([*arguments, machine, workers, policy, "papers" if paper else "ours", lead_ns, *more.values(), *["traced"] * traced])
        if kept and os.path.exists(kept):
            with open(kept, encoding="utf-8") as f:
                found = json.load(f)
            if found["made_from"] == self.made_from:
                return found
        command = [self.program, *map(str, arguments)]
        print("scale.py:", *command[1:], f"on {workers} workers of {name}, {policy}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            if traced:
                options.update(trace=os.path.join(folder, "trace"), trace_bytes="16M")
            try:
                found = scale_program.run(command, options)
            except Failed as e:
                self.failed.append(str(e))
                return None
            if traced:
                found["series"] = time_series(options["trace"])
        del found["worker_stats"], found["hosts"]  # of each of 110,592
        found["made_from"] = self.made_from
        if found["sim"]["lateness"] > MOST_LATENESS:
            self.failed.append(f"{found['said']}: lateness of {100 * found['sim']['lateness']:.2f} %, too much to trust it")
            return None
        if kept:
            with open(kept + ".new", "w", encoding="utf-8") as f:
                json.dump(found, f)
            os.replace(kept + ".new", kept)
        return found


def mean_us(found, total, count):
    t = found["totals"]
    return t[total] / t[count] / 1e3 if t[count] else 0.0


def cost_model(found, workers):
    """C of T = T1/P + C * steal * log2(T1 / steal)."""
    t = found["totals"]
    steal = t["far_steal_ns"] / t["far_steals"] * 1e-9 if t["far_steals"] else 0
    if steal == 0:
        return None
    return (found["time_s"] - found["work_s"] / workers) / (steal * math.log2(found["work_s"] / steal))


def steals(run, o, data, page):
    page.head("A steal (V1)")
    rows = []
    for machine in CORES:
        workers = 96 if o.tiny else 576
        found = run.run(["uts", "--tree", "T1" if o.tiny else "T1L", "--grain", 3, "--node-ns", NODE_NS[machine]], machine, workers)
        if not found:
            rows.append([machine, workers, FAILED])
            continue
        ours, printed = mean_us(found, "far_steal_ns", "far_steals"), PRINTED_STEAL_US[machine]
        parts = {k: round(mean_us(found, f"far_{k}_ns", "far_steals"), 2) for k in ("check", "lock", "entry", "stack")}
        data[f"steal.{machine}"] = {"us": ours, "printed_us": printed, "steps_us": parts}
        if not o.tiny:
            page.check("V1", f"a steal on {machine}, us", ours, 0.9 * printed, 1.1 * printed, printed)
        rows.append([machine, workers, found["totals"]["far_steals"], f"{ours:.1f}", printed, f"{100 * (ours / printed - 1):+.0f} %",
                     ", ".join(f"{k} {v}" for k, v in parts.items())])
    page.table(["machine", "workers", "steals", "mean, us", "paper, us", "difference", "of that, us"], rows)
    page.say("Word by word, as the papers' steal: look, lock, bounds, claim, the bounds once more (owners take back without the lock), slots, stack, unlock.")


PAPERS_NAME = {"pfor": "PFor", "recpfor": "RecPFor"}
LOOP_POLICIES = ("greedy", "stalling_locked_free", "child_full", "stalling", "locked_free")


def iterations(workers, scale):
    """Of PFor and RecPFor: the papers' for as many workers, over @p scale."""
    return ("pfor", round(4096 * 512 / 36 * workers / scale)), ("recpfor", 1 << round(math.log2(4 * 2**20 / 576 * workers / scale)))


def sizes(run, o, data, page):
    """C8: efficiency against the number of iterations."""
    workers, scales = (36, (4096, 1024)) if o.tiny else (576, (4096, 1024, 256, 64) if o.quick else (4096, 1024, 256, 64, 16, 4, 1))
    page.head(f"PFor and RecPFor, {workers} cores of ITO: efficiency by iterations")
    points, rows = {}, []
    for scale in scales:
        for what, size in iterations(workers, scale):
            found = {p: run.run([what, "-n", size, "--us", 10], "ito", workers, policy=p) for p in LOOP_POLICIES}
            for policy, one in found.items():
                if one:
                    points.setdefault(what, {}).setdefault(policy, []).append((size, 100 * one["efficiency"]))
            rows.append([what, f"{size:,}", *(f"{100 * one['efficiency']:.1f}" if one else FAILED for one in found.values())])
    page.table(["", "iterations", *(f"{p}, %" for p in LOOP_POLICIES)], sorted(rows, key=lambda row: row[0]))
    for what, size in iterations(workers, 1):
        of_paper = PAPERS_NAME[what]
        paper = {p: [(size, 100 * papers.TABLE_II_IDEAL[of_paper] / row[0])] for p, row in papers.TABLE_II[of_paper].items() if p in LOOP_POLICIES}
        page.chart(Chart(f"{of_paper}: efficiency by iterations", "iterations", "efficiency, %", points.get(what, {}), log_x=True, papers=paper if workers == 576 else {}))
        data[f"sizes.{what}"] = points.get(what, {})
        for policy, line in points.get(what, {}).items() if not o.tiny else ():
            least = min((later[1] / one[1] for one, later in zip(line, line[1:])), default=1)
            page.check("C8", f"{what}, {policy}: least of the efficiencies over those with fewer iterations", least, 1, math.inf, "it grows")


def loops(run, o, data, page):
    scale = 4096 if o.tiny else 64 if o.quick else 1
    workers = 36 if o.tiny else 576
    page.head(f"PFor and RecPFor, {workers} cores of ITO" + (f", a {scale}th of the papers' iterations" if scale > 1 else ""))
    rows, times = [], {}
    for what, size in iterations(workers, scale):
        for policy in LOOP_POLICIES:
            found = run.run([what, "-n", size, "--us", 10], "ito", workers, policy=policy)
            if not found:
                rows.append([what, policy, FAILED])
                continue
            t = found["totals"]
            wait = mean_us(found, "outstanding_ns", "outstanding_resumed")
            known = 2 * t["outstanding_resumed"] >= t["outstanding_joins"] > 0
            printed = papers.TABLE_II[PAPERS_NAME[what]].get(policy) if scale == 1 else None
            times[what, policy] = found["time_s"]
            if printed:
                seconds, joins, joins_us, steals_printed = printed[:4]
                page.check("V2", f"{what}, {policy}: s", found["time_s"], 0.95 * seconds, 1.05 * seconds, seconds)
                page.check("V3", f"{what}, {policy}: steals", t["steals"], steals_printed / 1.5, 1.5 * steals_printed, steals_printed)
                page.check("V3", f"{what}, {policy}: outstanding joins", t["outstanding_joins"], joins / 1.5, 1.5 * joins, joins)
                if known:
                    page.check("V4", f"{what}, {policy}: ready until resumed, us", wait, joins_us / 1.5, 1.5 * joins_us, joins_us)
            data[f"{what}.{policy}"] = {"n": size, "time_s": found["time_s"], "efficiency": found["efficiency"], "steals": t["steals"],
                                        "outstanding": t["outstanding_joins"], "outstanding_us": wait}
            rows.append([what, policy, f"{found['time_s']:.4g}", f"{100 * found['efficiency']:.1f}", f"{t['steals']:,}",
                         f"{t['outstanding_joins']:,}", f"{wait:.1f}" if known else "-", f"{seconds} s, {steals_printed:,}, {joins:,}, {joins_us}" if printed else "-"])
    page.table(["", "policy", "time, s", "efficiency, %", "steals", "outstanding joins", "ready until resumed, us", "printed: time, steals, joins, us"], rows)
    greedy, stalling, full = (times.get(("recpfor", p)) for p in ("greedy", "stalling", "child_full"))
    if not o.tiny and greedy and stalling:
        page.check("V5", "recpfor: stalling over greedy", stalling / greedy, 1, math.inf, "1.004")
    if not o.tiny and stalling and full:
        page.check("V5", "recpfor: child_full over stalling", full / stalling, 1, math.inf, "1.12")
    joining_gains(o, data, page, times)
    page.say("Ready until resumed: - where it is not known, because who completes a child of another host does not write down when. "
             "child_rtc is left out: it looks in vain 8.2 G times in the paper's run on WISTERIA, and as often here.")


def joining_gains(o, data, page, times):
    """C13: what each of the papers' improvements gains over the policy without it. @p times: of loops and policies."""
    rows = []
    for name, printed_as, ours, other in (("local collection", "local collection", "stalling", "stalling_locked_free"),
                                          ("greedy join", "greedy join", "greedy", "stalling"),
                                          ("continuation stealing over full threads", "over child stealing, full threads", "greedy", "child_full")):
        for what, of_paper in PAPERS_NAME.items():
            if (what, ours) not in times or (what, other) not in times:
                continue
            gain = times[what, other] / times[what, ours]
            data[f"gain.{what}.{name}"] = gain
            printed = papers.GAINS.get((of_paper, printed_as), (None, "-"))[1]
            rows.append([what, name, f"{gain:.3f}", printed])
            if not o.tiny:
                page.check("C13", f"{what}: gain of {name}", gain, 0.98, math.inf, printed)
    page.table(["", "gain of", "times", "printed"], rows)


def busy(run, o, data, page):
    """C10, as the papers' figure 7."""
    size, workers = (1 << 9, 36) if o.tiny else (1 << 16, 576)
    page.head(f"RecPFor of {size:,} iterations, {workers} cores of ITO: busy workers, and joins that could go on")
    rows, panels, resumed_us = [], {}, 0.0
    for policy in ("greedy", "stalling", "child_full"):
        found = run.run(["recpfor", "-n", size, "--us", 10], "ito", workers, policy=policy, traced=True)
        if not found:
            rows.append([policy, FAILED])
            continue
        s = found["series"]
        n = len(s["busy"])
        both = 100 * sum(r >= 0.5 and b <= s["workers"] - 0.5 for b, r in zip(s["busy"], s["ready"])) / n
        taken_up_us = sum(s["ready"]) * s["width_s"] * 1e6 / max(1, found["totals"]["outstanding_joins"])
        data[f"busy.{policy}"] = {"busy": sum(s["busy"]) / n, "ready": sum(s["ready"]) / n, "both_percent": both, "dropped": s["dropped"],
                                  "taken_up_us": taken_up_us}
        panels[policy] = {name: [(1e3 * i * s["width_s"], v) for i, v in enumerate(s[key])] for name, key in (("busy workers", "busy"), ("joins that could go on", "ready"))}
        rows.append([policy, f"{1e3 * found['time_s']:.1f}", f"{sum(s['busy']) / n:.0f}", f"{sum(s['ready']) / n:.1f}", f"{max(s['ready']):.0f}", f"{taken_up_us:.1f}", f"{both:.0f}",
                     f"{s['dropped']:,} of {s['events']:,}"])
        if policy == "greedy":
            resumed_us = mean_us(found, "outstanding_ns", "outstanding_resumed")
        elif not o.tiny:
            page.check("V4", f"recpfor, {policy}: until a join that could go on is taken up, us; more than under greedy until it goes on", taken_up_us, resumed_us, math.inf)
        asked = {"greedy": (0, 1), "stalling": (1, 100)}.get(policy)
        if asked and not o.tiny:
            page.check("C10", f"recpfor, {policy}: time with both an idle worker and a join that could go on, %", both, *asked)
    page.table(["policy", "time, ms", "busy workers", "joins that could go on", "most of them", "until taken up, us", "time with both an idle worker and such a join, %", "events dropped"], rows)
    page.chart(Panels("RecPFor: busy workers, and joins that could go on", "time, ms", "workers or joins", panels, "The paper's figure 7 is drawn, without numbers."))
    page.say("Averages over the run, from traces. A join could go on from when both of its sides are there until somebody takes it up (and fetches its stack); "
             "under greedy who completes it does so at once.")


def lcs(run, o, data, page):
    side, workers = (8, 36) if o.tiny else (64, 576) if o.quick else (512, 576)
    page.head(f"LCS, {side} x {side} blocks of 0.340 ms, {workers} cores of ITO")
    less = min(side, 64)  # under child_full all that wait look around: 128 x 128 blocks had not ended after 16 minutes of CPU
    rows, times = [], {}
    for policy, blocks in (("greedy", side), ("stalling", side), ("greedy", less), ("child_full", less)):
        if (policy, blocks) in times:
            continue
        found = run.run(["lcs", "-n", 512 * blocks, "-c", 512, "--us", 340], "ito", workers, policy=policy)
        if not found:
            rows.append([policy, blocks, FAILED])
            continue
        path = (2 * blocks - 1) * 340e-6
        least, most = max(found["work_s"] / workers, path), found["work_s"] / workers + path
        times[policy, blocks] = found["time_s"]
        data[f"lcs.{policy}.{blocks}"] = {"time_s": found["time_s"], "least_s": least, "greedy_bound_s": most}
        rows.append([policy, blocks, f"{found['time_s']:.4g}", f"{least:.4g}", f"{most:.4g}", f"{found['time_s'] / most:.2f}"])
    page.table(["policy", "blocks a side", "time, s", "max(T1/P, span), s", "T1/P + span, s", "time over the latter"], rows)
    if side != 512:
        return
    if ("greedy", side) in times:
        page.check("V6", "lcs 2^18, greedy: s", times["greedy", side], 0.9 * 0.569, 1.1 * 0.569, 0.569)
    for policy, blocks, least, printed in (("stalling", side, 4, ">= 4"), ("child_full", less, 4, ">= 50 for 2^18")):
        if {(policy, blocks), ("greedy", blocks)} <= times.keys():
            page.check("V6", f"lcs 2^{9 + blocks.bit_length() - 1}: {policy} over greedy", times[policy, blocks] / times["greedy", blocks], least, math.inf, printed)


def wavefront(run, o, data, page):
    """V7: LCS on ever more workers: faster as long as the work of each exceeds the span, and not beyond that."""
    side, counts = (8, [2, 8]) if o.tiny else (64, [4, 16, 64, 256]) if o.quick else (128, [16, 64, 256, 1024])
    page.head(f"LCS, {side} x {side} blocks of 0.340 ms, more and more workers of ITO")
    path, rows, times, bounds = (2 * side - 1) * 340e-6, [], {}, {}
    for workers in counts:
        found = run.run(["lcs", "-n", 512 * side, "-c", 512, "--us", 340], "ito", workers)
        if not found:
            rows.append([f"{workers:,}", FAILED])
            continue
        least, most = max(found["work_s"] / workers, path), found["work_s"] / workers + path
        times[workers], bounds[workers] = found["time_s"], (least, most)
        data[f"wavefront.{workers}"] = {"time_s": found["time_s"], "least_s": least, "greedy_bound_s": most}
        rows.append([f"{workers:,}", f"{found['time_s']:.4g}", f"{least:.4g}", f"{most:.4g}", f"{found['time_s'] / most:.2f}"])
    page.table(["workers", "time, s", "max(T1/P, span), s", "T1/P + span, s", "time over the latter"], rows)
    page.chart(Chart(f"LCS, {side} x {side} blocks", "workers", "time, s", {
        "simulated": sorted(times.items()), "max(T1/P, span)": [(w, b[0]) for w, b in sorted(bounds.items())],
        "T1/P + span": [(w, b[1]) for w, b in sorted(bounds.items())]}, log_x=True, log_y=True))
    if o.tiny or len(times) != len(counts):
        return
    gains = [(few, times[few] / times[many]) for few, many in zip(counts, counts[1:])]
    page.check("V7", "lcs: least gain of 4 times the workers where T1/P exceeds the span", min(g for w, g in gains if bounds[w][0] > path), 1.1, 4.4)
    page.check("V7", "lcs: most gain of 4 times the workers where it does not", max(g for w, g in gains if bounds[w][0] == path), 0, 1.3, "none on 110,592")
    within = sum(times[w] <= bounds[w][1] for w in counts) / len(counts)
    page.check("V7", "lcs: share of times within T1/P + span", within, 0.5, 1, "most")


def node_factors(page, data, tree, workers, found):
    """V8: what would be left if a node of the tree took longer where all cores of a machine's node compute."""
    lost = workers * found["time_s"] - found["work_s"]
    points = [(f, 100 * found["work_s"] / ((1 + f / 100) * found["work_s"] + lost)) for f in range(5)]
    data["uts.node_factors"] = {"tree": tree, "workers": workers, "efficiency": {str(f): e for f, e in points}}
    page.table(["node factor, %", *(str(f) for f, _ in points)], [[f"efficiency of {tree} on {workers:,}, %", *(f"{e:.1f}" for _, e in points)]])
    paper = {"UTS, T1WL on 110,592": [(f, 96.4) for f, _ in points]} if tree == "T1WL" else {}
    page.chart(Chart(f"{tree} on {workers:,} workers by the node factor", "node factor, %", "efficiency, %", {"simulated": points}, papers=paper))
    page.say("*Node factor*: by so much a node of the tree takes longer where all cores of a machine's node compute than in the time of one core. "
             "Computed from the run without: its work times 1 + factor, and what it lost. The paper prints no time of one core, so nothing is asked.")


def trees(run, o, data, page):
    page.head("UTS on WISTERIA/BDEC-01")
    rows, speedups, most_c, largest = [], {}, 0.0, None
    points = [("T1", [48, 96])] if o.tiny else [("T1L", [48, 192, 576, 2304])] if o.quick else [
        ("T1L", [48, 192, 576, 2304, 9216]), ("T1XXL", [576, 2304, 9216, 27648, 110592]), ("T1WL", [110592])]
    for tree, counts in points:
        grain = 5 if tree == "T1WL" else 2  # levels at the bottom that are one thread
        for workers in counts:
            for paper in (True, False):
                if paper and workers > 9216:
                    continue  # it runs, but takes hours: who looks in vain does so word by word
                found = run.run(["uts", "--tree", tree, "--grain", grain, "--node-ns", NODE_NS["wisteria"]], "wisteria", workers,
                                paper=paper, lead_ns=10_000 if tree in ("T1XXL", "T1WL") else 0)
                if not found:
                    rows.append([tree, f"{workers:,}", STEALS_BY[paper], FAILED])
                    largest = None
                    continue
                largest = largest if paper else (tree, workers, found)
                sim, c = found["sim"], cost_model(found, workers)
                if tree != "T1WL":  # the bound is one of work that can be divided anywhere, and a thread of T1WL takes 100 steals
                    most_c = max(most_c, c or 0.0)
                speedups.setdefault(f"{tree}, {STEALS_BY[paper]}", []).append((workers, found["efficiency"] * workers))
                data[f"uts.{tree}.{workers}.{'papers' if paper else 'ours'}"] = {
                    "efficiency": found["efficiency"], "time_s": found["time_s"], "C": c, "events": sim["events"],
                    "here_s": sim["here_seconds"], "bytes_per_worker": sim["memory_bytes"] / workers}
                rows.append([tree, f"{workers:,}", STEALS_BY[paper], f"{1e3 * found['time_s']:.2f}", f"{100 * found['efficiency']:.1f}",
                             f"{found['totals']['steals']:,}", f"{mean_us(found, 'far_steal_ns', 'far_steals'):.1f}", "-" if c is None else f"{c:.1f}",
                             f"{sim['events'] / max(sim['here_seconds'], 1e-9) / 1e6:.2f} M", f"{sim['memory_bytes'] / workers / 1024:.0f}"])
    page.table(["tree", "workers", "steals by", "time, ms", "efficiency, %", "steals", "far steal, us", "C", "events/s here", "KiB a worker here"], rows)
    if largest:
        node_factors(page, data, *largest)
    every = [w for _, counts in points for w in counts]
    if not (o.tiny or o.quick):
        speedups["T1WL in the paper"] = [(110592, 0.964 * 110592)]
        for tree, least, printed in (("T1XXL", 0.95, ""), ("T1WL", 0.98, "0.964")):
            most_workers, speedup = max(speedups.get(f"{tree}, {STEALS_BY[False]}", [(0, 0)]))
            if most_workers == 110592:
                page.check("V8", f"{tree} on {most_workers:,}: efficiency", speedup / most_workers, least, 1, printed)
    page.chart(Chart("Speed-up of UTS", "workers", "speed-up, x", {**speedups, "workers": [(w, w) for w in sorted({*every})]}, log_x=True, log_y=True))
    if not o.tiny and most_c:
        page.check("V12", "largest C", most_c, 0, 16.1)
    page.say("*The papers'*: every core for itself, one-sided operations, victims uniformly at random. *Godwit's*: 48 workers a host, four companions each, calls, "
             "near workers first. Trees are drawn by UTS's law with another hash; nodes take 819 ns, the paper's time of a node where all 48 cores compute, and two "
             "levels at the bottom (T1WL: five) are one thread. But for T1L, threads' time may be 10 us ahead of the others' (sim_lead_ns). C: of time = T1/P + C · steal · log2(T1 / steal); the bound of Gast et al. "
             "is 16.1. It is of work that can be divided anywhere, and is not asked of T1WL: a thread of five levels takes 1.1 ms on average, 100 steals, "
             "and most of what is lost is lost at the end, to the longest of the last ones.")


def programs(run, o, data, page):
    """U14: eight times the cores."""
    page.head("BTC and UTS on eight times the cores of ITO")
    few, depth, grain = (4, 12, 4) if o.tiny else (18, 32, 18) if o.quick else (72, 40, 22)
    # The paper's -d 17 on 3,840 cores is 16 of T1XL or T1XXL (-d 15): 7 or 18 M nodes for each. T1XXL has 7.5 M for each of 576.
    tree, levels = ("T1", 2) if o.tiny else ("T1L", 2) if o.quick else ("T1XXL", 4)
    rows = []
    for name, words in ((f"BTC, depth {depth}", ["btc", "--depth", depth, "--grain", grain, "--node-ns", 100]),
                        (f"UTS, {tree}", ["uts", "--tree", tree, "--grain", levels, "--node-ns", NODE_NS["ito"]])):
        found = [run.run(words, "ito", w) for w in (few, 8 * few)]
        if None in found:
            rows.append([name, FAILED])
            continue
        kept = 100 * found[1]["efficiency"] / found[0]["efficiency"]
        data[f"programs.{words[0]}"] = {"workers": 8 * few, "of_the_efficiency": kept}
        rows.append([name, few, 8 * few, *(f"{100 * f['efficiency']:.1f}" for f in found), f"{kept:.1f}", f"{found[1]['totals']['steals']:,}"])
        if not (o.tiny or o.quick):  # smaller trees are too small for so many
            page.check("U14", f"{name}: {8 * few} workers keep of the efficiency of {few}, %", kept, 97, 101, "97 to 99")
    page.table(["", "workers", "then", "efficiency, %", "then", "kept, %", "steals then"], rows)


def messages(run, o, data, page):
    """U15: what workers do for others, against their number."""
    page.head("Messages handled by workers, and steals, BTC on ITO, every core for itself")
    depth, grain = (12, 4) if o.tiny else (26, 12) if o.quick else (28, 12)
    rows, by = [], {}
    for workers in (4, 8) if o.tiny else (36, 144) if o.quick else (36, 144, 576):
        for way, said in (("assist", "RDMA-emulated"), ("am", "AM")):
            for check in (1, 0):
                found = run.run(["btc", "--depth", depth, "--grain", grain, "--node-ns", 100], "ito", workers, way=way, far_steal="words",
                                empty_check=check, sim_limit_ms=20_000)
                if not found:
                    rows.append([workers, said, check, FAILED])
                    continue
                t = found["totals"]
                by[workers, way, check] = found["time_s"], t["messages"] / (found["time_s"] * workers)
                data[f"messages.{workers}.{way}.{check}"] = {"time_s": found["time_s"], "messages": t["messages"], "steals": t["far_steals"],
                                                             "a_second_each": by[workers, way, check][1]}
                rows.append([f"{workers:,}", said, "on" if check else "off", f"{1e3 * found['time_s']:.2f}", f"{t['messages']:,}",
                             f"{by[workers, way, check][1]:,.0f}", f"{t['far_steals']:,}", f"{t['far_failed']:,}"])
    page.table(["workers", "fetch-and-add", "empty check", "time, ms", "messages", "a worker, a second", "steals", "in vain"], rows)
    page.say("Messages: those that workers carry out at their spawns. With RDMA-emulated a companion does, and each worker has its own.")
    few, many = min((k[0] for k in by), default=0), max((k[0] for k in by), default=0)
    if o.tiny or few == many:
        return
    for c in (1, 0):
        if any((w, way, c) not in by for w in (few, many) for way in ("assist", "am")):
            continue
        check = f"empty check {'on' if c else 'off'}"
        page.check("U15", f"AM, {check}: messages of a worker a second, on {many} workers over {few}", by[many, "am", c][1] / by[few, "am", c][1], 1, math.inf, "more")
        over = [by[w, "am", c][0] / by[w, "assist", c][0] for w in (few, many)]
        page.check("U15", f"AM over RDMA-emulated, {check}: time on {many} workers", over[1], 1, math.inf, "slower")
        page.check("U15", f"AM over RDMA-emulated, {check}: that ratio over the one on {few}", over[1] / over[0], 1, math.inf, "it grows")
    if (many, "am", 0) in by and (many, "am", 1) in by:
        page.check("U15", f"AM on {many} workers: messages without the empty check over those with it", by[many, "am", 0][1] / by[many, "am", 1][1], 1, math.inf,
                   "more")


def main(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build/release")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--only", default="steals,sizes,loops,busy,lcs,wavefront,trees,programs,messages", help="some of these parts (default: all)")
    p.add_argument("--json", help="write the figures to this file")
    p.add_argument("--page", help="write a page with charts to this file")
    p.add_argument("--keep", metavar="FOLDER", help="keep each run there, and run again only what has another program")
    o = p.parse_args(argv)
    parts = {"steals": steals, "sizes": sizes, "loops": loops, "busy": busy, "lcs": lcs, "wavefront": wavefront, "trees": trees, "programs": programs, "messages": messages}

    def work(data):
        run, page = Runner(o.build, o.keep), Page()
        for name in o.only.split(","):
            if name not in parts:
                raise Failed(f"--only {name}: none of {', '.join(parts)}")
            parts[name](run, o, data, page)
        page.end(o.page)
        if page.checks:
            data["checks"] = page.claims()
        return run.failed

    return scale_program.finish("scale.py", work, o.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
