"""What a run leaves for people: report.html (one file, no network), report.md with pictures/, and a CSV file per table."""

import csv
import html
import os
import re
import shutil

from . import charts, overview, papers
from .busy import BUSY, NOT_JUDGED
from .data import Table, number, others

STYLE = charts.STYLE + """body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;
color:var(--fg);background:var(--bg)}
a{color:var(--link)}h1{font-size:1.6rem}h2{font-size:1.3rem;margin-top:2.5rem;border-top:1px solid var(--line);padding-top:1rem}
h3{font-size:1.1rem;margin:2rem 0 .3rem}ul{padding-left:1.1rem;margin:.5rem 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.86rem;margin:.4rem 0}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap;vertical-align:top}
th{background:var(--head)}td.text,th.text{text-align:left}tr.paper{color:var(--soft)}.asked td{white-space:normal}
.overview th,.overview td{text-align:left;white-space:normal}.overview .part th{background:none;width:auto;padding-top:1rem}
.overview th:nth-child(1){width:18%}.overview th:nth-child(2){width:33%}.overview th:nth-child(4){width:14%}.verdict{font-weight:600}
.note,.legend{color:var(--soft);font-size:.86rem;margin:.3rem 0}.left-out,.busy{border-left:3px solid var(--c1);padding-left:.7rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:0 2rem;align-items:start}
figure{margin:1rem 0;max-width:36rem}figcaption{font-weight:600}svg.chart{width:100%;height:auto}
.legend span{margin-right:1rem;white-space:nowrap}.legend svg{vertical-align:-.15rem}
summary{cursor:pointer;color:var(--link)}pre{background:var(--head);padding:.6rem;overflow-x:auto;font-size:.8rem}
@media(max-width:40rem){.overview,.overview tbody,.overview tr,.overview td{display:block}.overview tr.names{display:none}
.overview td{border:0;padding:.1rem 0}.overview tr{border-bottom:1px solid var(--line);padding:.5rem 0}
.overview td[data-is]::before{content:attr(data-is) ": ";color:var(--soft)}}
"""
COLUMNS = ("experiment", "the papers", "here", "verdict")


def numeric(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def html_table(table):
    left = [i for i in range(len(table.columns)) if not any(numeric(r[i]) for r in table.rows)]

    def cell(tag, i, value):
        return f'<{tag}{" class=text" if i in left else ""}>{html.escape(number(value))}</{tag}>'

    rows = ["<tr>" + "".join(cell("th", i, c) for i, c in enumerate(table.columns)) + "</tr>"]
    for r in table.rows:
        foreign = "source" in table.columns and r[table.columns.index("source")] != "this run"
        rows.append(f'<tr{" class=paper" if foreign else ""}>' + "".join(cell("td", i, v) for i, v in enumerate(r)) + "</tr>")
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    caption = f"<caption>{html.escape(table.title)}</caption>"
    kind = " class=asked" if table.title == ASKED else ""
    return f'<div class="scroll"><table{kind}>{caption}{"".join(rows)}</table></div>{note}'


def cells_of(row):
    return "| " + " | ".join(number(v).replace("|", "\\|").replace("\n", " ") for v in row) + " |"


def markdown_table(table):
    lines = [f"**{table.title}**", "", "| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
    return lines + [cells_of(r) for r in table.rows] + ([""] + [table.note] if table.note else []) + [""]


def head_lines(run):
    m = run.get("machine")
    lines = [f"Preset {run['preset']}, {run['workers']} workers, Godwit {', '.join(run['versions'])}, {run['date']}."]
    if m:
        lines.append(f"{m['cpu']}, {m['usable_cpus']} usable CPUs; {m['kernel']}; {m['compiler']}, {m['compile_flags']}.")
    if len(run.get("cpus", [])) > 1:
        lines.append(f"Measured on {' and '.join(run['cpus'])}: the commands of a section say which.")
    if run["busy"] > BUSY:
        lines.append(f"Other programs used up to {run['busy']:.1f} CPUs during a step. What depends on times of such steps is shown, not judged.")
    if len(run["versions"]) > 1:
        lines.append("The data comes from several versions of Godwit; --fresh measures everything anew.")
    lines.append(f"Everything again: {run['command']}; one experiment: add --only and its name.")
    return lines


def status_lines(section):
    """What was left out, and why."""
    return [f"{r['step']}: {r['status']}: {r['reason']}" for r in section["records"] if r.get("status") in ("failed", "skipped")]


def busy_line(run, section):
    """Of a section with steps that a busy machine measured, the one line that says so; else empty."""
    busy = {step: cpus for step, cpus in section["busy"].items() if cpus > BUSY}
    if not busy:
        return ""
    return (f"The {NOT_JUDGED}. Times are only shown: other programs used up to {max(busy.values()):.1f} CPUs during {', '.join(busy)}; on a quiet machine:"
            f" {run['command']} --again --only {section['name']}")


ASKED = "What is asked"


def claim_table(section):
    """What is asked of the experiment, as a table."""
    so = {True: "yes", False: "no", None: "not judged"}
    return Table(ASKED, ["asked", "so?", "seen"], [[c.what, so[c.met], c.seen] for c in section["claims"]])


def tables_of(section):
    return [t for t in [claim_table(section), *section["content"].tables] if t.rows] if section["content"] else []


def commands_of(section):
    """Each with what it measured and how quiet the machine was."""
    return [x for r in section["records"] if "command" in r for x in (measured(r), r["command"]) if x]


def measured(record):
    if record.get("status") != "done":
        return ""
    cpu = record["result"].get("machine", {}).get("cpu")
    return f"# {record['started'][:10]}, Godwit {record['version']}{f', {cpu}' if cpu else ''}; others used {number(round(others(record), 2))} CPUs"


def html_overview(lines):
    """The rows, a heading for each part."""
    rows, part = ["<tr class=names>" + "".join(f"<th>{c}</th>" for c in COLUMNS) + "</tr>"], None
    for x in lines:
        if x.part != part:
            part = x.part
            rows.append(f'<tr class="part"><th colspan="{len(COLUMNS)}">{html.escape(part)}</th></tr>')
        rows.append(f'<tr><td><a href="{html.escape(x.link)}">{html.escape(x.title)}</a></td><td data-is="the papers">{html.escape(x.paper)}</td>'
                    f'<td data-is="here">{html.escape(x.ours)}</td><td class="verdict">{x.verdict}</td></tr>')
    return f'<table class="overview">{"".join(rows)}</table>'


def html_section(run, s):
    parts = [f'<h3 id="{overview.slug(s["title"])}">{html.escape(s["title"])}</h3>']
    parts += [f'<p class="left-out">{html.escape(line)}</p>' for line in status_lines(s)]
    parts += [f'<p class="busy">{html.escape(line)}</p>' for line in [busy_line(run, s)] if line]
    if s["content"]:
        parts += ["<ul>", *(f"<li>{html.escape(x)}</li>" for x in s["content"].sentences), "</ul>"] if s["content"].sentences else []
        parts += ['<div class="charts">', *(charts.svg(x) for x in s["content"].charts), "</div>"]
        parts += [f"<details><summary>{html.escape(t.title)}</summary>{html_table(t)}</details>" for t in tables_of(s)]
    if commands_of(s):
        parts.append("<details><summary>Commands</summary><pre>" + html.escape("\n".join(commands_of(s))) + "</pre></details>")
    return [*parts, '<p class="note"><a href="#top">All experiments</a></p>']


def html_page(run, sections, kept):
    lines = overview.lines(sections)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>The papers' experiments on this machine</title><style>{STYLE}</style>"
        "<h1 id=top>The papers' experiments on this machine</h1>"
    ]
    parts += [f"<p class=note>{html.escape(line)}</p>" for line in head_lines(run)]
    parts += [f"<p>{len(lines)} experiments. {overview.count(lines)}.</p>", html_overview(lines)]
    if kept:
        parts.append(f"<details><summary>What tests decide: {len(kept)} rows. {overview.count(kept)}</summary>{html_overview(kept)}</details>")
    part = None
    for s, x in zip(sections, lines):
        if x.part != part:
            part = x.part
            parts.append(f"<h2>{html.escape(part)}</h2>")
        parts += html_section(run, s)
    parts.append("<h2>Sources</h2>" + "".join(f"<p>{k}: {html.escape(v)}</p>" for k, v in papers.SOURCES.items()) + "</html>")
    return "\n".join(parts) + "\n"


def markdown_overview(lines):
    rows = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    return [*rows, *(cells_of([f"[{x.title}]({x.link})", x.paper, x.ours, x.verdict]) for x in lines), ""]


def pictures_of(section):
    """[(name of the file, title, SVG)] of its charts."""
    drawn = [(c, charts.picture(c)) for c in (section["content"].charts if section["content"] else [])]
    return [(f"{overview.slug(section['title'])}-{i}.svg", c, p) for i, (c, p) in enumerate(((c, p) for c, p in drawn if p), 1)]


def markdown(run, sections, kept):
    of = overview.lines(sections)
    lines = ["# The papers' experiments on this machine", ""]
    lines += [x for line in head_lines(run) for x in (line, "")]
    lines += [f"{len(of)} experiments. {overview.count(of)}.", "", *markdown_overview(of)]
    if kept:
        lines += [f"What tests decide: {len(kept)} rows. {overview.count(kept)}.", "", *markdown_overview(kept)]
    for s in sections:
        lines += [f"## {s['title']}", "", f"Its name for `--only`: {s['name']}.", ""]
        lines += [x for line in status_lines(s) + [busy_line(run, s)] if line for x in (f"> {line}", "")]
        lines += [*(f"- {x}" for x in s["content"].sentences), ""] if s["content"] else []
        for name, chart, _ in pictures_of(s):
            lines += [f"![{chart.title}](pictures/{name})", "", f"{chart.title}. {chart.note}".strip(), ""]
        for t in tables_of(s):
            lines += markdown_table(t)
        if commands_of(s):
            lines += ["```", *commands_of(s), "```", ""]
    lines += ["## Sources", ""] + [f"- {k}: {v}" for k, v in papers.SOURCES.items()]
    return "\n".join(lines) + "\n"


def write_csv(folder, sections):
    """One file per table, full precision: U11-1.csv and so on."""
    os.makedirs(folder, exist_ok=True)
    for s in sections:
        for i, t in enumerate(s["content"].tables if s["content"] else []):
            with open(os.path.join(folder, f"{s['name']}-{i + 1}.csv"), "w", newline="", encoding="utf-8") as f:
                out = csv.writer(f)
                out.writerow([re.sub(r"\s+", " ", c) for c in t.columns])
                out.writerows([["" if v is None else v for v in r] for r in t.rows])


def write(folder, run, sections, kept):
    """kept: lines of the table that tests decide (overview.kept_lines)."""
    pictures = os.path.join(folder, "pictures")
    shutil.rmtree(pictures, ignore_errors=True)
    os.makedirs(pictures)
    files = {"report.html": html_page(run, sections, kept), "report.md": markdown(run, sections, kept)}
    files.update({os.path.join("pictures", name): svg for s in sections for name, _, svg in pictures_of(s)})
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    write_csv(os.path.join(folder, "csv"), sections)
