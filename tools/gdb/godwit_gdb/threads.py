"""The lightweight threads of a run, as the memory of its workers tells of them.

Threads that run or have spawned are in the slots of the deques. Those that wait are images: in the heaps of the
workers, or, where workers are threads of one process, on their own stacks, which are all looked at. Does not
unwind: see frames.py. Structures: src/sched/record.hpp, src/stack/pool.hpp. Document: docs/debugging.md. Test:
tests/gdb.
"""

import struct

import gdb

import godwit_gdb.state as state

class Thread:
    """One lightweight thread that does not exist as an operating system thread.

    state      running, queued, suspended (waits), ready, new (created, and has not begun)
    worker     the worker in whose memory it is
    low, top   its stack, as its own frames see it; low is None if the registers are not known
    floor      the lowest address that its stack may have
    shift      what to add to a stack address to find the byte in this process
    registers  sp, pc and what else is known, as gdb calls them; None for running threads
    bottom     its parent is not below it on this worker; else parent is that thread
    record     location of what it completes when it ends, 0: it returns to its parent in place
    """

    def __init__(self, ident, state, worker):
        self.id = ident
        self.state = state
        self.worker = worker
        self.low = self.top = None
        self.floor = self.shift = 0
        self.registers = None
        self.parent = None
        self.record = 0
        self.waiting_for = 0
        self.parked_at = None  # the kind of what it waits for, if that is no record
        self.place = None
        self.public = False
        self.stolen_from = None  # worker
        self.entry = None  # new: the function that runs it
        self.parent_gone = None  # own record of the parent that was stolen from here

    def size(self):
        return None if self.low is None else self.top - self.low


class Threads:
    """Reads them. Threads(run).all(...)"""

    def __init__(self, run):
        self.run = run

    def spawned_at(self, t):
        """Return address of the spawn of a thread whose parent is not below it; 0: not known."""
        names, memory = self.run.names, self.run.memory
        record = self.run.at(t.record) if t.record else None
        # in the record of a created thread there are old bytes
        if not record or memory.u32(record + names["object.kind"]) & 0xFFFF != names["kind.record"]:
            return 0
        return memory.u64(record + names["record.spawned_at"])

    def all(self, workers, attached):
        """All threads. attached(worker) gives the stack pointers of a worker's frames if gdb holds it."""
        by_number = {w.number: w for w in workers}
        for w in workers:
            if w.problem or not w.started:
                continue
            try:
                w.threads = self._on_region(w, attached(w))
                if not self.run.in_place:
                    w.threads += self._in_heap(w)
            except gdb.MemoryError:
                w.problem = "its memory cannot be read, or changes too fast: stop all workers (godwit attach)"
        if self.run.in_place:
            for t in self._on_own_stacks(workers):
                by_number[t.worker].threads.append(t)
        out = [t for w in workers for t in w.threads]
        self._relate(workers, out)
        return out

    def _on_region(self, w, stack_pointers):
        """Thread i's continuation is in slot i + 1, slot i says where its stack ends: deque.md"""
        out = []
        here = [sp for sp in stack_pointers or [] if self.run.in_region(sp)]
        has_running = not w.in_runtime or w.bottom > 1 or bool(here and here[0] == stack_pointers[0])
        parent = None
        for i in range(w.top - 1, w.bottom):
            last = i == w.bottom - 1
            if last and not has_running:
                break
            t = Thread(f"{w.number}.{i}", "running" if last else "queued", w.number)
            t.top, t.record, t.shift = w.slots[i][0], w.slots[i][3], self.run.shift(w.number)
            t.parent = parent
            if i > 0 and i == w.top - 1:
                t.parent_gone = w.slots[i - 1][3]
            if not last:
                sp, fp, extra, _ = w.slots[i + 1]
                if self.run.in_region(sp):
                    self._own_stack(t, sp)
                if not self.run.in_region(sp) or not sp <= t.top:
                    raise gdb.MemoryError("the deque is being changed")
                self._fork(t, sp, fp, extra, sp + t.shift)
                t.public = i + 1 < w.split
            elif here:
                self._own_stack(t, here[0])
                if here[0] <= t.top:
                    t.low = here[0]
            out.append(t)
            parent = t
        return out

    def _own_stack(self, t, sp):
        if self.run.in_place:
            t.floor, t.top = self.run.stack_of(sp)

    def _fork(self, t, sp, fp, extra, bytes_at):
        """Registers of a continuation that fork_call saved; bytes_at: where the byte of sp lies here."""
        if self.run.aarch64:
            t.low = sp
            t.registers = {"sp": sp, "x29": fp, "pc": extra - 4}
        else:  # the return address of the call lies below
            t.low = sp - 8
            t.registers = {"rsp": sp, "rbp": fp, "rbx": extra, "rip": self.run.memory.u64(bytes_at - 8) - 1}

    def _suspended(self, t, sp, bytes_at):
        """Registers of a thread that godwit_ctx_suspend saved on its own stack. switch_ARCH.S"""

        def words(count):
            return struct.unpack(f"<{count}Q", self.run.memory.read(bytes_at, 8 * count))

        if self.run.aarch64:
            names = ["x29", "x30"] + [f"x{i}" for i in range(19, 29)]
            t.registers = dict(zip(names, words(12)))
            t.registers.update(sp=sp + 160, pc=t.registers["x30"] - 4)
        else:
            saved = words(7)
            t.registers = dict(zip(["r15", "r14", "r13", "r12", "rbx", "rbp"], saved))
            t.registers.update(rsp=sp + 56, rip=saved[6] - 1)

    def objects(self, w):
        """(kind, address here, offset) of what lives in a heap, the newest first; sets w.more if not all."""
        n, m = self.run.names, self.run.memory
        base = self.run.segment(w.number)
        kind_at, freed_at, next_at = n["object.kind"], n["object.freed"], n["object.next"]
        head = max(kind_at + 2, freed_at + 8, next_at + 8)
        offset, seen = w.live, 0
        while offset != 0:
            if not n["heap"] <= offset < n["heap"] + n["heap_bytes"] or offset % 64:
                raise gdb.MemoryError("the heap is being changed")
            if seen == self.run.most_objects:
                w.more = True
                return
            raw = m.read(base + offset, head)
            if struct.unpack_from("<Q", raw, freed_at)[0] == 0:
                yield struct.unpack_from("<H", raw, kind_at)[0], base + offset, offset
            offset = struct.unpack_from("<Q", raw, next_at)[0]
            seen += 1

    def _in_heap(self, w):
        out = []
        for kind, at, offset in self.objects(w):  # the newest first
            if kind != self.run.names["kind.image"]:
                continue
            t = self._image(w.number, at, offset)
            if not self.run.in_region(t.low) or not self.run.in_region(t.top) or t.top < t.low:
                continue  # being written
            self._registers(t, at, at + self.run.names["image"] - t.low)
            t.place = self._place(at + self.run.names["image.where"])
            out.append(t)
        out.reverse()  # the list has the newest first
        return out

    def _image(self, worker, at, offset):
        m, n = self.run.memory, self.run.names
        t = Thread(f"{worker}:{offset:x}", "ready", worker)
        t.low, t.top, t.record, t.waiting_for = (
            m.u64(at + n["image." + field]) for field in ("low", "top", "own_record", "waiting_for")
        )
        if t.waiting_for:
            t.state = "suspended"
        return t

    def _registers(self, t, at, shift):
        m, n = self.run.memory, self.run.names
        field = lambda name: m.u64(at + n["image." + name])
        low, t.shift = t.low, shift
        if m.read(at + n["image.fork"], 1) != b"\0":
            self._fork(t, field("sp"), field("fp"), field("extra"), field("sp") + shift)
            t.low = low
        else:
            self._suspended(t, field("sp"), field("sp") + shift)

    def _ends_of_stacks(self):
        n = self.run.names
        root = n["stacks.root_bytes"]
        yield n["stacks.first"] + root
        possible = self.run.count * n["stacks.per_range"]
        for i in range(min(self.run.memory.u64(n["stacks.made"]), possible)):
            number = i + root // n["stacks.size"]
            low = n["stacks.first"] + number // n["stacks.per_range"] * n["stacks.distance"]
            yield low + (number % n["stacks.per_range"] + 1) * n["stacks.size"]

    def _on_own_stacks(self, workers):
        m, n = self.run.memory, self.run.names
        ready, new = self._in_ready_queues(workers)
        out = []
        for end in self._ends_of_stacks():
            try:
                at = m.word(end - n["stacks.block"])
            except gdb.MemoryError:
                continue  # a core file lacks what nobody has touched
            if not at or not self.run.in_region(at):
                continue
            worker, offset = divmod(at - self.run.segment(self.run.first), n["span"])
            t = self._image(worker + self.run.first, at, offset)
            if t.top != end or not self.run.in_region(t.low):
                continue  # being written
            t.floor = self.run.stack_of(at)[0]
            self._registers(t, at, 0)
            parked = m.u64(at + n["image.parked_at"])
            if parked and at not in ready:
                t.state, t.parked_at = "suspended", m.text(parked)
            if t.state == "suspended":  # of others nobody wrote it down
                t.place = self._place(at + n["image.where"])
            out.append(t)
        return out + new

    def _in_ready_queues(self, workers):
        """Addresses of the images in the ready queues, and the threads there that have not begun."""
        m, n = self.run.memory, self.run.names
        images, new = set(), []
        for w in workers:
            ref = 0 if w.problem or not w.started else w.ready_head
            while ref and len(images) < self.run.most_objects:
                at = self.run.at(ref)
                if at in images:
                    break  # being changed
                images.add(at)
                if m.u64(at + n["image.sp"]) == 0:
                    number, offset = self.run.split_ref(ref)
                    t = Thread(f"{number}:{offset:x}", "new", number)
                    t.entry = m.u64(at - n["fresh.image"] + n["fresh.entry"])
                    new.append(t)
                ref = m.u64(at + n["image.next"])
        return images, new

    def _place(self, at):
        n, m = self.run.names, self.run.memory
        file, function = m.u64(at + n["place.file"]), m.u64(at + n["place.function"])
        line = m.u32(at + n["place.line"])
        if file == 0 or function == 0 or line == 0:
            return None
        try:
            return m.text(function), m.text(file), line
        except gdb.MemoryError:
            return None

    def _relate(self, workers, threads):
        for t in threads:
            for w in workers:
                if t.record and t.record in w.stolen and (w.number != t.worker or ":" in t.id):
                    t.stolen_from = w.number
