"""TensorDicts that are stacked, locked, mapped into files and replaced."""

import itertools
import tempfile
import weakref

import torch
from tensordict import TensorDict


def tensor_dicts(held, dropped, watch):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for count in itertools.count(1):
            item = TensorDict({"state": torch.zeros(4, 8), "inner": {"a": torch.ones(4)}}, batch_size=[4])
            held["item"] = item
            dropped.append(weakref.ref(item))
            item["more"] = torch.zeros(4, count % 10 + 1)
            held["stack"] = torch.stack([item.clone(), item.clone()])
            held["lazy"] = [item[0], item[1:3]]
            if count % 50 == 0:
                held["mapped"] = item.memmap(folder)
            if count % 3 == 0:
                item.lock_()
            yield
