#!/usr/bin/env python3
"""The papers' comparison of ways between hosts (U10, U13, U15): writes docs/results/ways.md and .json.

    bench/ways.py                      both MPIs, 2 hosts (network namespaces), all ways, empty check on and off
    bench/ways.py --quick --mpi mpich  smaller problems, one MPI
    bench/ways.py --hosts 2,4          also more hosts than CPUs: for counts, not for times

For every MPI and way: steals between two hosts step by step (far_steal), then BTC, UTS and N-Queens with the share
of time that workers spend on messages of others and the number of successful steals. Needs scripts/hosts.
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
WAYS = ["server", "assist", "rma", "am"]
PROBLEMS = {  # name -> (program, full, quick)
    "BTC": ("btc", ["--depth", "26", "--iter", "1"], ["--depth", "20", "--iter", "1"]),
    "UTS": ("uts", ["--tree", "T1"], ["--tree", "T1"]),
    "NQueens": ("nqueens", ["-n", "12"], ["-n", "10"]),
}
PAPERS = ("Papers: a steal takes 42 K cycles on FX10 (fetch-and-add by a communication server), 86 K (RDMA-emulated) and 61 K (AM) on "
          "InfiniBand, of which suspend and resume 1.9 K; the share of time in message handling at task creation grows with the number of "
          "cores in AM only, and more so without empty check; 1,800 cores keep 98-99 % efficiency with RDMA-emulated and fall to 47-77 % with AM.")


def run(build, mpi, hosts, per_host, settings, program, flags, limit):
    """One job over namespaces; gives back the program's JSON, or None with the reason printed."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "result.json")
        command = [os.path.join(ROOT, "scripts", "hosts"), "--hosts", str(hosts), "--ranks-per-host", str(per_host),
                   "--mpi", mpi, "--timeout", str(limit), "--", os.path.join(build, "bench", program), *flags, "--json", out]
        env = dict(os.environ, **{f"GODWIT_{k.upper()}": str(v) for k, v in settings.items()})
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not os.path.exists(out):
            lines = (done.stderr + done.stdout).strip().splitlines()
            print(f"  failed ({done.returncode}): {' '.join(command[1:])}: {lines[-1] if lines else ''}", file=sys.stderr)
            return None
        result = json.load(open(out, encoding="utf-8"))
        result["greeting"] = next((l for l in done.stderr.splitlines() if " hosts, " in l), "")
        return result


def ping_pong_us(greeting):
    try:
        return float(greeting.split("round trip ")[1].split(" us")[0])
    except (IndexError, ValueError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--mpi", default="openmpi,mpich")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--hosts", default="2")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-write", action="store_true")
    o = parser.parse_args()
    mpis, ways, hosts = o.mpi.split(","), o.ways.split(","), [int(h) for h in o.hosts.split(",")]
    reps = 2 if o.quick else o.reps
    steps = len(mpis) * len(ways) * (1 + len(hosts) * len(PROBLEMS) * 2) + len(mpis)
    done, start = 0, time.time()

    def progress(what):
        nonlocal done
        left = (time.time() - start) / done * (steps - done) if done else 0
        print(f"[{done}/{steps}, {left:.0f} s left] {what}", file=sys.stderr)
        done += 1

    steals, runs, machine = [], [], None
    for mpi in mpis:
        for way in ways + ["words"]:
            settings = {"way": "server" if way == "words" else way, "far_steal": "words" if way == "words" else "call"}
            if way == "words":
                settings["quiet"] = 0
            progress(f"{mpi} {way}: steals")
            r = run(o.build, mpi, 2, 1, settings, "far_steal",
                    ["--reps", str(reps), "--rounds", "60" if o.quick else "200"], 280)
            if r is None:
                continue
            machine = machine or r["machine"]
            trip = ping_pong_us(r["greeting"])
            for row in r["measurements"][0]["rows"]:
                steals.append({"mpi": mpi, "way": "server, word by word" if way == "words" else way, "round_trip_us": trip, **row,
                               "foreign_cpus": r["foreign_cpus"]})
        for way in ways:
            for n in hosts:
                for check in (1, 0):
                    for name, (program, full, quick) in PROBLEMS.items():
                        progress(f"{mpi} {way}, {n} hosts, empty check {check}: {name}")
                        r = run(o.build, mpi, n, 1, {"way": way, "empty_check": check}, program,
                                [*(quick if o.quick else full), "--workers", str(n), "--reps", str(reps), "--peers", "none"], 280)
                        if r is None:
                            continue
                        for m in r["measurements"]:
                            serial = next(v for v in m["variants"] if v["name"].startswith("serial"))
                            for v in m["variants"]:
                                if "counts" not in v:
                                    continue
                                c = v["counts"]
                                runs.append({"mpi": mpi, "way": way, "hosts": n, "empty_check": check, "problem": name,
                                             "title": m["title"], "variant": v["name"], "seconds": v["median_s"],
                                             "over_serial": serial["median_s"] / v["median_s"], "steals": c["steals"],
                                             "far_steals": c["far_steals"], "far_failed": c["far_failed"], "messages": c["messages"],
                                             "share": c["message_ns"] * 1e-9 / (v["median_s"] * n),
                                             "foreign_cpus": r["foreign_cpus"]})
    lines = ["# Ways between hosts", "", "Written by `bench/ways.py" + (" --quick" if o.quick else "") + "`. Hosts are network namespaces of one machine, "
             "joined by a bridge; messages go over TCP.", ""]
    if machine:
        lines += [f"- CPU: {machine['cpu']}, {machine['usable_cpus']} usable; {machine['kernel']}; {machine['compiler']}; {machine['date']}",
                  f"- {reps} rounds; other programs used up to "
                  f"{max([r['foreign_cpus'] for r in steals + runs] or [0]):.1f} CPUs meanwhile", ""]
    lines += ["## Steals between two hosts, us (U13)", "",
              "median, p90: all steals, request to stack there; / trip: median over the round trip of an 8-byte message of the same MPI in the same job "
              "(both sides waiting for it). mean and its parts: carry, between the two companions; serve, of that the execution at the victim's host; or "
              "word by word the papers' steps.", "",
              "| MPI | way | stolen B | steals | median | / trip | p90 | mean | carry | serve | check | lock | entry | stack | unlock |", "|---" * 15 + "|"]
    for r in steals:
        words = r["check_us"] + r["lock_us"] > 0
        trips = f"{r['median_us'] / r['round_trip_us']:.1f}" if r["round_trip_us"] else ""
        lines.append(f"| {r['mpi']} | {r['way']} | {r['stolen_bytes']:.0f} | {r['steals']} | {r['median_us']:.0f} | {trips} | {r['p90_us']:.0f} | {r['mean_us']:.0f} | "
                     + (f" | | {r['check_us']:.0f} | {r['lock_us']:.0f} | {r['entry_us']:.0f} | {r['stack_us']:.0f} | {r['unlock_us']:.0f} |" if words
                        else f"{r['carry_us']:.0f} | {r['serve_us']:.1f} | | | | | |"))
    lines += ["", PAPERS, "", "## Problems (U10, U15)", "",
              "share: time that workers spent on requests of other hosts, over all their time (way am only; elsewhere companions do it).", "",
              "| MPI | way | empty check | hosts | problem | s | x serial | steals | between hosts | in vain | messages | share |", "|---" * 12 + "|"]
    for r in runs:
        lines.append(f"| {r['mpi']} | {r['way']} | {'on' if r['empty_check'] else 'off'} | {r['hosts']} | {r['problem']} {r['variant']} | "
                     f"{r['seconds']:.3f} | {r['over_serial']:.2f} | {r['steals']} | {r['far_steals']} | {r['far_failed']} | {r['messages']} | "
                     f"{100 * r['share']:.3f} % |")
    text = "\n".join(lines) + "\n"
    print(text)
    if not o.no_write:
        base = os.path.join(ROOT, "docs", "results", "ways")
        with open(base + ".md", "w", encoding="utf-8") as f:
            f.write(text)
        with open(base + ".json", "w", encoding="utf-8") as f:
            json.dump({"steals": steals, "runs": runs, "machine": machine}, f, indent=1)
    ok = all(statistics.fmean([r["far_steals"] for r in runs if r["mpi"] == m] or [0]) > 0 for m in mpis)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
