#!/usr/bin/env python3
"""The papers' experiments at their size, in the simulator: prints the tables of docs/results/scale.md.

    bench/scale.py --build build/release            the papers' sizes: hours
    bench/scale.py --build build/release --quick    a 64th of their work, up to 4,800 workers: some minutes
    bench/scale.py --build build/release --tiny     seconds, for tests: its figures mean nothing

Everything here is model: the scheduler is the real one, the machines are text files (src/sim/machines), and what
threads compute is charged. The papers' figures beside ours are those printed in their text, at their sizes.
scripts/results --only scale writes the page. Document: docs/scale.md.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

# As in the papers: every core is a process that reaches all others, also those of its node, by one-sided operations.
PAPER = {"way": "rma", "rma_atomics": 1, "victims": "uniform", "expose_signal": 0}
CORES = {"wisteria": 48, "ito": 36}  # of a node
NODE_NS = {"wisteria": 819, "ito": 224}  # UTS: a node where all cores of the machine's node are busy (003, V-E)
MOST_LATENESS = 0.005

# Distributed continuation stealing (Cluster 2022): table II and section V, 576 cores of ITO.
PRINTED_STEAL_US = {"wisteria": 20.7, "ito": 28.8}
PRINTED_TABLE_2 = {
    ("pfor", "greedy"): {"time_s": 2.98, "steals": 72.8e3, "outstanding": 8.7e3, "outstanding_us": 14.1},
    ("recpfor", "greedy"): {"time_s": 8.30, "steals": 475e3, "outstanding": 56.9e3, "outstanding_us": 15.0},
    ("recpfor", "stalling_locked_free"): {"time_s": 8.33, "steals": 807e3},
    ("recpfor", "child_full"): {"time_s": 9.31, "steals": 6.0e6},
}


class Failed(Exception):
    pass


class Runner:
    def __init__(self, build):
        self.program = os.path.join(build, "bench", "scale")
        if not os.path.exists(self.program):
            raise Failed(f"{self.program} is not there: build it (target bench_scale)")

    def run(self, arguments, machine, workers, paper=True, policy="greedy", per_host=None):
        """Statistics of one run; `time_s` and `efficiency` are those of the computation without start and end."""
        cores = CORES[machine]
        options = dict(PAPER) if paper else {"way": "server"}
        name = f"{machine},hosts_per_node={cores}" if paper else machine
        options.update(substrate="sim", sim_machine=name, workers=workers, policy=policy, quiet=1,
                       sim_hosts=workers if paper else -(-workers // (per_host or cores)))
        with tempfile.TemporaryDirectory() as folder:
            stats = os.path.join(folder, "stats.json")
            env = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_")}
            env.update({"GODWIT_" + k.upper(): str(v) for k, v in options.items()}, GODWIT_STATS_JSON=stats)
            command = [self.program, *map(str, arguments)]
            print("scale.py:", *command[1:], f"on {workers} workers of {name}, {policy}", file=sys.stderr)
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Failed(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()}")
            with open(stats, encoding="utf-8") as f:
                found = json.load(f)
        last = done.stdout.strip().splitlines()[-1]
        words = last.replace(",", " ").split()
        found["time_s"] = float(words[words.index("time") + 1])
        found["work_s"] = float(words[words.index("work") + 1])
        found["efficiency"] = float(words[words.index("efficiency") + 1]) / 100
        if found["sim"]["lateness"] > MOST_LATENESS:
            raise Failed(f"{last}: lateness of {100 * found['sim']['lateness']:.2f} %, too much to trust it")
        return found


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    print("\n".join(lines) + "\n")


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


def steals(run, o, data):
    print("## A steal (V1)\n")
    rows = []
    for machine in CORES:
        workers = 96 if o.tiny else 576
        found = run.run(["uts", "--tree", "T1" if o.tiny else "T1L", "--grain", 3, "--node-ns", NODE_NS[machine]], machine, workers)
        ours, printed = mean_us(found, "far_steal_ns", "far_steals"), PRINTED_STEAL_US[machine]
        parts = {k: round(mean_us(found, f"far_{k}_ns", "far_steals"), 2) for k in ("check", "lock", "entry", "stack")}
        data[f"steal.{machine}"] = {"us": ours, "printed_us": printed, "steps_us": parts}
        rows.append([machine, workers, found["totals"]["far_steals"], f"{ours:.1f}", printed, f"{100 * (ours / printed - 1):+.0f} %",
                     ", ".join(f"{k} {v}" for k, v in parts.items())])
    table(["machine", "workers", "steals", "mean, us", "paper, us", "difference", "of that, us"], rows)
    print("Asked: within 10 %. Ours has an operation or two more than the papers' steal: it reads the deque's bounds once more after its claim, "
          "because owners take back without the lock, and fetches the thread's rounding mode.\n")


def loops(run, o, data):
    scale = 4096 if o.tiny else 64 if o.quick else 1
    workers = 36 if o.tiny else 576
    print(f"## PFor and RecPFor, {workers} cores of ITO" + (f", a {scale}th of the papers' iterations\n" if scale > 1 else "\n"))
    rows = []
    for what, size in (("pfor", round(4096 * 512 / 36 * workers / scale)), ("recpfor", 1 << round(math.log2(4 * 2**20 / 576 * workers / scale)))):
        policies = ["greedy", "stalling", "locked_free", "stalling_locked_free", "child_full"]
        for policy in policies if o.quick else [*policies, "child_rtc"]:  # looks in vain all the time: slow here, too
            found = run.run([what, "-n", size, "--us", 10], "ito", workers, policy=policy)
            t = found["totals"]
            wait = mean_us(found, "outstanding_ns", "outstanding_resumed")
            printed = PRINTED_TABLE_2.get((what, policy), {}) if scale == 1 else {}
            data[f"{what}.{policy}"] = {"n": size, "time_s": found["time_s"], "efficiency": found["efficiency"], "steals": t["steals"],
                                        "outstanding": t["outstanding_joins"], "outstanding_us": wait, "printed": printed}
            rows.append([what, policy, f"{found['time_s']:.4g}", f"{100 * found['efficiency']:.1f}", f"{t['steals']:,}",
                         f"{t['outstanding_joins']:,}", f"{wait:.1f}", ", ".join(f"{k} {v:g}" for k, v in printed.items()) or "-"])
    table(["", "policy", "time, s", "efficiency, %", "steals", "outstanding joins", "ready until resumed, us", "printed"], rows)


def lcs(run, o, data):
    side, workers = (8, 36) if o.tiny else (64, 576) if o.quick else (512, 576)
    print(f"## LCS, {side} x {side} blocks of 0.340 ms, {workers} cores of ITO\n")
    rows = []
    for policy in ("greedy", "stalling", "child_full"):
        found = run.run(["lcs", "-n", 512 * side, "-c", 512, "--us", 340], "ito", workers, policy=policy)
        path = (2 * side - 1) * 340e-6
        least, most = max(found["work_s"] / workers, path), found["work_s"] / workers + path
        data[f"lcs.{policy}"] = {"time_s": found["time_s"], "least_s": least, "greedy_bound_s": most}
        rows.append([policy, f"{found['time_s']:.4g}", f"{least:.4g}", f"{most:.4g}", f"{found['time_s'] / most:.2f}"])
    table(["policy", "time, s", "max(T1/P, span), s", "T1/P + span, s", "time over the latter"], rows)
    if side == 512:
        print("Printed: 0.569 s with greedy joins at 2^18.\n")


def trees(run, o, data):
    print("## UTS on WISTERIA/BDEC-01\n")
    rows = []
    points = [("T1", [48, 96])] if o.tiny else [("T1L", [48, 192, 576, 2304])] if o.quick else [
        ("T1L", [48, 192, 576, 2304, 9216]), ("T1XXL", [576, 2304, 9216, 27648, 110592])]
    for tree, counts in points:
        for workers in counts:
            for paper in (True, False):
                if paper and workers > 9216:
                    continue  # a window of global memory for each worker is more than there are addresses
                found = run.run(["uts", "--tree", tree, "--grain", 2, "--node-ns", NODE_NS["wisteria"]], "wisteria", workers, paper=paper)
                sim, c = found["sim"], cost_model(found, workers)
                data[f"uts.{tree}.{workers}.{'papers' if paper else 'ours'}"] = {
                    "efficiency": found["efficiency"], "time_s": found["time_s"], "C": c, "events": sim["events"],
                    "here_s": sim["here_seconds"], "bytes_per_worker": sim["memory_bytes"] / workers}
                rows.append([tree, f"{workers:,}", "the papers'" if paper else "Godwit's", f"{1e3 * found['time_s']:.2f}", f"{100 * found['efficiency']:.1f}",
                             f"{found['totals']['steals']:,}", f"{mean_us(found, 'far_steal_ns', 'far_steals'):.1f}", "-" if c is None else f"{c:.1f}",
                             f"{sim['events'] / max(sim['here_seconds'], 1e-9) / 1e6:.2f} M", f"{sim['memory_bytes'] / workers / 1024:.0f}"])
    table(["tree", "workers", "steals by", "time, ms", "efficiency, %", "steals", "far steal, us", "C", "events/s here", "KiB a worker here"], rows)
    print("*The papers'*: every core for itself, one-sided operations, victims uniformly at random. *Godwit's*: 48 workers a host, a companion each, calls, "
          "near workers first. Trees are drawn by UTS's law with another hash; nodes take 819 ns, and two levels at the bottom are one thread. "
          "C: of time = T1/P + C · steal · log2(T1 / steal); the bound of Gast et al. is 16.1.\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build/release")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--only", default="steals,loops,lcs,trees", help="some of steals,loops,lcs,trees")
    p.add_argument("--json", help="write the figures to this file")
    o = p.parse_args()
    parts = {"steals": steals, "loops": loops, "lcs": lcs, "trees": trees}
    data = {}
    try:
        run = Runner(o.build)
        for name in o.only.split(","):
            if name not in parts:
                raise Failed(f"--only {name}: none of {', '.join(parts)}")
            parts[name](run, o, data)
    except Failed as e:
        print(f"scale.py: {e}", file=sys.stderr)
        return 1
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(data, f, indent=1)
            f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
