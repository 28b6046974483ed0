"""From raw data to what stands on the page: the active global address space (G9 to G12)."""

from . import papers
from .data import ROUNDS, Chart, Content, Dot, Dots, Table, measurements, number, span_of


DIRECTORIES = (
    ("", "by message, with hints"),
    ("_datagrams", "by datagram, with hints"),
    ("_relay", "by datagram, through a switch (a process)"),
)


def directories(data, name, title):
    """What was measured with each of them: (its text, rows)."""
    for suffix, text in DIRECTORIES:
        record = data.get(name + suffix)
        if record is not None:
            yield text, measurements(record, title)[0]["rows"]


def paper_messages(text, key):
    if key == "local":
        return 0
    return 2 if key == "cached" or "switch" in text else 3


def g9(data):
    c = Content()
    record = data.get("g9_puts")
    if record is None:
        return c
    rows, dots = measurements(record, "Puts")[0]["rows"], []
    for text, rows_of in directories(data, "g9_puts", "Puts"):
        c.tables.append(
            Table(
                f"A put of 8 bytes, {text}",
                ["memory", "us", "messages", "look-ups", "the paper's messages"],
                [
                    [r["what"], r["ns"] / 1e3, r["messages"], r["look_ups"], paper_messages(text, r["key"])]
                    for r in rows_of
                ],
                "Messages and look-ups are counted, and the program fails if one is too many. The paper (6.1): a put with the translation at hand"
                " costs what a direct one does, one that is sent on less than one by the home.",
            )
        )
        for r in rows_of:
            dots.append(Dot(f"{r['what']}, {text}", r["messages"]))
    for text, _ in directories(data, "g9_puts", "Puts"):
        dots += [Dot(f"{r['what']}, {text}", paper_messages(text, r["key"]), source="AG 6.1") for r in rows]
    c.charts.append(Dots("Messages of a put of 8 bytes", "messages", sorted(dots, key=lambda d: d.label)))
    by, busy = {r["key"]: r["ns"] for r in rows}, data.busy(record)
    if "via_home" in by:
        c.judge(
            busy,
            f"Over a put whose owner is known: sent on {number(by['forwarded'] / by['cached'])} x, by the home"
            f" {number(by['via_home'] / by['cached'])} x.",
        )
    return c


def g10(data):
    c = Content()
    record = data.get("g10_gups")
    if record is not None:
        rows = [
            [v["name"], v["workers"] or None, v["median_s"], v["min_s"]]
            for m in measurements(record)
            for v in m["variants"]
            if "median_s" in v
        ]
        c.tables.append(
            Table(
                "Random updates of 2,048-word pages, dealt out to the hosts",
                ["updates by", "workers", "s", "best s"],
                rows,
                "Every run is undone and compared word by word. The paper: its software and its network's directory differ by less than 10 %.",
            )
        )
        for key, f in record["result"].get("figures", {}).items():
            if key.endswith(".over_fixed"):
                c.judge(data.busy(record), f"{f['what']}: {number(f['value'])} x.")
    record = data.get("g10_tables")
    if record is None:
        return c
    tables = [m["rows"] for m in measurements(record, "")]
    over, what, source = papers.BOUNDED
    dots = [Dot(r["translations"], r["over_flat"]) for r in tables[0]] + [Dot(what, over, source=source)]
    c.charts.append(Dots("Time of updates over that with translations without bound", "ratio, x", dots, note="The paper: 30 % fewer updates."))
    c.tables.append(
        Table(
            "Updates of 2^21 words in 512-word pages, by the number of translations",
            ["translations", "us", "over flat", "hit rate of gets", "of the pages", "misses", "evictions", "sent on"],
            [
                [
                    r["translations"], r["us"], r["over_flat"], r["hit_rate"], r["entries"] / 4096 if r["entries"] else 1,
                    r["misses"], r["evictions"], r["sent_on"],
                ]
                for r in tables[0]
            ],
            "Hit rates must be within 0.02 of the share of the pages that there is room for, else the program fails. The paper: 1 K"
            " translations, random or LRU, cost 30 % of the updates.",
        )
    )
    c.tables.append(
        Table(
            "Look-ups of one worker, beside others of its host",
            ["table", "workers beside", "ns"],
            [[r["table"], r["beside"], r["ns"]] for r in tables[1]],
            "The paper: a table under one lock falls with contenders, a concurrent one does not, but costs 25 %.",
        )
    )
    return c


def g11(data):
    c = Content()
    record = data.get("g11_moves")
    if record is None:
        return c
    lines = {}
    for text, rows in directories(data, "g11_moves", "Updates beside moves"):
        lines[text] = [(r["moves"], r["updates_s"]) for r in rows]
        c.tables.append(
            Table(
                f"Updates of 4 pages of 4 KiB, {text}",
                ["moves", "moved", "updates s", "us per move", "looked up", "sent on", "wrong words"],
                [[r[k] for k in ("moves", "moved", "updates_s", "us_per_move", "looked_up", "sent_on", "wrong")] for r in rows],
                "Looked up: how often a host had to find out which one has a page. Sent on: accesses that came to one that had it no more."
                " A wrong word fails the program. The paper: with a directory in software the time of updates grows with the moves, with the"
                " network's it does not.",
            )
        )
    c.charts.append(Chart("Time of the updates beside moves", "moves", "time, s", lines, note="The paper's figures are drawn, without numbers."))
    return c


def g12(data):
    c, rows, lines = Content(), [], {}
    for record in data.steps("g12_"):
        about, alone = record["about"], record["step"].endswith("_alone")
        where = f"two hosts, {about['mpi']}{' alone' if alone else ''}" if about.get("mpi") else "one host"
        for m in measurements(record, "Small transfers"):
            for r in m["rows"]:
                rows.append([where, r["bytes"], r["put_us"], r["get_us"], r["put_rate"], r["get_rate"], r["bytes"] / r["put_us"], r["bytes"] / r["get_us"]])
                lines.setdefault(where + ", put", []).append((r["bytes"], r["put_us"]))
    c.tables.append(
        Table(
            "Put and get by size",
            ["where", "bytes", "put us", "get us", "puts a second", "gets a second", "put MB/s", "get MB/s"],
            rows,
            "A put ends when its bytes are there: data one way and an answer back; MPI alone sends the same messages. Rates: 16 under way up to"
            " 2,048 bytes, one at a time above. The papers' conduit is Photon over InfiniBand; its figures are drawn, not printed.",
        )
    )
    c.charts.append(Chart("Latency of a put", "size, bytes", "time, us", lines, log_x=True, log_y=True, note="The papers' figures are drawn, without numbers."))
    return c


__all__ = ["g9", "g10", "g11", "g12"]
