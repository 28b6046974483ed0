"""What the shared memory of a run says: workers, and the lightweight threads that each holds.

Reads only, by way of the table godwit_debug_ (src/runtime/debugger.hpp), so it needs no debug information of
the library. Works wherever gdb can read the memory: a worker, the supervising process, a core. Workers that
are not stopped go on meanwhile: everything is checked, nothing is believed. Does not unwind: see frames.py.
Words: docs/protocols/deque.md, join.md. Document: docs/debugging.md. Test: tests/gdb.
"""

import struct

import gdb

VERSION = 1
NO_WORKER = (1 << 64) - 1
MOST_OBJECTS = 50_000  # per heap that are looked at; forced steals and waiting by the million are rare


class Problem(gdb.GdbError):
    """Said to the user in one line, without a Python backtrace."""


class Memory:
    """The memory of the selected inferior, read in blocks that are kept for the length of a command."""

    BLOCK = 1 << 14

    def __init__(self):
        self.blocks = {}

    def read(self, address, size):
        out = bytearray()
        start = address & ~(self.BLOCK - 1)
        block = self.blocks.get(start)
        if block is not None and address + size <= start + self.BLOCK:  # nearly always
            return block[address - start : address - start + size]
        while size > 0:
            start = address & ~(self.BLOCK - 1)
            if start not in self.blocks:
                try:
                    block = bytes(gdb.selected_inferior().read_memory(start, self.BLOCK))
                except gdb.MemoryError:
                    block = None  # it is not all there: read exactly what is wanted
                self.blocks[start] = block
            block = self.blocks[start]
            n = min(size, start + self.BLOCK - address)
            if block is None:
                out += bytes(gdb.selected_inferior().read_memory(address, n))
            else:
                out += block[address - start : address - start + n]
            address += n
            size -= n
        return bytes(out)

    def u64(self, address):
        return struct.unpack("<Q", self.read(address, 8))[0]

    def u32(self, address):
        return struct.unpack("<I", self.read(address, 4))[0]

    def text(self, address, limit=4096):
        out = b""
        while len(out) < limit:
            byte = self.read(address + len(out), 1)
            if byte == b"\0":
                break
            out += byte
        return out.decode(errors="replace")


class Thread:
    """One lightweight thread that does not exist as an operating system thread.

    state      running, queued, suspended (waits for a record), ready
    worker     the worker in whose memory it is
    low, top   its stack, addresses of the uni-address region; low is None if the registers are not known
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
        self.shift = 0
        self.registers = None
        self.parent = None
        self.record = 0
        self.waiting_for = 0
        self.place = None
        self.public = False
        self.stolen_from = None  # worker
        self.parent_gone = None  # own record of the parent that was stolen from here

    def size(self):
        return None if self.low is None else self.top - self.low


class Worker:
    def __init__(self, number):
        self.number = number
        self.pid = 0
        self.started = False
        self.in_runtime = False
        self.slots = []  # (sp, fp, extra, record) up to bottom
        self.top = self.split = 1
        self.stolen = {}  # own record of a thread that was stolen from here -> slot
        self.threads = []
        self.problem = None
        self.more = False  # not all of its heap was looked at


def table_address():
    try:
        return int(gdb.parse_and_eval("(unsigned long)&godwit_debug_"))
    except gdb.error:
        raise Problem(
            "godwit: there is no symbol godwit_debug_ in the selected inferior: it is no godwit program, "
            "has no "
            "symbols yet (gdb -p PID, or `file PROGRAM`), or was stripped"
        ) from None


class Run:
    """All that one process can see of a run: the workers of its host."""

    def __init__(self, most_objects=MOST_OBJECTS):
        self.most_objects = most_objects
        if gdb.selected_inferior().pid == 0:
            raise Problem(
                "godwit: no process: attach to a worker (gdb -p PID), run the program, or open a core file"
            )
        architecture = gdb.selected_inferior().architecture().name()
        self.aarch64 = architecture.startswith("aarch64")
        if not self.aarch64 and architecture != "i386:x86-64":
            raise Problem(f"godwit: no support for the architecture {architecture}")
        self.memory = Memory()
        self._read_table()

    def _read_table(self):
        at = table_address()
        try:
            version, entries = self.memory.u32(at), self.memory.u32(at + 4)
            self.policy = self.memory.text(at + 8, 32)
            raw = self.memory.read(at + 40, 32 * entries)
        except gdb.MemoryError:
            raise Problem(
                "godwit: the table of the process cannot be read: a core file without its data?"
            ) from None
        if entries == 0:
            raise Problem("godwit: this process is not inside godwit::run")
        if version != VERSION:
            raise Problem(
                f"godwit: the program's library speaks version {version}, this script version {VERSION}: "
                "source the godwit.py that was installed with the library"
            )
        self.names = {}
        for i in range(entries):
            name, value = struct.unpack_from("<24sQ", raw, 32 * i)
            self.names[name.rstrip(b"\0").decode()] = value
        n = self.names
        self.me = n["worker"]
        self.first, self.count = n["first"], n["count"]
        self.region = (n["base"] + n["stack"], n["base"] + n["stack"] + n["stack_bytes"])

    # Addresses. A ref is worker << bits | offset, with the top bit flipped.
    def shift(self, worker):
        """What to add to an address of worker's own view to reach the same byte here."""
        return self.names["span"] * (worker - self.first + 1)

    def is_near(self, worker):
        return self.first <= worker < self.first + self.count

    def split_ref(self, ref):
        bits = self.names["ref_offset_bits"]
        ref ^= self.names["ref_is_no_address"]
        return ref >> bits, ref & ((1 << bits) - 1)

    def ref_text(self, ref):
        worker, offset = self.split_ref(ref)
        return f"{worker}:{offset:x}"

    def in_region(self, address):
        return self.region[0] <= address <= self.region[1]

    def workers(self):
        out = []
        for number in range(self.first, self.first + self.count):
            w = Worker(number)
            try:
                self._read_words(w)
            except gdb.MemoryError:
                w.problem = "its memory cannot be read"
            out.append(w)
        if all(w.problem for w in out):
            raise Problem(
                "godwit: the shared memory of the run is not there: "
                + (
                    "the core file was written without shared mappings (bit 1 of /proc/PID/coredump_filter)"
                    if is_core()
                    else "the run is over"
                )
            )
        return out

    def _read_words(self, w):
        n, m = self.names, self.memory
        base = n["base"] + self.shift(w.number)
        words, hot = base + n["words"], base + n["hot"]
        w.pid = m.u64(words + n["words.pid"])
        w.mail = m.u64(words + n["words.mailbox"]) != 0
        w.live = m.u64(words + n["words.live"])
        if not n["lists_threads"]:
            w.started = w.pid != 0
            return
        bottom = m.u64(hot + n["hot.bottom"])
        w.started = w.pid != 0 and bottom != 0
        if not w.started:
            return
        w.in_runtime = m.u32(hot + n["hot.in_runtime"]) != 0
        first = n["base"] + n["slots"]
        size = n["slot"]
        if bottom < first or bottom > first + n["slots_bytes"] or (bottom - first) % size:
            raise gdb.MemoryError("the deque is being changed")
        w.bottom = (bottom - first) // size
        w.top = (m.u64(words + n["words.top"]) - first) // size
        w.split = (m.u64(words + n["words.split"]) - first) // size
        # A thief that gives up shows top one too high for a moment; a pop may be under way.
        w.top = max(1, min(w.top, max(w.bottom, 1)))
        w.split = max(w.top, min(w.split, max(w.bottom, 1)))
        raw = m.read(base + n["slots"], size * max(w.bottom, 1))
        w.slots = [
            tuple(
                struct.unpack_from("<Q", raw, i + n[f])[0]
                for f in ("slot.sp", "slot.fp", "slot.extra", "slot.record")
            )
            for i in range(0, len(raw), size)
        ]
        for i in range(1, w.top):
            if w.slots[i - 1][3]:
                w.stolen[w.slots[i - 1][3]] = i

    def threads(self, workers, attached):
        """All threads. attached(worker) gives the stack pointers of a worker's frames if gdb holds it."""
        out = []
        for w in workers:
            if w.problem or not w.started:
                continue
            try:
                w.threads = self._on_region(w, attached(w)) + self._images(w)
            except gdb.MemoryError:
                w.problem = "its memory cannot be read, or changes too fast: stop all workers (godwit attach)"
            out += w.threads
        self._relate(workers, out)
        return out

    def _on_region(self, w, stack_pointers):
        """Thread i's continuation is in slot i + 1, slot i says where its stack ends: deque.md"""
        out = []
        here = [sp for sp in stack_pointers or [] if self.in_region(sp)]
        has_running = not w.in_runtime or w.bottom > 1 or bool(here and here[0] == stack_pointers[0])
        parent = None
        for i in range(w.top - 1, w.bottom):
            last = i == w.bottom - 1
            if last and not has_running:
                break
            t = Thread(f"{w.number}.{i}", "running" if last else "queued", w.number)
            t.top, t.record, t.shift = w.slots[i][0], w.slots[i][3], self.shift(w.number)
            t.parent = parent
            if i > 0 and i == w.top - 1:
                t.parent_gone = w.slots[i - 1][3]
            if not last:
                sp, fp, extra, _ = w.slots[i + 1]
                if not self.in_region(sp) or not sp <= t.top:
                    raise gdb.MemoryError("the deque is being changed")
                self._fork(t, sp, fp, extra, sp + t.shift)
                t.public = i + 1 < w.split
            elif here and here[0] <= t.top:
                t.low = here[0]
            out.append(t)
            parent = t
        return out

    def _fork(self, t, sp, fp, extra, bytes_at):
        """Registers of a continuation that fork_call saved; bytes_at: where the byte of sp lies here."""
        if self.aarch64:
            t.low = sp
            t.registers = {"sp": sp, "x29": fp, "pc": extra - 4}
        else:  # the return address of the call lies below
            t.low = sp - 8
            t.registers = {"rsp": sp, "rbp": fp, "rbx": extra, "rip": self.memory.u64(bytes_at - 8) - 1}

    def _suspended(self, t, sp, bytes_at):
        """Registers of a thread that godwit_ctx_suspend saved on its own stack. switch_ARCH.S"""

        def words(count):
            return struct.unpack(f"<{count}Q", self.memory.read(bytes_at, 8 * count))

        if self.aarch64:
            names = ["x29", "x30"] + [f"x{i}" for i in range(19, 29)]
            t.registers = dict(zip(names, words(12)))
            t.registers.update(sp=sp + 160, pc=t.registers["x30"] - 4)
        else:
            saved = words(7)
            t.registers = dict(zip(["r15", "r14", "r13", "r12", "rbx", "rbp"], saved))
            t.registers.update(rsp=sp + 56, rip=saved[6] - 1)

    def objects(self, w):
        """(kind, address here, offset) of what lives in a heap, the newest first; sets w.more if not all."""
        n, m = self.names, self.memory
        base = n["base"] + self.shift(w.number)
        kind_at, freed_at, next_at = n["object.kind"], n["object.freed"], n["object.next"]
        head = max(kind_at + 2, freed_at + 8, next_at + 8)
        offset, seen = w.live, 0
        while offset != 0:
            if not n["heap"] <= offset < n["heap"] + n["heap_bytes"] or offset % 64:
                raise gdb.MemoryError("the heap is being changed")
            if seen == self.most_objects:
                w.more = True
                return
            raw = m.read(base + offset, head)
            if struct.unpack_from("<Q", raw, freed_at)[0] == 0:
                yield struct.unpack_from("<H", raw, kind_at)[0], base + offset, offset
            offset = struct.unpack_from("<Q", raw, next_at)[0]
            seen += 1

    def _images(self, w):
        n, m = self.names, self.memory
        out = []
        for kind, at, offset in self.objects(w):  # the newest first
            if kind != n["kind.image"]:
                continue

            def field(name):
                return m.u64(at + n["image." + name])

            waiting_for = field("waiting_for")
            t = Thread(f"{w.number}:{offset:x}", "suspended" if waiting_for else "ready", w.number)
            t.low, t.top, t.record, t.waiting_for = (
                field("low"),
                field("top"),
                field("own_record"),
                waiting_for,
            )
            bytes_at = at + n["image"]
            if not self.in_region(t.low) or not self.in_region(t.top) or t.top < t.low:
                continue  # being written
            t.shift = bytes_at - t.low
            if m.read(at + n["image.fork"], 1) != b"\0":
                sp = field("sp")
                self._fork(t, sp, field("fp"), field("extra"), sp + t.shift)
                t.low = field("low")
            else:
                self._suspended(t, field("sp"), field("sp") + t.shift)
            t.place = self._place(at + n["image.where"])
            out.append(t)
        out.reverse()  # the list has the newest first
        return out

    def _place(self, at):
        n, m = self.names, self.memory
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

    def record_state(self, ref):
        """How far the thread is that completes a record; None if the record is on another host."""
        worker, offset = self.split_ref(ref)
        if not self.is_near(worker):
            return None
        n = self.names
        state = self.memory.u64(n["base"] + self.shift(worker) + offset + n["record.state"])
        if state == n["state.done"]:
            return "done"
        return "detached" if state == n["state.detached"] else "running"


def is_core():
    inferior = gdb.selected_inferior()
    connection = getattr(inferior, "connection", None)  # gdb 12 and later
    if connection is not None:
        return connection.type == "core"
    return "core" in gdb.execute("info inferiors", to_string=True)
