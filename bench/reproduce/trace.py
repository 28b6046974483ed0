"""Time series from a trace file: how many workers were busy, how many joins could have gone on.

Reads the raw chunks that a trace has beside its Perfetto packets (src/trace/file.hpp, events.hpp). Two counts
only, in buckets; godwit-report is what shows a trace to people.
"""

import collections
import json
import struct

RAW_FIELD = 47001
MAGIC = b"godwit02"
HEADER = struct.Struct("<8sIIQQ")  # magic, what, worker, count, bytes
EVENT = struct.Struct("<QQQIIIHH")  # time, a, b, duration, bytes, other, what, detail
INFO, EVENTS = 1, 2
# src/trace/events.hpp: kind
START, STEAL, RESUME, TASK, END, SUSPEND, PLACE, CANCEL, IDLE, SLEEP, EXPOSE, COMPLETE = range(1, 13)


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("it ends in the middle of a number")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, bytes) of the length-delimited fields of a protobuf message; others are skipped."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            _, at = varint(data, at)
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        elif wire == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError("it ends in the middle of a field")
            yield number, data[at : at + size]
            at += size
        else:
            raise ValueError(f"field {number} has wire type {wire}")


def read(path):
    """(info, {worker: [event tuples in order]})"""
    with open(path, "rb") as f:
        data = memoryview(f.read())
    info, events = {}, collections.defaultdict(list)
    for number, packet in fields(data):
        if number != 1:
            continue
        for inner, chunk in fields(packet):
            if inner != RAW_FIELD:
                continue
            if len(chunk) < HEADER.size:
                raise ValueError("a chunk without a header")
            magic, what, worker, count, size = HEADER.unpack_from(chunk)
            body = chunk[HEADER.size : HEADER.size + size]
            if magic != MAGIC or len(body) != size:
                raise ValueError("a chunk of another version")
            if what == INFO:
                info = json.loads(bytes(body))
            elif what == EVENTS:
                if size < count * EVENT.size:
                    raise ValueError("fewer events than it says")
                events[worker] += list(EVENT.iter_unpack(body[: count * EVENT.size]))
    if not events:
        raise ValueError("there are no events in it")
    return info, dict(events)


def ready_spans(events):
    """(from, to) of every join, from when both sides are there to when the thread goes on; all workers'."""
    waits, spans, done = {}, [], {}
    merged = sorted((e for own in events.values() for e in own), key=lambda e: e[0])
    for time, a, b, duration, _, _, what, detail in merged:
        if what == SUSPEND and b != 0:
            waits[a] = [time, b]
        elif what == CANCEL:
            waits.pop(a, None)
        elif what in (END, COMPLETE):
            done[a] = (time, what == END and detail == 1)
        elif what == RESUME and a in waits:
            suspended, record = waits.pop(a)
            ended = done.get(record)
            if ended is None or ended[0] < suspended:
                ended = (
                    suspended,
                    False,
                )  # a record that was complete already, or whose end fell out of the ring
            if not ended[1]:
                spans.append((max(suspended, ended[0]), max(time - duration, suspended)))
    return [(x, y) for x, y in spans if y > x]


def time_series(path, buckets=200):
    """Averages per bucket of time: how many workers were busy, how many joins ready; and what was lost."""
    info, events = read(path)
    first = min(e[0] - e[3] for own in events.values() for e in own)
    last = max(e[0] for own in events.values() for e in own)
    width = max(1, last - first) / buckets
    idle, ready = [0.0] * buckets, [0.0] * buckets

    def add(to, start, end):
        at = max(0, min(buckets - 1, int((start - first) / width)))
        while at < buckets and first + at * width < end:
            low, high = first + at * width, first + (at + 1) * width
            to[at] += max(0.0, min(end, high) - max(start, low)) / width
            at += 1

    for own in events.values():
        for time, _, _, duration, _, _, what, _ in own:
            if what == IDLE:
                add(idle, time - duration, time)
    for start, end in ready_spans(events):
        add(ready, start, end)
    workers = max(info.get("workers", 0) if isinstance(info.get("workers", 0), int) else 0, max(events) + 1)
    return {
        "width_s": width * 1e-9,
        "workers": workers,
        "busy": [round(workers - x, 4) for x in idle],
        "ready": [round(x, 4) for x in ready],
        "dropped": sum(info["dropped"]) if isinstance(info.get("dropped"), list) else 0,
        "events": sum(len(own) for own in events.values()),
    }
