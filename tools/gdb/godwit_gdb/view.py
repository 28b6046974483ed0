"""The run as gdb sees it at the moment of a command. Document: docs/debugging.md. Test: tests/gdb."""

import gdb

import godwit_gdb.frames as frames
import godwit_gdb.looking as looking
import godwit_gdb.state as state
import godwit_gdb.threads as threads_of
from godwit_gdb.in_place import InPlace
from godwit_gdb.replica import Replica
from godwit_gdb.selection import selection


class View:
    """The run as gdb sees it now: its workers, and which of them gdb holds."""

    def __init__(self, everything=False, with_threads=True):
        looking.leave()
        self.run = state.Run(1 << 24 if everything else state.MOST_OBJECTS)
        self.core = state.is_core()
        self.workers = self.run.workers()
        self.held = self._threads_of_gdb()  # by number of worker
        self.me = self._selected_worker()
        self.frames = {}  # stack pointers of their frames, by number of worker
        self.reader = threads_of.Threads(self.run)
        self.threads = []
        if with_threads:
            self._read_threads()

    def _threads_of_gdb(self):
        held = {}
        for inferior in gdb.inferiors():
            for w in self.workers:
                found = [t for t in inferior.threads() if w.pid in t.ptid]
                if not self.run.in_place and inferior.pid == w.pid:
                    found += inferior.threads()
                if w.pid and found:
                    held[w.number] = found[0]
        if self.core and self.run.me != state.NO_WORKER and gdb.selected_thread() is not None:
            held[self.run.me] = gdb.selected_thread()
        return held

    def _selected_worker(self):
        """Its number, or None."""
        if not self.run.in_place:
            return None if self.run.me == state.NO_WORKER else self.run.me
        here = gdb.selected_thread()
        return next((w.number for w in self.workers if here and w.pid in here.ptid and w.pid), None)

    def _read_threads(self):
        with selection():
            for number, thread in self.held.items():
                if thread.is_stopped():
                    thread.switch()
                    self.frames[number] = [
                        frames.stack_pointer(f) for _, f in zip(range(frames.MOST_FRAMES), frames.frames())
                    ]
        if self.lists():
            found = self.reader.all(self.workers, lambda w: self.frames.get(w.number))
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

    def look(self):
        """What shows threads that do not run: a context manager."""
        return InPlace(self.run) if self.run.in_place else Replica(self.run)

    def switch_to(self, t):
        """gdb's thread that runs it."""
        if t.worker not in self.frames:
            raise state.Problem(self.why_no_registers(t))
        self.held[t.worker].switch()

    def why_no_registers(self, t):
        if self.core:
            return f"godwit: worker {t.worker} ran it: its registers are in that worker's own core file"
        return (
            f"godwit: it runs on worker {t.worker}, which gdb has not stopped: godwit attach, or "
            f"gdb -p {next(w.pid for w in self.workers if w.number == t.worker)}"
        )

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
        if t.parked_at:
            return f"waits for a {t.parked_at}"
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
        if t.state == "suspended":
            out.append(self.waits_text(t))
        if t.stolen_from is not None:
            out.append(f"stolen from worker {t.stolen_from}")
        if self.parent_text(t):
            out.append(self.parent_text(t))
        return "; ".join(out)

    def warning(self):
        """What is missing from this view."""
        if self.run.in_place:
            return None
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
