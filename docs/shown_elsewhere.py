"""Takes the pictures of what others show: cells of a notebook, and the summary of a job.

python -m docs.shown_elsewhere
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from nbclient import NotebookClient

from heapwatch.cli.results import markdown
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.sites import Site
from tests.dashboards.browser import chromium

IMAGES = Path(__file__).with_name("images")
CELLS = (
    "%load_ext heapwatch",
    """class Agent:
    def __init__(self):
        self.history = []

    def learn(self, step):
        self.history.append({"step": step, "gradient": [0.5 * step] * 2000})


agent = Agent()""",
    "%%heapwatch\nfor step in range(1000):\n    agent.learn(step)",
    "[float(number) for number in range(900_000)]",
    "%heapwatch",
)
HISTORY = Finding(
    "container", "train().agent.history", "list of dict", 6694, 104_000_000, 8495.0, 144e6, 1.0,
    site=Site("train.py", 16, "Agent.learn"), remedy="`collections.deque(maxlen=...)`", is_leak=True,
)  # fmt: skip
STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 16px; color: #222; background: #fff; width: 960px; }
pre { font: 13px/1.4 monospace; background: #f5f5f5; border: 1px solid #ddd; padding: 8px; margin: 8px 0; }
table { border-collapse: collapse; font-size: 13px; }
td, th { padding: 3px 10px; border-bottom: 1px solid #ddd; }
"""


def main() -> None:
    """Run the notebook, and write both pictures."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(book, timeout=60, startup_timeout=60).execute()
    cells = "".join(_cell(cell) for cell in book.cells[1:])
    found = Explanation("leak", 61.0, 144e6, 1.0, (HISTORY,))
    summary = MarkdownIt("commonmark").enable("table").render(markdown(found))
    with chromium() as browser:
        for name, body in (("notebook", cells), ("job-summary", summary)):
            page = browser.new_page(viewport={"width": 1000, "height": 200})
            page.set_content(f"<style>{STYLE}</style>{body}")
            page.screenshot(path=IMAGES / f"{name}.png", full_page=True)


def _cell(cell: nbformat.NotebookNode) -> str:
    shown = [escape(one.data["text/plain"]) for one in cell.outputs if one.output_type == "display_data"]
    texts = [f"In [{cell.execution_count}]: {escape(cell.source)}", *shown]
    return "".join(f"<pre>{text}</pre>" for text in texts)


if __name__ == "__main__":
    main()
