"""Which operations a tensor's history holds."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from heapwatch.measure.sizing import graph
from heapwatch.measure.sizing.graph import has_graph, number_of, read_graphs


def operation(tensor: torch.Tensor) -> Any:
    read = read_graphs([weakref.ref(tensor)])
    assert read is not None
    assert read[0][0] == id(tensor)
    return read[0][1]


def number(tensor: torch.Tensor) -> int:
    return number_of(operation(tensor))


def holds_operation(tensor: torch.Tensor, after: int, until: int) -> bool:
    return graph.holds_operation(operation(tensor), after, until)


def test_a_tensor_without_history_has_none() -> None:
    for tensor in (torch.zeros(1), torch.ones(1, requires_grad=True)):
        assert not has_graph(tensor)
        assert operation(tensor) is None
    assert not has_graph([])
    assert has_graph(torch.ones(1, requires_grad=True) * 2)


def test_a_tensor_that_was_freed_has_no_row() -> None:
    assert read_graphs([weakref.ref(torch.zeros(1))]) == []


def test_the_operations_that_made_a_tensor_are_held_and_others_are_not() -> None:
    weight = torch.ones(2, requires_grad=True)
    before = weight.exp()
    between = weight.exp()
    after = (before * 2).sum()
    assert holds_operation(after, number(before) - 1, number(before))
    assert not holds_operation(after, number(before), number(between))
    assert holds_operation(after, number(between), number(after))


def test_the_search_leads_back_step_by_step_however_much_a_step_adds() -> None:
    weight = torch.ones(2, requires_grad=True)
    first = total = weight.sum()
    for _ in range(1500):
        part = weight
        for _ in range(5):
            part = part.exp()
        total = total + part.sum()
    assert holds_operation(total, number(first) - 1, number(first))


def test_one_old_operation_is_not_taken_for_those_since() -> None:
    weight = torch.ones(2, requires_grad=True)
    old = weight.exp()
    forgotten = weight.exp()
    anew = (old * weight).sum()
    assert not holds_operation(anew, number(old), number(forgotten))


def test_an_operation_of_the_program_runs_none_of_its_code() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            raise AssertionError

    inner = torch.ones(2, requires_grad=True).exp()
    assert holds_operation(Doubled.apply(inner), number(inner) - 1, number(inner))
