from heapwatch.viewer import documents


def test_every_runbook_is_found_and_nothing_outside_of_the_documents():
    assert {"TrainerLeak", "Watchdog"} <= documents.alerts()
    assert documents.find("runbooks/TrainerLeak.md")
    assert documents.find("../pyproject.toml") is None
    assert documents.find("../README.md") is None
    assert documents.find("runbooks/none.md") is None


def test_html_in_markdown_is_escaped():
    assert "<script>" not in documents.rendered("<script>alert(1)</script>")
