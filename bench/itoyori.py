#!/usr/bin/env python3
"""Itoyori's own programs beside the same problems in Godwit: prints the tables of docs/results/itoyori.md.

    bench/itoyori.py            with a build whose GODWIT_PEERS_DIR has itoyori and ityrbench: copies of both repositories
                                of github.com/itoyori with their submodules. Else it says so, and nothing is measured
    bench/itoyori.py --quick    smaller sizes, fewer rounds
    bench/itoyori.py --tiny     some minutes, nearly all of it compiling; figures mean nothing

Cilksort (a merge sort of ints in global memory, leaves of 4,096), UTS++ (a UTS tree built, traversed and given back in
global memory), nqueens (every place is a task, every pair of queens is looked at), and forces between bodies: their
ExaFMM (fast multipole method, a uniform cube) beside our Barnes-Hut (a dense ball) with as many bodies and about the same
error, 0.14 and 0.16 %: two methods for one problem, the first of which has the better order. Their programs are built as their README says, in a temporary folder, with MPICH: with Open MPI 4.1 they end in MPI_ERR_WIN on one rank. Every round runs
each variant once, one after the other; ratios are taken inside a round, then medians. Variants:

    1 rank, 2 ranks          on one host, which memory is shared in. Ours: by the same MPI, and without it (workers)
    2 hosts of a rank        told to share nothing (ITYR_ENABLE_SHARED_MEMORY=0; --godwit-hosts=ranks): bytes move by MPI.
                             They are counted by MPI's profiling interface (itoyori/moved_bytes.c), of the whole job
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import peer_sources

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
MPI = "mpich"
REPEATS = 3  # of a job of theirs, of which the median counts: its first has caches to fill, as ours
# What is compared, and what counts as lines of the program: between two patterns, both left out.
PROBLEMS = {
    "cilksort": {"parts": ["sort"], "theirs": ("examples/cilksort.cpp", r"^auto divide_two|^template <typename T>", r"get_random_elem"),
                 "ours": ("global/cilksort/ours.cpp", r"^namespace \{", r"^\}  // namespace$")},
    "uts++": {"parts": ["build", "traverse", "destroy"], "theirs": ("uts/main++.cc", r"^#else", r"^//-- main"),
              "ours": ("global/utsmem/ours.cpp", r"^namespace \{", r"^\}  // namespace utsmem")},
    "nqueens": {"parts": ["count"], "theirs": ("examples/nqueens.cpp", r"^constexpr int max_solutions", r"^void run"),
                "ours": ("nqueens/ours.cpp", r"^std::uint64_t sum_by_pairs", r"^\}  // namespace$")},
    "bodies": {"parts": ["step"]},
}
SIZES = {"full": {"cilksort": 10_000_000, "uts++": 10, "nqueens": 12, "bodies": 100_000},
         "quick": {"cilksort": 1_000_000, "uts++": 8, "nqueens": 11, "bodies": 20_000},
         "tiny": {"cilksort": 100_000, "uts++": 6, "nqueens": 8, "bodies": 2_000}}
STEPS = 3  # of ours
PHASES = ["Get bounds", "Grow tree", "Link tree", "Upward pass", "Traverse", "Downward pass"]  # of a step of theirs
VARIANTS = [("Itoyori, 1 rank", "theirs", 1, True), ("Godwit, 1 worker", "workers", 1, True), ("Godwit, 1 rank", "ours", 1, True),
            ("Itoyori, 2 ranks", "theirs", 2, True), ("Godwit, 2 workers", "workers", 2, True), ("Godwit, 2 ranks", "ours", 2, True),
            ("Itoyori, 2 hosts", "theirs", 2, False), ("Godwit, 2 hosts", "ours", 2, False)]


def need(path, what):
    if not os.path.exists(path):
        sys.exit(f"itoyori.py: {path} is missing: {what}")
    return path


def compile_all(o, to, problems):
    """{problem: program of theirs}, and the counter of bytes."""
    parts = [need(os.path.join(o.itoyori, p, "include"), "a copy of Itoyori with its submodules is needed (git clone --recursive)")
             for p in (".", "unordered_dense", "lxm_random", "massivelogger")]
    third = os.path.join(o.ityrbench, "third-party")
    parts += [need(os.path.join(third, p), "a copy of ityrbench with its submodules is needed") for p in ("pcg-cpp/include", "backward-cpp")]
    uts = os.path.join(o.ityrbench, "uts")
    sources = {"cilksort": [os.path.join(o.itoyori, "examples", "cilksort.cpp")], "nqueens": [os.path.join(o.itoyori, "examples", "nqueens.cpp")],
               "uts++": ["-DBRG_RNG=1", os.path.join(uts, "main++.cc"), "-x", "c++", os.path.join(uts, "uts.c"), os.path.join(uts, "rng", "brg_sha1.c")]}
    fmm = os.path.join(o.ityrbench, "exafmm")
    sources["bodies"] = ["-DEXAFMM_LAPLACE=1", "-ffast-math", "-funroll-loops",
                         *(f"-I{os.path.join(fmm, p)}" for p in ("include", "kernels", "vectorclass", "myconfig")), os.path.join(fmm, "examples", "fmm.cxx")]
    programs = {}
    for name in problems:
        files = sources[name]
        programs[name] = os.path.join(to, name)
        build([f"mpicxx.{MPI}", "-std=c++17", "-O3", "-DNDEBUG", "-w", "-fno-stack-protector", *(f"-I{p}" for p in parts), *files,
               "-o", programs[name], "-lrt", "-ldl", *(["-lnuma"] if os.path.exists("/usr/include/numa.h") else [])])
    counter = os.path.join(to, "moved_bytes.so")
    build([f"mpicc.{MPI}", "-O2", "-shared", "-fPIC", os.path.join(HERE, "itoyori", "moved_bytes.c"), "-o", counter])
    return programs, counter


def build(command):
    print("itoyori.py:", " ".join(command[-6:]), file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"itoyori.py: {' '.join(command)}: {done.stderr.strip()[:600]}")


def lines_of(path, first, last):
    """Lines with code from the first that matches one pattern to the next that matches the other."""
    count, inside, comment = 0, False, False
    with open(path, encoding="utf-8") as f:
        for line in f:
            text = line.strip()
            if not inside:
                inside = bool(re.search(first, line))
                continue
            if re.search(last, line):
                return count
            comment = comment or text.startswith("/*")
            count += bool(text) and not comment and not text.startswith("//")
            comment = comment and "*/" not in text
    sys.exit(f"itoyori.py: {path} has no line like {last} behind one like {first}")


def times_of_theirs(problem, text):
    """{part: seconds}, checked by their own programs; nothing if something is wrong."""
    if problem == "bodies":
        steps = [sum(t) for t in zip(*([float(t) for t in re.findall(rf"^{p} +: ([\d.]+) s", text, re.M)] for p in PHASES))]
        off = re.search(r"Rel. L2 Error \(acc\) +: (\S+)", text)
        return {"step": statistics.median(steps)} if len(steps) == REPEATS and off and float(off[1]) < 0.005 else None
    ns = [int(n.replace(",", "")) for n in re.findall(r"^\[\d+\] ([\d,]+) ns", text, re.M)]
    if len(ns) != REPEATS or "Wrong" in text:
        return None
    middle = statistics.median(ns) * 1e-9
    if problem != "uts++":
        return {PROBLEMS[problem]["parts"][0]: middle} if text.count("verified") == REPEATS else None
    built, gone = (re.search(r"Tree %s\. \((\d+) ns\)" % w, text) for w in ("built", "destroyed"))
    nodes = re.search(r"nodes: (\d+)", text)
    return {"build": int(built[1]) * 1e-9, "traverse": middle, "destroy": int(gone[1]) * 1e-9, "nodes": int(nodes[1])} if built and gone else None


def times_of_ours(problem, found, workers):
    one = lambda m: next(v for v in m["variants"] if v["name"] == "godwit" and v["workers"] == workers)
    if problem == "bodies":
        return {"step": sum(one(m)["median_s"] for m in found["measurements"][:2]) / STEPS} if found["correct"] else None
    times = {part: one(m)["median_s"] for part, m in zip(PROBLEMS[problem]["parts"], found["measurements"])}
    if problem == "uts++":
        times["nodes"] = found["measurements"][0]["parameters"]["nodes"]
    return times if found["correct"] else None


class Jobs:
    def __init__(self, o, programs, counter, sizes):
        self.o, self.programs, self.counter, self.sizes = o, programs, counter, sizes

    def theirs(self, problem):
        size = self.sizes[problem]
        flags = {"cilksort": ["-n", size, "-r", REPEATS], "nqueens": ["-n", size, "-r", REPEATS],
                 "bodies": ["-n", size, "-r", REPEATS, "-v", "-a", "-P", 5, "-t", 0.5],
                 "uts++": ["-t", 1, "-a", 3, "-d", size, "-b", 4, "-r", 19, "-i", REPEATS]}[problem]
        return ["setarch", os.uname().machine, "--addr-no-randomize", self.programs[problem], *map(str, flags)]

    def ours(self, problem, workers, out):
        size = self.sizes[problem]
        flags = {"cilksort": ["global_cilksort", "--size", size, "--leaf", 4096, "--merge-leaf", 4096],
                 "nqueens": ["nqueens", "-n", size, "--pairs"], "bodies": ["global_nbody", "--size", size, "--steps", STEPS],
                 "uts++": ["global_utsmem", "--size", size]}[problem]
        return [os.path.join(self.o.build, "bench", flags[0]), *map(str, flags[1:]), "--workers", str(workers), "--reps", str(REPEATS),
                "--peers", "none", "--json", out]

    def run(self, problem, how, ranks, shared):
        """{part: seconds, bytes} or None, with the reason printed."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "r.json")
            env = dict(os.environ, ITYR_ORI_NONCOLL_ALLOCATOR_SIZE=str(1 << 30), ITYR_ENABLE_SHARED_MEMORY=str(int(shared)), LC_ALL="C")
            if not shared:
                env["GODWIT_HOSTS"] = "ranks"
            launch = [] if how == "workers" else [f"mpirun.{MPI}", *([] if shared else ["-genv", "LD_PRELOAD", self.counter]), "-n", str(ranks)]
            command = [*launch, *(self.theirs(problem) if how == "theirs" else self.ours(problem, ranks, out))]
            try:
                done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=self.o.limit,
                                      stdin=subprocess.DEVNULL, cwd=folder)  # ExaFMM leaves a file
            except subprocess.TimeoutExpired:
                print(f"itoyori.py: no end after {self.o.limit} s: {' '.join(command)}", file=sys.stderr)
                return None
            times = None
            if done.returncode == 0 and how == "theirs":
                times = times_of_theirs(problem, done.stdout)
            elif done.returncode == 0:
                with open(out, encoding="utf-8") as f:
                    times = times_of_ours(problem, json.load(f), ranks)
            if times is None:
                print(f"itoyori.py: failed ({done.returncode}): {' '.join(command)}: {(done.stderr + done.stdout).strip()[-300:]}", file=sys.stderr)
                return None
            moved = re.search(r"moved: (\d+) bytes in (\d+)", done.stderr)
            return times | ({"bytes": int(moved[1]), "operations": int(moved[2])} if moved else {})


def show(found, lines):
    def middle(values):
        return statistics.median(values) if values else None

    for problem, rounds in found.items():
        parts = PROBLEMS[problem]["parts"]
        print(f"## {problem}\n\n| | " + " | ".join(f"{p}, s" for p in parts) + " | Godwit / Itoyori | MB moved | operations of MPI |\n" + "|---" * (len(parts) + 4) + "|")
        for name, how, ranks, shared in VARIANTS:
            got = [r[name] for r in rounds if r.get(name)]
            rival = f"Itoyori, {ranks} " + ("host" if not shared else "rank") + ("s" if ranks > 1 else "")
            ratios = [] if how == "theirs" else [[r[name][p] / r[rival][p] for r in rounds if r.get(name) and r.get(rival)] for p in parts]
            cells = [f"{middle([g[p] for g in got]):.4f}" if got else "failed" for p in parts]
            cells.append(", ".join(f"{middle(v):.2f}" for v in ratios if v))
            moved = [g["bytes"] for g in got if "bytes" in g]
            cells += [f"{middle(moved) / 1e6:.1f}", f"{middle([g['operations'] for g in got]):,.0f}"] if moved else ["", ""]
            print(f"| {name} | " + " | ".join(cells) + " |")
        print(f"\nLines of the program: {lines[problem][0]} Itoyori's, {lines[problem][1]} ours.\n" if problem in lines else "")


def skip(o, why):
    print(f"Not measured: {why}.")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "itoyori", "correct": True, "skipped": why}, f, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=120, help="seconds for one job")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", help="write the figures to this file")
    o = parser.parse_args()
    o.build = os.path.abspath(o.build)
    sizes = SIZES["tiny" if o.tiny else "quick" if o.quick else "full"]
    rounds = 1 if o.tiny else min(o.rounds, 3) if o.quick else o.rounds
    o.itoyori, o.ityrbench = peer_sources.find(o.build, "itoyori"), peer_sources.find(o.build, "ityrbench")
    if not o.itoyori or not o.ityrbench:
        return skip(o, "no sources of Itoyori: cmake --preset release -DGODWIT_PEERS_DIR=DIR, with DIR/itoyori and DIR/ityrbench (bench/itoyori.py)")
    for tool in (f"mpicxx.{MPI}", f"mpirun.{MPI}", "setarch"):
        if not shutil.which(tool):
            return skip(o, f"{tool} is not installed (scripts/setup test installs MPICH)")
    problems = o.problems.split(",")
    for p in problems:
        if p not in PROBLEMS:
            sys.exit(f"itoyori.py: --problems {p}: none of {', '.join(PROBLEMS)}")
    lines, found = {}, {p: [] for p in problems}
    for p in (p for p in problems if "theirs" in PROBLEMS[p]):
        theirs, ours = PROBLEMS[p]["theirs"], PROBLEMS[p]["ours"]
        root = o.ityrbench if theirs[0].startswith("uts") else o.itoyori
        lines[p] = (lines_of(need(os.path.join(root, theirs[0]), "their program"), *theirs[1:]), lines_of(os.path.join(HERE, ours[0]), *ours[1:]))
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs(o, *compile_all(o, folder, problems), sizes)
        for i in range(rounds):
            for p in problems:
                print(f"round {i + 1} of {rounds}: {p}", file=sys.stderr)
                found[p].append({name: jobs.run(p, how, ranks, shared) for name, how, ranks, shared in VARIANTS})
    show(found, lines)
    print(f"Medians of {rounds} rounds; a job has {REPEATS} repetitions, of which the median counts. 2 hosts: bytes and operations of whole jobs, with filling and checking.")
    ours_ok = all(r[name] for rs in found.values() for r in rs for name, how, _, _ in VARIANTS if how != "theirs")
    same_trees = len({v["nodes"] for r in found.get("uts++", []) for v in r.values() if v}) <= 1
    if not same_trees:
        print("\n**The trees differ in size.**")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "itoyori", "sizes": sizes, "correct": ours_ok and same_trees, "lines": lines, "rounds": found}, f, indent=1)
    sys.exit(0 if ours_ok and same_trees else 1)


if __name__ == "__main__":
    main()
