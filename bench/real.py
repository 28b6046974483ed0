#!/usr/bin/env python3
"""The simulator beside this machine (V11): the same programs real and simulated, times and steals compared.

    bench/real.py --build build/release            nine repetitions
    bench/real.py --build build/release --quick    five
    bench/real.py --build build/release --tiny     seconds, for tests: its figures mean nothing

Real runs compute; simulated ones are charged what one real worker takes (bench/scale --real). Runs while other programs used
CPUs are repeated as long as there is time; the least disturbed ones count. --machine FILE: another than the library's `here`.
scripts/results --only real writes the page. Document: docs/scale.md.
"""
import argparse
import os
import shutil
import subprocess
import sys
import time

import scale_program
from scale_program import Failed

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "scale"))
from godwit_fit import UNDISTURBED, Disturbance, median, wait_for_quiet  # noqa: E402  the path comes first

# Programs: arguments; the option that says what a unit of work takes, and about how long in real runs; how many units there
# are. `halves` divides 3 ms of work in two again and again: each time is a steal that is worth while between hosts, too.
PROGRAMS = {
    "uts": (["uts", "--tree", "T1", "--hash", "sha", "--grain", 2], "--node-ns", 1, 4_130_071),
    "pfor": (["pfor", "-n", 64, "-k", 200], "--us", 20, 64 * 200),
    "halves": (["pfor", "-n", 2, "-k", 100], "--us", 1500, 2 * 100),
    "btc": (["btc", "--depth", 17, "--grain", 2], "--node-ns", 1000, (2 << 17) - 1),
}
TINY = {
    "pfor": (["pfor", "-n", 16, "-k", 5], "--us", 20, 16 * 5),
    "btc": (["btc", "--depth", 9, "--grain", 2], "--node-ns", 1000, (2 << 9) - 1),
}
PLACES = ((1, 1), (2, 1), (2, 2), (6, 3))  # workers, hosts


def far_median_us(runs):
    """Of all steals between hosts; counters are quarters of octaves (bench/far_steal)."""
    counts = [sum(c) for c in zip(*([*r["totals"]["far_steal_times"], *[0] * 64][:64] for r in runs))]
    wanted, below = sum(counts) / 2, 0
    for i, n in enumerate(counts):
        if n and below + n >= wanted:
            return 2 ** ((i + (wanted - below) / n) / 4)
        below += n
    return None


def steal_us(runs, hosts):
    if hosts > 1:
        return far_median_us(runs)
    means = [r["totals"]["steal_ns"] / r["totals"]["steals_timed"] / 1e3 for r in runs if r["totals"]["steals_timed"]]
    return median(means) if means else None


class Runner:
    def __init__(self, o):
        self.o = o
        self.program = scale_program.find(o.build)
        self.programs = TINY if o.tiny else PROGRAMS
        self.mpirun = None
        if shutil.which("mpirun"):
            said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
            self.mpirun = ["mpirun", *(["--bind-to", "none", "--oversubscribe"] if "Open MPI" in said else [])]

    def run(self, arguments, options, launcher=()):
        """Statistics of one run, and how many CPUs others used meanwhile."""
        watch = Disturbance()
        found = scale_program.run([*launcher, self.program, *map(str, arguments)], options)
        return {**found, "disturbed": watch.cpus()}

    def real(self, name, workers, hosts):
        arguments, unit, about, _ = self.programs[name]
        if hosts == 1:
            return self.run(["--real", *arguments, unit, about], {"substrate": "processes", "workers": workers})
        return self.run(["--real", *arguments, unit, about], {"hosts": "ranks", "workers": workers, "way": "server"},
                        [*self.mpirun, "-n", str(hosts)])

    def simulated(self, name, workers, hosts, work_s, seed):
        arguments, unit, _, count = self.programs[name]
        each = work_s / count * (1e9 if unit == "--node-ns" else 1e6)
        options = {"workers": workers, "sim_hosts": hosts, "sim_seed": seed, "sim_machine": self.o.machine, "way": "server"}
        return self.run([*arguments, unit, f"{each:.6g}"], options)


def all_real(run, o):
    """{(program, workers, hosts): runs}, of the least disturbed ones, in turns."""
    places = [p for p in PLACES if p[1] == 1 or run.mpirun]
    tries = {(name, *place): [] for name in run.programs for place in places}
    until = time.monotonic() + (0 if o.tiny else o.minutes * 60)
    while True:
        for key, found in tries.items():
            if sum(r["disturbed"] < UNDISTURBED for r in found) < o.reps:
                wait_for_quiet(until)
                found.append(run.real(*key))
        enough = all(sum(r["disturbed"] < UNDISTURBED for r in found) >= o.reps for found in tries.values())
        if enough or min(map(len, tries.values())) >= o.reps and time.monotonic() > until:
            return {key: sorted(found, key=lambda r: r["disturbed"])[:o.reps] for key, found in tries.items()}
        print(f"real.py: {min(map(len, tries.values()))} repetitions", file=sys.stderr)


def ratio(real, simulated):
    return "-" if not real or not simulated else f"{simulated / real:.2f}"


def compare(run, o, data):
    real = all_real(run, o)
    rows = []
    for (name, workers, hosts), runs in real.items():
        work_s = median([r["time_s"] for r in real[name, 1, 1]])
        model = [run.simulated(name, workers, hosts, work_s, seed) for seed in range(1, o.reps + 1)]
        times = sorted(r["time_s"] for r in runs)
        row = {"program": name, "workers": workers, "hosts": hosts, "disturbed_cpus": max(r["disturbed"] for r in runs),
               "time_s": median(times), "time_low_s": times[0], "time_high_s": times[-1], "sim_time_s": median([r["time_s"] for r in model]),
               "steals": median([r["totals"]["steals"] for r in runs]), "sim_steals": median([r["totals"]["steals"] for r in model]),
               "steal_us": steal_us(runs, hosts), "sim_steal_us": steal_us(model, hosts)}
        data[f"{name}.{workers}.{hosts}"] = row
        rows.append(row)
    return rows


def table(head, rows):
    print("\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows]) + "\n")


def us(value):
    return "-" if value is None else f"{value:.3g}"


def show(rows):
    for hosts, title in ((1, "One host"), (2, "Two hosts of a worker each"), (3, "Three hosts of two workers each")):
        some = [r for r in rows if r["hosts"] == hosts]
        if not some:
            continue
        print(f"## {title}\n")
        table(["program", "workers", "time, ms", "lowest - highest", "simulated", "ratio", "steals", "simulated", "ratio",
               "steal, us" if hosts == 1 else "steal from another host, median, us", "simulated", "ratio", "CPUs that others used"],
              [[r["program"], str(r["workers"]), f"{1e3 * r['time_s']:.1f}", f"{1e3 * r['time_low_s']:.1f} - {1e3 * r['time_high_s']:.1f}",
                f"{1e3 * r['sim_time_s']:.1f}", ratio(r["time_s"], r["sim_time_s"]), f"{r['steals']:,}", f"{r['sim_steals']:,}",
                ratio(r["steals"], r["sim_steals"]), us(r["steal_us"]), us(r["sim_steal_us"]), ratio(r["steal_us"], r["sim_steal_us"]),
                f"{r['disturbed_cpus']:.1f}"] for r in some])
    print("Ratio: simulated over real. Asked: times and steals from another host within 10 %, numbers of steals within a factor of 1.5. One worker "
          "is what the simulated work is charged by. Hosts are ranks of mpirun on this machine. The simulator has a CPU for each worker and each "
          f"companion; here are {os.cpu_count()} for all: two hosts are four processes, three of two workers are nine, and of those only the numbers of steals can be "
          "compared at all.\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build/release")
    p.add_argument("--machine", default="here", help="as of --godwit-sim-machine (default: here)")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--minutes", type=float, help="for repetitions of disturbed runs (default: 8, with --quick 3)")
    p.add_argument("--json", help="write the figures to this file")
    o = p.parse_args()
    o.reps = 2 if o.tiny else 5 if o.quick else 9
    o.minutes = o.minutes if o.minutes is not None else 3 if o.quick else 8
    return scale_program.finish("real.py", lambda data: show(compare(Runner(o), o, data)), o.json)


if __name__ == "__main__":
    sys.exit(main())
