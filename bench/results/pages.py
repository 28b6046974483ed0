"""The pages: what makes each of them, in every form, and which sources it measures.

A page is made by a benchmark program (its JSON becomes the page), by a script beside the benchmarks (its output is the page),
or by scripts/reproduce. A new page: a row here and one in docs/results/README.md.
"""

import dataclasses

FORMS = ("full", "quick", "tiny")  # tiny: seconds, for tests; its figures mean nothing

# What every fork-join measures, and what is measured besides by some.
CORE = ["include/godwit", "src/base", "src/context", "src/runtime", "src/sched", "src/stack", "src/transport"]
THREADS = ["src/seams", "src/sync"]
GLOBAL = ["src/gas", "bench/global"]
HARNESS = ["bench/common", "bench/CMakeLists.txt", "bench/peers.cmake"]


@dataclasses.dataclass
class Page:
    """One page. kind: program (of the build), script (in the repository), or reproduce."""

    name: str
    kind: str
    command: str  # the program, or the script's path
    seconds: tuple  # roughly, of a full and of a quick run on two idle cores
    sources: list  # paths: commits that touch them make the page old
    title: str = ""
    flags: list = dataclasses.field(default_factory=list)  # in every form
    full: list = dataclasses.field(default_factory=list)  # in the full form besides
    tiny: list = dataclasses.field(default_factory=list)  # instead of --quick

    def arguments(self, form):
        """Of the command, in this form."""
        return self.flags + {"full": self.full, "quick": ["--quick"], "tiny": self.tiny}[form]


def program(name, command, full, quick, tiny, sources=None, flags=(), full_flags=(), also=()):
    """full, quick: seconds; tiny: the flags of that form."""
    sources = CORE + HARNESS + (sources or [f"bench/{command}"]) + list(also)
    return Page(name, "program", command, (full, quick), sources, name, list(flags), list(full_flags), [*tiny.split(), "--reps", "1"])


def over_global_memory(name, full, quick, tiny):
    return program("global_" + name, "global_" + name, full, quick, tiny, GLOBAL)


def script(name, title, path, full, quick, sources):
    return Page(name, "script", path, (full, quick), CORE + HARNESS + [path, *sources], title, tiny=["--tiny"])


PAGES = [
    program("spawn_join", "spawn_join", 40, 6, "--blocks 4", ["bench/micro/spawn_join", "bench/fib"]),
    program("fib", "fib", 90, 8, "-n 14"),
    program("btc", "btc", 240, 20, "--depth 6"),
    program("nqueens", "nqueens", 90, 6, "-n 6"),
    program("quicksort", "quicksort", 120, 8, "-n 3000"),
    program("task_group", "task_group", 120, 8, "-n 3000"),
    program("matmul", "matmul", 60, 6, "-n 60"),
    program("uts", "uts", 330, 12, "-t 1 -a 3 -d 5 -b 4 -r 0"),
    program("uts_every", "uts", 60, 8, "-t 1 -a 3 -d 5 -b 4 -r 0", flags=["--threads", "every"], full_flags=["--tree", "T1"]),
    program("pfor", "pfor", 180, 12, "-n 64 --us 1"),
    program("lcs", "lcs", 50, 6, "-n 512 -c 16"),
    program("heap", "heap", 60, 10, "--rounds 20", ["bench/heap", "src/heap"]),
    program("steal", "steal", 12, 8, "--bytes 664 --rounds 64", ["bench/micro/steal"]),
    program("cancel", "cancel", 20, 6, "--blocks 2", ["bench/micro/cancel"]),
    program("starts", "starts", 40, 15, "--many 4", ["bench/micro/starts"], full_flags=["--many", "64,512,4096"]),
    program("idle", "idle", 12, 4, "--quick", ["bench/micro/idle"]),
    program("contexts", "contexts", 20, 10, "-n 14", ["bench/micro/contexts"]),
    program("thread_costs", "threads", 90, 10, "-n 2000", ["bench/micro/threads"], also=THREADS),
    program("echo", "echo", 90, 10, "--connections 40 --seconds 0.1", also=["src/io"]),
    program("echo_cost", "echo", 15, 5, "--quick", flags=["--cost"], also=["src/io"]),
    over_global_memory("graph", 150, 8, "--scale 8"),
    over_global_memory("spmv", 60, 6, "--size 5000 --times 3"),
    over_global_memory("utsmem", 40, 5, "--size 5"),
    over_global_memory("nbody", 120, 10, "--size 200"),
    over_global_memory("micro", 15, 6, "-n 500 --blocks 3 --size 5000"),
    over_global_memory("moves", 60, 8, "-n 500 --blocks 3 --size 1 --updates 2000 --moves 100"),
    over_global_memory("storm", 30, 4, "--runs 3 --moves 50"),
    over_global_memory("rmat", 120, 10, "--scale 12 --sources 2"),
    over_global_memory("amr", 30, 8, "--steps 8 --levels 3"),
    over_global_memory("stream", 60, 8, "--size 300001 --stream-size 100003 --grain 4096 --passes 2"),
    over_global_memory("gups", 10, 3, "--size 65536 --grain 1024 --ways values,atomics"),
    over_global_memory("cilksort", 45, 5, "--size 200003 --leaf 1000 --merge-leaf 3000"),
    over_global_memory("heat", 30, 3, "--size 99 --steps 31 --rows 4"),
    script("observe", "What observing costs", "bench/observe.py", 180, 40, ["src/trace", "bench/fib", "bench/uts"]),
    script("ranks", "Ranks", "bench/ranks.py", 240, 40, ["bench/uts", "scripts/hosts"]),
    script("heap_hosts", "The heap between hosts", "bench/heap_hosts.py", 60, 25, ["src/heap", "bench/fib", "bench/uts"]),
    script("global_hosts", "Global memory between two hosts", "bench/global_hosts.py", 400, 60,
           ["src/gas", "bench/global", "scripts/hosts"]),
    script("npb", "NAS Parallel Benchmarks", "bench/npb.py", 600, 60, ["src/gas", "bench/peer_sources.py", "bench/npb", "bench/global/parts.hpp", "scripts/hosts"]),
    script("itoyori", "Itoyori's programs", "bench/itoyori.py", 900, 200,
           ["src/gas", "bench/peer_sources.py", "bench/itoyori", "bench/nqueens", "bench/global"]),
    script("scale", "The papers' sizes, simulated", "bench/scale.py", 20000, 400,
           ["bench/scale_page.py", "bench/scale_program.py", "src/sim", "bench/scale", "bench/pfor", "bench/lcs", "bench/uts"]),
    script("real", "Simulated and real", "bench/real.py", 700, 280,
           ["bench/scale_program.py", "src/sim", "tools/scale", "bench/scale", "bench/pfor", "bench/uts"]),
    Page("mpi", "script", "bench/pingpong.py", (60, 30), ["bench/pingpong.py", "tests/mpi/pingpong.cpp", "scripts/hosts"],
         "What the MPIs here can do", tiny=["--tiny"]),
    script("pthread", "pthread programs", "bench/pthread/programs.py", 120, 20,
           ["bench/pthread", "integrations/pthread", "src/seams", "src/sync", "src/io"]),
    Page("reproduce", "reproduce", "scripts/reproduce", (4500, 400),
         CORE + ["bench", "scripts/hosts", "scripts/reproduce"], "The papers' experiments on this machine",
         tiny=["--tiny", "--only", "U11,U16"]),
]
BY_NAME = {p.name: p for p in PAGES}
