"""Functions that `torch.compile` traces again for each shape, with function modes and `vmap` around them."""

import warnings
import weakref

import torch
from torch.overrides import TorchFunctionMode


class Counting(TorchFunctionMode):
    """Sees all that is asked of a tensor while it is active."""

    seen = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name == "__get__" and getattr(function, "__self__", None) is torch.Tensor.grad_fn:
            raise AssertionError("somebody reads a graph while the program watches its tensors")
        Counting.seen += 1
        return function(*args, **(kwargs or {}))


def steps(held, dropped, watch):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    net = torch.nn.Linear(4, 4)
    held["net"] = net
    count = 0
    while True:
        count += 1
        if count % 30 == 1:
            torch.compiler.reset()
            compiled = torch.compile(lambda x: net(x).tanh().sum(), backend="eager")
            held["compiled"] = compiled
        loss = compiled(torch.randn(count % 5 + 1, 4))
        loss.backward()
        held["loss"] = loss
        dropped.append(weakref.ref(loss))
        with Counting():
            held["counted"] = (net.weight * 2).sum()
        held["mapped"] = torch.func.vmap(lambda row: row * net.weight[0])(torch.ones(3, 4))
        held["jacobian"] = torch.func.jacrev(lambda row: row.sin())(torch.ones(3))
        with torch.inference_mode():
            held["inferred"] = net(torch.ones(2, 4))
        yield
