"""What the project asks for, compared with what was measured; and the page of all pages, summary.md."""

from .text import busy, machine_lines, number

# What the project asks for: (program, figure, text, relation, limit, unit). Figures that a quick run does not
# produce are left out of its table.
TARGETS = [
    ("spawn_join", "no result", "spawn + join over a plain call, no result", "<=", 5, "ns"),
    ("spawn_join", "8-byte result", "spawn + join over a plain call, 8-byte result", "<=", 5, "ns"),
    ("fib", "n35.spawn+join.ns", "spawn + join in fib(35) over plain calls", "<=", 5, "ns"),
    ("fib", "n35.spawn+join.speed_up", "fib(35), all workers: time on 1 worker / time", ">=", 1.95, "x"),
    ("uts", "T1.t1_over_serial", "UTS T1, 1 worker / serial, leaves counted by parents", "<=", 1.03, ""),
    ("uts_every", "T1.t1_over_serial", "UTS T1, 1 worker / serial, leaves are threads too", "<=", 1.03, ""),
    ("uts", "T1.speed_up", "UTS T1, all workers: serial / time", ">=", 1.95, "x"),
    ("uts_every", "T1.of_copies", "UTS T1, all workers: speed / as many serial copies' at once", ">=", 0.98, ""),
    ("uts", "T1L.speed_up", "UTS T1L, all workers: serial / time", ">=", 1.95, "x"),
    ("uts", "T3L.speed_up", "UTS T3L, all workers: serial / time", ">=", 1.95, "x"),
    ("nqueens", "n12.t1_over_serial", "nqueens(12), 1 worker / serial", "<=", 1.12, ""),
    ("nqueens", "n12.speed_up", "nqueens(12), all workers: serial / time", ">=", 1.75, "x"),
    ("steal", "us_664", "steal of 664 B, push to first instruction", "<=", 0.8, "us"),
    ("btc", "iter1.stack_high_bytes", "stack region touched, BTC iter 1", "<=", 147392, "B"),
    ("btc", "iter2.stack_high_bytes", "stack region touched, BTC iter 2", "<=", 147392, "B"),
    ("uts", "T1L.stack_high_bytes", "stack region touched, UTS T1L", "<=", 147392, "B"),
    ("nqueens", "n13.stack_high_bytes", "stack region touched, nqueens(13)", "<=", 147392, "B"),
    ("global_micro", "other.get8", "get of 8 bytes, another worker's", "<=", 10, "ns"),
    ("global_micro", "other.put8", "put of 8 bytes, another worker's", "<=", 10, "ns"),
    ("global_micro", "other.get4k.over_memcpy", "get of 4 KiB / memcpy", "<=", 1.3, ""),
    ("global_micro", "other.put4k.over_memcpy", "put of 4 KiB / memcpy", "<=", 1.3, ""),
    ("global_micro", "own.checkout8", "checkout + checkin of local memory", "<=", 15, "ns"),
    ("global_micro", "other.fetch_add", "fetch-add of 8 bytes, nobody else there", "<=", 12, "ns"),
    ("global_micro", "own.global_new.used.over_glibc", "global_new of 32 bytes / glibc, used memory", "<=", 1, ""),
    ("global_micro", "own.global_new.fresh.over_glibc", "global_new of 32 bytes / glibc, fresh memory", "<=", 1, ""),
    ("global_micro", "own.global_new.used.over_mimalloc", "global_new of 32 bytes / mimalloc, used memory", "<=", 1, ""),
    ("global_micro", "own.global_new.fresh.over_mimalloc", "global_new of 32 bytes / mimalloc, fresh memory", "<=", 1, ""),
    ("global_micro", "own.global_delete.used.over_glibc", "global_delete of 32 bytes / glibc, used memory", "<=", 1, ""),
    ("global_micro", "own.global_delete.fresh.over_glibc", "global_delete of 32 bytes / glibc, fresh memory", "<=", 1, ""),
    ("global_micro", "own.global_delete.used.over_mimalloc", "global_delete of 32 bytes / mimalloc, used memory", "<=", 1, ""),
    ("global_micro", "own.global_delete.fresh.over_mimalloc", "global_delete of 32 bytes / mimalloc, fresh memory", "<=", 1, ""),
    ("global_stream", "sum.p2.of_plain", "sum of 100 M doubles, 2 workers: speed / two plain threads'", ">=", 90, "% of plain"),
    ("global_gups", "get and put.p2.mups", "GUPS, 2^20 words, 2 workers", ">=", 30, "M updates/s"),
    ("global_gups", "get and put.p2.speed_up", "GUPS by get and put, 2 workers: time on 1 worker / time", ">=", 1.8, "x"),
    ("global_cilksort", "t1_over_serial", "cilksort of 10 M, 1 worker / serial", "<=", 1.05, ""),
    ("global_cilksort", "speed_up", "cilksort of 10 M, all workers: time on 1 worker / time", ">=", 1.9, "x"),
    ("global_heat", "speed_up", "heat 2048 x 2048, all workers: serial / time", ">=", 1.85, "x"),
    ("contexts", "n30.ucontext.over_asm", "spawn + join in fib(30), 1 worker: ucontext / asm", ">=", 10, "x"),
    ("thread_costs", "create_join_1000", "create + join of a thread, 1,000 live", "<=", 60, "ns"),
    ("thread_costs", "create_join_1m", "create + join of a thread, 1 M live", "<=", 300, "ns"),
    ("thread_costs", "created_bytes", "memory of a live thread, 1 M (1 GB in all)", "<=", 1000, "B"),
    ("thread_costs", "blocked_bytes", "memory of a thread that waits", "<=", 4608, "B"),
    ("thread_costs", "yield_2", "yield, 2 threads", "<=", 15, "ns"),
    ("thread_costs", "yield_1000", "yield, 1,000 threads", "<=", 15, "ns"),
    ("echo", "over_epoll", "echo server, thread per connection / better epoll loop", ">=", 0.8, "x"),
    ("cancel", "not_begun", "a cancelled thread that does not begin", "<=", 50, "ns"),
    ("cancel", "unwinding", "unwinding of a cancelled thread / plain throw and catch", "<=", 2, "x"),
    ("cancel", "latency", "cancellation: request to the last begin of a thread", "<=", 1000, "us"),
    ("starts", "processes", "start and end of an empty run, 2 workers", "<=", 3, "ms"),
    ("starts", "unlimited_over", "an empty run with ulimit -s unlimited / without", "<=", 1.1, "x"),
    ("starts", "p512.over_children", "fib(20) on 512 workers: CPU / as many empty children's", "<=", 2, "x"),
    ("starts", "p4096.over_children", "fib(20) on 4,096 workers: CPU / as many empty children's", "<=", 2, "x"),
    ("steal", "rare_us", "steal, 20 in a run", "<=", 2, "us"),
    ("idle", "percent", "CPU that an idle worker uses", "<=", 2, "%"),
    ("global_graph", "pagerank.speed_up", "PageRank on R-MAT, all workers: serial / time", ">=", 1.85, "x"),
]


# Pages whose smaller forms measure a smaller problem under the same key: their figures are shown, not judged.
SIZED_BY_FORM = {"btc", "echo", "global_stream", "global_gups", "global_cilksort", "global_heat", "global_graph"}


def verdicts(name, result):
    """The rows of the target table that this program answers."""
    rows = []
    for program, key, text, relation, limit, unit in TARGETS:
        figure = result.get("figures", {}).get(key)
        if program != name or figure is None:
            continue
        value = figure["value"]
        met = value <= limit if relation == "<=" else value >= limit
        verdict = "met" if met else "not met"
        if busy(result) and unit not in ("B", "%"):  # a time, or a ratio of times
            verdict = "not judged: machine busy"
        if name in SIZED_BY_FORM and result["measured"]["form"] != "full":
            verdict = f"not judged: {result['measured']['form']} form"
        rows.append({"what": text, "asked": f"{relation} {number(limit)} {unit}".strip(), "measured": value,
                     "unit": unit, "verdict": verdict, "definition": figure["definition"]})
    return rows


def target_table(rows):
    lines = ["| what | asked | measured | |", "|---|---|---|---|"]
    for row in rows:
        measured = f"{number(row['measured'])} {row['unit']}".strip()
        verdict = "**not met**" if row["verdict"] == "not met" else row["verdict"]
        lines.append(f"| {row['what']} | {row['asked']} | {measured} | {verdict} |")
    return lines


def summary(pages, found, since):
    """summary.md. found: {page's name: what its JSON has}, of the pages that are there; since: {name: commits, or None}."""
    rows = [row for name, result in found.items() for row in verdicts(name, result)]
    lines = ["# All pages", "", "Written by `scripts/results` (and brought up to date by `scripts/results --check`) from what the pages"
             " measured; each names its commit.", ""]
    machine = next((r["machine"] for r in found.values() if "counter_ticks_per_ns" in (r.get("machine") or {})), None)
    lines += machine_lines(machine) + [""] if machine else []
    if rows:
        lines += ["## Asked and measured", ""] + target_table(rows) + [""]
    lines += ["## Pages", "", "| page | form | commit | commits since | results | other programs, CPUs |", "|---|---|---|---|---|---|"]
    for page in pages:
        result = found.get(page.name)
        if result is None:
            lines.append(f"| {page.name} | | | | not measured yet | |")
            continue
        state = "skipped: " + result["skipped"] if "skipped" in result else "**wrong**" if not result.get("correct", True) else "correct"
        count, foreign = since[page.name], result.get("foreign_cpus")
        lines.append(f"| [{page.name}]({page.name}.md) | {result['measured']['form']} | {result['measured']['commit']} "
                     f"| {'unknown' if count is None else count} | {state} | {'' if foreign is None else f'{foreign:.1f}'} |")
    return "\n".join(lines + [""])
