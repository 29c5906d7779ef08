"""Files of ours are opened through `runtime/own_files.py` alone, as anything may lie under their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import tree

ROOT = Path(__file__).parents[2]
LIBRARY = "exporters/heapwatch"
FOLDERS = (
    LIBRARY,
    f"{LIBRARY}/http",
    f"{LIBRARY}/cli",
    "stack/heapwatch_stack",
    "alerting/heapwatch_receiver",
    "examples/common",
)
BARE = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "mkdir", "makedirs"}
KERNEL, SHIPPED = "of the kernel", "of the installation"
# What opens something else than a file of ours: `module:function`, and whose it is.
OTHERS = {
    f"{LIBRARY}/discovery.py:_started": KERNEL,
    f"{LIBRARY}/lost.py:_write": "in the folder of the targets, and as open as that",
    f"{LIBRARY}/cli/parts.py:write_rules": SHIPPED,
    f"{LIBRARY}/cli/parts.py:_dashboard": SHIPPED,
    f"{LIBRARY}/cli/report.py:_last_lines": "of the user, who names the file",
    f"{LIBRARY}/cli/parts.py:_write": "of the user, who names the folder",
    "stack/heapwatch_stack/alertmanager.py:render": SHIPPED,
    "stack/heapwatch_stack/bootstrap.py:_fingerprint": SHIPPED,
    "stack/heapwatch_stack/configuration.py:write": f"{SHIPPED}; other users in containers read it",
    "stack/heapwatch_stack/debian.py:_private_apt": "of apt, which reads it as another user",
    "stack/heapwatch_stack/releases.py:_unpack": "an archive whose checksum was right",
    "stack/heapwatch_stack/configuration.py:fingerprint": SHIPPED,
    "alerting/heapwatch_receiver/store.py:Store": "the database's folder",
    "alerting/heapwatch_receiver/app.py:_add_pages": SHIPPED,
}


def bare_uses(path: Path) -> Iterator[str]:
    """Functions and classes with a call that opens or makes a file by itself."""
    for node in tree(path).body:
        for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
            opens = isinstance(call.func, ast.Attribute) and call.func.attr in BARE
            if opens or (isinstance(call.func, ast.Name) and call.func.id == "open"):
                yield f"{path.relative_to(ROOT).as_posix()}:{getattr(node, 'name', '')}"


def test_no_module_that_meets_files_of_ours_opens_one_by_itself() -> None:
    modules = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
    assert len(modules) > 80
    assert {use for path in modules for use in bare_uses(path)} == set(OTHERS)
