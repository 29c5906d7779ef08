"""Programs that change tensors of torch, as fast as they can."""

import itertools
import queue
import threading
import warnings
import weakref

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader, Dataset

from tests.harmless.programs import in_threads


def network():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def gradients(held, dropped, watch):
    """Gradients that `backward` makes and `zero_grad` drops, and an optimizer that steps."""
    torch.set_num_threads(1)
    held["net"] = net = network()
    held["optimizer"] = optimizer = torch.optim.Adam(net.parameters())
    inputs = torch.randn(4, 8)
    held["losses"] = []
    for count in itertools.count(1):
        optimizer.zero_grad(set_to_none=count % 3 != 0)
        loss = net(inputs).square().sum()
        loss.backward()
        dropped.append(weakref.ref(net[0].weight.grad))
        if count % 5 == 0:
            optimizer.step()
        if count % 7 == 0:
            net[0].weight.grad = None
        if count % 11 == 0:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        held["losses"].append(loss)
        del held["losses"][:-20]
        yield


class Doubled(torch.autograd.Function):
    """An operation of the program, with a context that it keeps."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.note = [x]
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient + 0 * ctx.saved_tensors[0]


def graphs(held, dropped, watch):
    """Autograd graphs that grow, are freed while they are walked, and are changed in place."""
    torch.set_num_threads(1)
    weight = torch.ones(4, requires_grad=True)
    held["weight"] = weight
    for count in itertools.count(1):
        total = held.get("total", 0.0) + Doubled.apply(weight * count).sum()
        if count % 40 == 0:
            total.backward(retain_graph=count % 80 == 0)
            total = weight.exp().sum()
        dropped.append(weakref.ref(total))
        held["total"] = total
        held["views"] = [total.view(1), total.reshape(1, 1), (weight * 2)[1:]]
        changed = torch.zeros(4)
        changed.add_(weight)
        held["changed"] = changed
        changed.mul_(2)
        changed.detach_()
        held["frozen"] = total.detach()
        with torch.no_grad():
            held["inferred"] = weight[1:3]
        if count % 13 == 0:
            weight.requires_grad_(False)
            weight.requires_grad_(True)
        yield


def storages(held, dropped, watch):
    """Storages that are resized, replaced, shared, swapped and freed."""
    torch.set_num_threads(1)
    tensors = [torch.zeros(10) for _ in range(20)]
    held["tensors"] = tensors
    first, second = torch.zeros(1000), torch.zeros(2000)
    for count in itertools.count(1):
        for tensor in tensors:
            tensor.resize_(count % 50 + 1)
            tensor.set_(first if count % 2 else second)
            tensor.set_(torch.zeros(30))
            tensor.untyped_storage().resize_(4 * (30 + count % 7))
            tensor.resize_(*(1, 1, 1, 1, 1, 1, 2) if count % 3 else (3,))
            tensor.data = torch.ones(count % 9)
        big = torch.zeros(64, 100)
        held["views"] = [big[at] for at in range(64)]
        held["storage"] = big.untyped_storage()
        dropped.append(weakref.ref(big))
        held["sparse"] = sparse = torch.eye(5).to_sparse()
        sparse.sparse_resize_((9, 9), 2, 0)
        held["compressed"] = torch.eye(5).to_sparse_csr()
        held["quantised"] = torch.quantize_per_tensor(torch.zeros(100), 0.1, 0, torch.qint8)
        if count % 20 == 0:
            held["shared"] = torch.zeros(100).share_memory_()
        if hasattr(torch.utils, "swap_tensors"):
            one, other = torch.zeros(3), torch.zeros(70)
            held["swapped"] = [one, other]
            torch.utils.swap_tensors(one, other)
        held["module"] = torch.nn.Linear(3, 3).to(torch.float64 if count % 2 else torch.float32)
        yield


def _train(shared, stopped, held, name, dropped, step):
    held[f"{name} net"] = net = network()
    inputs = torch.randn(4, 8)
    while not stopped.is_set():
        net.zero_grad()
        loss = (net(inputs) * shared).sum()
        loss.backward()
        dropped.append(weakref.ref(loss))
        held[name] = [loss, loss.detach().view(1)]
        step()
        yield


def several_threads(held, dropped, watch):
    """Autograd in threads that declare their steps: a network each, and one parameter that all share."""
    torch.set_num_threads(1)
    held["shared"] = shared = torch.ones(2, requires_grad=True)
    yield from in_threads(_train, shared, held, dropped, watch)


class Squares(Dataset):
    """A small data set."""

    def __len__(self):
        return 64

    def __getitem__(self, at):
        return torch.full((16,), float(at)), at * at


def _hand_on(batches, held, stopped, dropped):
    while not stopped.is_set():
        try:
            batch = batches.get(timeout=0.1)
        except queue.Empty:
            continue
        held["pinned"] = [batch[0].clone().resize_(8, 16), batch[1]]
        dropped.append(weakref.ref(batch[0]))


def loading(held, dropped, watch):
    """DataLoaders with worker processes and a thread that hands batches on, started again and again."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    batches = queue.Queue(maxsize=4)
    stopped = threading.Event()
    thread = threading.Thread(target=_hand_on, args=[batches, held, stopped, dropped], daemon=True)
    thread.start()
    try:
        while True:
            loader = DataLoader(Squares(), batch_size=8, num_workers=1, pin_memory=True)
            held["loader"] = loader
            for batch in loader:
                held["batch"] = batch
                batches.put(batch, timeout=30)
                yield
    finally:
        stopped.set()
        thread.join(60)


class Counting(TorchFunctionMode):
    """Sees all that is asked of a tensor while it is active."""

    seen = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name == "__get__" and getattr(function, "__self__", None) is torch.Tensor.grad_fn:
            raise AssertionError("somebody reads a graph while the program watches its tensors")
        Counting.seen += 1
        return function(*args, **(kwargs or {}))


def compiling(held, dropped, watch):
    """Functions that `torch.compile` traces again for each shape, with function modes and `vmap`."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    net = torch.nn.Linear(4, 4)
    held["net"] = net
    for count in itertools.count(1):
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
