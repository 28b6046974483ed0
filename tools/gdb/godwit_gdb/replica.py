"""Frames of threads whose bytes lie elsewhere than their frames say: gdb unwinds a replica.

Where workers are processes, a lightweight thread that waits has its registers in the runtime's structures and
its stack bytes at another address than the one its frames were made for. So they are written as a small core
file -- the thread's registers, its stack bytes at their proper addresses, what gdb needs to find the shared
libraries, the writable data -- which a second inferior opens: gdb's own unwinder then gives exact frames (call
frame information, inlined functions, arguments), and nothing of the real process changes. That works on core
files of workers just as well. Where stacks stay: in_place.py. Document: docs/debugging.md. Test: tests/gdb.
"""

import os
import re
import struct
import tempfile

import gdb

from .selection import selection, settings

PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_PHDR = 1, 2, 4, 6
DT_DEBUG = 21
AT_PHDR, AT_PHENT, AT_PHNUM = 3, 4, 5
NT_PRSTATUS, NT_AUXV = 1, 6
MOST_DATA = 8 << 20  # bytes of writable data per module that go into a replica
X86_REGISTERS = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base "
    "gs_base ds es fs gs"
).split()
ARM_REGISTERS = [f"x{i}" for i in range(31)] + ["sp", "pc", "pstate"]


class Process:
    """What a replica needs of the process besides the thread: read once per command."""

    def __init__(self, run):
        self.run = run
        self.memory = run.memory
        self.pieces = {}
        self.auxv = self._auxv()
        try:
            self._executable()
        except (gdb.MemoryError, KeyError):
            pass  # a replica without shared libraries is better than none

    def _auxv(self):
        out = {}
        try:
            text = gdb.execute("info auxv", to_string=True)
        except gdb.error:
            return out
        for line in text.splitlines():
            found = re.match(r"(\d+)\s+.*?\s(0x[0-9a-f]+|\d+)(?:\s+\".*\")?\s*$", line)
            if found:
                out[int(found[1])] = int(found[2], 0)
        return out

    def _keep(self, address, size):
        if size > 0:
            self.pieces[address] = max(size, self.pieces.get(address, 0))

    def _headers(self, at, count):
        raw = self.memory.read(at, 56 * count)
        return [struct.unpack_from("<IIQQQQQQ", raw, 56 * i) for i in range(count)]

    def _executable(self):
        at, count = self.auxv[AT_PHDR], self.auxv[AT_PHNUM]
        headers = self._headers(at, count)
        self._keep(at, 56 * count)
        bias = 0
        for kind, _, _, address, *_ in headers:
            if kind == PT_PHDR:
                bias = at - address
        self._keep_data(headers, bias)
        for kind, _, _, address, _, _, size, _ in headers:
            if kind == PT_DYNAMIC:
                self._keep(bias + address, size)
                self._libraries(bias + address, size)

    def _libraries(self, dynamic, size):
        debug = 0
        for i in range(0, size, 16):
            tag, value = struct.unpack("<QQ", self.memory.read(dynamic + i, 16))
            if tag == DT_DEBUG:
                debug = value
        if debug == 0:
            return
        self._keep(debug, 40)
        link = self.memory.u64(debug + 8)
        for i in range(1000):
            if link == 0:
                break
            base, name, _, after, _ = struct.unpack("<5Q", self.memory.read(link, 40))
            self._keep(link, 40)
            self._keep(name, len(self.memory.text(name).encode()) + 1)
            if i > 0 and base != 0:
                self._library_data(base)
            link = after

    def _library_data(self, base):
        try:
            head = self.memory.read(base, 64)
            if head[:4] == b"\x7fELF":
                at, count = (
                    base + struct.unpack_from("<Q", head, 32)[0],
                    struct.unpack_from("<H", head, 56)[0],
                )
                self._keep_data(self._headers(at, count), base)
        except gdb.MemoryError:
            pass  # a core file may lack it

    def _keep_data(self, headers, bias):
        for kind, flags, _, address, _, _, size, _ in headers:
            if kind == PT_LOAD and flags & 2 and size <= MOST_DATA:
                self._keep(bias + address, size)

    def loads(self):
        """[(address, bytes)] without overlaps."""
        out, end = [], 0
        for address, size in sorted(self.pieces.items()):
            if address < end:
                size -= end - address
                address = end
            if size <= 0:
                continue
            try:
                out.append((address, self.memory.read(address, size)))
            except gdb.MemoryError:
                continue
            end = address + size
        return out


def _note(kind, data, owner=b"CORE\0"):
    pad = lambda b: b + b"\0" * (-len(b) % 4)
    return struct.pack("<III", len(owner), len(data), kind) + pad(owner) + pad(data)


def _prstatus(run, number, registers):
    names = ARM_REGISTERS if run.aarch64 else X86_REGISTERS
    values = {"cs": 0x33, "ss": 0x2B, **registers}
    data = bytearray(112 + 8 * len(names) + 8)
    struct.pack_into("<I", data, 32, number)  # pr_pid
    for i, name in enumerate(names):
        struct.pack_into("<Q", data, 112 + 8 * i, values.get(name, 0) & (1 << 64) - 1)
    return _note(NT_PRSTATUS, bytes(data))


def core_image(run, process, thread):
    """A core file of this thread."""
    notes = _prstatus(run, 1, thread.registers)
    auxv = b"".join(struct.pack("<QQ", k, v) for k, v in process.auxv.items()) + bytes(16)
    notes += _note(NT_AUXV, auxv)
    loads = process.loads() + [stack_of(run, thread)]
    offset = 64 + 56 * (1 + len(loads))
    machine = 183 if run.aarch64 else 62
    out = [
        struct.pack(
            "<16sHHIQQQIHHHHHH",
            b"\x7fELF\x02\x01\x01",
            4,
            machine,
            1,
            0,
            64,
            0,
            0,
            64,
            56,
            1 + len(loads),
            0,
            0,
            0,
        )
    ]
    out.append(struct.pack("<IIQQQQQQ", PT_NOTE, 0, offset, 0, 0, len(notes), 0, 4))
    offset += len(notes)
    for address, data in loads:
        out.append(struct.pack("<IIQQQQQQ", PT_LOAD, 6, offset, address, 0, len(data), len(data), 1))
        offset += len(data)
    return b"".join(out) + notes + b"".join(data for _, data in loads)


def stack_of(run, thread):
    """Address and bytes of its stack and of those that it continues: all that is below it, without the way up."""
    outermost = thread
    while outermost.parent is not None:
        outermost = outermost.parent
    data = bytearray(run.memory.read(thread.low + thread.shift, outermost.top - thread.low))
    if not run.aarch64:
        # The outermost thread's return address leads to a parent that is not here: a zero ends the backtrace.
        struct.pack_into("<Q", data, len(data) - 8, 0)
    return thread.low, bytes(data)


class Replica:
    """A second inferior that shows one thread after the other. with Replica(run) as r: r.show(thread)"""

    def __init__(self, run):
        self.run = run
        self.number = None
        self.loaded = False
        self.kept = False

    def __enter__(self):
        self.settings = settings()
        self.settings.__enter__()
        self.selection = selection()
        self.selection.__enter__()
        try:
            self.process = Process(self.run)
            self.file = gdb.current_progspace().filename
            self.folder = tempfile.TemporaryDirectory(prefix="godwit-gdb-")
        except BaseException:
            self.settings.__exit__()
            raise
        return self

    def _select(self):
        if self.number is None:
            before = {i.num for i in gdb.inferiors()}
            gdb.execute("add-inferior -no-connection", to_string=True)
            self.number = next(i.num for i in gdb.inferiors() if i.num not in before)
            gdb.execute(f"inferior {self.number}", to_string=True)
            if self.file:
                gdb.execute("file " + re.sub(r"([\s'\"\\])", r"\\\1", self.file), to_string=True)
        else:
            gdb.execute(f"inferior {self.number}", to_string=True)

    def show(self, thread):
        """Select the replica as this thread, with those that it was spawned by as far as they are below it."""
        self.selection.back()  # memory is read from there
        data = core_image(self.run, self.process, thread)
        path = os.path.join(self.folder.name, "core")
        with open(path, "wb") as f:
            f.write(data)
        self._select()
        if self.loaded:
            gdb.execute("core-file", to_string=True)
        gdb.execute(f"core-file {path}", to_string=True)
        self.loaded = True
        gdb.selected_inferior().threads()[0].switch()

    def keep(self):
        """Stay selected after the command, until __exit__."""
        self.kept = True
        self.settings.__exit__()

    def is_selected(self):
        return gdb.selected_inferior().num == self.number

    def __exit__(self, *_):
        elsewhere = self.kept and not self.is_selected()
        back_to = selection().__enter__() if elsewhere else self.selection
        if all(i.num != self.number for i in gdb.inferiors()):
            self.number = None  # the user removed it
        try:
            if self.number is not None:
                gdb.execute(f"inferior {self.number}", to_string=True)
                if self.loaded:
                    gdb.execute("core-file", to_string=True)
        finally:
            try:
                back_to.back()
                if self.number is not None:
                    gdb.execute(f"remove-inferiors {self.number}", to_string=True)
            finally:
                self.settings.__exit__()
                self.folder.cleanup()
