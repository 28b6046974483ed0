"""The program bench/scale, as scale.py and real.py run it: options by the environment, statistics and the line about the result back."""
import json
import os
import subprocess
import sys
import tempfile


class Failed(Exception):
    pass


def find(build):
    program = os.path.join(build, "bench", "scale")
    if not os.path.exists(program):
        raise Failed(f"{program} is not there: build it (target bench_scale)")
    return program


def run(command, options):
    """Statistics of one run of @p command, quietly. `time_s`, `work_s` and `efficiency` are those of the computation, without start and end."""
    with tempfile.TemporaryDirectory() as folder:
        stats = os.path.join(folder, "stats.json")
        env = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_")}
        env.update({"GODWIT_" + k.upper(): str(v) for k, v in options.items()}, GODWIT_STATS_JSON=stats, GODWIT_QUIET="1",
                   OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = [f"GODWIT_{k.upper()}={v}" for k, v in options.items()] + [os.path.relpath(command[0]), *command[1:]]
            raise Failed(f"{' '.join(said)} ended with status {done.returncode}: {done.stderr.strip()}")
        with open(stats, encoding="utf-8") as f:
            found = json.load(f)
    found["said"] = done.stdout.strip().splitlines()[-1]
    words = found["said"].replace(",", " ").split()
    value = {name: float(words[words.index(name) + 1]) for name in ("time", "work", "efficiency")}
    found.update(time_s=value["time"], work_s=value["work"], efficiency=value["efficiency"] / 100)
    return found


def finish(who, work, path):
    """Exit status of @p work(data), which gives back what went wrong and yet left the rest worth showing, if
    anything; what it has written into data goes to @p path as JSON, if there is one."""
    data = {}
    try:
        wrong = work(data) or []
    except Failed as e:
        print(f"{who}: {e}", file=sys.stderr)
        return 1
    if path:
        with open(path, "w", encoding="utf-8") as f:
            json.dump(data, f, indent=1)
            f.write("\n")
    for what in wrong:
        print(f"{who}: {what}", file=sys.stderr)
    return 1 if wrong else 0
