#!/usr/bin/env python3
"""What observing costs: prints the tables of docs/results/observe.md (scripts/results --only observe writes the page).

    bench/observe.py                       fib(35) with and without counters, UTS T1L with and without a trace
    bench/observe.py --quick               fewer rounds, T1 instead of T1L
    bench/observe.py --tiny                seconds, for tests; figures mean nothing
    bench/observe.py --before DIR          also a build of an earlier commit (DIR/bench/fib), everything off

Every round runs each variant once, in an order that turns from round to round; ratios are taken inside a round against
"off", then medians. Times are of the computation; writing the trace file comes after it and is reported apart.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def measure(build, arguments, name, environment, reps, folder):
    out = os.path.join(folder, "r.json")
    env = dict(os.environ, **{k: v.replace("@", folder) for k, v in environment.items()})
    begun = time.time()
    done = subprocess.run([os.path.join(build, "bench", arguments[0]), *arguments[1:], "--reps", str(reps), "--peers",
                           "none", "--json", out], env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"observe: {' '.join(arguments)} ended with status {done.returncode}: {done.stderr[-300:]}")
    with open(out, encoding="utf-8") as f:
        r = json.load(f)
    ours = [v for v in r["measurements"][0]["variants"] if v["name"] == name]
    result = {"seconds": ours[0]["median_s"], "min": ours[0]["min_s"], "foreign": r["foreign_cpus"], "machine": r["machine"],
              "whole": time.time() - begun}
    trace = os.path.join(folder, "t.pf")
    if os.path.exists(trace):
        result["file_mib"] = os.path.getsize(trace) / 2**20
        os.remove(trace)
        line = next((l for l in done.stderr.splitlines() if " events of " in l), "")
        result["line"] = line.split(": ", 2)[-1].split(": open")[0] if line else ""
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--before")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", help="write the figures to this file")
    o = parser.parse_args()
    rounds = 1 if o.tiny else 3 if o.quick else o.rounds
    tree, n = ("T1" if o.quick else "T1L"), (14 if o.tiny else 35)
    search = ["-t", "1", "-a", "3", "-d", "5", "-b", "4", "-r", "0"] if o.tiny else ["--tree", tree]
    fib = ["fib", "-n", str(n), "--workers"]
    both = {"off": (o.build, {}), "stats": (o.build, {"GODWIT_STATS": "1", "GODWIT_STATS_JSON": "@/s.json"})}
    if o.before:
        both["before"] = (o.before, {})
    traced = {"off": (o.build, {}), "trace": (o.build, {"GODWIT_TRACE": "@/t.pf"})}
    reps = 1 if o.tiny else 5
    plans = [(f"fib({n}), 1 worker", [*fib, "1"], "spawn+join", both, rounds, reps),
             (f"fib({n}), 2 workers", [*fib, "2"], "spawn+join", both, rounds, reps),
             (f"UTS {'of a small tree' if o.tiny else tree}, 2 workers", ["uts", *search, "--workers", "2"], "godwit", traced,
              rounds if o.tiny else max(3, rounds * 5 // 9), 1)]
    data, machine, lines = {}, None, []
    with tempfile.TemporaryDirectory() as folder:
        for title, arguments, name, variants, n, reps in plans:
            got = {v: [] for v in variants}
            for i in range(n):
                order = list(variants)
                for v in order[i % len(order):] + order[:i % len(order)]:
                    print(f"{title}, round {i + 1} of {n}: {v}", file=sys.stderr)
                    build, environment = variants[v]
                    got[v].append(measure(build, arguments, name, environment, reps, folder))
                    machine = machine or got[v][0]["machine"]
            data[title] = got
            lines += [f"## {title}", "", "| | median s | min s | time / time off | smallest / smallest off | other programs, CPUs |",
                      "|---|---|---|---|---|---|"]
            for v, rs in got.items():
                ratio = statistics.median(r["seconds"] / b["seconds"] for r, b in zip(rs, got["off"]))
                least = min(r["min"] for r in rs) / min(b["min"] for b in got["off"])
                lines.append(f"| {v} | {statistics.median(r['seconds'] for r in rs):.4f} | {min(r['min'] for r in rs):.4f} | {ratio:.3f} | "
                             f"{least:.3f} | {statistics.median(r['foreign'] for r in rs):.2f} |")
            lines += ["", f"{n} rounds of {reps} repetitions."]
            if "trace" in got:
                last = got["trace"][-1]
                lines += [f"Trace: {last['line']}; file {last['file_mib']:.1f} MiB; at most 64 MiB of memory per worker (the default "
                          "of `--godwit-trace-bytes`)."]
            lines.append("")
    print("\n".join(lines))
    if o.json:
        busy = max(statistics.median(r["foreign"] for r in rs) for got in data.values() for rs in got.values())
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "observe", "machine": machine, "foreign_cpus": busy, "rounds": data}, f, indent=1)


if __name__ == "__main__":
    main()
