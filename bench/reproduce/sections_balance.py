"""From raw data to what stands on the page: global memory whose parts move, load that balances itself (G14)."""

from . import papers
from .data import Chart, Content, Table, measurements, number

POLICIES = ("least loaded", "predecessor", "successor", "random")


def g14(data):
    c = Content()
    record = data.get("g14_partitions")
    if record:
        for m in measurements(record, "as generated") + measurements(record, "permuted"):
            c.tables.append(
                Table(
                    f"{m['title']}, scale {m['parameters']['scale']}: largest load of a node / mean",
                    ["nodes", "before", "2D edge lists", *[x for p in POLICIES for x in (p + ", moves", "KB each", "after")]],
                    [
                        [r["nodes"], r["before"], r["squares"], *[x for p in POLICIES for x in (r[p]["moves"], r[p]["kb_each"], r[p]["after"])]]
                        for r in m["rows"]
                    ],
                    "1,024 partitions; a node with at least 1.4 times the mean gives its lightest one away. "
                    + " The paper (6.7): "
                    + ", ".join(f"{n} nodes {a} to {b} by {k} moves of {kb} KB" for n, (a, b, k, kb) in papers.RMAT.items())
                    + ".",
                )
            )
            permuted = m["title"].endswith("permuted")
            theirs = {"before": [(n, x[0]) for n, x in papers.RMAT.items()], "after, least loaded": [(n, x[1]) for n, x in papers.RMAT.items()]}
            lines = {"before": [(r["nodes"], r["before"]) for r in m["rows"]], "2D": [(r["nodes"], r["squares"]) for r in m["rows"]]}
            for p in POLICIES[:1]:
                lines["after, " + p] = [(r["nodes"], r[p]["after"]) for r in m["rows"]]
            c.charts.append(Chart(f"{m['title']}: largest load of a node over the mean", "nodes", "ratio, x", lines, True, papers=theirs if permuted else {}))
        permuted = measurements(record, "permuted")
        for r in permuted[0]["rows"] if permuted else []:
            if r["nodes"] >= 256:
                mine = r["least loaded"]
                c.sentences.append(
                    f"{r['nodes']} nodes: {number(r['before'])} becomes {number(mine['after'])} by {mine['moves']} moves"
                    f" of {mine['kb_each']:.0f} KB."
                )
    rows = []
    for name, where in (("g14_search", "one host"), ("g14_hosts", "two hosts")):
        if (record := data.get(name)) is None:
            continue
        for m in measurements(record, "Searches"):
            for r in m["rows"]:
                rows.append(
                    [where, m["parameters"]["scale"], m["parameters"]["sources"], r["workers"], r["before"], r["after"], r["moves"],
                     r["mteps_before"], r["mteps_after"]]
                )
    c.tables.append(
        Table(
            "gw::rebalance by degrees, and searches before and after it",
            ["", "scale", "keys", "workers", "before", "after", "moves", "Medges/s", "then"],
            rows,
            "Not permuted, threshold 1.2, until nobody is over. All moves are the plan's, all trees obey the rules of Graph500;"
            " harmonic means over the keys.",
        )
    )
    return c


__all__ = ["g14"]
