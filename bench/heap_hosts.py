#!/usr/bin/env python3
"""What the search of stacks that leave their host costs programs without a heap: prints the table of docs/results/heap_hosts.md (scripts/results --only heap_hosts writes the page).

    bench/heap_hosts.py           fib and UTS on two ranks, each a host of its own, with --godwit-heap=private and auto
    bench/heap_hosts.py --quick   fewer rounds
    bench/heap_hosts.py --tiny    seconds, for tests; figures mean nothing

With `private` workers have heaps of their own, and nothing is searched; with `auto` each host has one, and what leaves it is
searched. Every round runs both, one after the other, by turns the one and the other first; the ratio is taken inside a round, then the median.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
HEAPS = ("private", "auto")
PROGRAMS = {"fib": ["-n", "38"], "uts": ["--tree", "T1"]}
VARIANT = {"fib": "spawn+join", "uts": "godwit"}
TINY = {"fib": ["-n", "20"], "uts": ["-t", "1", "-a", "3", "-d", "5", "-b", "4", "-r", "0"]}


def measure(launcher, build, name, flags, heap, reps):
    """Figures of one job, or None with the reason printed."""
    with tempfile.TemporaryDirectory() as folder:
        out, counters = os.path.join(folder, "result.json"), os.path.join(folder, "counters.json")  # those of the last run
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", GODWIT_HOSTS="ranks", GODWIT_HEAP=heap,
                   GODWIT_STATS_JSON=counters)
        done = subprocess.run([*launcher, os.path.join(build, "bench", name), *flags, "--workers", "2", "--reps", str(reps), "--peers", "none", "--json", out],
                              env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"failed ({done.returncode}): {name}, heap={heap}: {done.stderr.strip()[-400:]}", file=sys.stderr)
            return None
        result = json.load(open(out, encoding="utf-8"))
        ours = next(v for v in result["measurements"][0]["variants"] if v["name"] == VARIANT[name])
        totals = json.load(open(counters, encoding="utf-8"))["totals"]
        return {"s": ours["median_s"], "least_s": ours["min_s"], "far_steals": ours["counts"]["far_steals"], "threads_stayed": totals["threads_stayed"], "correct": result["correct"],
                "machine": result["machine"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--reps", type=int, default=3, help="repetitions in a job")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", help="write the figures to this file")
    o = parser.parse_args()
    if o.quick or o.tiny:
        o.rounds, o.reps = (1, 1) if o.tiny else (5, 3)
    mpi = next((m for m in ("openmpi", "mpich") if shutil.which(f"mpirun.{m}")), None)
    found = {"benchmark": "heap_hosts", "machine": None, "correct": True, "foreign_cpus": 0, "rounds": {}}
    if mpi is None:
        found["skipped"] = "no MPI here"
        print(f"Skipped: {found['skipped']}.")
    else:
        launcher = [f"mpirun.{mpi}", *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", "2"]
        print(f"## Two ranks of {mpi}, each a host\n\n| program | private, s | auto, s | auto over private | lowest, highest | least over least | far steals | threads that stayed |\n" + "|---" * 8 + "|")
        for name, flags in (TINY if o.tiny else PROGRAMS).items():
            rounds = []
            for i in range(o.rounds):
                print(f"{name}, round {i + 1} of {o.rounds}", file=sys.stderr)
                order = HEAPS if i % 2 == 0 else HEAPS[::-1]
                got = {heap: measure(launcher, o.build, name, flags, heap, o.reps) for heap in order}
                if None in got.values() or not all(g["correct"] for g in got.values()):
                    sys.exit(1)
                found["machine"] = got["auto"]["machine"]
                for g in got.values():
                    del g["machine"]
                rounds.append(got)
            found["rounds"][name] = rounds
            ratios = [r["auto"]["s"] / r["private"]["s"] for r in rounds]
            median = lambda heap, key: statistics.median(r[heap][key] for r in rounds)
            least = lambda heap: min(r[heap]["least_s"] for r in rounds)
            print(f"| `{name} {' '.join(flags)}` | {median('private', 's'):.4f} | {median('auto', 's'):.4f} | {statistics.median(ratios):.3f} "
                  f"| {min(ratios):.3f}, {max(ratios):.3f} | {least('auto') / least('private'):.3f} | {median('private', 'far_steals'):.0f}, {median('auto', 'far_steals'):.0f} | {median('auto', 'threads_stayed'):.0f} |")
        print(f"\n{o.rounds} rounds of {o.reps} repetitions; medians; least over least: the shortest repetition of all with either. Far steals: private, auto. Threads that stayed: in each job's last run. The ranks are processes of one machine.")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)


if __name__ == "__main__":
    main()
