"""This version of torch has the functions without a public name that are read."""

from __future__ import annotations

from pathlib import Path

import torch

from heapwatch.measure.introspection.torch_internals import in_an_operation, internals


def test_they_say_what_the_public_functions_say(tmp_path: Path) -> None:
    read = internals()
    tensor = torch.zeros(100, requires_grad=True)
    result = 2 * tensor
    result.sum().backward()
    storage = tensor.untyped_storage()
    view = tensor.detach()[10:]
    assert read.address(view) == read.address(tensor) == storage._cdata
    assert read.data_address(view) == view.data_ptr()
    assert read.storage_object(tensor).data_ptr() == storage.data_ptr()
    assert read.gradient(tensor) is tensor.grad
    assert (read.operation(tensor), read.operation(result)) == (None, result.grad_fn)
    assert read.file_name(storage) is None
    in_file = torch.from_file(str(tmp_path / "tensor"), shared=True, size=1000)
    assert read.file_name(in_file.untyped_storage()) == str(tmp_path / "tensor")


def test_the_references_to_a_storage_are_those_of_its_tensors_and_of_its_own_object() -> None:
    read = internals()
    tensor = torch.zeros(100)
    assert read.references(read.address(tensor)) == 1
    views = [tensor[:10], tensor[10:]]
    storage = tensor.untyped_storage()
    assert read.references(storage._cdata) == 2 + len(views)


def test_in_an_operation_there_is_code_of_the_program() -> None:
    seen: list[bool] = []

    class Noted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            seen.append(in_an_operation())
            return gradient

    assert not in_an_operation()
    Noted.apply(torch.ones(1, requires_grad=True)).sum().backward()
    with torch.device("cpu"):  # a mode that sees what tensors are asked
        seen.append(in_an_operation())
    assert seen == [True, True]
