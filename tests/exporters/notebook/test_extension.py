"""The magics in a real kernel: one is started, and runs all cells of this file in their order."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.slow

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

CELLS = {
    "load": "%load_ext heapwatch",
    "define": """\
import gc, sys, threading
history = []
blob = bytearray(1_000_000)
class Table(bytearray):
    def __repr__(self):
        return "a table"
class Agent:
    losses = []
    def __init__(self):
        self.memory, self.table = [], Table(5_000_000)
    def learn(self):
        for _ in range(100):
            self.memory.append(bytearray(20_000))
agent = Agent()""",
    "grows": "%%heapwatch\nfor _ in range(100):\n    history.append(bytearray(10_000))",
    "function": "%%heapwatch\nagent.learn()",
    "class": "%%heapwatch\nAgent.losses.extend(bytearray(1000) for _ in range(1000))",
    "array": "%%heapwatch\nimport array\nnumbers = array.array('d', range(100_000))",
    "alias": "%%heapwatch\nsame, also = history, blob",
    "nothing": "%%heapwatch\nx = bytearray(10_000_000); del x",
    "await": """%%heapwatch
import asyncio
await asyncio.sleep(0)
waited = [bytearray(1_000_000)]
'a result'""",
    "error": """%%heapwatch
def fail():
    local = bytearray(3_000_000)
    raise KeyError(7)
fail()""",
    "result": "list(range(100_000, 200_000))",
    "held": "agent.table",
    "look": "%heapwatch",
    "named": """
from heapwatch.explain.inventory import Inventory
found = Inventory()
found.discover(10.0)
print(sorted(path for path in found.known if path[0] in "OI*" or "ipython" in path))
del found""",
    "drop": "%reset -f out",
    "drop error": "1/0",
    "look again": "%heapwatch",
    "watch": "import heapwatch\nwatch = heapwatch.start('notebook', port=0); watch",
    "watch again": "import heapwatch\nwatch = heapwatch.start('notebook', port=0); watch",
    "load again": "%reload_ext heapwatch",
    "nothing twice": """
from heapwatch import lifecycle
print(len(lifecycle.running()), sum("comparison" in thread.name for thread in threading.enumerate()))""",
    "once": "%%heapwatch\nhistory.append(bytearray(1_000_000))",
    "model": "import torch\nweight, graphs = torch.randn(256, 256, requires_grad=True), []",
    "graphs": """%%heapwatch --often
for _ in range(40):
    graphs.append(torch.tanh(torch.randn(2048, 256) @ weight).sum())""",
    "look last": "%heapwatch",
    "unload": "watch.stop()\n%unload_ext heapwatch",
    "gone": "%heapwatch",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "XDG_STATE_HOME"):
            patch.setenv(name, str(folder / name.lower()))
        patch.setenv("HEAPWATCH_TARGETS_DIR", str(folder / "targets"))
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in CELLS.values()])
        client = nbclient.NotebookClient(
            notebook,
            timeout=60,
            startup_timeout=60,
            allow_errors=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def shown(outputs, cell):
    """What the magic of a cell shows, as text."""
    displayed = [one.data for one in outputs[cell] if one.output_type == "display_data"]
    assert len(displayed) == 1, outputs[cell]
    return displayed[0]["text/plain"]


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("grows", "  history (list of bytearray): +1.01 MB and +100 items, filled at In[3]:3."),
        ("function", "agent.memory (list of bytearray): +2.01 MB and +100 items, filled at In[2]:13"),
        ("class", "MB and +1,000 items, filled at In[5]:2"),
        ("array", "numbers (array): +817 kB and +100,000 items, filled at In[6]:3"),
        ("await", "waited (list of bytearray): +1 MB and +1 items, filled at In[9]:4"),
        ("error", "MB. Suggested: run `1/0`: the next error takes its place."),
    ],
)
def test_a_cell_reports_what_it_leaves_behind_and_where(outputs, cell, line):
    assert any(line in one for one in shown(outputs, cell).splitlines()[1:]), shown(outputs, cell)


@pytest.mark.parametrize("cell", ["alias", "nothing"])
def test_another_name_and_garbage_are_nothing(outputs, cell):
    number = list(CELLS).index(cell) + 1
    assert shown(outputs, cell).startswith(f"In[{number}] leaves no path that holds 50 kB more.")


def test_the_cell_runs_as_any_other(outputs):
    results = [one.data["text/plain"] for one in outputs["await"] if one.output_type == "execute_result"]
    assert results == ["'a result'"]
    assert [one.ename for one in outputs["error"] if one.output_type == "error"] == ["KeyError"]


def test_the_magic_reports_what_grew_since_the_last_one_and_what_holds_most(outputs):
    grown, _, held = shown(outputs, "look").partition("holds most:")
    assert "history (list of bytearray): +1.01 MB and +100 items" in grown
    assert [line.split()[2] for line in held.splitlines()[1:4]] == ["agent", "Out[11]", "the"]


def test_what_an_import_fills_once_does_not_grow(outputs):
    assert "_registry" not in shown(outputs, "look last")


def test_what_ipython_keeps_is_named_with_the_way_to_drop_it(outputs):
    before, after = shown(outputs, "look"), shown(outputs, "look again")
    assert "\nOut[11] keeps 3.6 MB: `%reset -f out`, and a `;`" in before
    assert "\nthe last error keeps 3." in before
    assert "Out[12]" not in before  # a variable holds it
    assert "keeps" not in after
    assert "Out[11]" not in after


def test_the_explainer_names_out_and_stays_out_of_ipython(outputs):
    assert outputs["named"][0].text.strip() == "['In', 'Out', 'Out[*]']"


def test_a_cell_that_runs_again_starts_nothing_twice(outputs):
    assert outputs["nothing twice"][0].text.split() == ["1", "0"]
    assert "history (list of bytearray): +1 MB and +1 items" in shown(outputs, "once")


def test_what_graphs_hold_is_said_to_be_theirs_and_an_argument_to_be_ignored(outputs):
    ignored, found = [
        one.data["text/plain"] for one in outputs["graphs"] if one.output_type == "display_data"
    ]
    assert ignored == "%%heapwatch takes no arguments: '--often' is ignored"
    assert re.search(
        r"graphs \(list of Tensor\): .*\+40 items, filled at In\[\d+\]:3\. Suggested: `\.item", found
    )
    assert (
        "more is resident than that: probably the autograd graphs that the tensors in `graphs` keep." in found
    )


def test_a_watch_as_the_value_of_a_cell_is_its_explanation(outputs):
    (shown,) = (one.data["text/plain"] for one in outputs["watch"] if one.output_type == "execute_result")
    assert shown.startswith("notebook at http://127.0.0.1:")
    assert "too early to tell" in shown


def test_unloaded_it_is_gone(outputs):
    assert "`%heapwatch` not found" in outputs["gone"][0].text
