"""Runs steps and keeps what they gave: one file per step, so that an interrupted run goes on where it was."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from . import addresses, trace
from .busy import Others
from .plan import ROOT


class Failed(Exception):
    """A step gave no data; the text says why."""


def command_of(step, build):
    """(what runs, what to print): the printed one can be pasted into a shell in the project's folder."""
    if step.program.endswith(".py"):  # a script beside the benchmarks, which takes the build's programs
        argv = [os.path.join(ROOT, "bench", step.program), "--build", step.about.get("build", build)]
    else:
        argv = [os.path.join(build, "bench", step.program)]
    argv += shlex.split(step.flags)
    if step.hosts:
        argv = [
            os.path.join(ROOT, "scripts", "hosts"),
            "--hosts",
            str(step.hosts),
            "--mpi",
            step.mpi,
            "--timeout",
            str(step.limit),
            "--",
            *argv,
        ]
    shown = [f"{k}={shlex.quote(v)}" for k, v in step.environment.items()]
    if step.kind == "trace":
        shown.append(f"GODWIT_TRACE={step.name}.trace")
    if step.kind == "addresses":
        shown.append("scripts/reproduce --addresses --")
    # Published text names no folders of this machine.
    shown += [shlex.quote(short(a)) for a in argv]
    return argv, " ".join(shown)


def short(path):
    return (
        os.path.relpath(path, ROOT)
        if os.path.isabs(path) and path.startswith(ROOT + os.sep)
        else os.path.basename(path) if os.path.isabs(path) else path
    )


class Store:
    """The raw data of one run, in a folder of its own."""

    def __init__(self, folder, build, version):
        self.folder, self.build, self.version = folder, build, version
        self.raw = os.path.join(folder, "raw")
        os.makedirs(self.raw, exist_ok=True)

    def path(self, step):
        return os.path.join(self.raw, step.name + ".json")

    def load(self, step):
        """The data of this very command, or None: not there, cut off, or of another size."""
        try:
            with open(self.path(step), encoding="utf-8") as f:
                data = json.load(f)
        except (OSError, ValueError):
            return None
        return data if data.get("command") == command_of(step, self.build)[1] else None

    def forget(self, step):
        if os.path.exists(self.path(step)):
            os.remove(self.path(step))

    def save(self, step, data):
        """All or nothing: a file that is there is whole."""
        with tempfile.NamedTemporaryFile(
            "w", dir=self.raw, prefix=".", suffix=".tmp", delete=False, encoding="utf-8"
        ) as f:
            json.dump(data, f, indent=1)
            f.write("\n")
        os.chmod(f.name, 0o644)
        os.replace(f.name, self.path(step))

    def run(self, step, meter):
        """Run the step and keep its data, also if it failed (then a rerun tries again). Gives it back."""
        argv, shown = command_of(step, self.build)
        record = {
            "step": step.name,
            "command": shown,
            "about": step.about,
            "hosts": step.hosts,
            "kind": step.kind,
            "version": self.version,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        start, others = time.monotonic(), Others()
        try:
            record["result"] = self._execute(step, argv, meter, others)
            record["status"] = "done"
        except Failed as e:
            record["status"], record["reason"] = "failed", str(e)
        record["seconds"] = time.monotonic() - start
        record["foreign_cpus"], record["stolen_cpus"] = others.cpus()
        self.save(step, record)
        return record

    def _execute(self, step, argv, meter, others):
        env = dict(os.environ, **step.environment)
        for name in [n for n in env if n.startswith("GODWIT_") and n not in step.environment]:
            del env[name]  # what the user's shell sets is no part of an experiment
        trace_file = os.path.join(self.raw, step.name + ".trace")
        if step.kind == "trace":
            if os.path.exists(trace_file):
                os.remove(trace_file)
            env["GODWIT_TRACE"] = trace_file
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "result.json")
            sampler = addresses.Sampler() if step.kind == "addresses" else None
            text = self._wait(step, [*argv, "--json", out], env, meter, others, sampler)
            if not os.path.exists(out):
                raise Failed("wrote no results: " + text)
            with open(out, encoding="utf-8") as f:
                result = json.load(f)
        if not result.get("correct", True):
            raise Failed("wrong results: " + text)
        if "skipped" in result:
            raise Failed(result["skipped"])
        if sampler:
            result["processes"] = sampler.found()
        if step.kind == "trace":
            if not os.path.exists(trace_file):
                raise Failed("this build wrote no trace (GODWIT_TRACE)")
            try:
                result["series"] = trace.time_series(trace_file)
            except ValueError as e:
                raise Failed(f"the trace cannot be read: {e}") from e
        return result

    @staticmethod
    def _wait(step, argv, env, meter, others, sampler):
        """Run it in a process group of its own; gives back its last line of output."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            try:
                process = subprocess.Popen(
                    argv,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=ROOT,
                    start_new_session=True,
                )
            except OSError as e:
                raise Failed(f"cannot start: {e.strerror}") from e
            start = time.monotonic()
            try:
                while process.poll() is None:
                    spent = time.monotonic() - start
                    if spent > step.limit + 10:
                        raise Failed(f"no end within {step.limit} s")
                    meter.tick(spent)
                    others.look(process.pid)
                    if sampler:
                        sampler.look(process.pid)
                    time.sleep(0.01 if sampler else 0.1)
            finally:
                if process.poll() is None:  # given up, or interrupted
                    os.killpg(process.pid, signal.SIGTERM)
                    try:
                        process.wait(10)
                    except subprocess.TimeoutExpired:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
            log.seek(0)
            lines = [x.strip() for x in log.read().splitlines() if x.strip(" -=\n")]
            ours = [x for x in lines if x.startswith((step.program + ":", "godwit:", "hosts:"))]
            last = (ours or lines or ["no output"])[-1]
            if process.returncode != 0:
                raise Failed(f"status {process.returncode}: {last}")
            return last


class Meter:
    """What runs and how long everything will take: one line that rewrites itself, or a line per step."""

    def __init__(self, steps):
        self.left = {s.name: s.seconds for s in steps}
        self.total, self.done = len(steps), 0
        self.scale = 1.0
        self.name, self.text = "", ""
        self.live = sys.stderr.isatty()

    def begin(self, step, title):
        self.name, self.text = step.name, f"{title} ({step.name})"
        if not self.live:
            print(
                f"[{self.done + 1}/{self.total}, about {self._rest(0):.0f} s left] {self.text}",
                file=sys.stderr,
                flush=True,
            )

    def _rest(self, spent):
        rest = max(self.left.get(self.name, 0) * self.scale - spent, 0)
        return rest + self.scale * sum(s for n, s in self.left.items() if n != self.name)

    def tick(self, spent):
        if self.live:
            print(
                f"\r\033[K[{self.done + 1}/{self.total}, about {self._rest(spent):.0f} s left] {self.text}:"
                f" {spent:.0f} s",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def end(self, spent):
        expected = self.left.pop(self.name, 1)
        self.scale = 0.7 * self.scale + 0.3 * min(4.0, max(0.25, spent / expected))
        self.done += 1
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
