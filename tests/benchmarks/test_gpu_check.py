"""`make gpu-test` on doubles of NVML and torch, and what it says without a GPU."""

import types

import pytest
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


@pytest.mark.parametrize(
    ("status", "lines", "failed"),
    [
        (0, ["4 passed", "5000"], 0),
        (0, ["4 passed", "0"], 1),  # on the CPU
        (1, ["1 failed", "5000"], 1),
        (1, ["Traceback"], 1),
        (-11, [], 1),
    ],
)
def test_an_adapter_is_good_if_its_tests_pass_and_use_the_gpu(monkeypatch, status, lines, failed):
    done = types.SimpleNamespace(returncode=status, stdout="".join(f"{line}\n" for line in lines))
    monkeypatch.setattr(gpu_check.subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr(gpu_check, "ADAPTERS", ("pytest",))
    check = Check()
    gpu_check.adapters(check)
    assert check.failed == failed
