#!/usr/bin/env python3
"""UTS under MPI beside the same program without: prints the tables of docs/results/ranks.md (scripts/results --only ranks writes the page).

    bench/ranks.py              T1 on one node (forked workers, 2 ranks of each MPI), T1L on two hosts (namespaces)
    bench/ranks.py --quick      fewer rounds, T1 only
    bench/ranks.py --tiny       seconds, for tests; figures mean nothing

Every round runs each variant once, one after the other; ratios are taken inside a round, then medians. Speed-ups are
over the serial search of the same job (only the first rank runs it).
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def launcher(mpi):
    return shutil.which(f"mpirun.{mpi}") or shutil.which("mpirun")


def measure(command, program, tree, reps):  # tree: the flags that choose it
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "r.json")
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run([*command, program, *tree, "--workers", "2", "--reps", str(reps), "--peers", "none",
                               "--json", out], env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(" ".join(command), done.stderr[-400:], file=sys.stderr)
            return None
        r = json.load(open(out, encoding="utf-8"))
        v = {x["name"]: x for x in r["measurements"][0]["variants"]}
        greeting = next((l for l in done.stderr.splitlines() if " hosts, " in l), "")
        return {"serial": v["serial"]["median_s"], "ours": v["godwit"]["median_s"], "speed_up": v["godwit"]["speed_up"],
                "min_ratio": v["serial"]["min_s"] / v["godwit"]["min_s"], "steals": v["godwit"]["counts"]["steals"],
                "foreign": r["foreign_cpus"], "greeting": greeting, "machine": r["machine"]}


def two_copies(program, tree, reps):
    """What the machine gives two independent serial searches at once: the limit of any speed-up on it just now."""
    command = [program, *tree, "--workers", "1", "--reps", str(reps), "--peers", "none", "--json", "-"]

    def serial(text):
        v = {x["name"]: x for x in json.loads(text)["measurements"][0]["variants"]}
        return v["serial"]["median_s"], v["godwit"]["median_s"]

    alone = serial(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
    together = [serial(p.communicate()[0]) for p in both]
    return 2 * (alone[0] + alone[1]) / statistics.fmean(sum(t) for t in together)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--only", default="node,hosts")
    o = parser.parse_args()
    rounds = 1 if o.tiny else 3 if o.quick else o.rounds
    program = os.path.join(o.build, "bench", "uts")
    mpis = [m for m in ("openmpi", "mpich") if shutil.which(f"mpirun.{m}")]
    node = {"processes": []} | {m: [launcher(m), "-n", "2"] for m in mpis}
    hosts = {f"{m}, 2 hosts": [os.path.join(ROOT, "scripts", "hosts"), "--hosts", "2", "--mpi", m, "--timeout", "280", "--"] for m in mpis}
    plans = []
    if "node" in o.only:
        title, tree = ("a small tree", ["-t", "1", "-a", "3", "-d", "5", "-b", "4", "-r", "0"]) if o.tiny else ("T1", ["--tree", "T1"])
        plans.append((f"{title}, one node", tree, node, rounds, 1 if o.tiny else 3))
    if "hosts" in o.only and not o.quick and not o.tiny:
        plans.append(("T1L, two hosts", ["--tree", "T1L"], {"processes": []} | hosts, max(5, rounds - 2), 1))
    lines, data, machine = [], {}, None
    start = time.time()
    for title, tree, variants, n, reps in plans:
        got = {name: [] for name in variants}
        limits = []
        for i in range(n):
            limits.append(two_copies(program, plans[0][1], 1 if o.tiny else 3))
            for name, command in variants.items():
                print(f"[{time.time() - start:.0f} s] {title}, round {i + 1} of {n}: {name}", file=sys.stderr)
                r = measure(command, program, tree, reps)
                if r:
                    got[name].append(r)
                    machine = machine or r["machine"]
        data[title] = {**got, "two copies": limits}
        base = [r["ours"] for r in got["processes"]]
        lines += [f"## UTS {title}", "", "| | time s | x serial | time / time with forked workers | steals | other programs, CPUs |", "|---|---|---|---|---|---|"]
        for name, rs in got.items():
            if not rs:
                lines.append(f"| {name} | failed | | | | |")
                continue
            med = lambda key: statistics.median(r[key] for r in rs)
            ratio = statistics.median(r["ours"] / b for r, b in zip(rs, base))
            lines.append(f"| {name} | {med('ours'):.4f} | {med('speed_up'):.3f} | {ratio:.3f} | {med('steals'):.0f} | {med('foreign'):.2f} |")
        lines += ["", f"{n} rounds of {reps} repetitions; medians. Two independent copies of a one-worker search at a time ran "
                  f"{statistics.median(limits):.2f} (from {min(limits):.2f} to {max(limits):.2f}) times as fast as one alone: the limit of any "
                  "speed-up on this shared machine meanwhile. Under MPI the last column counts the other rank's processes, too."]

        for name, rs in got.items():
            if rs and rs[0]["greeting"]:
                lines.append(f"- {name}: `{rs[0]['greeting']}`")
        lines.append("")
    print("\n".join(lines))
    runs = [r for got in data.values() for name, rs in got.items() if name != "two copies" for r in rs]
    complete = bool(runs) and all(rs for got in data.values() for rs in got.values())
    if o.json:  # other programs' CPUs: of the runs without an MPI, whose other ranks would count
        busy = max((r["foreign"] for got in data.values() for r in got["processes"]), default=0)
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "ranks", "machine": machine, "foreign_cpus": busy, "correct": complete, "rounds": data}, f, indent=1)
    sys.exit(0 if complete else 1)


if __name__ == "__main__":
    main()
