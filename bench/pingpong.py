#!/usr/bin/env python3
"""What the MPIs here can do alone, on one node and between two hosts: prints the table of docs/results/mpi.md.

    bench/pingpong.py               every MPI that has a compiler (mpicxx.FAMILY); between hosts where scripts/hosts works
    bench/pingpong.py --tiny        one node, round trips only: for tests

Compiles and runs tests/mpi/pingpong.cpp. scripts/results --only mpi writes the page.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# Open MPI's default one-sided component fails over TCP (docs/cluster.md); the library sets the same.
SETTINGS = {"openmpi": [[], ["--set=OMPI_MCA_osc=pt2pt"]], "mpich": [[]]}


def lines_of(command):
    """{what: value} of one run, with what failed under "failed"."""
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=180)
    except subprocess.TimeoutExpired:
        return {"failed": "no end within 180 s"}
    found = {}
    for line in done.stdout.splitlines():
        value = re.match(r"(.*\S)\s+([0-9.]+ (?:us|ns))\s*$", line)
        if value:
            found[re.sub(r"\s+", " ", value.group(1))] = value.group(2)
        elif line.startswith("MPI_Win_create:"):
            found["failed"] = line
    if done.returncode != 0:
        found["failed"] = ((done.stderr + done.stdout).strip().splitlines() or ["no output"])[-1]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="not needed: the program has no part of Godwit")
    parser.add_argument("--quick", action="store_true", help="the same: it takes half a minute")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", help="write the figures to this file")
    o = parser.parse_args()
    runs, versions = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for mpi, settings in SETTINGS.items():
            compiler, launcher = shutil.which(f"mpicxx.{mpi}"), shutil.which(f"mpirun.{mpi}")
            if not compiler or not launcher:
                continue
            program = os.path.join(folder, "pingpong." + mpi)
            subprocess.run([compiler, "-std=c++20", "-O2", os.path.join(ROOT, "tests", "mpi", "pingpong.cpp"), "-o", program], check=True)
            said = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout
            versions[mpi] = next((" ".join(line.split()) for line in said.splitlines() if re.search(r"\d\.\d", line)), "unknown")
            node = [launcher, *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", "2", program]
            hosts = [os.path.join(ROOT, "scripts", "hosts")]
            can = not o.tiny and subprocess.run([*hosts, "--check", "--mpi", mpi], capture_output=True, check=False).returncode == 0
            hosts += ["--hosts", "2", "--mpi", mpi, "--timeout", "170", "--", program]
            for flags in [["--no-rma"]] if o.tiny else settings:
                name = mpi + "".join(", " + f.removeprefix("--set=") for f in flags)
                print(f"pingpong.py: {name}", file=sys.stderr)
                runs[name + ", one node"] = lines_of(node + flags)
                if can:
                    runs[name + ", 2 hosts"] = lines_of(hosts + flags)
    if not runs:
        print("No MPI with a compiler here (mpicxx.openmpi, mpicxx.mpich): scripts/setup test installs them.")
    else:
        for mpi, version in versions.items():
            print(f"- {mpi}: {version}")
        print("\nMedians. \"computes\": the target computes for 2 ms at a time and looks into MPI in between, so milliseconds mean that one-sided\n"
              "operations wait for their target.\n")
        rows = list(dict.fromkeys(k for r in runs.values() for k in r))
        print("| | " + " | ".join(runs) + " |\n" + "|---" * (len(runs) + 1) + "|")
        for row in rows:
            print(f"| {row} | " + " | ".join(r.get(row, "") for r in runs.values()) + " |")
    good = all(len(r) > ("failed" in r) for r in runs.values())  # RMA may fail; not the round trips
    if o.json:
        result = {"benchmark": "mpi", "machine": None, "correct": good, "versions": versions, "runs": runs}
        if not runs:
            result["skipped"] = "no MPI with a compiler here"
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
