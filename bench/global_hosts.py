#!/usr/bin/env python3
"""Global memory between two hosts (network namespaces): bandwidth beside the same MPI's, and the programs' results.

    bench/global_hosts.py                       both MPIs; prints the tables of docs/results/global_hosts.md
    bench/global_hosts.py --quick               one MPI, fewer rounds, less data
    bench/global_hosts.py --mpi mpich --rounds 3 --size 16

Every round runs plain MPI and then Godwit; ratios are taken inside a round, then medians. Needs scripts/hosts.
Programs run at sizes that a slow network can do; each checks its own result.
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
PROGRAMS = [
    ("global_micro", ["-n", "100000", "--blocks", "5", "--size", "10000"]),
    ("global_moves", ["-n", "100000", "--blocks", "11", "--updates", "20000", "--moves", "1000"]),
    ("global_storm", ["--runs", "20", "--moves", "500"]),
    ("global_amr", ["--steps", "40", "--levels", "3"]),
    ("global_queues", []),
    ("global_put_latency", ["-n", "20000", "--pages", "2000"]),
    ("global_translations", ["--updates", "32768"]),
    ("global_stream", ["--size", "4000000", "--stream-size", "1000000", "--passes", "3"]),
    ("global_gups", ["--size", "65536", "--updates", "65536", "--ways", "values,batches"]),
    ("global_cilksort", ["--size", "1000000"]),
    ("global_heat", ["--size", "512", "--steps", "20"]),
]
QUICK = [
    ("global_micro", ["-n", "10000", "--blocks", "3", "--size", "1000"]),
    ("global_moves", ["-n", "10000", "--blocks", "5", "--updates", "2000", "--moves", "100"]),
    ("global_storm", ["--runs", "5", "--moves", "200"]),
    ("global_amr", ["--steps", "8", "--levels", "3"]),
    ("global_queues", ["--quick"]),
    ("global_put_latency", ["-n", "2000", "--pages", "500"]),
    ("global_translations", ["--quick"]),
    ("global_stream", ["--size", "1000000", "--stream-size", "250000", "--passes", "2"]),
    ("global_gups", ["--size", "65536", "--updates", "8192", "--ways", "values,batches"]),
    ("global_cilksort", ["--size", "200000"]),
    ("global_heat", ["--size", "256", "--steps", "5"]),
]

MORE_HOSTS = {"global_put_latency": 3}  # else 2


def hosts(mpi, limit, command, count=2):
    """The text that a job over so many namespaces prints, or None with the reason printed."""
    line = [os.path.join(ROOT, "scripts", "hosts"), "--hosts", str(count), "--mpi", mpi, "--timeout", str(limit), "--", *command]
    done = subprocess.run(line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines()
        print(f"failed ({done.returncode}): {' '.join(command)}: {lines[-1] if lines else ''}", file=sys.stderr)
        return None
    return done.stdout


def hosts_work(mpi):
    line = [os.path.join(ROOT, "scripts", "hosts"), "--check", "--mpi", mpi]
    return subprocess.run(line, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0


def plain(build, mpi, size, times, limit):
    text = hosts(mpi, limit, [os.path.join(build, "bench", f"global_bandwidth_{mpi}"), str(size), str(times)])
    if text is None:
        return None
    return {int(b): (float(put), float(get)) for b, put, get in (line.split() for line in text.splitlines() if line.strip())}


def program(build, mpi, name, flags, limit):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "result.json")
        count = MORE_HOSTS.get(name, 2)
        if hosts(mpi, limit, [os.path.join(build, "bench", name), *flags, "--workers", str(count), "--json", out], count) is None:
            return None
        return json.load(open(out, encoding="utf-8"))


def bandwidth(build, mpi, o, found):
    rounds = []
    for i in range(o.rounds):
        print(f"{mpi}: bandwidth, round {i + 1} of {o.rounds}", file=sys.stderr)
        theirs = plain(build, mpi, o.size, o.times, o.limit)
        ours = program(build, mpi, "global_bandwidth", ["--size", str(o.size), "--times", str(o.times), "--reps", "1"], o.limit)
        if theirs is None or ours is None:
            return False
        if not ours["far"]:
            sys.exit("global_hosts.py: the memory was not another host's: nothing was measured")
        found["machine"] = ours["machine"]
        rounds.append((theirs, {r["bytes"]: (r["put_mb_s"], r["get_mb_s"]) for r in ours["measurements"][0]["rows"]}))
    found["bandwidth"][mpi] = [{"mpi": t, "godwit": g} for t, g in rounds]
    print(f"\n## Bandwidth between two hosts, {mpi}\n\n| MiB | MPI put MB/s | put MB/s | ratio | MPI get MB/s | get MB/s | ratio |\n" + "|---" * 7 + "|")
    for size in sorted(rounds[0][0]):
        cells = [f"{size >> 20}"]
        for way in (0, 1):
            their = statistics.median(t[size][way] for t, _ in rounds)
            our = statistics.median(g[size][way] for _, g in rounds)
            ratio = statistics.median(g[size][way] / t[size][way] for t, g in rounds)
            cells += [f"{their:.0f}", f"{our:.0f}", f"{ratio:.2f}"]
        print("| " + " | ".join(cells) + " |")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--mpi", default="openmpi,mpich")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=64, help="MiB of the largest transfer")
    parser.add_argument("--times", type=int, default=3, help="transfers of each size in a round")
    parser.add_argument("--limit", type=int, default=280, help="seconds for one job")
    parser.add_argument("--only", default="bandwidth,programs")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="seconds, for tests; figures mean nothing")
    parser.add_argument("--json", help="write the figures to this file")
    o = parser.parse_args()
    if o.quick or o.tiny:
        o.mpi, o.rounds, o.size, o.times = o.mpi.split(",")[0], 1 if o.tiny else 3, 1 if o.tiny else 16, 1
    mpis = [m for m in o.mpi.split(",") if shutil.which("mpirun." + m)]
    ok, found = True, {"bandwidth": {}, "programs": {}, "machine": None}
    if not mpis or not hosts_work(mpis[0]):
        found["skipped"] = "no MPI here, or no network namespaces (scripts/hosts --check says which)"
        print(f"Skipped: {found['skipped']}.")
        mpis = []
    for mpi in mpis:
        if "bandwidth" in o.only:
            ok = bandwidth(o.build, mpi, o, found) and ok
        if "programs" not in o.only:
            continue
        print(f"\n## Programs on two hosts (global_put_latency: three), {mpi}\n\n| program | result | figures |\n|---|---|---|")
        for name, flags in QUICK[-2:] if o.tiny else QUICK if o.quick else PROGRAMS:
            result = program(o.build, mpi, name, [*flags, "--reps", "1"], o.limit)
            ok = ok and result is not None and result["correct"]
            found["programs"].setdefault(mpi, {})[name] = None if result is None else result.get("figures", {})
            figures = "" if result is None else "; ".join(f"{f['what']} {f['value']:.3g} {f['unit']}" for f in result.get("figures", {}).values())
            print(f"| `{name} {' '.join(flags)}` | {'failed' if result is None else 'correct' if result['correct'] else '**wrong**'} | {figures} |")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "global_hosts", "correct": ok, **found}, f, indent=1)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
