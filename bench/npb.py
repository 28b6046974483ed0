#!/usr/bin/env python3
"""The NAS Parallel Benchmarks EP, IS, CG, MG and FT: serial, in plain threads, in Godwit on 1 and 2 workers, on two hosts.

    bench/npb.py                            class A; prints the tables of docs/results/npb.md
    bench/npb.py --quick                    class W, fewer rounds
    bench/npb.py --benchmarks MG --rounds 9

Every round runs each variant once, one after the other; ratios are taken inside a round, then medians. Two hosts are
network namespaces (scripts/hosts) with a worker each. The public C++ version runs beside ours if the build's
GODWIT_PEERS_DIR has a copy of github.com/GMAP/NPB-CPP in NPB-CPP: it is copied and built in a temporary folder. Every result
is verified by NPB's official values.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import peer_sources

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
NAMES = ["EP", "IS", "CG", "MG", "FT"]
BOUND_BY_MEMORY = ["IS", "CG", "MG", "FT"]  # two plain threads do not reach 1.9 either
BUSY = 0.15  # CPUs of other programs from which on times are not judged
COLUMNS = ["serial", "NPB-CPP", "threads", "godwit 1", "godwit 2", "2 hosts"]


def build_public(folder, to, size_class):
    """Programs of NPB-CPP for this class, in a folder that it gives back."""
    copy = os.path.join(to, "NPB-SER")
    shutil.copytree(os.path.join(folder, "NPB-SER"), copy)
    os.makedirs(os.path.join(copy, "bin"), exist_ok=True)
    for name in NAMES:
        done = subprocess.run(["make", name.lower(), f"CLASS={size_class}"], cwd=copy, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"npb.py: make {name.lower()} CLASS={size_class} in NPB-SER of {folder}: {done.stderr.strip()[-300:]}")
    return os.path.join(copy, "bin")


def run(command, limit):
    """What the program measured, or None with the reason printed."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "result.json")
        try:
            done = subprocess.run([*command, "--reps", "1", "--json", out], capture_output=True, text=True, check=False, timeout=limit,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            print(f"no end after {limit} s: {' '.join(command)}", file=sys.stderr)
            return None
        if not os.path.exists(out):
            lines = (done.stderr + done.stdout).strip().splitlines()
            print(f"failed ({done.returncode}): {' '.join(command)}: {lines[-1] if lines else ''}", file=sys.stderr)
            return None
        with open(out, encoding="utf-8") as f:
            return json.load(f)


def seconds(result):
    """{column: seconds} of a run of one benchmark on this host; with " cpu" behind: its CPU time."""
    name = {("serial", 0): "serial", ("NPB-CPP", 0): "NPB-CPP", ("2 threads", 0): "threads", ("godwit", 1): "godwit 1",
            ("godwit", 2): "godwit 2"}
    variants = result["measurements"][0]["variants"]
    return {name[v["name"], v["workers"]] + kind: v[key] for v in variants for kind, key in (("", "median_s"), (" cpu", "cpu_median_s"))}


def median_of(rounds, f):
    """Of f(round), over the rounds that have what f needs."""
    values = []
    for r in rounds:
        try:
            values.append(f(r))
        except (KeyError, ZeroDivisionError):  # not measured; or less than NPB-CPP's hundredths of a second
            pass
    return statistics.median(values) if values else None


def least(rounds):
    """The least times of all rounds, as if they were one round."""
    return {c: min((r[c] for r in rounds if r.get(c)), default=0) for c in rounds[0]}


def better_serial(r):
    return min(r[c] for c in ("serial", "NPB-CPP") if r.get(c))


def ratios(name):
    """[(what, asked or None, value of a round, is that enough)]"""
    memory = name in BOUND_BY_MEMORY
    return [("1 worker / the better serial", "<= 1.05", lambda r: r["godwit 1"] / better_serial(r), lambda v: v <= 1.05),
            ("1 worker / serial, CPU time", None, lambda r: r["godwit 1 cpu"] / r["serial cpu"], None),
            ("1 worker / 2 workers", None if memory else ">= 1.9", lambda r: r["godwit 1"] / r["godwit 2"], lambda v: v >= 1.9),
            ("serial / 2 plain threads", None, lambda r: r["serial"] / r["threads"], None),
            ("2 workers / 2 plain threads", "<= 1" if memory else None, lambda r: r["godwit 2"] / r["threads"], lambda v: v <= 1)]


def show(size_class, found, busy):
    unjudged = "class A is asked for" if size_class != "A" else "machine busy" if busy > BUSY else None
    cell = lambda value, digits: "" if value is None else f"{value:.{digits}f}"
    print(f"## Class {size_class}, seconds\n\n| benchmark | " + " | ".join(COLUMNS) + " |\n" + "|---" * (len(COLUMNS) + 1) + "|")
    for name, rounds in found.items():
        print(f"| {name} | " + " | ".join(cell(median_of(rounds, lambda r, c=c: r[c]), 4) for c in COLUMNS) + " |")
    count = max((len(r) for r in found.values()), default=0)
    print(f"\nMedians of {count} rounds. threads: two of std::thread, the same program; godwit: workers of one host; 2 hosts: a worker each."
          " All results verified by NPB's official values. Of least times: each variant's least of all rounds, for a machine that others use, too.\n\n## Ratios\n\n| benchmark | what | asked | median | from | to | of least times | |\n" + "|---" * 8 + "|")
    for name, rounds in found.items():
        for what, asked, ratio, enough in ratios(name) if rounds else []:
            values = [ratio(r) for r in rounds]
            middle = statistics.median(values)
            verdict = "" if asked is None else f"not judged: {unjudged}" if unjudged else "met" if enough(middle) else "**not met**"
            print(f"| {name} | {what} | {asked or ''} | {middle:.3f} | {min(values):.3f} | {max(values):.3f} | {ratio(least(rounds)):.3f} | {verdict} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--class", dest="size_class", choices=["S", "W", "A"])
    parser.add_argument("--benchmarks", default=",".join(NAMES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mpi", default="openmpi", help="for two hosts")
    parser.add_argument("--limit", type=int, default=280, help="seconds for one job")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="seconds, for tests; figures mean nothing")
    parser.add_argument("--json", help="write the figures to this file")
    o = parser.parse_args()
    size_class = o.size_class or ("S" if o.tiny else "W" if o.quick else "A")
    rounds = 1 if o.tiny else min(o.rounds, 3) if o.quick else o.rounds
    program = os.path.join(o.build, "bench", "npb")
    on_hosts = [os.path.join(ROOT, "scripts", "hosts"), "--hosts", "2", "--mpi", o.mpi, "--timeout", str(o.limit), "--"]
    check = [on_hosts[0], "--check", "--mpi", o.mpi]
    public = peer_sources.find(o.build, "NPB-CPP")
    hosts_work = subprocess.run(check, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0
    found, ok, machine, busy = {n: [] for n in o.benchmarks.split(",")}, True, None, 0
    with tempfile.TemporaryDirectory() as folder:
        beside = ["--npb-cpp", build_public(public, folder, size_class)] if public else []
        for i in range(rounds):
            for name, done in found.items():
                print(f"round {i + 1} of {rounds}: {name}", file=sys.stderr)
                flags = [program, "--benchmarks", name, "--class", size_class]
                here = run([*flags, *beside, "--workers", "1,2"], o.limit)
                far = run([*on_hosts, *flags, "--workers", "2"], o.limit) if hosts_work else None
                ok = ok and here is not None and here["correct"] and (not hosts_work or (far is not None and far["correct"]))
                if here is None:
                    continue
                machine, busy = here["machine"], max(busy, here["foreign_cpus"])
                done.append(seconds(here) | ({"2 hosts": seconds(far)["godwit 2"]} if far is not None else {}))
    show(size_class, found, busy)
    print(f"\nOther programs used up to {busy:.1f} CPUs meanwhile.")
    if not hosts_work:
        print("\nTwo hosts are left out: no MPI here, or no network namespaces (scripts/hosts --check says which).")
    if public is None:
        print("\nWithout NPB-CPP (GODWIT_PEERS_DIR has none): the better serial is ours.")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "npb", "class": size_class, "machine": machine, "foreign_cpus": busy, "correct": ok, "rounds": found}, f, indent=1)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
