"""Address space of a run's processes: looks at /proc while it runs.

Also a command of its own: scripts/reproduce --addresses -- PROGRAM ARGUMENTS...
"""

import json
import os
import subprocess
import time

FIELDS = {"VmPeak": "virtual_bytes", "VmHWM": "resident_bytes"}


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except (OSError, ValueError):
        pass
    found = []  # not in every kernel
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                    if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(name))
            except (OSError, ValueError, IndexError):
                pass
    return found


class Sampler:
    """The most that was seen, of the program itself and of each of its children (the workers)."""

    def __init__(self):
        self._seen = {}

    def look(self, pid):
        for process, role in [(pid, "program")] + [(c, "worker") for c in children_of(pid)]:
            try:
                with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as f:
                    lines = f.read().splitlines()
            except OSError:
                continue
            entry = self._seen.setdefault(process, {"role": role})
            for line in lines:
                key, _, rest = line.partition(":")
                if key in FIELDS and rest.strip():
                    entry[FIELDS[key]] = max(entry.get(FIELDS[key], 0), int(rest.split()[0]) * 1024)

    def found(self):
        return [e for e in self._seen.values() if "virtual_bytes" in e]


def main(argv):
    """Run a command, print its processes' maxima as JSON; the command's status."""
    sampler = Sampler()
    process = subprocess.Popen(argv)
    while process.poll() is None:
        sampler.look(process.pid)
        time.sleep(0.01)
    print(json.dumps(sampler.found(), indent=1))
    return process.returncode
