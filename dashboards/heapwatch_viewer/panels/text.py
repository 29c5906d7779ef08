"""Text panels: Markdown."""

from heapwatch_viewer.documents import rendered
from heapwatch_viewer.panels.base import Answers, Html


def render(answers: Answers) -> Html:
    """The panel's Markdown as HTML."""
    return Html(f'<div class="text">{rendered(answers.panel.options.get("content", ""))}</div>')
