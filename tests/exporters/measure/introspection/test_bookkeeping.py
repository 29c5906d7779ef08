"""Which attributes are a library's own account of an object."""

from __future__ import annotations

import logging

import torch

from heapwatch.measure.introspection.bookkeeping import bookkeeping_of, entries
from heapwatch.measure.introspection.layout import layout_of


class Policy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.losses: list[float] = []


def test_the_attributes_that_a_library_makes_are_its_books_and_those_of_the_user_are_not() -> None:
    books = bookkeeping_of(layout_of(Policy))
    assert {"_modules", "_parameters", "_forward_hooks"} <= books
    assert not books & {"losses", "layer"}
    assert "state" in bookkeeping_of(layout_of(torch.optim.Adam))
    assert bookkeeping_of(layout_of(logging.Logger)) == {"_cache"}
    assert not bookkeeping_of(layout_of(dict))


def test_entries_are_counted_over_all_books_of_an_object() -> None:
    policy = Policy()
    books = bookkeeping_of(layout_of(Policy))
    before = entries(vars(policy), books)
    policy.register_forward_hook(lambda *_: None)
    policy.add_module("second", torch.nn.Linear(2, 2))
    assert entries(vars(policy), books) >= before + 2
