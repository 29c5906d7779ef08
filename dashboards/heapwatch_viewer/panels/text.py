"""Text panels: Markdown."""

import markdown2

from heapwatch_viewer.panels.base import Answers, Html


def render(answers: Answers) -> Html:
    """The panel's Markdown as HTML; raw HTML in it is escaped."""
    body = markdown2.markdown(answers.panel.options.get("content", ""), safe_mode="escape", extras=["tables"])
    return Html(f'<div class="text">{body}</div>')
