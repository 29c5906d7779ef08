from heapwatch.text.markdown import escaped, table


def test_a_table_has_a_rule_under_its_head():
    assert table(("a", "b"), [("1", "`x`")]) == "| a | b |\n|---|---|\n| 1 | `x` |"


def test_a_foreign_text_makes_no_cell_no_line_and_no_element():
    assert escaped("a|<img>\n\x1b[2J & b") == "a\\|&lt;img&gt;\\n\\x1b[2J &amp; b"
