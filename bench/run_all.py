#!/usr/bin/env python3
"""Run every benchmark and write docs/results/<name>.md and .json.

    cmake --preset release && cmake --build --preset release     (or any build folder; see --build)
    bench/run_all.py                                   all of them
    bench/run_all.py --quick --only fib,uts            smaller problems, some of them

Each program runs its variants interleaved and checks its own results. What is written names the machine by
CPU and kernel only: no host names, no paths. Times taken while other programs used the CPUs are not judged.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# name -> (program, flags, rough seconds of a full run, of a quick one)
PROGRAMS = {
    "spawn_join": ("spawn_join", [], 40, 6),
    "fib": ("fib", [], 90, 8),
    "btc": ("btc", [], 240, 20),
    "nqueens": ("nqueens", [], 90, 6),
    "quicksort": ("quicksort", [], 120, 8),
    "matmul": ("matmul", [], 60, 6),
    "uts": ("uts", [], 330, 12),
    "uts_every": ("uts", ["--threads", "every", "--tree", "T1", "--peers", "none"], 8, 5),
    "pfor": ("pfor", [], 180, 12),
    "lcs": ("lcs", [], 50, 6),
    "steal": ("steal", [], 12, 8),
    "idle": ("idle", [], 12, 4),
    "contexts": ("contexts", ["-n", "30"], 20, 10),
    "thread_costs": ("threads", [], 90, 10),
    "echo": ("echo", [], 90, 10),
    "echo_cost": ("echo", ["--cost"], 15, 5),
    "global_graph": ("global_graph", [], 150, 8),
    "global_spmv": ("global_spmv", [], 60, 6),
    "global_utsmem": ("global_utsmem", [], 40, 5),
    "global_nbody": ("global_nbody", [], 120, 10),
    "global_micro": ("global_micro", [], 15, 6),
    "global_stream": ("global_stream", [], 60, 8),
    "global_gups": ("global_gups", [], 10, 3),
    "global_cilksort": ("global_cilksort", [], 45, 5),
    "global_heat": ("global_heat", [], 30, 3),
}

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
    ("global_stream", "sum.p2.of_plain", "sum of 100 M doubles, 2 workers: speed / two plain threads'", ">=", 90, "% of plain"),
    ("global_gups", "get and put.p2.mups", "GUPS, 2^20 words, 2 workers", ">=", 30, "M updates/s"),
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
    ("idle", "percent", "CPU that an idle worker uses", "<=", 2, "%"),
    ("global_graph", "pagerank.speed_up", "PageRank on R-MAT, all workers: serial / time", ">=", 1.85, "x"),
]


def number(value):
    if isinstance(value, int) or (isinstance(value, float) and value >= 1000):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def busy(result):
    return result.get("foreign_cpus", 0) > 0.1


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


def machine_lines(machine):
    return [f"- CPU: {machine['cpu']}, {machine['usable_cpus']} usable; {machine['kernel']}",
            f"- Compiler: {machine['compiler']}; flags `{machine['compile_flags']}`",
            f"- Counter: {machine['counter_ticks_per_ns']:.3f} ticks per ns; date {machine['date']}"]


def variant_table(measurement):
    lines = [f"| variant | workers | median s | min s | with start s | CPU s | / {measurement['reference']} "
             "| CPU / CPU | speed-up | steals | suspends | stack KB |", "|---" * 12 + "|"]
    for v in measurement["variants"]:
        if v.get("status") == "not installed":
            lines.append(f"| {v['name']} | | not installed | | | | | | | | | |")
            continue
        counts = v.get("counts")
        extra = (f"{counts['steals']:,} | {counts['suspends']:,} | {counts['stack_high_bytes'] // 1024:,}"
                 if counts else " | | ")
        lines.append(f"| {v['name']} | {v['workers'] or ''} | {v['median_s']:.4f} | {v['min_s']:.4f} "
                     f"| {v['total_median_s']:.4f} | {v['cpu_median_s']:.4f} | {v['over_reference']:.3f} "
                     f"| {v['cpu_over_reference']:.3f} | {v['speed_up']:.3f} | {extra} |")
    return lines


def row_table(rows):
    keys = list(rows[0])
    lines = ["| " + " | ".join(k.replace("_", " ") for k in keys) + " |", "|" + "---|" * len(keys)]
    for row in rows:
        cells = [f"{v:.3f}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v)
                 for v in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def page(name, result):
    lines = [f"# {name}", "", f"Written by `bench/run_all.py` from `{result['command']}`.", ""]
    lines += machine_lines(result["machine"])
    lines += [f"- {result['repetitions']} rounds, interleaved; results checked: "
              + ("all correct" if result["correct"] else "**wrong**"), ""]
    if busy(result):
        lines += ["**The machine was busy**: other programs used "
                  f"{result['foreign_cpus']:.1f} CPUs meanwhile. Figures of several workers mean "
                  "little here; ratios of CPU times on one worker do.", ""]
    if "skipped" in result:
        return "\n".join(lines + [f"Skipped: {result['skipped']}.", ""])
    rows = verdicts(name, result)
    if rows:
        lines += ["## Asked and measured", ""] + target_table(rows) + [""]
    for m in result.get("measurements", []):
        lines += [f"## {m['title']}", ""]
        if "variants" in m:
            lines += variant_table(m) + [""]
        elif "rows" in m:
            lines += row_table(m["rows"]) + [""]
        else:
            lines += [", ".join(f"{k.replace('_', ' ')} {number(v) if not isinstance(v, str) else v}"
                                for k, v in m.items() if k != "title"), ""]
    if result.get("figures"):
        lines += ["## Figures", "", "| what | value | definition |", "|---|---|---|"]
        for key, figure in result["figures"].items():
            least = f" (least {number(figure['least'])})" if "least" in figure else ""
            lines.append(f"| {key}: {figure['what']} | {number(figure['value'])} {figure['unit']}{least} "
                         f"| {figure['definition']} |")
        lines.append("")
    lines += ["## Definitions", ""] + [f"- {k}: {v}" for k, v in result["definitions"].items()] + [""]
    return "\n".join(lines)


def summary(results, quick):
    rows = [row for name, result in results.items() for row in verdicts(name, result)]
    lines = ["# All benchmarks", "", "",
             "Written by `bench/run_all.py" + (" --quick" if quick else "") + "`.", ""]
    lines += machine_lines(next(iter(results.values()))["machine"]) + [""]
    lines += ["## Asked and measured", ""] + target_table(rows) + [""]
    lines += ["## Programs", "", "| program | command | results |", "|---|---|---|"]
    for name, result in results.items():
        state = "skipped: " + result["skipped"] if "skipped" in result else \
            "correct" if result["correct"] else "**wrong**"
        lines.append(f"| [{name}]({name}.md) | `{result['command']}` | {state} |")
    crowded = [name for name, result in results.items() if busy(result)]
    if crowded:
        lines += ["", "**The machine was busy** during " + ", ".join(crowded) + ": other programs used up to "
                  f"{max(results[n]['foreign_cpus'] for n in crowded):.1f} CPUs."]
    return "\n".join(lines + [""]), rows


class progress:
    """One line on the terminal: what runs, and how long everything will take."""

    def __init__(self, names, quick):
        self.left = {n: PROGRAMS[n][3 if quick else 2] for n in names}
        self.scale = 1.0

    def wait(self, process, name, done, total):
        start = time.monotonic()
        while process.poll() is None:
            spent = time.monotonic() - start
            rest = max(self.left[name] * self.scale - spent, 1)
            rest += self.scale * sum(s for n, s in self.left.items() if n != name)
            if sys.stderr.isatty():
                print(f"\r\033[K[{done + 1}/{total}] {name}: {spent:.0f} s; about {rest:.0f} s left", end="",
                      file=sys.stderr, flush=True)
            time.sleep(0.2)
        spent = time.monotonic() - start
        self.scale = 0.5 * self.scale + 0.5 * spent / max(self.left.pop(name), 1)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        return spent


def run_program(folder_of_programs, name, args, meter, done, total):
    program, flags = PROGRAMS[name][:2]
    path = os.path.join(folder_of_programs, program)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, name + ".json")
        command = [path, *flags, "--json", file] + (["--quick"] if args.quick else [])
        if args.reps:
            command += ["--reps", str(args.reps)]
        log = os.path.join(folder, "log")
        with open(log, "w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
            try:
                spent = meter.wait(process, name, done, total)
            except KeyboardInterrupt:
                process.terminate()
                process.wait()
                raise
        if not os.path.exists(file):
            with open(log) as text:
                sys.exit(f"run_all.py: {name} failed with status {process.returncode}:\n{text.read()}")
        with open(file) as text:
            result = json.load(text)
    result["command"] = " ".join([program, *flags] + (["--quick"] if args.quick else [])
                                 + (["--reps", str(args.reps)] if args.reps else []))
    return result, spent, process.returncode


def find_build(given):
    usual = [os.path.join(ROOT, d) for d in ("build/release", "build", "build/release-gcc")]
    for folder in [given] if given else usual:
        for bench in (os.path.join(folder, "bench"), folder):
            if os.path.exists(os.path.join(bench, "fib")):
                return bench
    print("run_all.py: no benchmarks found: build them first (cmake --build --preset release), or say where "
          "with --build FOLDER", file=sys.stderr)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description="Run every benchmark and write docs/results.")
    parser.add_argument("--build", help="build folder (default: build below the repository)")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "results"), help="where the results go")
    parser.add_argument("--only", help="some of " + ",".join(PROGRAMS))
    parser.add_argument("--quick", action="store_true", help="smaller problems, fewer repetitions")
    parser.add_argument("--reps", type=int, help="repetitions of every variant")
    args = parser.parse_args()
    names = args.only.split(",") if args.only else list(PROGRAMS)
    for name in names:
        if name not in PROGRAMS:
            parser.error(f"there is no benchmark {name}; there are {', '.join(PROGRAMS)}")
    if args.reps is not None and args.reps < 1:
        parser.error("--reps must be at least 1")
    bench = find_build(args.build)
    os.makedirs(args.out, exist_ok=True)

    results, failed = {}, []
    meter = progress(names, args.quick)
    for done, name in enumerate(names):
        result, spent, status = run_program(bench, name, args, meter, done, len(names))
        if status != 0:
            failed.append(name)
        results[name] = result
        rows = verdicts(name, result)
        met = sum(row["verdict"] == "met" for row in rows)
        judged = sum(row["verdict"] in ("met", "not met") for row in rows)
        print(f"{name:12} {spent:6.1f} s  " + ("wrong results" if status != 0 else
              "skipped" if "skipped" in result else f"{met} of {judged} judged targets met"
              + (f"; machine busy, {len(rows) - judged} not judged" if judged < len(rows) else "")))
        result["targets"] = rows
        with open(os.path.join(args.out, name + ".json"), "w") as out:
            json.dump(result, out, indent=1)
            out.write("\n")
        with open(os.path.join(args.out, name + ".md"), "w") as out:
            out.write(page(name, result))
    if len(names) == len(PROGRAMS):
        text, rows = summary(results, args.quick)
        with open(os.path.join(args.out, "summary.md"), "w") as out:
            out.write(text)
        print()
        for row in rows:
            print(f"  {row['what']}: {number(row['measured'])} {row['unit']} "
                  f"(asked {row['asked']}): {row['verdict']}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
