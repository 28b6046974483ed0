"""What the memory of a run says of its workers.

Reads only, by way of the table godwit_debug_ (src/runtime/debugger.hpp), so it needs no debug information of
the library. Works wherever gdb can read the memory: a worker, the supervising process, a core. Workers that
are not stopped go on meanwhile: everything is checked, nothing is believed. Their threads: threads.py.
Words: docs/protocols/deque.md, join.md. Document: docs/debugging.md. Test: tests/gdb.
"""

import struct

import gdb

VERSION = 3
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

    def word(self, address):
        """One of which no neighbours are wanted, so that no block is kept."""
        return struct.unpack("<Q", bytes(gdb.selected_inferior().read_memory(address, 8)))[0]

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


def value_of(text):
    """What an expression of the user's gives; of a reference, what it refers to."""
    value = gdb.parse_and_eval(text)
    is_reference = value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
    return value.referenced_value() if is_reference else value


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
        self.in_place = bool(n["in_place"])  # the workers are threads of this process

    # Addresses. A ref is worker << bits | offset, with the top bit flipped.
    def segment(self, worker):
        """Where worker's memory lies here."""
        return self.names["base"] + self.names["span"] * (worker - self.first + 1)

    def words_of(self, worker):
        """Where the begin of its memory lies here, its hot page and words."""
        n = self.names
        if n["front"] == 0:
            return self.segment(worker)
        return n["fronts"] + n["front"] * (worker - self.first)

    def own_segment(self, worker):
        """Where worker's memory lies in its own eyes."""
        return self.segment(worker) if self.in_place else self.names["base"]

    def shift(self, worker):
        """What to add to an address of worker's own view to reach the same byte here."""
        return self.segment(worker) - self.own_segment(worker)

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
        """Is this where stacks of threads lie?"""
        n = self.names
        offset = address - n["base"]
        if self.in_place:
            if not n["span"] <= offset < n["span"] * (self.count + 1):
                return False
            offset %= n["span"]
        return n["stack"] <= offset <= n["stack"] + n["stack_bytes"]

    def stack_of(self, address):
        """Begin and end of the stack that an address lies in, where each thread has one: stack/pool.hpp."""
        n = self.names
        if 0 <= address - n["stacks.first"] < n["stacks.root_bytes"]:
            return n["stacks.first"], n["stacks.first"] + n["stacks.root_bytes"]
        low = address & ~(n["stacks.size"] - 1)
        return low, low + n["stacks.size"]

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
        base = self.segment(w.number)
        begin = self.words_of(w.number)
        words, hot = begin + n["words"], begin + n["hot"]
        w.pid = m.u64(words + n["words.pid"])
        w.mail = m.u64(words + n["words.mailbox"]) != 0
        w.live = m.u64(words + n["words.live"])
        w.ready_head = m.u64(words + n["words.ready_head"])
        if not n["lists_threads"]:
            w.started = w.pid != 0
            return
        bottom = m.u64(hot + n["hot.bottom"])
        w.started = w.pid != 0 and bottom != 0
        if not w.started:
            return
        w.in_runtime = m.u32(hot + n["hot.in_runtime"]) != 0
        first = self.own_segment(w.number) + n["slots"]
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

    def at(self, ref):
        """Where the object lies here that a ref names; None: on another host."""
        worker, offset = self.split_ref(ref)
        return self.segment(worker) + offset if self.is_near(worker) else None

    def record_state(self, ref):
        """How far the thread is that completes a record; None if the record is on another host."""
        record = self.at(ref)
        if record is None:
            return None
        n = self.names
        state = self.memory.u64(record + n["record.state"])
        if state == n["state.done"]:
            return "done"
        return "detached" if state & n["state.bits"] == n["state.detached"] else "running"


def is_core():
    inferior = gdb.selected_inferior()
    connection = getattr(inferior, "connection", None)  # gdb 12 and later
    if connection is not None:
        return connection.type == "core"
    return "core" in gdb.execute("info inferiors", to_string=True)
