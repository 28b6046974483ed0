"""What a run leaves for people: report.html (one file, no network), report.md, and a CSV file per table."""

import csv
import html
import os
import re

from . import charts, papers
from .data import Table, number

STYLE = """:root{color-scheme:light dark;--fg:#1c2430;--bg:#fff;--soft:#5b6675;--line:#d9dee5;--head:#f3f5f8}
@media(prefers-color-scheme:dark){:root{--fg:#e3e7ec;--bg:#14181d;--soft:#9aa5b1;--line:#343c46;
--head:#1e242b}
}
body{font:15px/1.5 system-ui,sans-serif;max-width:68rem;margin:2rem auto;padding:0 1rem;
color:var(--fg);background:var(--bg)}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem;border-top:1px solid var(--line);padding-top:1rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.86rem;margin:.4rem 0}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th{background:var(--head)}td.text,th.text{text-align:left}tr.paper{color:var(--soft)}
.note,.legend{color:var(--soft);font-size:.86rem}.skipped{border-left:3px solid #c2410c;padding-left:.7rem}
figure{margin:1rem 0}figcaption{font-weight:600}svg{max-width:40rem;width:100%;height:auto}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}svg .grid{stroke:var(--line)}
.legend span{margin-right:1rem}
.legend i{display:inline-block;width:.8rem;height:.8rem;margin-right:.3rem;vertical-align:-.1rem}
pre{background:var(--head);padding:.6rem;overflow-x:auto;font-size:.8rem}nav a{margin-right:.8rem}"""


def numeric(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def html_table(table):
    left = [i for i in range(len(table.columns)) if not any(numeric(r[i]) for r in table.rows)]

    def cell(tag, i, value):
        return f'<{tag}{" class=text" if i in left else ""}>{html.escape(number(value))}</{tag}>'

    rows = ["<tr>" + "".join(cell("th", i, c) for i, c in enumerate(table.columns)) + "</tr>"]
    for r in table.rows:
        foreign = "source" in table.columns and r[table.columns.index("source")] != "this run"
        rows.append(
            f'<tr{" class=paper" if foreign else ""}>'
            + "".join(cell("td", i, v) for i, v in enumerate(r))
            + "</tr>"
        )
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    caption = f"<caption>{html.escape(table.title)}</caption>"
    return f'<div class="scroll"><table>{caption}{"".join(rows)}</table></div>{note}'


def markdown_table(table):
    lines = [
        f"**{table.title}**",
        "",
        "| " + " | ".join(table.columns) + " |",
        "|" + "---|" * len(table.columns),
    ]
    lines += ["| " + " | ".join(number(v).replace("|", "\\|") for v in r) + " |" for r in table.rows]
    return lines + ([""] + [table.note] if table.note else []) + [""]


def head_lines(run):
    m = run.get("machine")
    lines = [
        f"Preset {run['preset']}, {run['workers']} workers, Godwit {', '.join(run['versions'])},"
        f" {run['date']}."
    ]
    if m:
        lines.append(
            f"{m['cpu']}, {m['usable_cpus']} usable CPUs; {m['kernel']}; {m['compiler']},"
            f" {m['compile_flags']}."
        )
    if run["busy"] > 0.15:
        lines.append(
            f"The machine was busy: other programs used up to {run['busy']:.1f} CPUs during a step. Times of"
            " such steps are shown, not judged."
        )
    if len(run["versions"]) > 1:
        lines.append("The data comes from several versions of Godwit; --fresh measures everything anew.")
    lines.append(f"Everything again: {run['command']}; one experiment: add --only and its name.")
    return lines


def status_lines(section):
    """What was left out, and why."""
    return [
        f"{r['step']}: {r['status']}: {r['reason']}"
        for r in section["records"]
        if r.get("status") in ("failed", "skipped")
    ]


def claim_table(section):
    """What is asked of the experiment, as a table."""
    so = {True: "yes", False: "no", None: "not judged"}
    return Table("What is asked", ["asked", "so?", "seen"], [[c.what, so[c.met], c.seen] for c in section["claims"]])


def html_page(run, sections):
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>The papers' experiments on this machine</title><style>{STYLE}</style>"
        "<h1>The papers' experiments on this machine</h1>"
    ]
    parts += [f"<p>{html.escape(line)}</p>" for line in head_lines(run)]
    parts.append("<nav>" + " ".join(f'<a href="#{s["name"]}">{s["name"]}</a>' for s in sections) + "</nav>")
    for s in sections:
        parts.append(f'<h2 id="{s["name"]}">{s["name"]} {html.escape(s["title"])}</h2>')
        parts += [f'<p class="skipped">{html.escape(line)}</p>' for line in status_lines(s)]
        if s["content"]:
            c = s["content"]
            parts += [f"<p>{html.escape(x)}</p>" for x in c.sentences if x]
            parts += [charts.svg(x) for x in c.charts] + [html_table(t) for t in [claim_table(s), *c.tables] if t.rows]
        commands = [r["command"] for r in s["records"] if "command" in r]
        if commands:
            parts.append(
                "<details><summary>Commands</summary><pre>"
                + html.escape("\n".join(commands))
                + "</pre></details>"
            )
    parts.append(
        "<h2>Sources</h2>"
        + "".join(f"<p>{k}: {html.escape(v)}</p>" for k, v in papers.SOURCES.items())
        + "</html>"
    )
    return "\n".join(parts) + "\n"


def markdown(run, sections):
    lines = ["# The papers' experiments on this machine", ""]
    lines += [x for line in head_lines(run) for x in (line, "")]
    for s in sections:
        lines += [f"## {s['name']} {s['title']}", ""]
        lines += [x for line in status_lines(s) for x in (f"> {line}", "")]
        if s["content"]:
            lines += [x for sentence in s["content"].sentences if sentence for x in (sentence, "")]
            for t in [claim_table(s), *s["content"].tables]:
                if t.rows:
                    lines += markdown_table(t)
        commands = [r["command"] for r in s["records"] if "command" in r]
        if commands:
            lines += ["```", *commands, "```", ""]
    lines += ["## Sources", ""] + [f"- {k}: {v}" for k, v in papers.SOURCES.items()]
    return "\n".join(lines) + "\n"


def write_csv(folder, sections):
    """One file per table, full precision: U11-1.csv and so on."""
    os.makedirs(folder, exist_ok=True)
    for s in sections:
        for i, t in enumerate(s["content"].tables if s["content"] else []):
            with open(
                os.path.join(folder, f"{s['name']}-{i + 1}.csv"), "w", newline="", encoding="utf-8"
            ) as f:
                out = csv.writer(f)
                out.writerow([re.sub(r"\s+", " ", c) for c in t.columns])
                out.writerows([["" if v is None else v for v in r] for r in t.rows])


def write(folder, run, sections):
    for name, text in (("report.html", html_page(run, sections)), ("report.md", markdown(run, sections))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    write_csv(os.path.join(folder, "csv"), sections)
