"""godwit-scale --fit as a user calls it: a file with all keys that the simulator takes, and what it says about bad input.

    tests/scale/fit_test.py GODWIT_SCALE GODWIT_MEASURE PROGRAM_THAT_CHARGES
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

TOOL, MEASURE, PROGRAM = sys.argv[1:4]
NEAR = {"look_ns", "spin_ns", "wake_ns", "signal_ns", "nap_ns", "near_look_ns", "near_steal_ns", "suspend_ns", "resume_ns"}
COUNTED = {"instructions_per_ns"}  # not every machine has a counter
FAR = {"latency_ns", "overhead_ns", "gap_ns", "bytes_per_ns", "serve_ns", "access_ns"}
RMA = {"rma_ns", "rma_gap_ns"}  # not every MPI has it
OTHERS = {"source", "topology"}


def run(*command, status=0, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150, **more)
    assert done.returncode == status, (command, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def fit(path, *more, status=0, **environment):
    return run(sys.executable, TOOL, "--fit", path, "--reps", "1", "--tiny", "--measure", MEASURE, *more, status=status,
               env={**os.environ, **environment})


def read(path):
    """{key: (value, comment)}"""
    found = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            match = re.fullmatch(r"(\w+) = ([^#]*?)\s*(?:# (.*))?\n", line)
            assert match or line.startswith("#"), line
            if match:
                assert match[1] not in found, line
                found[match[1]] = (match[2], match[3])
    return found


def takes_it(path):
    run(PROGRAM, "10", "--godwit-substrate=sim", "--godwit-workers=4", "--godwit-sim-hosts=2", "--godwit-sim-machine=" + path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "here.ini")
        if len(os.sched_getaffinity(0)) < 2:
            assert "one only" in fit(path, status=1).stderr
            return
        fit(path)
        found = read(path)
        assert set(found) == NEAR | COUNTED | FAR | RMA | OTHERS, found
        measured = NEAR | (FAR if shutil.which("mpirun") else set())
        for key in measured:
            value, why = found[key]
            assert re.fullmatch(r"[0-9.e+-]+", value) and why and "not measured" not in why, (key, value, why)
        for key in ("look_ns", "spin_ns", "wake_ns", "near_steal_ns", "suspend_ns"):
            assert 0 < float(found[key][0]) < 1e9, (key, found[key])
        value, why = found["instructions_per_ns"]
        assert 0.01 < float(value) < 100 and why in ("the kernel's counter, over fib by plain calls", "not measured: no counter of instructions here")
        takes_it(path)

        # Without an MPI: the values that the library has.
        no_mpi = os.path.join(folder, "bin")
        os.mkdir(no_mpi)
        fit(path, PATH=no_mpi)
        alone = read(path)
        assert set(alone) == set(found)
        with open(os.path.join(os.path.dirname(TOOL), "../../src/sim/machines/here.ini"), encoding="utf-8") as f:
            shipped = dict(re.findall(r"^(\w+) = ([\w.]+)", f.read(), re.M))
        for key in FAR | RMA:
            assert alone[key][0] == shipped[key] and alone[key][1] == "not measured: there is no mpirun here", (key, alone[key])
        takes_it(path)

        for text, status, arguments in (
                ("No such file", 1, (os.path.join(folder, "none", "here.ini"),)),
                ("either a program, or --fit FILE", 2, (path, PROGRAM)),
                ("measuring os failed", 1, (path, "--measure", "/bin/false")),
                ("/no/such/launcher", 1, (path, "--launcher", "/no/such/launcher -n 2")),
                ("measuring network failed", 1, (path, "--launcher", "/bin/false")),
                ("--reps are 1 or more", 2, (path, "--reps", "0"))):
            said = fit(*arguments, status=status).stderr
            assert text in said, (text, said)
        assert read(path) == alone, "a measurement that fails leaves the file as it was"
        new = os.path.join(folder, "new.ini")
        fit(new, "--measure", "/bin/false", status=1)
        assert not os.path.exists(new), "nor does it make one"
        assert "usage: godwit-measure" in run(MEASURE, "everything", status=2).stderr
        assert "usage: godwit-measure" in run(MEASURE, "os", "3", status=2).stderr


main()
