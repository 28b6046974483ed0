"""What this host knows of global memory: whose an address is, and where the parts of movable memory are.

Reads the window by way of the table godwit_debug_ (src/runtime/debugger.hpp), as state.py does. Words:
src/gas/words.hpp, places.hpp; docs/protocols/move.md. Document: docs/debugging.md. Test: tests/gdb.
"""

import gdb

import godwit_gdb.state as state

LIVE, INTERIOR = 1, 3  # gas::descriptor::state
LOCAL, BLOCKED, CYCLIC, USER = range(4)  # detail::spread::kind
KINDS = ("at one worker", "blocked", "cyclic", "by the user")
# gas::place_state, and how gas::place packs it with the uses
STATES = ("untouched", "elsewhere", "wanted", "arriving", "fresh", "owned", "closing", "frozen")
USES, STATE_AT, MOVER_AT = (1 << 32) - 1, 32, 36
VERSION_AT = 24
MOST_SEARCHED = 4096  # granules, on hosts that do not know how many there are


class Allocation:
    """A distributed allocation, as the entry of its first granule describes it."""

    def __init__(self, memory, granule, entry):
        field = lambda name: memory.run.memory.u64(entry + memory.names["descriptor." + name])
        self.memory = memory
        self.begin = memory.names["global.shared"] + (granule << memory.names["global.granule_bits"])
        self.bytes, self.block, self.blocks = field("bytes"), field("block"), field("blocks")
        self.table, self.part_bytes = field("table"), field("move")
        self.kind = memory.run.memory.u32(entry + memory.names["descriptor.what"])
        self.home_of_all = memory.run.memory.u32(entry + memory.names["descriptor.home"])
        grain = 1 << memory.names["global.granule_bits"]
        self.granules = (self.bytes + grain - 1) // grain
        self.words = self.begin + self.granules * grain + memory.names["moved_words"]
        if self.part_bytes:
            size = memory.names["moved_words"] + self.parts() * memory.names["place"]
            self.all_granules = self.granules + (size + grain - 1) // grain
        else:
            self.all_granules = self.granules

    def parts(self):
        return (self.bytes + self.part_bytes - 1) // self.part_bytes

    def kind_text(self):
        return KINDS[self.kind] if self.kind < len(KINDS) else "?"

    def home(self, address):
        """The home of what lies there; None: only another host knows."""
        block = min((address - self.begin) // self.block, self.blocks - 1)
        if self.kind == LOCAL:
            return self.home_of_all
        if self.kind == BLOCKED:
            return block
        if self.kind == CYCLIC:
            return block % self.memory.names["global.homes"]
        if not self.memory.run.is_near(self.memory.local_home(self.table)):
            return None
        return self.memory.u32(self.table + 4 * block)


class Part:
    """A part of movable memory and its place on this host."""

    def __init__(self, allocation, number):
        memory = allocation.memory
        self.number = number
        self.address = allocation.begin + number * allocation.part_bytes
        self.home = allocation.home(self.address)
        words = allocation.words + number * memory.names["place"]
        owner = memory.u64(words + memory.names["place.owner"])
        local = memory.u64(words + memory.names["place.local"])
        self.version = owner >> VERSION_AT
        self.owner = owner & ((1 << VERSION_AT) - 1) if owner else self.home
        self.uses = local & USES
        self.state = STATES[local >> STATE_AT & 7]
        if self.state == "untouched":
            home_here = self.home is not None and memory.run.is_near(self.home)
            self.state = "owned" if home_here else "elsewhere"
        self.near = memory.u32(words + memory.names["place.near"])
        self.far = memory.u32(words + memory.names["place.far"])
        self.mover = local >> MOVER_AT if self.state in ("closing", "frozen") else None

    def here(self):
        return self.state in ("owned", "fresh", "closing")

    def heat_text(self):
        """Accesses since it came here; with one host none are counted."""
        return f"{self.near} by this host, {self.far} by others" if self.here() else "-"

    def place_text(self):
        text = self.state if self.mover is None else f"{self.state} for worker {self.mover}"
        return text + (f", {self.uses} uses" if self.uses != 1 else ", 1 use")


class Memory:
    def __init__(self, run):
        self.run = run
        self.names = run.names
        if not run.names.get("global"):
            raise state.Problem("godwit: this run has no global memory")
        try:
            self.generation = self.u64(self.names["global.words"] + self.names["host.generation"])
        except gdb.MemoryError:
            raise state.Problem(
                "godwit: global memory cannot be read here: a core file does not have it"
                if state.is_core()
                else "godwit: global memory cannot be read: the run is over"
            ) from None
        self.has_all = run.is_near(0)

    def u64(self, address):
        return self.run.memory.u64(self.names["global"] + address)

    def u32(self, address):
        return self.run.memory.u32(self.names["global"] + address)

    def local_home(self, address):
        return (address - self.names["global.local"]) >> self.names["global.local_bits"]

    def is_local(self, address):
        n = self.names
        return 0 <= address - n["global.local"] < n["global.homes"] << n["global.local_bits"]

    def entry(self, granule):
        return self.names["global"] + self.names["global.directory"] + granule * self.names["descriptor"]

    def _state(self, granule):
        """Of an entry; other hosts than worker 0's have copies, which may be old."""
        at, n = self.entry(granule), self.names
        if not self.has_all:
            if self.run.memory.u64(at + n["descriptor.generation"]) != self.generation + 1:
                return 0
        return self.run.memory.u64(at + n["descriptor.state"])

    def allocation(self, granule):
        """The live allocation that begins at a granule, or None."""
        if self._state(granule) != LIVE:
            return None
        return Allocation(self, granule, self.entry(granule))

    def at(self, address):
        """The live distributed allocation in which an address lies, or None."""
        n = self.names
        if not n["global.shared"] <= address < n["global_bytes"]:
            return None
        granule = (address - n["global.shared"]) >> n["global.granule_bits"]
        first = granule
        if self._state(granule) == INTERIOR:
            first = self.run.memory.u64(self.entry(granule) + n["descriptor.first"])
        a = self.allocation(first)
        return a if a is not None and address < a.begin + a.bytes else None

    def allocations(self):
        """All live distributed ones that this host knows."""
        n = self.names
        most = (n["global_bytes"] - n["global.shared"]) >> n["global.granule_bits"]
        if self.has_all:
            most = min(most, self.u64(n["global.words"] + n["host.next_granule"]))
        else:
            most = min(most, MOST_SEARCHED)
        granule = 0
        while granule < most:
            a = self.allocation(granule)
            if a is not None:
                yield a
            granule += a.all_granules if a is not None else 1


def address_of(text, memory):
    """An address of global memory: global:0x..., a number, a global_ptr, or a pointer into the window."""
    if text.startswith("global:"):
        text = text[len("global:") :]
    try:
        value = state.value_of(text)
    except gdb.error as problem:
        raise state.Problem(f"godwit: {text}: {problem}") from None
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        fields = value.type.strip_typedefs().fields()
        if len(fields) != 1 or fields[0].name != "at_":
            raise state.Problem(f"godwit: {text} is no global_ptr and no address")
        value = value["at_"]
    address = int(value) & ((1 << 64) - 1)
    base = memory.names["global"]
    return address - base if base <= address < base + memory.names["global_bytes"] else address
