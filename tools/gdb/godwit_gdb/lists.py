"""godwit threads, godwit workers. Document: docs/debugging.md. Test: tests/gdb."""

import re

import gdb

import godwit_gdb.frames as frames
from godwit_gdb.selection import selection
from godwit_gdb.text import MOST_LISTED, place_text, say, table
from godwit_gdb.view import View


def locate(view, threads):
    """{id: place} of the innermost user frame. Suspended threads noted it, others are unwound."""
    places = {}
    with selection():
        for t in threads:
            if t.state == "running" and t.worker in view.frames:
                view.switch_to(t)
                places[t.id] = frames.users_place()
    waiting = [t for t in threads if t.registers is not None]
    for t in waiting:
        if t.place is not None and frames.is_users_place(t.place):
            places[t.id] = t.place
    waiting = [t for t in waiting if t.id not in places]
    if not waiting:
        return places
    with view.look() as look:
        for t in waiting:
            look.show(t)
            places[t.id] = frames.users_place()
    return places


def new_text(t):
    """Whose closure it is to run, from the name of the function that will."""
    symbol = gdb.execute(f"info symbol {t.entry}", to_string=True)
    found = re.search(r"([\w:]+)(\([^()]*\))?::\{lambda", symbol)
    return f"not begun: a closure of {found[1]}" if found else "not begun"


def list_threads(arguments):
    view = View("-all" in arguments)
    if not view.lists():
        say(f"policy {view.run.policy}: only workers are listed")
        list_workers(view)
        return
    shown = view.threads if "-all" in arguments else view.threads[:MOST_LISTED]
    places = locate(view, shown)
    mine = view.running_on(view.me)
    rows = [("", "Id", "State", "Worker", "Stack", "Where")]
    for t in shown:
        where = place_text(places.get(t.id))
        if t.state == "running" and t.worker not in view.frames:
            where = "? (no registers in this core file)" if view.core else "? (its worker is not attached)"
        if t.state == "new":
            where = new_text(t)
        notes = view.notes(t)
        rows.append(
            (
                "*" if t is mine else "",
                t.id,
                t.state,
                str(t.worker),
                "?" if t.size() is None else f"{t.size()} B",
                where + (f"; {notes}" if notes else ""),
            )
        )
    table(rows)
    if len(shown) < len(view.threads):
        say(f"... and {len(view.threads) - len(shown)} more: godwit threads -all")
    count = lambda s: sum(t.state == s for t in view.threads)
    counts = [f"{count(s)} {s}" for s in ("running", "queued", "suspended", "ready")]
    if count("new"):
        counts.append(f"{count('new')} new")
    stolen = sum(t.stolen_from is not None for t in view.threads)
    say(
        f"{len(view.threads)} threads: {', '.join(counts)}; {stolen} stolen from where their children are"
        f"{view.hosts_text()}"
    )
    for w in view.workers:
        if w.problem:
            say(f"worker {w.number}: {w.problem}")
        if w.more:
            say(
                f"worker {w.number}: only the newest {view.run.most_objects} objects of its heap were seen; "
                "all of them: godwit threads -all"
            )
    if view.warning():
        say("note: " + view.warning())


def process_state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            letter = f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone, or on another machine"
    return {
        "R": "on a CPU or ready for one",
        "S": "asleep",
        "D": "in the kernel",
        "Z": "dead",
        "T": "stopped",
        "t": "stopped by a debugger",
    }.get(letter, letter)


def worker_text(view, w):
    if w.problem:
        return w.problem
    if not w.started:
        return "starting"
    if not view.lists():
        return "letters wait" if w.mail else ""
    running = view.running_on(w.number)
    if running is not None:
        text = f"runs thread {running.id}" + (" (inside the runtime)" if w.in_runtime else "")
    else:
        text = "in the scheduler: no thread"
    return text + ("; letters wait" if w.mail else "")


def list_workers(view=None):
    view = view or View()
    rows = [("", "Worker", "Pid", "Process", "Queued", "Suspended", "Ready", "State")]
    for w in view.workers:
        if view.run.in_place and w.pid == 0:
            continue  # a spare one that nobody needed
        of = lambda s: str(sum(t.state == s for t in w.threads)) if view.lists() else "-"
        held = view.held.get(w.number)
        if view.core:
            process = "in the core file" if held is not None else "not in this core file"
        else:
            process = process_state(w.pid)
            if held is not None:
                process += f", thread {held.num}" if view.run.in_place else f", inferior {held.inferior.num}"
        rows.append(
            (
                "*" if w.number == view.me else "",
                str(w.number),
                str(w.pid),
                process,
                of("queued"),
                of("suspended"),
                of("ready"),
                worker_text(view, w),
            )
        )
    table(rows)
    what = "thread" if view.run.in_place else "process"
    role = "" if view.me is not None else f"; the selected {what} is the supervisor"
    say(f"{len(rows) - 1} workers on this host, policy {view.run.policy}{role}{view.hosts_text()}")
    if view.warning():
        say("note: " + view.warning())
