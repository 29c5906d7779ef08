"""What `make documents-test` tries is what the pages have today."""


def test_each_row_of_each_page_has_a_check() -> None:
    # Imported here: it brings the examples with all that they need, and each worker imports this file.
    from tests.documents.tables import NUMBERS, SYSTEMS, page, rows, with_numbers

    for system, checks in SYSTEMS.items():
        assert rows(system) == list(checks)
    for system in NUMBERS:
        assert with_numbers(system) == page(system).read_text(encoding="utf-8")
