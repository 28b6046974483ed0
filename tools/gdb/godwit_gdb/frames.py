"""Frames of threads that do not run: gdb unwinds a replica, the process is not touched.

A lightweight thread that waits has its registers in the runtime's structures and its stack bytes at another
address than the one its frames were made for. So they are written as a small core file -- the thread's
registers, its stack bytes at their proper addresses, what gdb needs to find the shared libraries, the
writable data -- which a second inferior opens: gdb's own unwinder then gives exact frames (call frame
information, inlined functions, arguments), and nothing of the real process changes. That works on core files
of workers just as well. Called by godwit.py. Document: docs/debugging.md.
"""

import os
import re
import struct
import tempfile

import gdb

from .state import Problem

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


def core_image(run, process, threads, stack):
    """A core file of these threads, which share the memory `stack` = [(address, bytes)]."""
    notes = b"".join(_prstatus(run, i + 1, t.registers) for i, t in enumerate(threads))
    auxv = b"".join(struct.pack("<QQ", k, v) for k, v in process.auxv.items()) + bytes(16)
    notes += _note(NT_AUXV, auxv)
    loads = process.loads() + stack
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


def stack_of(run, threads):
    """The stack bytes of threads that lie in one worker's region, or of one image, without the way up."""
    low, top = min(t.low for t in threads), max(t.top for t in threads)
    data = bytearray(run.memory.read(low + threads[0].shift, top - low))
    if not run.aarch64:
        # The outermost thread's return address leads to a parent that is not here: a zero ends the backtrace.
        struct.pack_into("<Q", data, len(data) - 8, 0)
    return [(low, bytes(data))]


class settings:
    """Settings for the length of a `with`: nothing is asked, and what gdb does is not told."""

    WANTED = {
        "confirm": "off",
        "print inferior-events": "off",
        "print thread-events": "off",
        "pagination": "off",
        "suppress-cli-notifications": "on",
    }

    def __enter__(self):
        self.before = {}
        for name, value in self.WANTED.items():
            try:
                now = gdb.parameter(name)
            except RuntimeError:
                continue  # suppress-cli-notifications came with gdb 13
            self.before[name] = "on" if now else "off"
            gdb.execute(f"set {name} {value}", to_string=True)
        return self

    def __exit__(self, *_):
        for name, value in self.before.items():
            gdb.execute(f"set {name} {value}", to_string=True)


class selection:
    """Come back to the inferior, thread and frame that the user had selected, whatever happens."""

    def __enter__(self):
        self.inferior = gdb.selected_inferior().num
        self.thread = gdb.selected_thread()
        try:
            self.frame = gdb.selected_frame()
        except gdb.error:
            self.frame = None
        return self

    def back(self):
        if self.thread is not None and self.thread.is_valid():
            self.thread.switch()  # and its inferior
            if self.frame is not None and self.frame.is_valid():
                self.frame.select()
        else:
            gdb.execute(f"inferior {self.inferior}", to_string=True)

    def __exit__(self, *_):
        self.back()


class Replica:
    """A second inferior that shows one thread after the other. with Replica(run) as r: r.show([thread])"""

    def __init__(self, run):
        self.run = run
        self.number = None
        self.loaded = False

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

    def show(self, threads, stack=None):
        """Select the replica; its thread i + 1 is threads[i]."""
        self.selection.back()  # memory is read from there
        data = core_image(self.run, self.process, threads, stack or stack_of(self.run, threads))
        path = os.path.join(self.folder.name, "core")
        with open(path, "wb") as f:
            f.write(data)
        self._select()
        if self.loaded:
            gdb.execute("core-file", to_string=True)
        gdb.execute(f"core-file {path}", to_string=True)
        self.loaded = True
        by_number = {t.ptid[1] or t.ptid[0]: t for t in gdb.selected_inferior().threads()}
        self.threads = [by_number[i + 1] for i in range(len(threads))]
        self.threads[0].switch()

    def __exit__(self, *_):
        try:
            if self.number is not None:
                gdb.execute(f"inferior {self.number}", to_string=True)
                if self.loaded:
                    gdb.execute("core-file", to_string=True)
        finally:
            self.selection.back()
            if self.number is not None:
                gdb.execute(f"remove-inferiors {self.number}", to_string=True)
            self.settings.__exit__()
            self.folder.cleanup()


def stack_pointer(frame):
    for name in ("rsp", "sp"):
        try:
            return int(frame.read_register(name)) & (1 << 64) - 1
        except (ValueError, gdb.error):
            continue
    return 0


def frames(newest=None):
    """The frames of the selected thread, innermost first; ends quietly where unwinding ends."""
    frame = newest or gdb.newest_frame()
    while frame is not None:
        yield frame
        try:
            frame = frame.older()
        except gdb.error:
            return


def is_runtime(name):
    """Is this function the library's and not the user's?"""
    if name is None:
        return False
    head = re.split(r"[<(]", name, maxsplit=1)[0].split(" ")[-1]
    return head.startswith(("godwit::", "godwit_"))


def place_of(frame):
    """(function, file, line) or (function, None, 0)."""
    name = frame.name() or "??"
    sal = frame.find_sal()
    if sal.symtab is None or sal.line == 0:
        return name, None, 0
    return name, sal.symtab.filename, sal.line


def in_headers(filename):
    """Is this file one of the library's public headers? Closures there have no telling names."""
    return filename is not None and re.search(r"(^|/)godwit/(detail/)?[a-z_]+\.hpp$", filename) is not None


def is_system(frame):
    """Of the C or C++ library, inlined or not?"""
    if frame.name() and re.split(r"[<(]", frame.name(), maxsplit=1)[0].split(" ")[-1].startswith("std::"):
        return True
    library = gdb.solib_name(frame.pc())
    return (
        library is not None
        and re.match(
            r"(lib(c|m|pthread|stdc\+\+|c\+\+|gcc_s)|ld-linux.*|linux-vdso)[.-]", os.path.basename(library)
        )
        is not None
    )


def user_place():
    """The innermost frame of the selected thread that is the user's, with a line if any has one."""
    best = [None, None]  # a user's function without line, any function
    for _, frame in zip(range(64), frames()):
        place = place_of(frame)
        best[1] = best[1] or place
        if frame.name() is None or is_runtime(frame.name()) or is_system(frame) or in_headers(place[1]):
            continue
        if place[1] is not None:
            return place
        best[0] = best[0] or place
    return best[0] or best[1]
