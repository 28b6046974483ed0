"""What lies at an address of the heap that workers share: which block, in use or free, whose, and who allocated it.

Reads the heap by way of the table godwit_debug_ (src/runtime/debugger.hpp), as state.py does. Layout:
src/heap/layout.hpp, record.hpp; docs/protocols/heap.md. Document: docs/debugging.md. Test: tests/gdb.
"""

import gdb

import godwit_gdb.looking as looking
import godwit_gdb.state as state
from godwit_gdb.frames import is_header
from godwit_gdb.text import say

NONE, FREE, SMALL, LARGE = range(4)  # heap::run_kind
GRAIN = 16  # heap::allocations::grain
MOST_CALLERS, MOST_LINES = 15, 3


class Heap:
    def __init__(self, run):
        self.memory, self.names = run.memory, run.names
        if not run.names.get("shared"):
            raise state.Problem("godwit: the workers of this run share no heap")
        self.spans = self.common("spans")
        self.count = self.common("fresh")

    def common(self, field):
        return self.memory.u64(self.names["shared"] + self.names["common." + field])

    def entry(self, number):
        return self.common("table") + number * self.names["entry"]

    def byte(self, number, field):
        return self.memory.read(self.entry(number) + self.names["entry." + field], 1)[0]

    def u32(self, number, field):
        return self.memory.u32(self.entry(number) + self.names["entry." + field])

    def run_at(self, address):
        """The number of the first span of the run in which an address lies, or None."""
        wanted = (address - self.spans) >> self.names["span_bits"]
        number = 0
        while 0 <= wanted < self.count and number < self.count:
            behind = number + max(1, self.u32(number, "spans"))
            if wanted < behind:
                return number
            number = behind
        return None

    def chain(self, first, most):
        """The blocks of a list."""
        while first and most:
            yield first
            first = self.memory.u64(first)
            most -= 1

    def part_of(self, number):
        owner = self.memory.u64(self.entry(number) + self.names["entry.owner"])
        return (owner - self.common("parts")) // self.names["part"]

    def is_free(self, number, block):
        """Of a run of small blocks: in a list of its part, or on the way to one."""
        n = self.names
        size = self.u32(number, "block_bytes")
        if block - (self.spans + (number << n["span_bits"])) >= self.u32(number, "fresh") * size:
            return True
        most = 1 << 20
        heads = [self.memory.u64(self.entry(number) + n["entry.free"])]
        parts = self.memory.u32(n["shared"] + n["common.part_count"])
        for i in range(-n["mains"], parts):  # main's lie in front of them
            part = self.common("parts") + i * n["part"]
            heads.append(self.memory.u64(part + n["part.returned"]))
            found = part + n["part.found"] + self.byte(number, "size_class") * n["part.found_bytes"]
            heads.append(self.memory.u64(found))
        return any(block in self.chain(head, most) for head in heads)

    def record(self, block):
        """Bytes and site, if allocations are recorded; (None, None): the block is not in use."""
        recorded = self.common("recorded")
        word = self.memory.u64(recorded + self.names["records"] + (block - self.spans) // GRAIN * 8)
        bits = self.names["record.site_bits"]
        if not word >> 63:
            return None, None
        return (word & (1 << 62) - 1) >> bits, recorded + (word & (1 << bits) - 1) * self.names["site"]

    def lines_of(self, site):
        """The first callers that have a line which is not a header of the system's or the library's."""
        lines = []
        for i in range(MOST_CALLERS):
            pc = self.memory.u64(site + self.names["site.callers"] + 8 * i)
            if not pc or len(lines) == MOST_LINES:
                break
            line = gdb.find_pc_line(pc - 1)
            if line.symtab is None or is_header(line.symtab.fullname()):
                continue
            text = f"{line.symtab.filename.rsplit('/', 1)[-1]}:{line.line}"
            if not lines or lines[-1] != text:
                lines.append(text)
        return lines


def describe(heap, address):
    number = heap.run_at(address)
    if number is None:
        return "lies in no block of the heap that workers share"
    n = heap.names
    first = heap.spans + (number << n["span_bits"])
    kind = heap.byte(number, "kind")
    if kind not in (SMALL, LARGE):
        return "lies in memory of the heap that nobody uses"
    small = kind == SMALL
    size = heap.u32(number, "block_bytes") if small else heap.u32(number, "spans") << n["span_bits"]
    block = first + (address - first) // size * size
    where = f"block 0x{block:x} of {size} bytes"
    if small:
        part = heap.part_of(number)
        where += ", of " + (f"worker {part}'s part" if part >= 0 else "a part of main's")
    where = f"is {where}" if address == block else f"lies {address - block} bytes into {where}"
    if not heap.common("recorded"):
        return f"{where}: {'free' if small and heap.is_free(number, block) else 'in use'}"
    asked, site = heap.record(block)
    if asked is None:
        return f"{where}: free"
    lines = heap.lines_of(site)
    at = f", allocated at {lines[0]}" if lines else ""
    called = f", called at {', '.join(lines[1:])}" if lines[1:] else ""
    return f"{where}: in use, {asked} bytes{at}{called}"


def show_block(arguments):
    """godwit block"""
    looking.leave()
    text = " ".join(arguments)
    heap = Heap(state.Run())
    try:
        address = int(state.value_of(text)) & ((1 << 64) - 1)
        say(f"0x{address:x} {describe(heap, address)}")
    except gdb.MemoryError:
        raise state.Problem("godwit: the heap cannot be read here: a core file does not have it") from None
    except gdb.error as problem:
        raise state.Problem(f"godwit: {text}: {problem}") from None
