"""HTML of texts that are not ours."""

from heapwatch.runtime.markup import paragraph, table


def test_no_text_is_markup_or_a_control_character():
    assert paragraph("<b>&\x1b") == "<p>&lt;b&gt;&amp;\\x1b</p>"
    assert paragraph("<b>", strong=True) == "<p><strong>&lt;b&gt;</strong></p>"
    shown = table(["<i>"], [["<script>"], ["\u202e"]])
    assert "&lt;i&gt;" in shown
    assert "&lt;script&gt;" in shown
    assert "\\u202e" in shown


def test_what_is_unknown_is_an_empty_cell_and_no_rows_are_no_table():
    assert '<td style="text-align:left"></td>' in table(["bytes"], [[None]])
    assert table(["bytes"], []) == ""


def test_what_stands_in_backticks_is_code() -> None:
    assert paragraph("`%reset -f out`, then `<b>`") == (
        "<p><code>%reset -f out</code>, then <code>&lt;b&gt;</code></p>"
    )
