#!/usr/bin/env python3
"""Instructions and system calls of a spawn and join, for each variant of the context switch.

    bench/count_instructions.py                                   callgrind, the programs contexts_* of build/release
    bench/count_instructions.py --build DIR --emulator "qemu-aarch64 -L /usr/aarch64-linux-gnu"
                                                                  another architecture: a plugin of qemu (micro/contexts/qemu_count.c)

SPARC V9: --build build/sparc64 --emulator "qemu-sparc64 -L /usr/sparc64-linux-gnu", after
cmake --preset sparc64 -DGODWIT_BUILD_BENCH=ON && cmake --build --preset sparc64 --target contexts_programs

fib of two arguments on one worker: the difference is free of what starting costs, and repeats to a few parts in a thousand.
Counted is user mode. What the kernel does is not: therefore how often it is entered, system calls and, on SPARC, the traps that save and load
contexts; ucontext does that three or four times per spawn. SPARC only: flushes of register windows (what they write is not counted, either).
With --time it is CPU time instead, of the emulator too: SPARC's two ways to flush windows, by --variants asm,trap (flushw, and the trap that
V8 has instead), with an emulator that knows the trap (qemu-user 8.0 and later).
Over plain calls: less what the same difference is for them. With GODWIT_FORCE_STEAL=parents or children (and --variants asm
--arguments 10,14) every spawn is one that was stolen. Needs valgrind or qemu-user 7.0 to 8.2 with a C compiler (scripts/setup test).
"""
import argparse
import json
import math
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def spawns(n):
    a, b = 0, 1
    for _ in range(n + 1):
        a, b = b, a + b
    return a - 1


def callgrind(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        done = subprocess.run(["valgrind", "--tool=callgrind", "--collect-systime=yes", f"--callgrind-out-file={out}", program, *arguments],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"count_instructions.py: {program} under valgrind failed:\n{done.stderr[-1500:]}")
        with open(out, encoding="utf-8") as file:
            text = file.read()
    events = re.search(r"^events: (.*)$", text, re.M).group(1).split()
    totals = [0] * len(events)
    for line in re.findall(r"^totals: (.*)$", text, re.M):
        totals = [t + int(v) for t, v in zip(totals, line.split() + ["0"] * len(events))]
    found = dict(zip(events, totals))
    return found["Ir"], found.get("sysCount", 0)


# The emulator keeps a record per mapped page, and godwit's address ranges have billions of them: small ones.
SMALL = {"GODWIT_STACK_BYTES": "16M", "GODWIT_THREAD_STACK_BYTES": "64K", "GODWIT_HEAP_BYTES": "16M", "GODWIT_GLOBAL_BYTES": "256M",
         "GODWIT_CACHE_BYTES": "1M", "GODWIT_PRIVATE_HEAP": "0"}


def emulated(emulator, folder, program, arguments):
    plugin, out = os.path.join(folder, "count.so"), os.path.join(folder, "out")
    if not os.path.exists(plugin):
        source = os.path.join(HERE, "micro", "contexts", "qemu_count.c")
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", plugin, source], check=True)
    command = [*emulator, "-plugin", plugin, program, *arguments]
    done = subprocess.run(command, env={**os.environ, **SMALL, "QEMU_COUNT_OUT": out}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"count_instructions.py: {' '.join(command)} failed with status {done.returncode}:\n{done.stderr[-1500:]}")
    with open(out, encoding="ascii") as file:
        return [int(x) for x in file.read().split()]


def cpu_ns(command):
    """CPU time of a command that has its end awaited, the least of three."""
    least = math.inf
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env={**os.environ, **SMALL}, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(f"count_instructions.py: {' '.join(command)} failed with status {done.returncode}:\n{done.stderr[-1500:]}")
        least = min(least, sum(getattr(after, k) - getattr(before, k) for k in ("ru_utime", "ru_stime")))
    return least * 1e9


def times(o, emulator, small, large):
    """--time: CPU time of a spawn and join beyond plain calls, by variant."""
    def per_spawn(variant, workers):
        found = [cpu_ns([*emulator, os.path.join(o.build, "bench", "contexts_" + variant), str(n), workers, o.substrate]) for n in (small, large)]
        return (found[1] - found[0]) / (spawns(large) - spawns(small))

    plain, rows = per_spawn("asm", "0"), {}
    for variant in o.variants.split(","):
        rows[variant] = {"ns": per_spawn(variant, "1")}
        rows[variant]["over_plain_ns"] = rows[variant]["ns"] - plain
        rows[variant]["over_first"] = rows[variant]["over_plain_ns"] / rows[next(iter(rows))]["over_plain_ns"]
        print(f"{variant:10} {rows[variant]['ns']:10.1f} ns, over plain calls {rows[variant]['over_plain_ns']:10.1f}, over the first {rows[variant]['over_first']:6.2f}")
    return {"plain_ns": plain, "arguments": [small, large], "times": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--emulator", default="", help="qemu-ARCH and its options: not callgrind")
    parser.add_argument("--substrate", default="threads", choices=["threads", "processes"])
    parser.add_argument("--arguments", default="", help="two of fib (default 20,25; with an emulator 10,16)")
    parser.add_argument("--variants", default="asm,ucontext,setjmp")
    parser.add_argument("--time", action="store_true", help="CPU time instead of instructions")
    parser.add_argument("--json", help="write the figures to this file")
    o = parser.parse_args()
    small, large = (int(n) for n in (o.arguments or ("10,16" if o.emulator else "20,25")).split(","))
    emulator = shlex.split(o.emulator)
    if o.substrate == "processes" and not emulator:
        sys.exit("count_instructions.py: callgrind counts one process: --substrate threads")

    if o.time:
        found = times(o, emulator, small, large)
        if o.json:
            with open(o.json, "w", encoding="utf-8") as out:
                json.dump(found, out, indent=1)
        return

    def per_spawn(variant, workers):
        program = os.path.join(o.build, "bench", "contexts_" + variant)
        counts = []
        for n in (small, large):
            arguments = [str(n), workers, o.substrate]
            counts.append(emulated(emulator, folder.name, program, arguments) if emulator else callgrind(program, arguments))
        each = spawns(large) - spawns(small)
        return [(b - a) / each for a, b in zip(*counts)]

    folder = tempfile.TemporaryDirectory()
    sparc = "sparc64" in o.emulator
    plain = per_spawn("asm", "0")[0]
    rows = {}
    for variant in o.variants.split(","):
        instructions, calls, *flushes = per_spawn(variant, "1")
        rows[variant] = {"instructions": instructions, "over_plain": instructions - plain, "system_calls": calls}
        if sparc:
            rows[variant]["window_flushes"] = flushes[0]
    first = next(iter(rows.values()))
    print(f"fib({large}) - fib({small}), per spawn and join; plain calls: {plain:.1f} instructions")
    print(f"{'variant':10} {'instructions':>13} {'over plain':>11} {'over ' + next(iter(rows)):>9} {'system calls':>13}"
          + (f" {'window flushes':>15}" if sparc else ""))
    for name, row in rows.items():
        row["over_first"] = row["over_plain"] / first["over_plain"]
        print(f"{name:10} {row['instructions']:13.1f} {row['over_plain']:11.1f} {row['over_first']:9.1f} {row['system_calls']:13.2f}"
              + (f" {row['window_flushes']:15.2f}" if sparc else ""))
    if o.json:
        with open(o.json, "w", encoding="utf-8") as out:
            json.dump({"plain": plain, "arguments": [small, large], "variants": rows}, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
