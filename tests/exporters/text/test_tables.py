from heapwatch.text.tables import aligned

ROWS = [("name", "size", "verdict"), ("history", "1 GB", "LEAK"), ("x", "12 MB", "")]


def test_columns_have_the_width_of_their_longest_cell():
    assert aligned(ROWS) == ["name     size   verdict", "history  1 GB   LEAK", "x        12 MB"]


def test_numbers_stand_to_the_right_under_an_underlined_head():
    assert aligned(ROWS, (1,), head=True) == [
        "name      size  verdict",
        "-------  -----  -------",
        "history   1 GB  LEAK",
        "x        12 MB",
    ]
