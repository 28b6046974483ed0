#!/usr/bin/env python3
"""Reads a trace file with Perfetto's own protobuf classes and checks what docs/tracing.md promises.

    perfetto_check.py [OPTION...] FILE      status 0: fine; 1: says what is wrong; 77: no such classes here
    --within-seconds S    the events are no further apart than that
    --causal              every worker wrote something, and nobody stole before the run started
The classes come from PyPI (pip install perfetto); scripts/setup test puts them where this script looks.
"""
import argparse
import collections
import json
import struct
import sys

try:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
except ImportError:
    print("perfetto_check: SKIPPED: no python module perfetto: scripts/setup test, or pip install perfetto")
    sys.exit(77)

RAW_FIELD = 47001
EVENT = struct.Struct("<QQQIIIHH")
HEADER = struct.Struct("<8sIIQQ")
INFO, EVENTS, STRINGS = 1, 2, 3
START, STEAL, RESUME = 1, 2, 3
problems = []


def wrong(text):
    if len(problems) < 20:
        problems.append(text)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def packets(data):
    at = 0
    while at < len(data):
        if data[at] != 0x0A:
            raise SystemExit(f"perfetto_check: no packet at byte {at}")
        length, at = varint(data, at + 1)
        if at + length > len(data):
            raise SystemExit(f"perfetto_check: the last packet is cut short at byte {at}")
        yield data[at : at + length]
        at += length


def raw_chunk(packet):
    tag, at = varint(packet, 0)
    if tag != RAW_FIELD << 3 | 2:
        return None
    length, at = varint(packet, at)
    magic, what, worker, count, size = HEADER.unpack_from(packet, at)
    if magic != b"godwit02":
        wrong(f"bad magic {magic}")
    body = packet[at + HEADER.size :]
    if len(body) != size or length != size + HEADER.size:
        wrong(f"chunk {what} of worker {worker}: {len(body)} bytes instead of {size}")
    return what, worker, count, body


def read(path):
    with open(path, "rb") as file:
        data = memoryview(file.read())
    events, strings, info, shown = collections.defaultdict(list), {}, None, []
    for packet in packets(data):
        chunk = raw_chunk(packet)
        if chunk is None:
            parsed = TracePacket()
            parsed.ParseFromString(bytes(packet))
            shown.append(parsed)
            continue
        what, worker, count, body = chunk
        if what == INFO:
            info = json.loads(bytes(body))
        elif what == EVENTS:
            if len(body) != count * EVENT.size:
                wrong(f"{count} events in {len(body)} bytes")
            events[worker] += EVENT.iter_unpack(body)
        elif what == STRINGS:
            at = 0
            for _ in range(count):
                address, length = struct.unpack_from("<QI", body, at)
                at += 12
                strings[address] = bytes(body[at : at + length]).decode()
                at += length
            if at != len(body):
                wrong("strings do not fill their chunk")
    return events, strings, info, shown


def check_raw(events, info):
    if info is None:
        raise SystemExit("perfetto_check: there is no info chunk")
    for key in ("godwit", "program", "arguments", "workers", "hosts", "options", "clock", "dropped", "stats"):
        if key not in info:
            wrong(f"info has no {key}")
    for worker in range(info["workers"]):
        mine = events[worker]
        if len(mine) != info["events"][worker]:
            wrong(f"worker {worker}: {len(mine)} events, info says {info['events'][worker]}")
        times = [e[0] for e in mine]
        if any(b < a for a, b in zip(times, times[1:])):
            wrong(f"worker {worker}: times go backwards")
        for e in mine:
            if not 1 <= e[6] <= 30:
                wrong(f"worker {worker}: event of kind {e[6]}")


def check_shown(shown, info):
    names, annotations, tracks, depth = {}, {}, {}, collections.Counter()
    timed, flows_begun, flows_ended = [], collections.Counter(), collections.Counter()
    for index, packet in enumerate(shown):
        for item in packet.interned_data.event_names:
            names[item.iid] = item.name
        for item in packet.interned_data.debug_annotation_names:
            annotations[item.iid] = item.name
        if packet.HasField("track_descriptor"):
            if packet.track_descriptor.uuid in tracks:
                wrong(f"two tracks {packet.track_descriptor.uuid}")
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            event = packet.track_event
            if event.track_uuid not in tracks:
                wrong(f"event on track {event.track_uuid}, which is not described before it")
            if event.HasField("name_iid") and event.name_iid not in names:
                wrong(f"name {event.name_iid} is not interned before its use")
            for a in event.debug_annotations:
                if a.name_iid not in annotations:
                    wrong(f"argument name {a.name_iid} is not interned")
            for flow in event.flow_ids:
                flows_begun[flow] += 1
            for flow in event.terminating_flow_ids:
                flows_ended[flow] += 1
            timed.append((packet.timestamp, index, event))
    if any(n > 1 for n in flows_begun.values()) or any(n > 1 for n in flows_ended.values()):
        wrong("a flow has more than one begin or end")
    if set(flows_ended) - set(flows_begun) and not any(info["dropped"]):
        wrong(f"{len(set(flows_ended) - set(flows_begun))} flows end that never began")
    timed.sort(key=lambda t: t[:2])
    slices = collections.Counter()
    for time, _, event in timed:
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            depth[event.track_uuid] += 1
            slices[tracks[event.track_uuid].parent_uuid] += 1
        elif event.type == TrackEvent.TYPE_SLICE_END:
            depth[event.track_uuid] -= 1
            if depth[event.track_uuid] < 0:
                wrong(f"{tracks[event.track_uuid].name}: a slice ends at {time} that has not begun")
        elif event.type == TrackEvent.TYPE_COUNTER:
            top = info["workers"] if "busy" in tracks[event.track_uuid].name else 1 << 40
            if not 0 <= event.counter_value <= top:
                wrong(f"{tracks[event.track_uuid].name} is {event.counter_value} at {time}")
    for uuid, open_slices in depth.items():
        if open_slices != 0:
            wrong(f"{tracks[uuid].name}: {open_slices} slices stay open")
    groups = {t.name: t.uuid for t in tracks.values() if t.parent_uuid == 0}
    workers = sum(t.parent_uuid == groups["workers"] for t in tracks.values())
    if workers != info["workers"]:
        wrong(f"{workers} worker tracks for {info['workers']} workers")
    return {
        "workers": workers,
        "threads": sum(t.parent_uuid == groups["threads"] for t in tracks.values()),
        "worker_slices": slices[groups["workers"]],
        "thread_slices": slices[groups["threads"]],
        "flows": len(set(flows_begun) & set(flows_ended)),
    }


def check_clocks(events, info, arguments):
    if arguments.within_seconds is not None:
        apart = (info["end_ns"] - info["origin_ns"]) / 1e9
        if apart > arguments.within_seconds:
            wrong(f"the events are {apart} s apart")
    if arguments.causal:
        every = sorted(e for mine in events.values() for e in mine)
        if len(events) != info["workers"]:
            wrong(f"only workers {sorted(events)} wrote anything")
        starts = [e for e in every if e[6] == START]
        if len(starts) != 1:
            raise SystemExit(f"perfetto_check: {len(starts)} starts of the run")
        moves = [e for e in every if e[6] in (STEAL, RESUME)]
        if not moves:
            wrong("no thread moved")
        # A thief's time is the end of its steal: after the start by at least what the message took.
        for e in moves:
            if e[0] <= starts[0][0]:
                wrong(f"a thread moved {starts[0][0] - e[0]} ns before the run started")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--within-seconds", type=float)
    parser.add_argument("--causal", action="store_true")
    arguments = parser.parse_args()
    events, strings, info, shown = read(arguments.file)
    check_raw(events, info)
    check_clocks(events, info, arguments)
    found = check_shown(shown, info)
    for p in problems:
        print("perfetto_check:", p)
    found.update(events=sum(map(len, events.values())), dropped=sum(info["dropped"]), strings=len(strings),
                 packets=len(shown))
    print("perfetto_check:", json.dumps(found))
    return 1 if problems else 0


sys.exit(main())
