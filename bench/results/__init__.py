"""scripts/results: every page of docs/results by one command. Document: docs/results/README.md. Test: tests/results.

cli.py: options and the loop; pages.py: what there is; head.py: which commit a page measured, and what changed since; programs.py: pages
from what one benchmark program measured; targets.py: what the project asks for, and the page that compares.
"""
