"""gdb commands for programs that use Godwit: `source .../godwit.py`, then `help godwit`.

  godwit workers            the workers of this host, what each does
  godwit threads [-all]     all lightweight threads: running, queued, suspended, ready
  godwit backtrace ID       of any of them, whether it runs or not
  godwit select [ID]        look around in a thread that does not run (info locals, print); no ID: come back
  godwit memory [ADDRESS]   movable allocations; whose an address of global memory is, and its place here
  godwit block ADDRESS      which block of the heap that workers share it is: in use or free, whose
  godwit attach             stop the other workers of this host too

Attached to any worker or to the supervising process, in a program started by gdb, or on a core file of a
worker. Nothing of the process is changed: see godwit_gdb/frames.py. Document: docs/debugging.md. Test:
tests/gdb.
"""

import importlib
import os
import re
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import godwit_gdb.state as state  # noqa: E402
import godwit_gdb.frames as frames  # noqa: E402
import godwit_gdb.memory as memory  # noqa: E402
import godwit_gdb.blocks as blocks  # noqa: E402

for module in state, frames, memory, blocks:  # sourced again: perhaps another version
    importlib.reload(module)
sys.path.pop(0)

MOST_LISTED = 200
selected_replica = None


class View:
    """The run as gdb sees it now: its workers, and which of them gdb holds."""

    def __init__(self, everything=False, threads=True):
        leave_replica()
        self.run = state.Run(1 << 24 if everything else state.MOST_OBJECTS)
        self.core = state.is_core()
        self.workers = self.run.workers()
        self.held = {}
        for inferior in gdb.inferiors():
            for w in self.workers:
                if inferior.pid == w.pid and inferior.threads():
                    self.held[w.number] = next(
                        (t for t in inferior.threads() if w.pid in t.ptid), inferior.threads()[0]
                    )
        if self.core and self.run.me != state.NO_WORKER and gdb.selected_thread() is not None:
            self.held[self.run.me] = gdb.selected_thread()
        self.frames = {}
        self.threads = []
        if threads:
            self._read_threads()

    def _read_threads(self):
        with frames.selection():
            for number, thread in self.held.items():
                if thread.is_stopped():
                    thread.switch()
                    self.frames[number] = [
                        frames.stack_pointer(f) for _, f in zip(range(64), frames.frames())
                    ]
        if self.lists():
            found = self.run.threads(self.workers, lambda w: self.frames.get(w.number))
            self.threads = sorted(found, key=lambda t: ":" in t.id)  # those on stacks first: they are few
        self.by_id = {t.id: t for t in self.threads}
        self.by_record = {t.record: t for t in self.threads if t.record}

    def lists(self):
        return bool(self.run.names["lists_threads"])

    def thread(self, ident):
        if not self.lists():
            raise state.Problem(f"godwit: policy {self.run.policy}: only workers are listed")
        if ident not in self.by_id:
            raise state.Problem(
                f"godwit: there is no thread {ident}: see godwit threads (threads of workers that are not "
                "stopped come and go)"
            )
        return self.by_id[ident]

    def running_on(self, number):
        return next((t for t in self.threads if t.worker == number and t.state == "running"), None)

    def chain(self, t):
        """The thread and those below it on the same stack, innermost first."""
        while t is not None:
            yield t
            t = t.parent

    def parent_text(self, t):
        """Where the parent of a bottom-most thread went, or None."""
        if not t.parent_gone:
            return None
        parent = self.by_record.get(t.parent_gone)
        if parent is None:
            return "its parent was stolen and has ended, or is on another host"
        return f"its parent was stolen: thread {parent.id}"

    def waits_text(self, t):
        ref = t.waiting_for
        worker, _ = self.run.split_ref(ref)
        if ref in self.by_record:
            return f"waits for thread {self.by_record[ref].id}"
        text = f"waits for record {self.run.ref_text(ref)}"
        how = self.run.record_state(ref)
        if how is None:
            return f"{text} of worker {worker} on another host"
        return text + (", which is complete" if how == "done" else "")

    def notes(self, t):
        out = []
        if t.state == "queued":
            out.append("public" if t.public else "private")
        if t.waiting_for:
            out.append(self.waits_text(t))
        if t.stolen_from is not None:
            out.append(f"stolen from worker {t.stolen_from}")
        if self.parent_text(t):
            out.append(self.parent_text(t))
        return "; ".join(out)

    def warning(self):
        """What is missing from this view."""
        if self.core:
            return (
                "this is a core file: the shared memory as it was then, and the registers of this worker only"
            )
        others = [w for w in self.workers if w.pid and w.number not in self.held]
        if others:
            return (
                "not stopped: worker "
                + ", ".join(str(w.number) for w in others)
                + ": what is said of their threads may be out of date (godwit attach stops them)"
            )
        return None

    def hosts_text(self):
        hosts, workers = self.run.names["hosts"], self.run.names["workers"]
        return (
            f"; {hosts - 1} other hosts with {workers - self.run.count} workers are not seen"
            if hosts > 1
            else ""
        )


def say(text=""):
    gdb.write(text + "\n")


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        say("  ".join(cells + [row[-1]]).rstrip())


def place_text(place):
    if place is None:
        return "?"
    function, file, line = place
    function = re.sub(r"\(.*", "", function) or function
    return f"{function} at {os.path.basename(file)}:{line}" if file else function


def leave_replica():
    global selected_replica
    if selected_replica is not None:
        replica, selected_replica = selected_replica, None
        replica.__exit__(None, None, None)


# ---- godwit threads


def locate(view, threads):
    """{id: place} of the innermost user frame. Suspended threads noted it, others are unwound."""
    places = {}
    with frames.selection():
        for t in threads:
            if t.state == "running" and t.worker in view.frames:
                view.held[t.worker].switch()
                places[t.id] = frames.user_place()
    waiting = [t for t in threads if t.registers is not None]
    for t in waiting:
        if t.place is not None and not frames.is_runtime(t.place[0]):
            places[t.id] = t.place
    waiting = [t for t in waiting if t.id not in places]
    if not waiting:
        return places
    with frames.Replica(view.run) as replica:
        for t in waiting:
            replica.show([t])
            places[t.id] = frames.user_place()
    return places


def list_threads(arguments):
    view = View("-all" in arguments)
    if not view.lists():
        say(f"policy {view.run.policy}: only workers are listed")
        list_workers(view)
        return
    shown = view.threads if "-all" in arguments else view.threads[:MOST_LISTED]
    places = locate(view, shown)
    mine = view.running_on(view.run.me)
    rows = [("", "Id", "State", "Worker", "Stack", "Where")]
    for t in shown:
        where = place_text(places.get(t.id))
        if t.state == "running" and t.worker not in view.frames:
            where = "? (no registers in this core file)" if view.core else "? (its worker is not attached)"
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
    counts = [
        f"{sum(t.state == s for t in view.threads)} {s}" for s in ("running", "queued", "suspended", "ready")
    ]
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


# ---- godwit workers


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
        of = lambda s: str(sum(t.state == s for t in w.threads)) if view.lists() else "-"
        process = (
            "in the core file"
            if view.core and w.number == view.run.me
            else "not in this core file" if view.core else process_state(w.pid)
        )
        if w.number in view.held and not view.core:
            process += f", inferior {view.held[w.number].inferior.num}"
        rows.append(
            (
                "*" if w.number == view.run.me else "",
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
    role = "" if view.run.me != state.NO_WORKER else "; the selected process is the supervisor"
    say(f"{view.run.count} workers on this host, policy {view.run.policy}{role}{view.hosts_text()}")
    if view.warning():
        say("note: " + view.warning())


# ---- godwit backtrace


def heading(view, t):
    notes = view.notes(t)
    size = "" if t.size() is None else f", {t.size()} B of stack"
    return f"Thread {t.id}: {t.state} on worker {t.worker}{size}" + (f"; {notes}" if notes else "")


def print_frames(view, t, full):
    """The selected gdb thread's frames up to the end of the stack of t and those below it."""
    sps = [(frames.stack_pointer(f), f.pc()) for f in frames.frames()]
    text = gdb.execute(
        "backtrace -frame-arguments scalars -no-filters" + (" -full" if full else ""), to_string=True
    )
    parts = re.split(r"(?m)^(?=#\d+ )", text)[1:]
    chain = list(view.chain(t))
    for part, (sp, pc) in zip(parts, sps):
        if view.run.in_region(sp):
            while chain and sp >= chain[0].top:
                done = chain.pop(0)
                if chain:
                    say(f"-- thread {done.id} was spawned by thread {chain[0].id} ({chain[0].state} here):")
            if not chain:
                break
        if pc == 0:
            break
        gdb.write(re.sub(r"(?m)^Backtrace stopped:.*\n", "", part))
    last = list(view.chain(t))[-1]
    if view.parent_text(last):
        say(f"-- thread {last.id}: {view.parent_text(last)}")


def replica_stack(view, t):
    """The bytes of a thread and of those below it, which are its way up."""
    last = list(view.chain(t))[-1]
    whole = state.Thread(t.id, t.state, t.worker)
    whole.low, whole.top, whole.shift = t.low, last.top, t.shift
    return frames.stack_of(view.run, [whole])


def backtrace_of(view, t, full):
    say(heading(view, t))
    if t.state != "running":
        with frames.Replica(view.run) as replica:
            replica.show([t], replica_stack(view, t))
            print_frames(view, t, full)
        return
    if t.worker not in view.frames:
        if view.core:
            raise state.Problem(
                f"godwit: worker {t.worker} ran it: its registers are in that worker's own core file"
            )
        raise state.Problem(
            f"godwit: it runs on worker {t.worker}, which gdb has not stopped: godwit attach, or "
            f"gdb -p {next(w.pid for w in view.workers if w.number == t.worker)}"
        )
    with frames.selection():
        view.held[t.worker].switch()
        print_frames(view, t, full)


def backtrace(arguments):
    full = "-full" in arguments
    words = [a for a in arguments if a != "-full"]
    view = View()
    if not words:
        here = view.running_on(view.run.me)
        if here is None:
            raise state.Problem(
                "godwit: the selected process runs no thread: godwit backtrace ID (see godwit threads)"
            )
        words = [here.id]
    if words == ["all"]:
        for t in view.threads:
            try:
                backtrace_of(view, t, full)
            except gdb.GdbError as problem:
                say(str(problem))
            say()
        return
    for word in words:
        backtrace_of(view, view.thread(word), full)


# ---- godwit select, godwit attach


def select(arguments):
    global selected_replica
    if not arguments:
        if selected_replica is None:
            raise state.Problem("godwit: no thread is selected: godwit select ID")
        leave_replica()
        say("back in the process")
        return
    view = View()
    t = view.thread(arguments[0])
    if t.state == "running":
        if t.worker not in view.held:
            raise state.Problem(
                f"godwit: it runs on worker {t.worker}, which gdb has not stopped: godwit attach"
            )
        view.held[t.worker].switch()
        say(heading(view, t))
        return
    replica = frames.Replica(view.run)
    replica.__enter__()
    try:
        replica.show([t], replica_stack(view, t))
    except BaseException:
        replica.__exit__(None, None, None)
        raise
    replica.settings.__exit__()
    selected_replica = replica
    say(heading(view, t) + "\n(a copy to look at: frame, up, info locals, print; `godwit select` goes back)")
    gdb.execute("frame")


def attach(_):
    view = View(threads=False)
    if view.core:
        raise state.Problem("godwit: a core file has no other workers to attach to")
    missing = [w for w in view.workers if w.pid and w.number not in view.held]
    with frames.settings(), frames.selection() as selected:
        for w in missing:
            before = {i.num for i in gdb.inferiors()}
            gdb.execute("add-inferior", to_string=True)
            number = next(i.num for i in gdb.inferiors() if i.num not in before)
            gdb.execute(f"inferior {number}", to_string=True)
            try:
                gdb.execute(f"attach {w.pid}", to_string=True)
                say(f"worker {w.number}: process {w.pid} stopped, inferior {number}")
            except gdb.error as problem:
                gdb.execute(f"inferior {selected.inferior}", to_string=True)
                gdb.execute(f"remove-inferiors {number}", to_string=True)
                say(f"worker {w.number}: cannot attach to process {w.pid}: {problem}")
    if missing:
        say("all of them go on with: set schedule-multiple on, continue; or: detach inferiors N ..., or quit")


# ---- godwit memory


def size_text(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 10 * 1024 or unit == "GiB":
            return f"{n} {unit}"
        n //= 1024


def worker_of(number):
    return "?" if number is None else str(number)


def list_movable(view):
    rows = [("Address", "Bytes", "Distribution", "Parts", "Of", "Here", "Moved", "In use")]
    for a in view.allocations():
        if not a.part_bytes:
            continue
        parts = [memory.Part(a, i) for i in range(min(a.parts(), memory.MOST_SEARCHED))]
        count = lambda chosen: str(sum(map(chosen, parts))) + ("+" if len(parts) < a.parts() else "")
        rows.append(
            (
                f"global:0x{a.begin:x}",
                size_text(a.bytes),
                a.kind_text(),
                str(a.parts()),
                size_text(a.part_bytes),
                count(memory.Part.here),
                count(lambda p: p.version != 0),
                count(lambda p: p.uses != 0),
            )
        )
    if len(rows) == 1:
        say("no movable allocations")
    else:
        table(rows)


def show_parts(a):
    counted = a.memory.names["hosts"] > 1
    accesses = lambda text: (text,) if counted else ()
    rows = [("Part", "Address", "Home", "Owner", "Version", "Place on this host") + accesses("Accesses")]
    for i in range(min(a.parts(), MOST_LISTED)):
        p = memory.Part(a, i)
        rows.append(
            (
                str(i),
                f"global:0x{p.address:x}",
                worker_of(p.home),
                worker_of(p.owner),
                str(p.version),
                p.place_text(),
            )
            + accesses(p.heat_text())
        )
    table(rows)
    if a.parts() > MOST_LISTED:
        say(f"... and {a.parts() - MOST_LISTED} more: godwit memory ADDRESS for one of them")


def show_address(view, address):
    text = f"global:0x{address:x}"
    if view.is_local(address):
        say(f"{text}: local memory of worker {view.local_home(address)}, which does not move")
        return
    a = view.at(address)
    if a is None:
        say(
            f"{text} lies in no live allocation"
            + ("" if view.has_all else " that this host has used: ask on the host of worker 0")
        )
        return
    what = f"{size_text(a.bytes)}, {a.kind_text()}"
    if not a.part_bytes:
        say(
            f"{text} lies in global:0x{a.begin:x} ({what}), which does not move: "
            f"worker {worker_of(a.home(address))} has it"
        )
        return
    if address == a.begin:
        say(f"{text}: {what}, {a.parts()} parts of {size_text(a.part_bytes)}")
        show_parts(a)
        return
    p = memory.Part(a, (address - a.begin) // a.part_bytes)
    say(f"{text} lies in part {p.number} of {a.parts()} of global:0x{a.begin:x} ({what})")
    say(f"home: worker {worker_of(p.home)}")
    say(f"owner, as this host believes: worker {worker_of(p.owner)}, version {p.version}")
    say(f"place on this host: {p.place_text()}")
    if p.here() and view.names["hosts"] > 1:
        say(f"accesses since it came here: {p.heat_text()}")


def show_memory(arguments):
    leave_replica()
    view = memory.Memory(state.Run())
    try:
        if arguments:
            show_address(view, memory.address_of(" ".join(arguments), view))
        else:
            list_movable(view)
    except gdb.MemoryError:
        raise state.Problem("godwit: global memory cannot be read here") from None
    if view.names["hosts"] > 1:
        say(
            f"note: as the host of worker {view.run.first} knows it"
            + ("" if view.has_all else "; allocations that it has not used are not listed")
        )


def show_block(arguments):
    leave_replica()
    text = " ".join(arguments)
    heap = blocks.Heap(state.Run())
    try:
        address = int(gdb.parse_and_eval(text)) & ((1 << 64) - 1)
        say(f"0x{address:x} {blocks.describe(heap, address)}")
    except gdb.MemoryError:
        raise state.Problem("godwit: the heap cannot be read here: a core file does not have it") from None
    except gdb.error as problem:
        raise state.Problem(f"godwit: {text}: {problem}") from None


class Godwit(gdb.Command):
    __doc__ = "Lightweight threads and workers of a Godwit run.\n\n" + __doc__.split("\n\n", 1)[1]

    def __init__(self):
        super().__init__("godwit", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)


def command(name, function, text):
    def invoke(self, argument, _tty):
        self.dont_repeat()
        function(gdb.string_to_argv(argument))

    kind = type("godwit_" + name, (gdb.Command,), {"__doc__": text, "invoke": invoke})
    kind(f"godwit {name}", gdb.COMMAND_STACK)


Godwit()
command(
    "threads",
    list_threads,
    f"""List all lightweight threads of the run that are on this host.
godwit threads [-all]: more than the first {MOST_LISTED}.
States: running; queued: goes on here when its child ends, or elsewhere if stolen (public: may be stolen now);
suspended: waits for another thread's result; ready: waits for a worker.""",
)
command(
    "backtrace",
    backtrace,
    """Backtrace of any lightweight thread.
godwit backtrace [-full] [ID ... | all]: without an ID, the one that the selected worker runs.""",
)
command("bt", backtrace, "Short for godwit backtrace.")
command(
    "workers",
    lambda _: list_workers(),
    "List the workers of this host: process, what they do, what waits there.",
)
command(
    "select",
    select,
    """Look around in a thread that does not run.
godwit select ID: gdb then shows a copy of it, for frame, info locals and print. godwit select: come back.""",
)
command(
    "memory",
    show_memory,
    """Global memory, as this host knows it.
godwit memory: the movable allocations, with how many of their parts are here, have moved, are in use.
godwit memory ADDRESS: whose it is: home, owner, version, and the place on this host: its state and uses. Of the
beginning of an allocation all parts. ADDRESS: global:0x..., a number, a global_ptr, a pointer into the window.""",
)
command(
    "block",
    show_block,
    """What lies at an address of the heap that workers share.
godwit block ADDRESS: its block and size, whether it is in use or free, in which worker's part; in a run with
--godwit-check-heap also how many bytes were asked for, and the line that allocated it.""",
)
command(
    "attach",
    attach,
    """Attach to the other workers of this host, each as an inferior of its own.
Then everything stands still, and running threads of all workers can be shown.""",
)
