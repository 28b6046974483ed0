#!/usr/bin/env python3
"""Every program of docs/coming-from.md compiles and runs, and all of a section print the same.

    coming_from.py BUILD CXX      BUILD has libgodwit.a

A program of another library begins with `// LIBRARY: how it is compiled`. Cilk's are compiled as the serial
programs that they are without their words: no compiler here has the words. A library that is not installed
is said, and its programs are left out.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

from pages import COMPARED as PAGE
from pages import ROOT, fenced, libraries, read

CILK = """#pragma once
#define cilk_spawn
#define cilk_sync static_cast<void>(0)
#define cilk_for for
#define cilk_reducer(zero, plus)
"""


def sections():
    """[(heading, [(line, first line, text)])] of the sections that have programs."""
    found = []
    blocks = list(fenced(PAGE, "cpp"))
    headings = [(m.start(), m.group(1)) for m in re.finditer(r"^## (.*)$", read(PAGE), re.M)]
    lines = [(read(PAGE).count("\n", 0, at) + 1, name) for at, name in headings]
    for i, (line, name) in enumerate(lines):
        end = lines[i + 1][0] if i + 1 < len(lines) else 10**9
        inside = [(at, text.split("\n", 1)[0], text) for at, text in blocks if line < at < end]
        if inside:
            found.append((name, inside))
    return found


def commands(library, source, program, build, cxx, scratch):
    """How it is compiled and run; None where the library is not here."""
    plain = [cxx, "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", source, "-o", program]
    if library == "Godwit":
        line = plain + ["-I", ROOT + "/include", build + "/libgodwit.a", *libraries(build)]
        return line, [program, "--godwit-workers=2"]
    if library == "Cilk":
        return plain + ["-I", scratch, "-Wno-unused-function"], [program]
    if library == "TBB":
        return (plain + ["-ltbb"], [program]) if os.path.exists("/usr/include/tbb/task_group.h") else None
    if library == "OpenMP":
        return plain + ["-fopenmp"], [program]
    if library == "MPI":
        compiler, run = shutil.which("mpicxx.openmpi"), shutil.which("mpirun.openmpi")
        if compiler is None or run is None:
            return None
        mpi = [compiler, "-std=c++20", "-O0", "-Wno-cast-function-type", source, "-o", program]
        return mpi, [run, "--allow-run-as-root", "--oversubscribe", "-n", "2", program]
    raise SystemExit(f"{PAGE}: no library {library}")


def run(command, **more):
    env = dict(os.environ, OMP_CANCELLATION="true", OMP_NUM_THREADS="2")
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=env, **more)


def main():
    build, cxx = sys.argv[1:]
    failed = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        os.mkdir(os.path.join(scratch, "cilk"))
        with open(os.path.join(scratch, "cilk", "cilk.h"), "w", encoding="utf-8") as f:
            f.write(CILK)
        for heading, programs in sections():
            outputs = {}
            for at, first, text in programs:
                mark = re.match(r"// (\w+): ", first)
                library = mark.group(1) if mark else "Godwit"
                source, program = os.path.join(scratch, "program.cpp"), os.path.join(scratch, "program")
                with open(source, "w", encoding="utf-8") as f:
                    f.write(f'#line {at} "{PAGE}"\n{text}')
                how = commands(library, source, program, build, cxx, scratch)
                if how is None:
                    print(f"{heading}: {library} is not installed: left out")
                    continue
                count += 1
                compiled = run(how[0])
                ran = run(how[1]) if compiled.returncode == 0 else compiled
                if ran.returncode != 0:
                    failed += 1
                    print(f"{PAGE}:{at}: {library}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
                outputs.setdefault(ran.stdout, []).append(f"{library} (line {at})")
            print(f"{heading}: {outputs}")
            if len(outputs) > 1 or "" in outputs:
                failed += 1
                print(f"{PAGE}: {heading}: the programs do not print the same")
    print(f"{count} programs, {failed} failed")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
