"""Experiments and their steps. A step is one command, which anybody can run alone.

Sizes per preset: tiny (does everything work? for tests), quick (at most ten minutes on two cores), full.
"""

import dataclasses
import itertools
import os
import platform
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PRESETS = ("tiny", "quick", "full")
PROBLEMS = {  # of U15: program, then flags per preset
    "BTC": (
        "btc",
        {"tiny": "--depth 8 --iter 1", "quick": "--depth 20 --iter 1", "full": "--depth 26 --iter 1"},
    ),
    "UTS": ("uts", {"tiny": "-t 1 -r 0 -b 4 -a 3 -d 4", "quick": "--tree T1", "full": "--tree T1"}),
    "NQueens": ("nqueens", {"tiny": "-n 6", "quick": "-n 10", "full": "-n 12"}),
}
COMPARED = ("greedy", "stalling", "locked_free", "stalling_locked_free", "child_full", "child_rtc")
FASTEST = "greedy,lazy" if platform.machine() == "x86_64" else "greedy"  # where tasks do next to nothing
COUNTED = {"GODWIT_CHECK_FRAMES": "0"}  # where operations are counted: the papers' schemes have no such check; times are taken with it
UTS = "-t 1 -r 0 -b 4 -a 3 -d"  # the papers' tree, of a depth


@dataclasses.dataclass
class Step:
    """One command. kind says where its data comes from: json (--json FILE), trace, addresses (/proc)."""

    name: str
    program: str
    flags: str
    seconds: float  # roughly, on two idle cores
    environment: dict = dataclasses.field(default_factory=dict)
    hosts: int = 0  # in network namespaces, by scripts/hosts; 0: plainly
    mpi: str = ""
    kind: str = "json"
    about: dict = dataclasses.field(default_factory=dict)  # what sections.py needs to know about it

    @property
    def limit(self):
        """Seconds after which the step is given up."""
        return max(60, int(8 * self.seconds))


@dataclasses.dataclass
class Experiment:
    name: str  # the number in the list of the papers' contents
    title: str
    steps: list
    sources: list = dataclasses.field(default_factory=list)  # experiments whose steps it reads, too


def too_old(emulator, version):
    """Why this qemu will not do; empty: it will."""
    try:
        said = subprocess.run([emulator, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        said = ""
    found = re.search(r"version (\d+)", said)
    if found and int(found.group(1)) >= version:
        return ""
    return f"needs qemu-user {version} or later: QEMU_SPARC64 names its qemu-sparc64" + (f" (this is {found.group(1)})" if found else "")


class Machine:
    """What is possible here."""

    def __init__(self, build, workers=None):
        self.build = build
        self.built = os.path.exists(os.path.join(build, "bench", "pfor"))  # before that nobody knows what it will have
        self.workers = workers or len(os.sched_getaffinity(0))
        self.policies = self._asked("pfor", "--policies", "there are ", " ")
        self.peers = self._asked("btc", "--peers", "{", "}")
        self.mpis = [m for m in ("openmpi", "mpich") if shutil.which("mpirun." + m)]
        self._hosts = {}

    def _asked(self, program, flag, before, after):
        """What this build has, asked of a program: the message about a wrong one lists them. Empty before the build."""
        try:
            done = subprocess.run(
                [os.path.join(self.build, "bench", program), flag, "?"],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        except OSError:
            return []
        if before not in done.stderr:
            return []
        return done.stderr.split(before, 1)[1].split(after)[0].strip().split(",")

    def no_hosts(self, mpi):
        """Why several hosts cannot be had with this MPI; empty: they can."""
        if mpi not in self._hosts:
            component = os.path.join(self.build, "lib", "godwit", f"godwit-mpi-{mpi}.so")
            if self.built and not os.path.exists(component):
                self._hosts[mpi] = f"this build has no component for {mpi}: install its development package, then build again"
            else:
                done = subprocess.run(
                    [os.path.join(ROOT, "scripts", "hosts"), "--check", "--mpi", mpi],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=120,
                )
                lines = done.stderr.strip().splitlines() or ["scripts/hosts --check failed"]
                self._hosts[mpi] = "" if done.returncode == 0 else lines[-1]
        return self._hosts[mpi]

    def why_not(self, step):
        """Why the step cannot run here; empty: it can."""
        if step.hosts:
            return (
                self.no_hosts(step.mpi)
                if step.mpi in self.mpis
                else f"no mpirun.{step.mpi}: apt-get install it"
            )
        if step.about.get("machine", os.uname().machine) != os.uname().machine:
            return f"for {step.about['machine']} only"
        for tool in step.about.get("tools", []):
            if shutil.which(tool) is None:
                return f"needs {tool}: scripts/setup test"
        if "emulator" in step.about and (reason := too_old(*step.about["emulator"])):
            return reason
        for path, remedy in step.about.get("files", {}).items():
            if not os.path.exists(path):
                return remedy
        if step.program == "steal" and self.workers < 2:
            return "needs two CPUs"
        unknown = [p for p in step.about.get("policies", []) if self.policies and p not in self.policies]
        return f"this build has no policy {unknown[0]}" if unknown else ""


class Planner:
    """Puts experiments together for one machine and one preset."""

    def __init__(self, machine, preset):
        self.preset, self.machine = preset, machine
        self.experiments = []
        self.p = machine.workers
        self.reps = self.of(1, 3, 5)
        self.counts = "1" if self.p == 1 else f"1,{self.p}"  # workers: one, and all
        known = [x for x in COMPARED if x in machine.policies or not machine.policies]
        self.compared = ",".join(known) or "greedy"
        self.mpis = (machine.mpis or ["openmpi"])[: self.of(1, 1, 2)]

    def of(self, *choices):
        """The preset's."""
        return choices[PRESETS.index(self.preset)]

    def add(self, name, title, steps, sources=()):
        self.experiments.append(Experiment(name, title, steps, list(sources)))

    def u11(self):
        of, reps = self.of, self.reps
        spawn = of("--blocks 4 ", "--blocks 50 ", "")
        tree = f"--depth {of(6, 18, 20)} --iter 1 --workers 1 --reps {reps} --peers none --policies all"
        self.add("U11", "Creating a task", [
            Step("u11_spawn", "spawn_join", f"{spawn}--reps {reps}", of(1, 4, 40)),
            Step("u11_policies", "btc", tree, of(1, 8, 60)),
        ])

    def u12(self):
        of = self.of
        peers = [x for x in self.machine.peers if x != "none"] or ["none"]  # MassiveThreads is the papers' denominator
        rest = f"--workers 1 --reps {self.reps} --peers {of('none', ','.join(peers), ','.join(peers))} --peer-reps {of(1, 3, 3)}"
        rest += f" --peer-limit {of(10, 10, 60)}"
        self.add("U12", "Overhead over serial code", [
            Step("u12_btc", "btc", f"--depth {of(8, 22, 26)} --iter 1 --policies {FASTEST} {rest}", of(1, 20, 300)),
            Step("u12_uts", "uts", f"{UTS} {of(4, 10, 11)} --threads every {rest}", of(1, 20, 120)),
            Step("u12_nqueens", "nqueens", f"-n {of(6, 12, 13)} {rest}", of(1, 15, 100)),
        ])

    def u13(self):
        of = self.of
        near = f"--bytes 664,3055 {of('--rounds 64 ', '', '')}--reps {self.reps}"
        far = f"--rounds {of(40, 120, 200)} --reps {of(1, 2, 5)}"  # at least 100 steals of each size
        steps = [Step("u13_near", "steal", near, of(1, 6, 12))]
        ways = of(["server"], ["server", "assist", "am"], ["server", "assist", "rma", "am"])
        for mpi, way in itertools.product(self.mpis, [*ways, "words"]):
            setting = {"GODWIT_WAY": way}
            if way == "words":  # the papers' protocol, word by word
                setting = {"GODWIT_WAY": "server", "GODWIT_FAR_STEAL": "words", **COUNTED}
            name, about = f"u13_{mpi}_{way}", {"way": way}
            steps.append(Step(name, "far_steal", far, of(3, 20, 60), setting, 2, mpi, about=about))
        self.add("U13", "A steal and its parts", steps)

    def u14(self):
        of = self.of
        rest = f"--workers {self.counts} --reps {self.reps} --peers none"
        self.add("U14", "Task trees and their stacks", [
            Step("u14_btc1", "btc", f"--depth {of(8, 26, 30)} --iter 1 {rest}", of(1, 8, 120)),
            Step("u14_btc2", "btc", f"--depth {of(4, 12, 14)} --iter 2 {rest}", of(1, 3, 40)),
            Step("u14_uts", "uts", f"{UTS} {of(4, 11, 13)} {rest}", of(1, 6, 120)),
            Step("u14_nqueens", "nqueens", f"-n {of(6, 12, 14)} {rest}", of(1, 3, 90)),
        ])

    def u15(self):
        of, steps = self.of, []
        problems = of(["BTC"], ["BTC", "UTS"], list(PROBLEMS))
        counts = of([2], [2], [2, 4])
        ways = of(["assist", "am"], ["assist", "am"], ["server", "assist", "am"])
        for hosts, problem, way, check in itertools.product(counts, problems, ways, (1, 0)):
            program, flags = PROBLEMS[problem]
            flags = f"{flags[self.preset]} --workers {hosts} --reps {of(1, 2, 5)} --peers none"
            name = f"u15_{problem}_{hosts}_{way}_{check}".lower()
            setting = {"GODWIT_WAY": way, "GODWIT_EMPTY_CHECK": str(check), **COUNTED}
            if way != "server":
                setting["GODWIT_FAR_STEAL"] = "words"  # the papers' operations; a call has no empty check of its own
            about = {"problem": problem, "way": way, "check": check, "hosts": hosts}
            steps.append(Step(name, program, flags, of(3, 7, 20), setting, hosts, self.mpis[0], about=about))
        self.add("U15", "Messages and steals between hosts", steps)

    def u16(self):
        of, steps = self.of, []
        for policy, w in itertools.product(("greedy", "iso"), of((1, 2), (1, 2, 4), (1, 2, 4, 8))):
            # RecPFor's time does not depend on the policy: long enough to be looked at. No reservation that keeps
            # the workers' own heaps apart: it is larger than all else.
            flags = f"--kind recpfor -n {of(256, 128, 512)} --us 50 --workers {w} --reps 1 --policies {policy}"
            about = {"policies": [policy], "policy": policy, "workers": w}
            steps.append(Step(f"u16_{policy}_{w}", "pfor", flags, of(1, 2, 4), {"GODWIT_PRIVATE_HEAP": "0"},
                              kind="addresses", about=about))
        self.add("U16", "Use of address space", steps)

    def pfor(self, name, kind, scale, seconds):
        flags = f"--kind {kind} --scale {scale} --policies {self.compared}"
        flags += f" --workers {self.p} --reps {self.reps}"
        return Step(f"{name}_{kind}", "pfor", flags, seconds, about={"kind": kind})

    def c8_c9(self):
        of = self.of
        scales = of("8192", "512,64,8", "512,128,32,8,2")
        self.add("C8", "PFor and RecPFor: efficiency against problem size", [
            self.pfor("c8", "pfor", scales, of(2, 12, 150)),
            self.pfor("c8", "recpfor", scales, of(2, 35, 400)),
        ])
        self.add("C9", "PFor and RecPFor: joins and steals", [
            self.pfor("c9", "pfor", of(4096, 4, 1), of(2, 20, 120)),
            self.pfor("c9", "recpfor", of(4096, 8, 1), of(2, 30, 400)),
        ])

    def c10(self):
        of, steps = self.of, []
        for policy in COMPARED:
            if policy.endswith("locked_free"):  # joins as greedy or stalling does
                continue
            flags = f"--kind recpfor --scale {of(512, 16, 4)} --workers {self.p} --reps 1 --policies {policy}"
            about = {"policies": [policy], "policy": policy}
            steps.append(Step(f"c10_{policy}", "pfor", flags, of(1, 3, 10), kind="trace", about=about))
        self.add("C10", "Busy workers and ready joins over time", steps)

    def c11(self):
        of, steps = self.of, []
        trees = of([("own", f"{UTS} 5", 1, 1)], [("T1L", "--tree T1L", 20, 1)], [("T1L", "--tree T1L", 60, 3), ("T1XL", "--tree T1XL", 320, 1)])
        for (name, tree, seconds, reps), which in itertools.product(trees, ("inner", "every")):
            flags = f"{tree} --threads {which} --workers {self.counts} --peers none --reps {reps}"
            step = f"c11_{name}{'_every' if which == 'every' else ''}".lower()
            steps.append(Step(step, "uts", flags, seconds * 1.2, about={"tree": name}))
        program = os.path.join(self.machine.build, "bench", "peers", "bin", "saws-uts")
        about = {"tree": "saws", "tools": ["oshrun"], "files": {program: "this build has no SAWS (GODWIT_PEERS_DIR)"}}
        flags = f"--tree {of('T1', 'T1', 'T1L')} --workers {self.counts} --reps {of(1, 5, 5)}"
        steps.append(Step("c11_saws", "saws.py", flags, of(5, 30, 300), about=about))
        self.add("C11", "Unbalanced tree search", steps)

    def c12(self):
        of, steps = self.of, []
        for k in of((9,), (13, 14, 15), (13, 14, 15, 16, 17, 18, 19)):
            reps = 1 if k > 16 else self.reps
            flags = f"-n {2 ** k} -c {of(32, 512, 512)} --policies {self.compared}"
            flags += f" --workers {self.p} --reps {reps}"
            seconds = max(1, 0.03 * 4 ** (k - 13) * (5 + 4 * reps))
            steps.append(Step(f"c12_{k}", "lcs", flags, seconds, about={"k": k}))
        self.add("C12", "Longest common subsequence with futures", steps)

    def m5(self):
        of, steps = self.of, []
        counts = sorted({2**k for k in range(12) if 2**k < self.p} | {self.p})  # the paper's abscissa
        rest = f"--workers {','.join(map(str, counts))} --reps"
        first = f"-n {of(16, 30, 30)} {rest} {self.reps}"
        steps.append(Step("m5_30", "contexts", first, of(2, 12, 25)))
        if self.preset == "full":  # minutes, without assembly
            steps.append(Step("m5_40", "contexts", f"-n 40 {rest} 3 --peer-reps 1", 260))
        runner = os.path.join("build", "sparc64-trap", "bench", "contexts_asm")
        about = {
            "machine": "sparc64",  # the emulator ends programs that take this trap
            "files": {os.path.join(ROOT, runner): "needs a build with -DGODWIT_SPARC_FLUSH=trap in build/sparc64-trap"},
        }
        steps.append(Step("m5_trap", "contexts", f"{first} --also trap={runner}", 60, about=about))
        counted = "count_instructions.py"
        about = {"tools": ["valgrind"], "machine": "x86_64", "cpu": "x86-64, callgrind"}
        steps.append(Step("m5_count", counted, f"--arguments {of('8,12', '14,18', '20,25')}", of(8, 15, 40), COUNTED, about=about))
        cross = os.path.join(ROOT, "build", "sparc64")
        remedy = "needs the cross build: cmake --preset sparc64 -DGODWIT_BUILD_BENCH=ON && cmake --build --preset sparc64"
        about = {
            "tools": ["qemu-sparc64", "cc"],
            "files": {os.path.join(cross, "bench", "contexts_asm"): remedy + " --target contexts_programs"},
            "build": cross,
            "cpu": "SPARC V9, qemu-user",
        }
        flags = f"--emulator 'qemu-sparc64 -L /usr/sparc64-linux-gnu' --arguments {of('4,8', '10,16', '10,16')}"
        steps.append(Step("m5_count_sparc", counted, flags, 10, COUNTED, about=about))
        # By the trap that V8 has: qemu-user 7 ends programs that take it.
        emulator = os.environ.get("QEMU_SPARC64", "qemu-sparc64")
        about = {
            "files": {os.path.join(cross, "bench", "contexts_trap"): remedy + " --target contexts_programs"},
            "build": cross,
            "emulator": (emulator, 8),
        }
        flags = f"--time --variants asm,trap --emulator '{emulator} -L /usr/sparc64-linux-gnu' --arguments {of('4,12', '10,18', '10,22')}"
        steps.append(Step("m5_flush", counted, flags, of(10, 20, 90), COUNTED, about=about))
        self.add("M5", "fib on each variant of the context switch", steps)

    def m6(self):
        of = self.of
        flags = of("-n 2000 ", "--quick ", "") + f"--reps {self.reps} --workers {self.counts} --peer-reps {of(1, 1, 2)}"
        self.add("M6", "Creating and joining threads, yielding, switching", [Step("m6_costs", "threads", flags, of(2, 30, 120))])

    def m7(self):
        of = self.of
        rest = f"--workers {self.counts} --reps {self.reps} --peer-reps {of(1, 3, 3)} --peer-limit {of(10, 10, 30)}"
        self.add("M7", "fib, quicksort and matrix multiplication over plain calls", [
            Step("m7_fib", "fib", f"-n {of(16, 30, 30)} --policies {FASTEST} {rest}", of(1, 25, 60)),
            Step("m7_quicksort", "quicksort", f"-n {of('20000', '2000000', '2000000,10000000')} {rest}", of(1, 20, 100)),
            Step("m7_matmul", "matmul", f"-n {of(200, 1000, 1000)} {rest}", of(1, 25, 40)),
        ])

    def g14(self):
        of = self.of
        paper = f"--scale {of(12, 20, 20)} --only-partitions"
        real = f"--scale {of(10, 16, 20)} --sources {of(2, 16, 64)} --workers {self.counts} --reps {self.reps}"
        hosts = f"--scale {of(10, 12, 16)} --sources {of(2, 4, 16)} --workers 4 --reps {of(1, 1, 3)}"
        self.add("G14", "Partitions of a graph that are given away", [
            Step("g14_partitions", "global_rmat", paper, of(1, 10, 10)),
            Step("g14_search", "global_rmat", real, of(1, 8, 200)),
            Step("g14_hosts", "global_rmat", hosts, of(5, 15, 60), {"GODWIT_WAY": "server"}, 2, self.mpis[0],
                 about={"way": "server"}),
        ])

    def g15(self):
        flags = self.of("--tiny", "--quick", "") + f" --mpi {self.mpis[0]}"
        self.add("G15", "NAS Parallel Benchmarks", [Step("g15_npb", "npb.py", flags.strip(), self.of(10, 40, 400))])

    def g9(self):
        of = self.of
        flags = of("-n 200 --pages 50 ", "--quick ", "") + "--workers 3"
        self.add("G9", "A put by what is known of the owner", self.by_directory("g9_puts", "global_put_latency", flags, of(3, 6, 40), 3))

    def g10(self):
        of = self.of
        gups = of("--size 65536 --updates 1024", "--updates 16384", "--updates 32768")
        gups += f" --ways values,atomics --movable --workers 3 --reps {of(1, 3, 5)}"
        tables = of("--updates 1000 --entries 2048 --look-ups 1000 ", "--quick ", "--updates 65536 ") + "--workers 9"
        self.add("G10", "Random updates, and directories of a bounded size", [
            Step("g10_gups", "global_gups", gups, of(3, 20, 200), hosts=3, mpi=self.mpis[0], about={"way": "auto"}),
            Step("g10_tables", "global_translations", tables, of(20, 40, 300), hosts=3, mpi=self.mpis[0], about={"way": "auto"}),
        ])

    def g11(self):
        of = self.of
        flags = "-n 100 --blocks 1 --size 1 --workers 4 "
        flags += of("--updates 500 --moves 10", "--updates 20000 --moves 1000", "--updates 100000 --moves 10000")
        self.add("G11", "Updates beside moves", self.by_directory("g11_moves", "global_moves", flags, of(4, 15, 300), 4))

    def by_directory(self, name, program, flags, seconds, hosts):
        """Who knows where a part is: the hosts, by message and by datagram, or a switch. (xdp needs more rights: docs/switch.md.)"""
        about = {"way": "auto"}
        return [Step(name, program, flags, seconds, hosts=hosts, mpi=self.mpis[0], about=about)] + [
            Step(f"{name}_{d}", program, flags, seconds, {"GODWIT_DIRECTORY": d}, hosts, self.mpis[0], about=about)
            for d in self.of([], ["datagrams", "relay"], ["datagrams", "relay"])
        ]

    def g12(self):
        of, steps = self.of, []
        flags = f"--times {of(50, 200, 5000)}"
        rest = f"--reps {of(1, 3, 5)} --workers 2"
        ours = f"{flags} {rest}"
        steps.append(Step("g12_one", "global_latency", f"--times {of(50, 5000, 5000)} {rest}", of(1, 3, 15)))  # long enough for a clock of CPU time
        for mpi in self.mpis:
            steps.append(Step(f"g12_{mpi}_ours", "global_latency", ours, of(5, 25, 200), hosts=2, mpi=mpi, about={"mpi": mpi}))
            steps.append(Step(f"g12_{mpi}_alone", f"global_latency_{mpi}", flags, of(2, 5, 20), hosts=2, mpi=mpi, about={"mpi": mpi}))
        self.add("G12", "Put and get: latency, bandwidth and rate by size", steps)

    def between_hosts(self, name, program, flags, seconds):
        """A step on this machine, and one for each number of hosts, MPI and way of the preset."""
        steps = [Step(f"{name}_one", program, f"{flags} --workers {max(self.p, 2)}", seconds / 4)]
        ways = self.of([], ["server", "am"], ["server", "assist", "rma", "am"])
        for hosts, mpi, way in itertools.product(self.of([], [2, 4], [2, 3, 4]), self.mpis, ways):
            about = {"hosts": hosts, "mpi": mpi, "way": way}
            steps.append(Step(f"{name}_{mpi}_{hosts}_{way}", program, f"{flags} --workers {hosts}", seconds, {"GODWIT_WAY": way},
                              hosts, mpi, about=about))
        return steps

    def g4(self):
        of = self.of
        flags = of("--runs 2 --moves 50 --words 4096", "--runs 10 --moves 300 --words 4096", "--runs 20 --moves 1000")
        self.add("G4", "Verified updates beside moves", self.between_hosts("g4", "global_storm", flags, of(4, 12, 50)))

    def g13(self):
        of = self.of
        flags = of("--steps 12", "--steps 40", "--steps 200") + " --reps 1"
        self.add("G13", "Adaptive mesh refinement with grids that move",
                 self.between_hosts("g13", "global_amr", flags, of(4, 15, 60)))


def plan(machine, preset):
    """All experiments in the order in which they run."""
    p = Planner(machine, preset)
    for part in (p.u11, p.u12, p.u13, p.u14, p.u15, p.u16, p.c8_c9, p.c10, p.c11, p.c12):
        part()
    p.add("C13", "What the joining strategies gain", [], ["C9"])  # compares what C9 measured
    for part in (p.m5, p.m6, p.m7, p.g4, p.g9, p.g10, p.g11, p.g12, p.g13, p.g14, p.g15):
        part()
    return p.experiments
