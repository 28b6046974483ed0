"""godwit-scale --fit: measures this machine by godwit-measure, and gives back the text of a machine file.

Each measurement is repeated until enough repetitions were undisturbed by other programs, or the time is over; of them the
least disturbed ones count, by their median. What a key means in the simulator says what is measured for it: docs/scale.md.
Test: tests/scale/fit_test.py.
"""

import glob
import os
import platform
import resource
import shlex
import shutil
import subprocess
import tempfile
import time

# Workers and rounds of what is measured on one host, and on two.
NEAR, FAR = {"os": (2, 400), "steal": (2, 2000), "yield": (1, 20000)}, {"network": (2, 1000), "trip": (2, 500), "rma": (2, 300)}
NEAR_KEYS = ("look_ns", "spin_ns", "wake_ns", "signal_ns", "nap_ns", "near_look_ns", "access_ns", "near_steal_ns", "suspend_ns", "resume_ns",
             "instructions_per_ns")
FAR_KEYS = ("latency_ns", "overhead_ns", "gap_ns", "bytes_per_ns", "serve_ns", "rma_ns", "rma_gap_ns")
SMALL_BYTES = 128  # of the messages of godwit-measure network
NO_NETWORK = "latency_ns=0,look_ns=1,wake_ns=0,spin_ns=1000000,gap_ns=0,bytes_per_ns=1e6"
UNDISTURBED = 0.1  # CPUs that others use


class Failed(Exception):
    pass


def median(values):
    return sorted(values)[len(values) // 2]


def first_of(what, remedy, *patterns):
    here = os.path.dirname(os.path.realpath(__file__))
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(here, pattern))):
            return os.path.normpath(path)
    raise Failed(f"{what} is not where it belongs: {remedy}")


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


class Disturbance:
    """CPUs that other programs used since it was made, on average."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            with open("/proc/stat", encoding="utf-8") as f:
                n = [int(x) for x in f.readline().split()[1:]]
            busy = (sum(n[:8]) - n[3] - n[4]) / os.sysconf("SC_CLK_TCK")  # all but idle and waiting for I/O
        except (OSError, ValueError):
            busy = 0.0
        return time.monotonic(), busy - own.ru_utime - own.ru_stime

    def cpus(self):
        (t0, b0), (t1, b1) = self.start, self.now()
        return max(0.0, b1 - b0) / max(t1 - t0, 1e-3)


def wait_for_quiet(until):
    """Others use next to no CPU, or time.monotonic() is @p until."""
    while time.monotonic() < until:
        watch = Disturbance()
        time.sleep(0.2)
        if watch.cpus() < UNDISTURBED:
            return


class Measured:
    """Medians of everything that godwit-measure says."""

    def __init__(self, a):
        self.a = a
        self.program = a.measure or first_of("godwit-measure", "build it (target godwit_measure), or install Godwit as a whole",
                                             "godwit-measure", "../../build/release/lib/godwit/godwit-measure")
        self.no_far = None  # why hosts were not measured
        own = a.launcher is None
        self.launcher = ["mpirun", "-n", "2"] if own else shlex.split(a.launcher)
        self.far = {"hosts": "ranks"} if own else {}
        if own and shutil.which("mpirun") is None:
            self.no_far = "there is no mpirun here"
        elif own and "Open MPI" in subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout:
            self.launcher += ["--bind-to", "none", "--oversubscribe"]  # companions may use all CPUs
        self.disturbed = 0.0
        self.values = self.all()

    def once(self, what, rounds, options, launcher=()):
        """{name: value} of one call."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_") or k == "GODWIT_MPI"}
        environment.update({"GODWIT_" + k.upper(): str(v) for k, v in {**options, "quiet": 1}.items()},
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        try:
            done = subprocess.run([*launcher, self.program, what, str(rounds)], env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False, timeout=60)
        except OSError as e:
            raise Failed(f"{e.filename}: {e.strerror}") from None
        except subprocess.TimeoutExpired:
            raise Failed(f"measuring {what} did not end within a minute") from None
        found = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        if done.returncode != 0 or not found:
            said = [line for line in done.stderr.splitlines() if line.strip(" -")]
            raise Failed(f"measuring {what} failed: {said[0] if said else 'no message'}")
        return {name: float(value) for name, value in found.items()}

    def all(self):
        a, tries, failed = self.a, {}, set()
        until = time.monotonic() + (0 if a.tiny else a.minutes * 60)
        while True:
            wanted = {**NEAR, **({} if self.no_far else FAR)}
            for what, (workers, rounds) in wanted.items():
                found = tries.setdefault(what, [])
                if what in failed or sum(d < UNDISTURBED for d, _ in found) >= a.reps:
                    continue
                far = what in FAR
                wait_for_quiet(until)
                try:
                    watch = Disturbance()
                    values = self.once(what, 8 if a.tiny else rounds, {"workers": workers, **(self.far if far else {})}, self.launcher if far else ())
                    found.append((watch.cpus(), values))
                except Failed as e:
                    if not far or (a.launcher is not None and what != "rma"):
                        raise
                    failed.add(what)
                    self.no_far = str(e) if what == "network" else self.no_far
            least = min(len(found) for what, found in tries.items() if what not in failed)
            if time.monotonic() > until and least >= a.reps or all(
                    what in failed or sum(d < UNDISTURBED for d, _ in found) >= a.reps for what, found in tries.items()):
                break
        values = {}
        for found in tries.values():
            best = sorted(found, key=lambda pair: pair[0])[:a.reps]
            self.disturbed = max([self.disturbed] + [d for d, _ in best])
            for name in best[0][1] if best else ():
                values[name] = median([v[name] for _, v in best])
        return values


class Fit:
    def __init__(self, a):
        self.a = a
        shipped = first_of("machines/here.ini", "install Godwit as a whole", "../../share/godwit/machines/here.ini",
                           "../../../share/godwit/machines/here.ini", "../../src/sim/machines/here.ini")
        with open(shipped, encoding="utf-8") as f:
            lines = [line.split("#")[0].split("=", 1) for line in f if "=" in line.split("#")[0]]
        self.values = {key.strip(): value.strip() for key, value in lines}
        self.why = {}
        self.measured = Measured(a)
        self.notes = ""

    def set(self, key, value, why):
        self.values[key] = f"{value:.3g}" if key.endswith("_per_ns") else str(max(round(value), 1 if key == "look_ns" else 0))
        self.why[key] = why

    def near(self):
        m = self.measured.values
        for key, name, text in (("look_ns", "line_ns", "a cache line to who looks at it"), ("spin_ns", "spin_ns", "50 looks"),
                                ("wake_ns", "wake_ns", "a futex, from one process to another"), ("signal_ns", "signal_ns", "from kill to the handler"),
                                ("nap_ns", "nap_ns", "of a sleep of 5 us, beside workers that compute"),
                                ("near_steal_ns", "steal_ns", "counters of steals, two workers by turns")):
            self.set(key, m[name], text)
        for key in ("suspend_ns", "resume_ns"):
            self.set(key, m["yield_ns"] / 2, f"half of a yield to another thread, {m['yield_ns']:.0f} ns")
        if "instructions_per_ns" in m:
            self.set("instructions_per_ns", m["instructions_per_ns"], "the kernel's counter, over fib by plain calls")
        else:
            self.why["instructions_per_ns"] = "not measured: no counter of instructions here"
        left = m["latency_ns"] - m["steal_ns"] - m["line_ns"]  # victim and thief look, and the thief has to notice
        self.set("near_look_ns", left / 2, f"half of what is left of {m['latency_ns']:.0f} ns from a spawn to its continuation at the thief")

    def between(self):
        m = self.measured.values
        if "round_trip_ns" in m:
            overhead = (m["send_ns"] + m["receive_ns"]) / 2
            per_byte = max((m["large_round_trip_ns"] - m["round_trip_ns"]) / 2 / m["more_bytes"], 1e-3)
            self.set("overhead_ns", overhead, f"MPI alone: {m['send_ns']:.0f} ns to send, {m['receive_ns']:.0f} ns to receive")
            self.set("bytes_per_ns", 1 / per_byte, f"messages of 2 KiB and of {SMALL_BYTES} bytes")
            self.set("latency_ns", m["round_trip_ns"] / 2 - 2 * overhead - SMALL_BYTES * per_byte,
                     f"what is left of half a round trip, {m['round_trip_ns'] / 2:.0f} ns")
            self.set("gap_ns", m["interval_ns"], "32 messages in a row")
        if "rma_ns" in m:
            self.set("rma_ns", m["rma_ns"], "get of 8 bytes and flush; the target waits inside MPI")
            self.set("rma_gap_ns", m["rma_gap_ns"], "64 of them, one flush")
        if "trip_ns" in m:
            self.set("access_ns", m["access_ns"], "an atomic addition to memory of the own host")
            code = self.simulated(sim_clock="measured", sim_machine="here," + NO_NETWORK)
            self.set("serve_ns", (code - m["access_ns"]) / 2, f"half of the {code:.0f} ns that Godwit's code of a request takes")
            self.notes = f"# To judge it by: a request to another host took {m['trip_ns']:.0f} ns, simulated {self.own_trip():.0f} ns.\n"

    def simulated(self, **options):
        """A request to another host, in the simulator."""
        return self.measured.once("trip", 200, {"substrate": "sim", "workers": 2, "sim_hosts": 2, **options})["trip_ns"]

    def own_trip(self):
        with tempfile.NamedTemporaryFile("w", suffix=".ini") as f:
            f.write(self.text())
            f.flush()
            return self.simulated(sim_machine=f.name)

    def text(self):
        no_far = f": {self.measured.no_far}" if self.measured.no_far else ""
        between = "two ranks of mpirun on this machine" if self.a.launcher is None else self.a.launcher

        def line(key):
            return f"{key} = {self.values[key]}".ljust(24) + f"# {self.why.get(key, 'not measured' + no_far)}\n"

        return (f"# {platform.node()}: {cpu_name()}, {os.cpu_count()} CPUs, of which others used up to {self.measured.disturbed:.1f} meanwhile.\n"
                f"source = godwit-scale --fit, medians over {self.a.reps} repetitions; the hosts are {between}\n"
                + "".join(line(key) for key in NEAR_KEYS + FAR_KEYS) + f"topology = {self.values['topology']}\n" + self.notes)


def fitted(a):
    """The text of the file. @p a: reps, launcher, measure (another godwit-measure), tiny."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Failed("a steal is between two CPUs, and this process may use one only")
    f = Fit(a)
    f.near()
    f.between()
    return f.text()
