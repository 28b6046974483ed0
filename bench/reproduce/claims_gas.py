"""What is asked of the experiments on the active global address space (G4, G9 to G15). See claims.py."""

import npb

from . import papers
from .claim import at_least, at_most, claim, missing, timed
from .data import measurements, number, span_of

BOUNDED = 1024  # translations of the paper's bounded caches


def where(record):
    n = record["about"].get("hosts", 1)
    words = [f"{n} host" + ("s" if n > 1 else ""), record["about"].get("mpi"), record["about"].get("way")]
    return ", ".join(w for w in words if w)


def far(data, what, found):
    """A claim that cannot be judged, if there were no several hosts."""
    return None if found else missing(what, "no several hosts here, or their step failed")


def g4(data):
    seen = 0
    for record in data.steps("g4_"):
        for m in measurements(record, "Storms"):
            for r in m["rows"]:
                yield claim(f"{where(record)}: every storm of updates beside moves is right", r["right"] == r["storms"] > 0,
                            f"{r['right']} of {r['storms']}, {r['moved']:,} blocks moved", f"{where(record)}, storms right")
                if record["about"].get("hosts", 1) > 1:
                    seen += 1
                    yield at_most(f"{where(record)}: messages of an access, on average", r["messages_each"], 6)
    yield far(data, "storms between hosts", seen)


def g9(data):
    record = data.get("g9_puts")
    by = {r["key"]: r for m in measurements(record, "Puts") for r in m["rows"]} if record else {}
    for key, most in (("local", 0), ("cached", 2), ("forwarded", 3), ("via_home", 3)):
        if key in by:
            yield at_most(f"{by[key]['what']}: messages, as in the paper", by[key]["messages"], most, short=f"{key.replace('_', ' ')}, messages")
        else:
            yield missing(f"a put, {key}: messages", "not measured", f"{key.replace('_', ' ')}, messages")
    if "via_home" in by and "cached" in by:
        yield at_least("a put by the home over one whose owner is known, time", by["via_home"]["ns"] / by["cached"]["ns"], 1, data.busy(record),
                       "by the home over owner known, time")


def g10(data):
    record = data.get("g10_tables")
    rows = measurements(record, "Updates")[0]["rows"] if record else []
    for r in rows:
        if r["entries"]:
            share = r["entries"] / 4096
            yield claim(f"{r['translations']}: hit rate within 0.02 of the share of pages with room", abs(r["hit_rate"] - share) <= 0.02,
                        f"{number(r['hit_rate'])} of {number(share)}", f"{r['translations']}, hit rate")
    if not rows:
        yield missing("updates with bounded translations", "no several hosts here, or the step failed", "updates with bounded translations")
    for m in measurements(data.get("g10_gups")) if data.get("g10_gups") else []:
        yield claim("random updates of movable memory between hosts: undone and compared word by word", True, m["title"])


def g11(data):
    record = data.get("g11_moves")
    rows = measurements(record, "Updates beside moves")[0]["rows"] if record else []
    for r in rows:
        yield claim(f"{r['moves']:,} moves beside updates: no wrong word", r["wrong"] == 0, f"{r['wrong']} wrong, {r['moved']:,} moved",
                    f"{r['moves']:,} moves, words")
    if len(rows) > 1:
        yield claim("most moves asked for were carried out", rows[-1]["moved"] * 2 > rows[-1]["moves"],
                    f"{rows[-1]['moved']:,} of {rows[-1]['moves']:,}")
    else:
        yield missing("updates beside moves", "no several hosts here, or the step failed", "updates beside moves")
    relay = data.get("g11_moves_relay")
    for r in measurements(relay, "Updates beside moves")[0]["rows"] if relay else []:
        yield claim(f"{r['moves']:,} moves, a switch routes by page: no host looks up who has one", r["looked_up"] * 100 < r["updates"], f"{r['looked_up']} times, {r['updates']:,} updates")


def g12(data):
    near = [r for r in data.steps("g12_") if not r["about"].get("mpi")]
    for record in near:
        m = measurements(record, "Small transfers")[0]
        low, high = m["rows"][0]["bytes"], m["rows"][-1]["bytes"]
        yield claim("one host: sizes from 8 bytes to 1 MiB, every word compared", low == 8 and high == 1 << 20, f"{low} to {high:,} bytes")
    for mpi in sorted({r["about"]["mpi"] for r in data.steps("g12_") if r["about"].get("mpi")}):
        ours, alone = ((data.get(f"g12_{mpi}_{x}")) for x in ("ours", "alone"))
        if ours is None or alone is None:
            yield missing(f"two hosts, {mpi}: beside MPI alone", "a step failed")
            continue
        theirs = {r["bytes"]: r for m in measurements(alone, "Small transfers") for r in m["rows"]}
        for m in measurements(ours, "Small transfers"):
            for r in m["rows"]:
                if r["bytes"] in theirs and r["bytes"] in (8, 1 << 20):
                    for op in ("put", "get"):
                        yield at_most(f"two hosts, {mpi}: {op} of {r['bytes']:,} bytes, latency over MPI's alone", r[f"{op}_us"] / theirs[r["bytes"]][f"{op}_us"],
                                      2, data.busy(ours, alone))
                    yield at_least(f"two hosts, {mpi}: rate of puts of {r['bytes']:,} bytes over MPI's messages", r["put_rate"] / theirs[r["bytes"]]["put_rate"],
                                   0.5, data.busy(ours, alone))
    if not any(r["about"].get("mpi") for r in data.steps("g12_")):
        yield missing("between two hosts, beside MPI alone", "no two hosts here")


def g13(data):
    for record in data.steps("g13_"):
        for m in measurements(record, "Ghost cells"):
            yield claim(f"{where(record)}: every cell as in the serial form, bit by bit", all(r["wrong"] == 0 for r in m["rows"]),
                        f"{sum(r['wrong'] for r in m['rows'])} wrong", f"{where(record)}, cells")
        for key, f in record["result"].get("figures", {}).items():
            if key.endswith(".far_saved"):
                yield at_least(f"{where(record)}: {f['what']}", f["value"], 1)
    yield far(data, "between hosts", any(r["about"].get("hosts", 1) > 1 for r in data.steps("g13_")))


def g14(data):
    record = data.get("g14_partitions")
    for m in measurements(record, "permuted") if record else []:
        if m["parameters"]["scale"] != 20:
            yield missing("the paper's imbalances", "scale 20 in the presets quick and full", "imbalances")
            continue
        for r in m["rows"]:
            if r["nodes"] in papers.RMAT:
                before, after, moves, _ = papers.RMAT[r["nodes"]]
                mine = r["least loaded"]
                close = abs(r["before"] / before - 1) <= 0.1 and abs(mine["after"] / after - 1) <= 0.1
                yield claim(f"{r['nodes']} nodes: {before} becomes {after}, within 10 %", close, f"{number(r['before'])} becomes {number(mine['after'])}",
                            f"{r['nodes']} nodes")
                yield claim(f"{r['nodes']} nodes: the paper's {moves} moves, within a half", moves / 1.5 <= mine["moves"] <= 1.5 * moves,
                            f"{mine['moves']} moves", f"{r['nodes']} nodes, moves")
    for name in ("g14_search", "g14_hosts"):
        for m in measurements(data.get(name), "Searches") if data.get(name) else []:
            for r in m["rows"]:
                yield claim(f"{where(data.get(name))}, {r['workers']} workers: searches obey Graph500's rules, and moves help the load",
                            r["after"] <= r["before"], f"{number(r['before'])} becomes {number(r['after'])} by {r['moves']} moves")


def g15(data):
    record = data.get("g15_npb")
    for name, rounds in record["result"]["rounds"].items() if record else ():
        title, n = f"{name}, class {record['result']['class']}", f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}"
        yield claim(f"{title}, one host: verified by the official values", bool(rounds), n, f"{name}, one host")
        if any("2 hosts" in r for r in rounds):
            yield claim(f"{title}, two hosts: verified by the official values", all("2 hosts" in r for r in rounds), n, f"{name}, two hosts")
        for what, asked, ratio, enough in npb.ratios(name):
            if asked and rounds and record["result"]["class"] == "A":  # less is over before anything can be compared
                middle, low, high = span_of([ratio(r) for r in rounds])
                yield timed(f"{title}: {what}, {asked}", enough(middle), f"{middle:.3f} ({low:.3f} to {high:.3f} in {n})", data.busy(record))
