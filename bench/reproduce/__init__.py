"""The papers' comparisons, scaled to the machine at hand: what scripts/reproduce runs and writes.

    plan.py      experiments and their steps (a step is one command), per preset
    store.py     runs steps, keeps their raw data, resumes
    sections.py  from raw data to tables, charts and sentences beside the papers' figures (papers.py)
    claims.py    what is asked of an experiment, and whether it was so (claims_gas.py; claim.py: words for both)
    rows.py      everything the papers describe, row by row; table.py: runs and keeps the rows (--table)
    page.py      one HTML page, Markdown, CSV; charts.py: inline SVG
    trace.py     time series from a trace file; addresses.py: address space of a run's processes

Python's standard library only. Document: docs/reproduce.md. Test: tests/reproduce.
"""
