"""Which rows of `make gpu-test` fail, and what it says without a GPU."""

import torch

from benchmarks import gpu_check
from benchmarks.gpu_check import Check


def test_a_row_that_differs_or_is_absent_fails():
    check = Check()
    check.row("equal", 5, 5)
    check.row("near", 6, 5, 1)
    assert check.failed == 0
    check.row("far", 7, 5, 1)
    check.row("absent", None, 5, 100)
    assert check.failed == 2
    page = gpu_check.document(check, "H100", "2030-01-02")
    assert "on 2030-01-02, on H100" in page
    assert page.count("**FAIL**") == 2


def test_without_a_gpu_one_line_says_why(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu_check.main() == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("gpu-test needs a GPU: torch ")
    assert "not installed" in gpu_check.refusal(None)
