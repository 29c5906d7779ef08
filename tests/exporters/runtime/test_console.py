import io

import pytest

pytest.importorskip("rich")

from rich.panel import Panel
from rich.table import Table

from heapwatch.runtime.console import console, literal

HOSTILE = "[bold]loud[/] [link=http://evil.example]here[/link] :bomb: \x1b[2J\n\u202e"
SHOWN = "[bold]loud[/] [link=http://evil.example]here[/link] :bomb: \\x1b[2J\\n\\u202e"


def drawn(*things):
    terminal = console()
    terminal.file, terminal.width = io.StringIO(), 200
    terminal._force_terminal = True
    for thing in things:
        terminal.print(thing)
    return terminal.file.getvalue()


def test_markup_links_and_controls_are_shown_as_they_are():
    table = Table()
    table.add_column("name")
    table.add_row(literal(HOSTILE))
    for text in (drawn(literal(HOSTILE)), drawn(table), drawn(Panel(literal(HOSTILE)))):
        assert SHOWN in text
        assert "\x1b[2J" not in text
        assert "]8;" not in text  # a hyperlink


def test_a_plain_string_is_no_markup_either():
    table = Table()
    table.add_column("name")
    table.add_row("[bold]loud[/] :bomb:")
    assert "[bold]loud[/] :bomb:" in drawn(table)
    assert "[bold]loud[/] :bomb:" in drawn("[bold]loud[/] :bomb:")
