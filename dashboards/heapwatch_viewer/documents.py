"""The project's own pages, such as the runbooks that alerts point to (`docs/runbooks/<Alert>.md`)."""

from functools import cache
from pathlib import Path

import markdown2

from heapwatch import data

FOLDER = data.path("docs")
EXTRAS = ["tables", "fenced-code-blocks", "code-friendly", "cuddled-lists"]


def rendered(text: str) -> str:
    """Markdown as HTML; raw HTML in it is escaped."""
    return str(markdown2.markdown(text, safe_mode="escape", extras=EXTRAS))


def find(path: str) -> Path | None:
    """The page or image at `path` below the documents, None when there is none."""
    try:
        file = (FOLDER / path).resolve()
        found = file.is_relative_to(FOLDER) and file.suffix in (".md", ".png") and file.is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL in it
        return None
    return file if found else None


@cache
def alerts() -> frozenset[str]:
    """The alerts that have a runbook."""
    return frozenset(file.stem for file in (FOLDER / "runbooks").glob("*.md"))


def runbook(alert: str) -> str:
    """The address of the alert's runbook in the viewer: its `runbook_url`, from the root."""
    return f"/docs/runbooks/{alert}.md"
