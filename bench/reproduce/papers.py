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
TASK_CYCLES = [  # U11
    ("uni-address threads, SPARC64 IXfx", 413, "UA table 2"),
    ("uni-address threads, Xeon E5-2660", 100, "UA table 2"),
    ("MassiveThreads, Xeon E5-2660", 110, "UA table 2"),
    ("Cilk, Xeon E5-2660", 59, "UA table 2"),
    ("uni-address threads, RDMA-emulated, Xeon X5670", 184, "WS table 2"),
    ("uni-address threads, AM-based, Xeon X5670", 353, "WS table 2"),
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
EFFICIENCY = {
    "BTC": (97, 99),
    "UTS": (97, 99),
    "NQueens": (97, 99),
}  # U14, WS 7.4 and UA 6.4: 8 times the cores, %
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
GAINS = {  # C13: DC V-A, V-B, at most, ITO-A (RtC, Full: WISTERIA-O)
    ("PFor", "local collection"): "up to 1.40 x the baseline",
    ("PFor", "greedy join"): "none",
    ("RecPFor", "local collection"): "1.27 x the baseline",
    ("RecPFor", "greedy join"): "1.08 x",
    ("RecPFor", "continuation against child, full threads"): "up to 1.3 x",
    ("RecPFor", "continuation against child, run to completion"): "up to 4.8 x",
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
RMAT = "The paper (active global address space, section 6.7): 256 nodes 1.98 to 1.81 by 7 moves of 428 KB, 512 nodes 3.24 to 2.79 by 29 of 568 KB"
