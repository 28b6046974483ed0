#!/usr/bin/env python3
"""Unbalanced tree search in SAWS (a bag of tasks over OpenSHMEM, its own program) beside Godwit's, in alternating rounds.

    bench/saws.py --build build/release [--tree T1] [--workers 1,2] [--reps 5] [--json FILE]

The build needs -DGODWIT_PEERS_DIR with a folder saws in it, and Open MPI's OpenSHMEM (peers.cmake). SAWS does not end well under Open MPI 4: a
process may crash after the result has been printed. A round counts if the tree's size was printed and is right. Not every round ends: one
that takes longer than --limit seconds is given up, and so is that number of workers. Used by scripts/reproduce (C11).
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

TREES = {"T1": ("-t 1 -a 3 -d 10 -b 4 -r 19", 4130071), "T1L": ("-t 1 -a 3 -d 13 -b 4 -r 29", 102181082)}


def saws(build, tree, workers, limit):
    """Seconds, or why there are none."""
    flags, nodes = TREES[tree]
    program = os.path.join(build, "bench", "peers", "bin", "saws-uts")
    command = ["oshrun", "--allow-run-as-root", "--oversubscribe", "-n", str(workers), program, *flags.split()]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return None, f"gave up after {limit} s"
    size = re.search(r"Tree size = (\d+)", done.stdout)
    seconds = re.search(r"Wallclock time = ([\d.]+) sec", done.stdout)
    if not size or not seconds:
        return None, "no result: " + ((done.stderr + done.stdout).strip().splitlines() or ["no output"])[-1]
    if int(size.group(1)) != nodes:
        return None, f"wrong: {size.group(1)} nodes instead of {nodes}"
    return float(seconds.group(1)), ""


def godwit(build, tree, workers):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "result.json")
        command = [os.path.join(build, "bench", "uts"), "--tree", tree, "--threads", "every", "--workers", str(workers), "--reps", "1",
                   "--peers", "none", "--json", out]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"saws.py: {' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()}")
        with open(out, encoding="utf-8") as f:
            found = json.load(f)
    v = next(v for v in found["measurements"][0]["variants"] if v["name"] == "godwit" and v["workers"] == workers)
    return v["seconds"][0], found["foreign_cpus"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build/release")
    p.add_argument("--tree", default="T1", choices=list(TREES))
    p.add_argument("--workers", default="1,2")
    p.add_argument("--reps", type=int, default=5)
    p.add_argument("--limit", type=int, default=60, help="seconds of a run of SAWS")
    p.add_argument("--json", help="write the figures to this file")
    o = p.parse_args()
    if not os.path.exists(os.path.join(o.build, "bench", "peers", "bin", "saws-uts")):
        sys.exit(f"saws.py: no SAWS in {o.build}: build the target peer_saws, after cmake -DGODWIT_PEERS_DIR=DIR with DIR/saws")
    variants, foreign = [], 0.0
    for workers in (int(w) for w in o.workers.split(",")):
        ours, theirs, why = [], [], ""
        for _ in range(o.reps):
            mine, busy = godwit(o.build, o.tree, workers)
            foreign = max(foreign, busy)
            ours.append(mine)
            if not why:
                seconds, why = saws(o.build, o.tree, workers, o.limit)
                if not why:
                    theirs.append(seconds)
        variants.append({"name": "godwit", "workers": workers, "seconds": ours, "median_s": statistics.median(ours)})
        variants.append({"name": "saws", "workers": workers, "status": why} if why else
                        {"name": "saws", "workers": workers, "seconds": theirs, "median_s": statistics.median(theirs)})
        for v in variants[-2:]:
            print(f"{v['name']:8} {workers} workers: " + (f"{v['median_s']:.4f} s" if "seconds" in v else v["status"]))
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"correct": True, "foreign_cpus": foreign,
                       "measurements": [{"title": f"UTS {o.tree}, a thread or task per node", "parameters": {"tree": o.tree}, "variants": variants}]}, f, indent=1)


if __name__ == "__main__":
    main()
