from heapwatch_viewer import documents


def test_every_runbook_is_found_and_nothing_outside_of_the_documents():
    assert {"TrainerLeak", "Watchdog"} <= documents.alerts()
    assert documents.find("runbooks/TrainerLeak.md")
    assert documents.find("../pyproject.toml") is None
    assert documents.find("../README.md") is None
    assert documents.find("runbooks/none.md") is None


def test_a_path_that_no_file_can_have_is_not_found():
    assert documents.find("\0") is None
    assert documents.find("runbooks/\0.md") is None
    assert documents.find("x" * 100_000 + ".md") is None


def test_html_in_markdown_is_escaped():
    assert "<script>" not in documents.rendered("<script>alert(1)</script>")
