"""Experiments and their steps. A step is one command, which anybody can run alone; what it prints as JSON is its data.

Sizes per preset: tiny (does everything work? for tests), quick (at most ten minutes on two cores), full.
"""
import dataclasses
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PRESETS = ("tiny", "quick", "full")
PROBLEMS = {  # of U15: program, then flags per preset
    "BTC": ("btc", {"tiny": "--depth 8 --iter 1", "quick": "--depth 20 --iter 1", "full": "--depth 26 --iter 1"}),
    "UTS": ("uts", {"tiny": "-t 1 -r 0 -b 4 -a 3 -d 4", "quick": "--tree T1", "full": "--tree T1"}),
    "NQueens": ("nqueens", {"tiny": "-n 6", "quick": "-n 10", "full": "-n 12"}),
}
LCS_FULL = (13, 14, 15, 16, 17, 18)


@dataclasses.dataclass
class Step:
    """One command. kind says where its data comes from: json (--json FILE), trace (a trace file), addresses."""
    name: str
    program: str
    flags: list
    seconds: float                      # roughly, on two idle cores
    environment: dict = dataclasses.field(default_factory=dict)
    hosts: int = 0                      # in network namespaces, by scripts/hosts; 0: plainly
    mpi: str = ""
    kind: str = "json"
    about: dict = dataclasses.field(default_factory=dict)  # what sections.py needs to know about it

    @property
    def limit(self):
        """Seconds after which the step is given up."""
        return max(60, int(8 * self.seconds))


@dataclasses.dataclass
class Experiment:
    name: str       # the number in the list of the papers' contents
    title: str
    steps: list
    sources: list = dataclasses.field(default_factory=list)  # experiments whose steps it reads, too


class Machine:
    """What is possible here."""

    def __init__(self, build, workers=None):
        self.build = build
        self.workers = workers or len(os.sched_getaffinity(0))
        self.policies = self._policies()
        self.mpis = [m for m in ("openmpi", "mpich") if shutil.which("mpirun." + m)]
        self._hosts = {}

    def _policies(self):
        """Policies of this build, asked of a program: the error message lists them."""
        try:
            done = subprocess.run([os.path.join(self.build, "bench", "pfor"), "--policies", "?"], capture_output=True,
                                  text=True, check=False, timeout=60)
        except OSError:
            return []
        if "there are " not in done.stderr:
            return []
        return done.stderr.split("there are ")[1].split(" ")[0].strip().split(",")

    def no_hosts(self, mpi):
        """Why several hosts cannot be had with this MPI; empty: they can."""
        if mpi not in self._hosts:
            component = os.path.join(self.build, "lib", "godwit", f"godwit-mpi-{mpi}.so")
            if not os.path.exists(component):
                self._hosts[mpi] = f"this build has no component for {mpi}: install its development package"
            else:
                done = subprocess.run([os.path.join(ROOT, "scripts", "hosts"), "--check", "--mpi", mpi],
                                      capture_output=True, text=True, check=False, timeout=120)
                lines = done.stderr.strip().splitlines() or ["scripts/hosts --check failed"]
                self._hosts[mpi] = "" if done.returncode == 0 else lines[-1]
        return self._hosts[mpi]

    def why_not(self, step):
        """Why the step cannot run here; empty: it can."""
        if step.hosts:
            return self.no_hosts(step.mpi) if step.mpi in self.mpis else f"no mpirun.{step.mpi}: apt-get install it"
        if step.program == "steal" and self.workers < 2:
            return "needs two CPUs"
        unknown = [p for p in step.about.get("policies", []) if p not in self.policies]
        return f"this build has no policy {unknown[0]}" if unknown else ""


def plan(machine, preset):
    """All experiments in the order in which they run."""
    pick = {"tiny": 0, "quick": 1, "full": 2}[preset]

    def of(*choices):
        return choices[pick]

    p = machine.workers
    reps = ["--reps", str(of(1, 3, 5))]
    alone = ["--workers", "1", *reps]
    both = ["--workers", "1" if p == 1 else f"1,{p}", *reps]
    all_workers = ["--workers", str(p), *reps]
    no_peers = ["--peers", "none"]
    peers = ["--peers", of("none", "tbb", "tbb"), "--peer-reps", "1"]
    compared = ["greedy", "stalling", "locked_free", "child_full", "child_rtc"]
    compared = ",".join(x for x in compared if x in machine.policies) or "greedy"
    uts = "-t 1 -r 0 -b 4 -a 3 -d".split()
    experiments = []

    def add(name, title, steps, sources=()):
        experiments.append(Experiment(name, title, steps, list(sources)))

    add("U11", "Creating a task", [
        Step("u11_spawn", "spawn_join", [*of(["--blocks", "4"], ["--blocks", "50"], []), *reps], of(1, 4, 40)),
        Step("u11_policies", "btc", ["--depth", of("6", "18", "20"), "--iter", "1", *alone, *no_peers, "--policies", "all"],
             of(1, 8, 60))])
    add("U12", "Overhead over serial code", [
        Step("u12_btc", "btc", ["--depth", of("8", "24", "28"), "--iter", "1", *alone, *peers], of(1, 6, 60)),
        Step("u12_uts", "uts", [*uts, of("4", "11", "11"), "--threads", "every", *alone, *peers], of(1, 8, 14)),
        Step("u12_nqueens", "nqueens", ["-n", of("6", "12", "13"), *alone, *peers], of(1, 3, 20))])
    steps = [Step("u13_near", "steal", ["--bytes", "664,3055", *of(["--rounds", "64"], [], []), *reps], of(1, 6, 12))]
    mpis = (machine.mpis or ["openmpi"])[:of(1, 1, 2)]
    for mpi in mpis:
        for way in of(["server"], ["server", "assist", "am"], ["server", "assist", "rma", "am"]) + ["words"]:
            setting = {"GODWIT_WAY": "server", "GODWIT_FAR_STEAL": "words"} if way == "words" else {"GODWIT_WAY": way}
            steps.append(Step(f"u13_{mpi}_{way}", "far_steal", ["--rounds", of("40", "60", "200"), "--reps", of("1", "2", "5")],
                              of(3, 8, 30), setting, 2, mpi, about={"way": way}))
    add("U13", "A steal and its parts", steps)
    add("U14", "Task trees and their stacks", [
        Step("u14_btc1", "btc", ["--depth", of("8", "26", "30"), "--iter", "1", *both, *no_peers], of(1, 8, 120)),
        Step("u14_btc2", "btc", ["--depth", of("4", "12", "14"), "--iter", "2", *both, *no_peers], of(1, 3, 40)),
        Step("u14_uts", "uts", [*uts, of("4", "11", "13"), *both, *no_peers], of(1, 6, 120)),
        Step("u14_nqueens", "nqueens", ["-n", of("6", "12", "14"), *both, *no_peers], of(1, 3, 90))])
    steps = []
    for mpi in mpis[:1]:
        for hosts in of([2], [2], [2, 4]):
            for problem in of(["BTC"], ["BTC", "UTS"], list(PROBLEMS)):
                for way in ("assist", "am"):
                    for check in (1, 0):
                        program, flags = PROBLEMS[problem]
                        steps.append(Step(
                            f"u15_{problem}_{hosts}_{way}_{check}".lower(), program,
                            [*flags[preset].split(), "--workers", str(hosts), "--reps", of("1", "2", "5"), *no_peers],
                            of(3, 7, 20), {"GODWIT_WAY": way, "GODWIT_EMPTY_CHECK": str(check)}, hosts, mpi,
                            about={"problem": problem, "way": way, "check": check, "hosts": hosts}))
    add("U15", "Messages and steals between hosts", steps)
    add("U16", "Use of address space", [
        Step(f"u16_{policy}_{w}", "pfor",  # its time does not depend on the policy: long enough to be looked at
             ["--kind", "recpfor", "-n", of("64", "128", "512"), "--us", "50", "--workers", str(w), "--reps", "1", "--policies", policy],
             of(1, 2, 4), kind="addresses", about={"policies": [policy], "policy": policy, "workers": w})
        for policy in ("greedy", "iso") for w in of((1, 2), (1, 2, 4), (1, 2, 4, 8))])
    add("C8", "PFor and RecPFor: efficiency against problem size", [
        Step(f"c8_{kind}", "pfor", ["--kind", kind, "--scale", of("8192", "512,64,8", "512,128,32,8,2"), "--policies", compared,
                                    *all_workers], of(2, s, f), about={"kind": kind})
        for kind, s, f in (("pfor", 12, 150), ("recpfor", 35, 400))])
    add("C9", "PFor and RecPFor: joins and steals", [
        Step(f"c9_{kind}", "pfor", ["--kind", kind, "--scale", of("4096", small, "1"), "--policies", compared, *all_workers],
             of(2, s, f), about={"kind": kind})
        for kind, small, s, f in (("pfor", "4", 20, 120), ("recpfor", "8", 30, 400))])
    add("C10", "Busy workers and ready joins over time", [
        Step(f"c10_{policy}", "pfor", ["--kind", "recpfor", "--scale", of("4096", "16", "4"), "--workers", str(p), "--reps", "1",
                                       "--policies", policy], of(1, 3, 10), kind="trace",
             about={"policies": [policy], "policy": policy})
        for policy in ("greedy", "stalling", "child_full", "child_rtc")])
    trees = of([("own", [*uts, "5"], 1)], [("T1L", ["--tree", "T1L"], 20)],
               [("T1L", ["--tree", "T1L"], 60), ("T1XL", ["--tree", "T1XL"], 320)])
    add("C11", "Unbalanced tree search", [
        Step(f"c11_{name.lower()}", "uts", [*flags, "--workers", "1" if p == 1 else f"1,{p}", *no_peers, "--reps",
                                            "3" if (preset, name) == ("full", "T1L") else "1"], s, about={"tree": name})
        for name, flags, s in trees] + [
            Step("c11_every", "uts", [*of([*uts, "5"], ["--tree", "T1"], ["--tree", "T1"]), "--threads", "every", *both, *no_peers],
                 of(1, 4, 6), about={"tree": "every"})])
    sizes = of((9,), (13, 14, 15), LCS_FULL)
    add("C12", "Longest common subsequence with futures", [
        Step(f"c12_{k}", "lcs", ["-n", str(2 ** k), "-c", of("32", "512", "512"), "--policies", compared, "--workers", str(p),
                                 "--reps", "1" if k > 16 else of("1", "3", "5")], max(1, 0.03 * 4 ** (k - 13) * of(1, 12, 16)),
             about={"k": k}) for k in sizes])
    add("C13", "What the joining strategies gain", [], ["C8", "C9"])
    return experiments
