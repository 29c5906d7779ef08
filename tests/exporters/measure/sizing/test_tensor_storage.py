"""The memory of tensors, where it may be read and where it may not."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch

from heapwatch.measure.introspection.exclusive_reads import read_alone
from heapwatch.measure.sizing import tensor_storage
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.measure.sizing.foreign import UNREAD, MemoryBlock
from heapwatch.measure.sizing.tensor_storage import Storages, has_graph, number_of, read_graphs, tensor_parts


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may be in C code."""
    monkeypatch.setattr(tensor_storage, "read_alone", lambda objects, *columns: None)


def blocks(tensor: torch.Tensor, storages: Storages | None = None) -> list[MemoryBlock]:
    parts = tensor_parts(tensor, storages or Storages())
    return [part for part in parts if type(part) is MemoryBlock]


@pytest.mark.usefixtures("busy")
def test_of_a_tensor_that_may_be_changing_the_part_that_it_uses_counts() -> None:
    large = torch.zeros(100_000)
    assert [block.nbytes for block in blocks(large)] == [400_000]
    assert [block.nbytes for block in blocks(large[:10])] == [40]
    assert blocks(large)[0].address == blocks(large[10:20])[0].address


@pytest.mark.usefixtures("busy")
def test_the_whole_storages_are_wanted_and_used_once_they_were_read() -> None:
    large, storages = torch.zeros(100_000), Storages()
    view = large[5:15]
    del large
    assert UNREAD in tensor_parts(view, storages)
    assert blocks(view, storages)[0].nbytes == 40
    assert not storages.read(lambda read: None)  # nobody could read them
    assert not storages.known
    assert blocks(view, storages)[0].nbytes == 40
    assert storages.wanted
    assert storages.read(lambda read: read_alone(*read.args))
    assert not storages.wanted
    assert UNREAD not in tensor_parts(view, storages)
    assert blocks(view, storages)[0].nbytes == 400_000
    assert storages.known


@pytest.mark.usefixtures("busy")
def test_a_gradient_that_cannot_be_read_is_an_uncertainty_as_large_as_its_parameter() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1000))
    parameter.grad = torch.zeros(1000)
    assert [(block.nbytes, block.slack) for block in blocks(parameter)] == [(4000, 4000)]
    size = deep_size(parameter)
    assert size.bytes < 5000
    assert size.error_bytes >= 4000


@pytest.mark.usefixtures("busy")
def test_a_tensor_that_was_freed_is_not_kept_by_the_wish_to_read_it() -> None:
    storages = Storages()
    tensor = torch.zeros(100)
    blocks(tensor, storages)
    del tensor
    assert storages.read(lambda read: read_alone(*read.args))
    assert not storages.known


def test_a_wrapper_counts_what_it_wraps() -> None:
    nested = torch.nested.nested_tensor([torch.zeros(1000), torch.zeros(500)], layout=torch.jagged)
    assert 6000 <= deep_size(nested).bytes < 12_000


def operation(tensor: torch.Tensor) -> Any:
    read = read_graphs([weakref.ref(tensor)])
    assert read is not None
    assert read[0][0] == id(tensor)
    return read[0][1]


def number(tensor: torch.Tensor) -> int:
    return number_of(operation(tensor))


def holds_operation(tensor: torch.Tensor, after: int, until: int) -> bool:
    return tensor_storage.holds_operation(operation(tensor), after, until)


def test_a_tensor_without_history_or_that_was_freed_has_none() -> None:
    for tensor in (torch.zeros(1), torch.ones(1, requires_grad=True)):
        assert not has_graph(tensor)
        assert operation(tensor) is None
    assert not has_graph([])
    assert has_graph(torch.ones(1, requires_grad=True) * 2)
    assert read_graphs([weakref.ref(torch.zeros(1))]) == []


def test_the_operations_that_made_a_tensor_are_held_and_others_are_not() -> None:
    weight = torch.ones(2, requires_grad=True)
    before = weight.exp()
    between = weight.exp()
    after = (before * weight * 2).sum()
    assert holds_operation(after, number(before) - 1, number(before))
    assert not holds_operation(after, number(before), number(between))  # not taken for those since
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
