"""From raw data to what stands on the page: the active global address space (G4, G13, G15)."""

import npb

from .data import ROUNDS, Content, Dot, Dots, Table, measurements, number, span_of


def hosts_of(record):
    """What the rows of a step begin with: hosts, MPI, way."""
    about = record["about"]
    return [about.get("hosts", 1), about.get("mpi"), about.get("way")]


def g4(data):
    c, rows = Content(), []
    for record in data.steps("g4_"):
        for m in measurements(record, "Storms"):
            for r in m["rows"]:
                rows.append([*hosts_of(record), r["storms"], r["right"], r["updates"], r["moved"], r["parts"], r["busy"],
                             r["messages_each"], r["messages_worst"]])
    c.tables.append(
        Table(
            "Storms of updates beside moves",
            ["hosts", "MPI", "way", "storms", "right", "updates", "moves", "blocks moved", "given up", "messages", "most"],
            rows,
            "From 1 to 100 moves for 100 updates of 8 blocks, by two threads for every worker. Right: every value read on the way and"
            " every word at the end is what it must be, and no budget has changed. Messages: of a get, put or atomic, those that failed"
            " included; on average, and in the storm with the most. The paper's program moves the same share and verifies nothing.",
        )
    )
    if rows:
        storms, right = sum(r[3] for r in rows), sum(r[4] for r in rows)
        c.sentences.append(f"{number(right)} of {number(storms)} storms were right.")
        far = [r[9] for r in rows if r[0] > 1]
        if far:
            c.sentences.append(f"Between hosts an access took {number(max(far))} messages at most, on average over the storms of a"
                               " setting (6 are allowed).")
    return c


def g13(data):
    c, rows = Content(), []
    for record in data.steps("g13_"):
        for m in measurements(record, "Ghost cells"):
            for r in m["rows"]:
                rows.append([*hosts_of(record), r["workers"], r["moves"], r["moved"], r["load"], r["mass_error"],
                             r["others_ghosts_a_step"], r["far_reads_a_step"], r["wrong"]])
    c.tables.append(
        Table(
            "Adaptive mesh refinement",
            ["hosts", "MPI", "way", "workers", "moves", "grids moved", "load", "mass off by", "others' ghosts", "far reads", "cells wrong"],
            rows,
            "Per step: reads of ghost cells that another worker owned, and gets from other hosts. Load: the most grids of a worker"
            " over the mean. Wrong: against the serial form, bit by bit. The paper gives no figures.",
        )
    )
    for record in data.steps("g13_"):
        for key, f in record["result"].get("figures", {}).items():
            if key.endswith(".far_saved") or (key.endswith(".saved") and record["about"].get("hosts", 1) == 1):
                hosts = record["about"].get("hosts", 1)
                c.sentences.append(f"{hosts} host{'s' if hosts > 1 else ''}, {f['what']}: {number(f['value'])} x.")
    return c


def g15(data):
    c, rows, dots, record = Content(), [], [], data.get("g15_npb")
    for name, rounds in record["result"]["rounds"].items() if record else ():
        for column in npb.COLUMNS:
            over = [r[column] / r["serial"] for r in rounds if r.get(column)]
            if over:
                rows.append([name, column, span_of([r[column] for r in rounds])[0], *span_of(over)])
            if over and column != "serial":
                dots.append(Dot(f"{name}, {column}", *span_of(over)))
    c.charts.append(Dots("Time over the serial program", "ratio, x", dots, True, f"{ROUNDS} The paper gives no figures."))
    c.tables.append(
        Table(
            f"NAS Parallel Benchmarks, class {record['result']['class']}" if record else "NAS Parallel Benchmarks",
            ["benchmark", "program", "seconds", "over serial", "least", "most"],
            rows,
            "Each result is verified by NPB's official values. Over serial: time over the serial program's of the same round. Threads: two of"
            " std::thread. Godwit: workers of one host. 2 hosts: a worker each. NPB-CPP, the public C++ version, takes part where its sources"
            " are given. The paper names the suite, class A on 16 nodes, and gives no figures in its text.",
        )
    )
    return c


__all__ = ["g4", "g13", "g15"]
