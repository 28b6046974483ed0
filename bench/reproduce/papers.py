"""What the papers report, as facts to stand beside ours. Numbers only; each says where it is from.

UA, WS, DC, MT, AG: the papers below; capital letters in names of constants are their tables.
"""

SOURCES = {
    "UA": "Akiyama, Taura: Uni-Address Threads (HPDC 2015)",
    "WS": (
        "Akiyama, Taura: Scalable Work Stealing of Native Threads on an x86-64 InfiniBand Cluster (JIP 2016)"
    ),
    "DC": (
        "Shiina, Taura: Distributed Continuation Stealing is More Scalable than You Might Think (Cluster"
        " 2022)"
    ),
    "MT": "Dun, Nakashima, Taura: Porting MassiveThreads Thread Library to FX10 Supercomputer System",
    "AG": "Kulkarni, Dalessandro, Kissel, Lumsdaine, Sterling, Swany: Network-Managed Virtual Global Address Space for Message-driven"
          " Runtimes (HPDC 2016)",
}
# What the page's first table says of each experiment, and where it is from.
SAYS = {
    "U11": ("Creating and joining a task takes 100 cycles on a Xeon, 413 on SPARC64; the crude and the iso-address scheme take more", "UA table 2"),
    "U12": ("At most 1.16 times MassiveThreads' time on one worker, in three programs", "WS 7.2"),
    "U13": ("A steal between nodes takes 42,000 cycles on FX10, 61,000 and 86,000 on InfiniBand; suspending and resuming 1,900 and 3,500",
            "UA 6.3, WS 7.3"),
    "U14": ("Eight times the cores give 97 to 99 % efficiency, with at most 147,392 bytes of stacks a worker", "UA 6.4, WS 7.4"),
    "U15": ("With active messages workers handle the messages of steals at spawns; RDMA-emulated, others do it for them", "WS 7.4"),
    "U16": ("Iso-address needs addresses for every worker, 2^49 bytes for 2^22 of them; uni-address one region", "UA 4"),
    "C8": ("Greedy join reaches 97.7 % efficiency in PFor and 97.4 % in RecPFor, on 576 cores", "DC table II"),
    "C9": ("Joins that can go on wait 14 to 15 us under greedy join, 300 us to 17 ms otherwise; a stolen continuation has 1,789 to 1,845 bytes, a"
           " stolen child 55 or 56", "DC table II"),
    "C10": ("Under greedy join workers are busy all the time, and no join that could go on waits", "DC figure 7"),
    "C11": ("A thread per node costs 18 and 27 % over serial code; 110,592 cores reach 96.4 % efficiency; as scalable as SAWS", "DC V-C"),
    "C12": ("Most times lie within the bounds of greedy scheduling; 2^18 takes 0.569 s, with stalling join 3.44 s, with child stealing 93.1 s",
            "DC V-D, table III"),
    "C13": ("Local collection gains up to 1.40 x, greedy join 1.08 x; continuation stealing 1.3 x and 4.8 x over child stealing", "DC V-A, V-B"),
    "M5": ("ucontext takes over 30 times as long as assembly; flushing windows by a trap over 4 times as long as by flushw", "MT 4.2"),
    "M6": ("Creating and joining a task: MassiveThreads is the fastest, before Qthreads, Nanos++ and Pthreads", "MT figures 11, 12"),
    "M7": ("fib, quicksort, matrix multiplication: MassiveThreads is the fastest of the same four", "MT figures 13 to 15"),
    "G4": ("Blocks move while they are used; accesses find them. No figures", "AG"),
    "G9": ("A put takes no message locally, two if the owner is known, three if it is sent on or goes by the home", "AG 6.1"),
    "G10": ("The less room translations have, the more look-ups miss, whichever is replaced: 30 % fewer updates with 1 K of 4,096", "AG 6.5"),
    "G11": ("Pages are updated while they move up to 100,000 times. Times are drawn only", "AG"),
    "G12": ("Latency, bandwidth and rate by size: drawn only", "AG"),
    "G13": ("A mesh refines itself while its grids move. No figures", "AG"),
    "G14": ("Nodes that give partitions away: the largest load of 256 falls from 1.98 to 1.81, of 512 from 3.24 to 2.79", "AG 6.7"),
    "G15": ("The NAS Parallel Benchmarks run in the global address space. No figures", "AG"),
}
TASK_CYCLES = [  # U11
    ("uni-address threads, SPARC64 IXfx", 413, "UA table 2"),
    ("uni-address threads, Xeon E5-2660", 100, "UA table 2"),
    ("MassiveThreads, Xeon E5-2660", 110, "UA table 2"),
    ("Cilk, Xeon E5-2660", 59, "UA table 2"),
    ("uni-address, RDMA-emulated, Xeon X5670", 184, "WS table 2"),
    ("uni-address, AM-based, Xeon X5670", 353, "WS table 2"),
    ("MassiveThreads, Xeon X5670", 122, "WS table 2"),
]
OVERHEAD_OVER_MASSIVETHREADS = 1.16  # U12, WS 7.2: at most
STEAL_CYCLES = [  # U13
    ("FX10, fetch-and-add by a communication server", 42000, "UA 6.3"),
    ("InfiniBand, RDMA-emulated", 86000, "WS 7.3"),
    ("InfiniBand, active messages", 61000, "WS 7.3"),
]
SUSPEND_RESUME_CYCLES = [("FX10", 3500, "UA 6.3"), ("InfiniBand", 1900, "WS 7.3")]
STACKS = [  # U14: benchmark, most bytes of the region used by any worker
    ("BTC, iter 1", 44688, "UA table 4"),
    ("BTC, iter 2", 23408, "UA table 4"),
    ("UTS", 147392, "UA table 4"),
    ("NQueens", 79360, "WS table 4"),
]
STACK_LIMIT = 147392
EFFICIENCY = [  # U14, %, of eight times the cores
    ("BTC, iter 1, depth 38", 97, "UA 6.4"),
    ("BTC, iter 2, depth 19", 97, "UA 6.4"),
    ("UTS, depth 17", 97, "UA 6.4"),
    ("UTS, depth 18", 99, "UA 6.4"),
    ("BTC, depth 41", 99, "WS 7.4"),
    ("UTS, depth 18", 98, "WS 7.4"),
    ("NQueens, 18", 99, "WS 7.4"),
]
WS_TABLE_4 = [  # U15: benchmark, fetch-and-add, empty check, seconds on 1,800 cores
    ("BTC", "assist", 1, 113.0),
    ("BTC", "assist", 0, 113.4),
    ("BTC", "am", 1, 325.1),
    ("BTC", "am", 0, 416.3),
    ("UTS", "assist", 1, 108.2),
    ("UTS", "assist", 0, 108.6),
    ("UTS", "am", 1, 141.0),
    ("UTS", "am", 0, 150.0),
    ("NQueens", "assist", 1, 194.0),
    ("NQueens", "assist", 0, 195.3),
    ("NQueens", "am", 1, 272.7),
]
ISO_BYTES_LOG2 = (22, 13, 14)  # U16: workers, depth, stack
# C9: DC table II, ITO-A, 576 cores: seconds, outstanding joins, their us, steals, us, failed, bytes, copy us
TABLE_II = {
    "PFor": {
        "greedy": (2.98, 8672, 14.1, 72831, 28.8, 1108412, 1789, 5.85),
        "stalling": (2.98, 6832, 13965.4, 74091, 28.9, 1089578, 1687, 6.02),
        "child_full": (3.07, 45920, 1016.3, 76583, 27.7, 4936210, 56, 3.76),
        "child_rtc": (3.01, 61005, 17096.3, 75777, 27.1, 2661418, 56, 3.83),
    },
    "RecPFor": {
        "greedy": (8.30, 56876, 15.0, 474991, 31.6, 2853760, 1845, 5.72),
        "stalling": (8.33, 72546, 8128.6, 807097, 30.4, 2561299, 1790, 5.68),
        "child_full": (9.31, 3208417, 8237.9, 6038858, 29.3, 16656796, 55, 4.18),
        "child_rtc": (48.64, 40797378, 297.6, 45092301, 59.5, 1471927098, 55, 8.53),
    },
}
TABLE_II_IDEAL = {"PFor": 5 * 10e-6 * 2**25 / 576, "RecPFor": (5 * 22 + 1) * 10e-6 * 2**22 / 576}
UTS_OVERHEAD = [("ITO-A", 18, "DC V-C"), ("WISTERIA-O", 27, "DC V-C")]  # C11: serial overhead, %
UTS_EFFICIENCY = ("WISTERIA-O, T1WL, 110,592 cores", 96.4, "DC V-C")
UTS_SERIAL_MNODES = [("ITO-A", 5.27), ("WISTERIA-O", 1.55)]
LCS_TABLE_III = {
    18: {"greedy": 0.569, "stalling": 3.44, "child_full": 93.1},
    22: {"greedy": 45.9, "stalling": 433, "child_full": 2.11e4},
}
LCS_TC_MS = [("ITO-A", 0.340), ("WISTERIA-O", 0.872)]


def lcs_bounds(cores):
    """DC V-D: (max(T1/P, Tinf), T1/P + Tinf) on ITO-A as functions of N; blocks of 512, T1 = (N/C)^2 Tc, Tinf = (2 N/C - 1) Tc."""
    tc = LCS_TC_MS[0][1] * 1e-3

    def parts(n):
        return (n / 512) ** 2 * tc / cores, (2 * n / 512 - 1) * tc

    return lambda n: max(parts(n)), lambda n: sum(parts(n))


GAINS = {  # C13: DC V-A, V-B, at most, ITO-A (RtC, Full: WISTERIA-O); a step of the joins is over the one before
    ("PFor", "local collection"): (1.40, "up to 1.40 x the baseline"),
    ("PFor", "greedy join"): (None, "none"),
    ("RecPFor", "local collection"): (1.27, "1.27 x the baseline"),
    ("RecPFor", "greedy join"): (1.08, "1.08 x"),
    ("RecPFor", "over child stealing, full threads"): (1.3, "up to 1.3 x"),
    ("RecPFor", "over child stealing, run to completion"): (4.8, "up to 4.8 x"),
}
# M5: MT 4.2. The figures are drawn, not printed: what the text says of them. (what, at least, source)
SWITCHES = [
    ("fib(30), FX10: ucontext over asm", 30, "MT figure 6"),
    ("fib(30), FX10: trap flush over flushw", 4, "MT figure 6"),
]
SWITCHES_NOTE = (
    "MT figures 9 and 10: on x86 asm scales to 12 of 16 cores and ucontext to 5; setjmp costs what ucontext does on SPARC,"
    " and less on x86"
)
CREATE_JOIN = "MT figures 11 and 12, drawn only: MassiveThreads is the fastest, before Qthreads, Nanos++ and Pthreads"
FORK_JOIN = "MT figures 13 to 15, drawn only: MassiveThreads is the fastest of the same four in all three"
RMAT = {256: (1.98, 1.81, 7, 428), 512: (3.24, 2.79, 29, 568)}  # G14, AG: nodes -> load before, after, moves, KB of each
BOUNDED = (1 / (1 - 0.30), "1 K translations, random or LRU", "AG 6.5")  # G10: time over that without bound; 30 % fewer updates
COMPARED = ("massivethreads", "qthreads", "std::thread")  # M6, M7: with what the paper compares, of what takes part here
