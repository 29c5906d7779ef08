"""How much history a tensor keeps."""

from __future__ import annotations

import torch

from heapwatch.measure.graph import MOST_OPERATIONS, graph_of, history_of


def test_a_tensor_without_history_has_none() -> None:
    assert graph_of(torch.zeros(1)) is None
    assert history_of(torch.zeros(1)) is None
    assert history_of([]) is None


def test_operations_are_counted_and_parameters_are_not() -> None:
    weight = torch.ones(2, requires_grad=True)
    history = history_of((weight * 2).sum())
    assert history is not None
    assert history.operations == 2
    assert history.newest == history.oldest + 1


def test_the_walk_leads_to_the_oldest_operation_however_much_a_step_adds() -> None:
    weight = torch.ones(2, requires_grad=True)
    first = total = weight.sum()
    for _ in range(MOST_OPERATIONS // 2 - 10):
        part = weight
        for _ in range(5):
            part = part.exp()
        total = total + part.sum()
    before, after = history_of(first), history_of(total)
    assert before is not None
    assert after is not None
    assert after.oldest == before.newest


def test_an_operation_of_the_program_runs_none_of_its_code() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            raise AssertionError

    history = history_of(Doubled.apply(torch.ones(2, requires_grad=True).exp()))
    assert history is not None
    assert history.operations == 2
