#!/usr/bin/env python3
"""pthread programs, plain and by godwit-pthread: the same binary, the same output? How long?

    cmake --build --preset release
    bench/pthread/programs.py                       all that are installed (scripts/setup test), 5 rounds
    bench/pthread/programs.py --only pigz,http --reps 11 --json pthread.json

Every round runs each program plainly, then by godwit-pthread; ratios are taken inside a round, then medians. Outputs are compared byte for byte. CPU
time is user and system of the program with its children; of `http` the server's, and wall time is that of the requests. What is printed is
a table in Markdown (docs/results/pthread.md; scripts/results --only pthread writes the page). The exit status is 1 if an output differs or a program fails, 2 for wrong input.
"""
import argparse
import hashlib
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIMIT = 300  # seconds after which a program is given up
PYTHON = "/usr/bin/python3"  # the system's own: others may be scripts that start it

# name -> what runs. @: the text to compress, %: the folder of bench programs, {..}: numbers, full and quick
PROGRAMS = {
    "true": ("start and end (`true`)", ["true"]),
    "create": ("20,000 threads created and joined, 100 at a time", ["%/pthread_churn", "create", "20000", "100"]),
    "turns": ("200,000 turns of two threads with mutex and condition", ["%/pthread_churn", "turns", "200000"]),
    "pigz": ("`pigz -p4`", ["pigz", "-c", "-n", "-p4", "@"]),
    "pbzip2": ("`pbzip2 -p4`", ["pbzip2", "-c", "-p4", "@"]),
    "xz": ("`xz -1 -T4`, blocks of 2 MB", ["xz", "-c", "-1", "-T4", "--block-size=2000000", "@"]),
    "zstd": ("`zstd -3 -T4`", ["zstd", "-c", "-q", "-3", "-T4", "@"]),
    "python": ("Python: locks, queues, pool, HTTP server (`tests/pthread/programs/threads.py`)",
               [PYTHON, "-B", os.path.join(ROOT, "tests", "pthread", "programs", "threads.py")]),
    "http": ("Python's threaded HTTP server, `ab -c 20`", None),
}


class Failed(Exception):
    pass


def cpus_busy():
    """CPU seconds that the machine spent so far."""
    with open("/proc/stat", encoding="ascii") as f:
        v = [int(x) for x in f.readline().split()[1:8]]
    return (v[0] + v[1] + v[2] + v[5] + v[6]) / os.sysconf("SC_CLK_TCK")


def ended(process, limit):
    """Status and CPU seconds of a process that ends by itself."""
    until = time.monotonic() + limit
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > until:
            os.killpg(process.pid, signal.SIGKILL)
            os.wait4(process.pid, 0)
            process.returncode = -signal.SIGKILL
            raise Failed(f"no end within {limit} s")
        time.sleep(0.0005)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(f.read()).hexdigest()


def run(command, environment, folder):
    """Wall seconds, CPU seconds, what came out."""
    out, errors = os.path.join(folder, "out"), os.path.join(folder, "errors")
    with open(out, "wb") as to, open(errors, "wb") as err:
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=to, stderr=err, env=environment, start_new_session=True)
        status, cpu = ended(process, LIMIT)
        wall = time.monotonic() - start
    if status != 0:
        with open(errors, encoding="utf-8", errors="replace") as f:
            raise Failed(f"status {status}: {f.read()[-500:].strip()}")
    return wall, cpu, digest(out)


def serve(command, environment, folder, requests):
    """The same of a server: time of the requests, the server's CPU time, the page that it sent."""
    page, port = os.path.join(folder, "page"), os.path.join(folder, "port")
    with open(page, "w", encoding="ascii") as f:
        f.write("".join(random.Random(2).choices("godwit \n", k=30_000)))
    if os.path.exists(port):
        os.remove(port)
    process = subprocess.Popen(command + [folder], stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        until = time.monotonic() + 30
        while not os.path.exists(port):
            if process.poll() is not None or time.monotonic() > until:
                raise Failed("the server did not start")
            time.sleep(0.01)
        with open(port, encoding="ascii") as f:
            address = f"http://127.0.0.1:{f.read()}/page"
        start = time.monotonic()
        ab = subprocess.run(["ab", "-q", "-n", str(requests), "-c", "20", address], capture_output=True, text=True, timeout=LIMIT, check=False)
        wall = time.monotonic() - start
        if ab.returncode != 0 or not any(x.split() == ["Failed", "requests:", "0"] for x in ab.stdout.splitlines()):
            raise Failed("ab: " + (ab.stdout + ab.stderr)[-500:].strip())
        with urllib.request.urlopen(address, timeout=30) as answer:
            got = hashlib.sha256(answer.read()).hexdigest()
        if got != digest(page):
            raise Failed("the page is not the file")
        os.kill(process.pid, signal.SIGTERM)
        return wall, ended(process, 30)[1], got
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def text_to_compress(path, megabytes):
    """Lines of this project's own files, in an order that is the same everywhere."""
    lines = []
    for top in ("src", "docs", "include", "tests"):
        for where, folders, files in sorted(os.walk(os.path.join(ROOT, top))):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".cpp", ".hpp", ".md")):
                    with open(os.path.join(where, name), "rb") as f:
                        lines += f.read().splitlines(keepends=True)
    chance, left = random.Random(1), megabytes * 1_000_000
    with open(path, "wb") as f:
        while left > 0:
            at = chance.randrange(len(lines))
            piece = b"".join(lines[at : at + 20])
            f.write(piece)
            left -= len(piece)


def missing(name, command):
    tools = [PYTHON, "ab"] if name == "http" else command[:1]
    return next((t for t in tools if shutil.which(t) is None), None)


def measure(name, command, o, folder):
    """Samples of all rounds."""
    launcher = os.path.join(o.build, "integrations", "pthread", "godwit-pthread")
    plain = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_")}
    ours = dict(plain, GODWIT_WORKERS=str(o.workers))
    samples = []
    for round_number in range(o.reps):
        pair = {}
        for how, environment, prefix in (("plain", plain, []), ("ours", ours, [launcher])):
            if sys.stderr.isatty():
                print(f"\r\033[K{name}, round {round_number + 1} of {o.reps}, {how}", end="", file=sys.stderr, flush=True)
            try:
                if name == "http":
                    pair[how] = serve(prefix + [PYTHON, "-B", os.path.join(HERE, "serve.py")], environment, folder, 100 if o.quick else 2000)
                else:
                    pair[how] = run(prefix + command, environment, folder)
            except Failed as e:
                raise Failed(f"{name}, {how}: {e}") from e
        samples.append(pair)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return samples


def row_of(name, what, samples):
    def middle(f):
        return statistics.median(f(s) for s in samples)

    return {
        "program": name, "what": what,
        "plain_s": middle(lambda s: s["plain"][0]), "plain_cpu_s": middle(lambda s: s["plain"][1]),
        "ours_s": middle(lambda s: s["ours"][0]), "ours_cpu_s": middle(lambda s: s["ours"][1]),
        "wall_ratio": middle(lambda s: s["ours"][0] / s["plain"][0]), "cpu_ratio": middle(lambda s: s["ours"][1] / max(s["plain"][1], 1e-6)),
        "same_output": all(s["plain"][2] == s["ours"][2] for s in samples), "rounds": len(samples),
        "samples": [{how: list(s[how][:2]) for how in s} for s in samples],
    }


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        cpu = next((x.split(": ", 1)[1].strip() for x in f if x.startswith("model name")), "unknown")
    return {"cpu": cpu, "usable_cpus": len(os.sched_getaffinity(0)), "kernel": "Linux " + platform.release(),
            "architecture": platform.machine(), "date": time.strftime("%Y-%m-%d", time.gmtime())}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--workers", type=int, default=2, help="of godwit-pthread (default 2)")
    parser.add_argument("--reps", type=int, help="rounds (default 5; with --quick 1)")
    parser.add_argument("--only", default=",".join(PROGRAMS), help="some of " + ",".join(PROGRAMS))
    parser.add_argument("--megabytes", type=int, help="of text to compress (default 20; with --quick 2)")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--tiny", action="store_true", help="seconds, for tests: some programs, --quick")
    parser.add_argument("--json", help="write the figures to this file")
    o = parser.parse_args()
    if o.tiny:
        o.quick, o.only = True, "true,create,turns"
    o.reps = o.reps or (1 if o.quick else 5)
    o.megabytes = o.megabytes or (2 if o.quick else 20)
    o.only = o.only.split(",")
    for name in o.only:
        if name not in PROGRAMS:
            parser.error(f"there is no program {name}; there are {', '.join(PROGRAMS)}")
    if not os.path.exists(os.path.join(o.build, "integrations", "pthread", "godwit-pthread")):
        parser.error(f"no godwit-pthread in {o.build}: build it (cmake --build --preset release), or say where with --build")
    return o


def main():
    o = options()
    rows, wrong, absent = [], [], []
    begun, busy, own = time.monotonic(), cpus_busy(), os.times()
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text")
        text_to_compress(text, o.megabytes)
        for name in o.only:
            what, command = PROGRAMS[name]
            command = [{"@": text}.get(a, a.replace("%", os.path.join(o.build, "bench"))) for a in command or []]
            tool = missing(name, command)
            if tool:
                absent.append(f"{name}: {os.path.basename(tool)} is not there (scripts/setup test, or the build)")
                continue
            try:
                rows.append(row_of(name, what, measure(name, command, o, folder)))
            except Failed as e:
                wrong.append(str(e))
                continue
            if not rows[-1]["same_output"]:
                wrong.append(f"{name}: the outputs differ")
    now, spent = os.times(), time.monotonic() - begun
    mine = sum(now[:4]) - sum(own[:4])
    foreign = max(0.0, (cpus_busy() - busy - mine) / spent)

    print("| program | plain: wall, CPU | ours: wall, CPU | ours / plain: wall, CPU | output |\n|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['what']} | {r['plain_s']:.3f} s, {r['plain_cpu_s']:.3f} s | {r['ours_s']:.3f} s, {r['ours_cpu_s']:.3f} s"
              f" | {r['wall_ratio']:.2f}, {r['cpu_ratio']:.2f} | {'the same' if r['same_output'] else '**differs**'} |")
    print(f"\n{o.reps} rounds, {o.workers} workers, {o.megabytes} MB of text; medians; other programs used {foreign:.1f} CPUs meanwhile")
    for line in absent:
        print("left out: " + line)
    for line in wrong:
        print("programs.py: " + line, file=sys.stderr)
    if o.json:
        result = {"benchmark": "pthread_programs", "command": "bench/pthread/programs.py", "machine": machine(), "repetitions": o.reps,
                  "workers": o.workers, "megabytes": o.megabytes, "foreign_cpus": foreign, "correct": not wrong, "left_out": absent,
                  "definitions": {"wall_ratio": "median over the rounds of ours / plain of the same round", "cpu_ratio": "the same of CPU times"},
                  "measurements": [{"title": "pthread programs", "rows": rows}]}
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
            f.write("\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
