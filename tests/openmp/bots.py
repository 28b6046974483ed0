#!/usr/bin/env python3
"""The Barcelona OpenMP Tasks Suite, with libgomp and with godwit-openmp: does it verify, and how long does it take?

    bots.py DIR [--launcher godwit-openmp] [--threads 2] [--rounds 5] [--only fib,uts]

DIR is a checkout of BOTS in which `./configure --compiler gcc && make` has run (also in omp-tasks/knapsack and omp-tasks/concom, which its
makefile leaves out). Every round runs each program with libgomp, then with godwit-openmp. Printed are the least times in seconds, the
serial program's, and the least CPU times of the whole processes, which say more on a busy machine. The exit status is 1 if a program does not verify, 2 for wrong input.
"""
import argparse
import os
import re
import resource
import shutil
import subprocess
import sys

# name -> arguments; @: the folder of inputs
PROGRAMS = {
    "alignment.gcc.for-omp-tasks": "-f @/alignment/prot.20.aa",
    "alignment.gcc.single-omp-tasks": "-f @/alignment/prot.20.aa",
    "concom.gcc.omp-tasks": "-n 20000",
    "fft.gcc.omp-tasks": "-n 1048576",
    "fib.gcc.omp-tasks": "-n 30",
    "floorplan.gcc.omp-tasks": "-f @/floorplan/input.15",
    "health.gcc.omp-tasks": "-f @/health/test.input",
    "knapsack.gcc.omp-tasks": "-f @/knapsack/knapsack-036.input",
    "nqueens.gcc.omp-tasks": "-n 11",
    "sort.gcc.omp-tasks": "-n 4000000",
    "sparselu.gcc.for-omp-tasks": "-n 40 -m 50",
    "sparselu.gcc.single-omp-tasks": "-n 40 -m 50",
    "strassen.gcc.omp-tasks": "-n 1024",
    "uts.gcc.omp-tasks": "-f @/uts/test.input",
}
LIMIT = 600  # seconds


def run(command, check, environment, folder):
    """Seconds of the measured part, CPU seconds, and what the program says of its result. None: it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command + (["-c"] if check else []), capture_output=True, text=True, timeout=LIMIT, env=environment, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = done.stdout + done.stderr
    seconds = re.search(r"Time Program\s*=\s*([\d.]+)", text)
    verdict = re.search(r"Verification\s*=\s*(\w+)", text)
    if done.returncode != 0 or seconds is None:
        print(f"{' '.join(command)}: status {done.returncode}: {text[-300:]}", file=sys.stderr)
        return None, None, "failed"
    return float(seconds.group(1)), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, verdict.group(1) if verdict else "not checked"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--launcher", default="godwit-openmp")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="beginnings of names, with commas")
    args = parser.parse_args()
    found = shutil.which(args.launcher)
    if found is None:
        parser.error(f"there is no {args.launcher}: --launcher says where it is")
    args.launcher = os.path.abspath(found)
    programs, inputs = os.path.join(args.folder, "bin"), os.path.join(args.folder, "inputs")
    if not os.path.isdir(programs):
        parser.error(f"{programs} is not there: build BOTS first (see --help)")
    environment = dict(os.environ, OMP_NUM_THREADS=args.threads)
    wrong = False
    print("| program | serial | libgomp | godwit-openmp | ratio | CPU: libgomp | godwit-openmp | result |\n" + "|---" * 8 + "|")
    for name, arguments in PROGRAMS.items():
        if not name.startswith(tuple(args.only.split(","))):
            continue
        tail = arguments.replace("@", inputs).split()
        plain, serial = os.path.join(programs, name), os.path.join(programs, name.split(".")[0] + ".gcc.serial")
        _, _, verdict = run([args.launcher, plain] + tail, True, environment, args.folder)
        least, cpu = {}, {}
        for _ in range(args.rounds):
            for which, command in (("serial", [serial]), ("libgomp", [plain]), ("ours", [args.launcher, plain])):
                if os.path.exists(command[-1]):
                    seconds, used, _ = run(command + tail, False, environment, args.folder)
                    if seconds is not None:
                        least[which] = min(seconds, least.get(which, seconds))
                        cpu[which] = min(used, cpu.get(which, used))
        wrong = wrong or verdict not in ("successful", "not checked") or "ours" not in least
        ratio = f"{least['libgomp'] / least['ours']:.2f}" if least.get("ours") and "libgomp" in least else "-"
        cell = {k: f"{least[k]:.3f}" if k in least else "-" for k in ("serial", "libgomp", "ours")}
        cell |= {k + "_cpu": f"{cpu[k]:.2f}" if k in cpu else "-" for k in ("libgomp", "ours")}
        short = name.replace(".gcc", "").replace("-omp-tasks", "").replace(".omp-tasks", "")
        print(f"| {short} | {cell['serial']} | {cell['libgomp']} | {cell['ours']} | {ratio} | {cell['libgomp_cpu']} | {cell['ours_cpu']} "
              f"| {verdict} |", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
