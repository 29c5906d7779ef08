import pytest

from heapwatch.runtime.plain_text import plain


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("food", "food"),
        ("Gedächtnis 記憶 🤖", "Gedächtnis 記憶 🤖"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J", "\\x9b2J"),
        ("a\nCRITICAL b\r\t", "a\\nCRITICAL b\\r\\t"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("exe.\u202egnp", "exe.\\u202egnp"),
        ("\ud800", "\\ud800"),
        ("5\u00a0MB", "5 MB"),
        ("", ""),
        (None, "None"),
    ],
)
def test_what_controls_a_terminal_is_shown_instead(given, shown):
    assert plain(given) == shown


def test_any_text_becomes_one_printable_line():
    everything = plain("".join(map(chr, range(0x11000))))
    assert everything.isprintable()
    everything.encode()


def test_long_text_is_cut():
    assert plain("x" * 100, 10) == "xxxxxxx..."
    assert plain("x" * 10, 10) == "x" * 10
