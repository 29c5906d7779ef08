"""Programs that train on a GPU; each checks its own results as far as it can."""

import itertools
import warnings
import weakref

import torch
from torch.utils.data import DataLoader

from tests.harmless.programs import in_threads
from tests.harmless.programs.tensors import Squares


def network():
    return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)).cuda()


def cuda_training(held, dropped, watch):
    """Gradients, an optimizer, kept losses with their graphs, copies to RAM, and a cache that is emptied."""
    held["net"] = net = network()
    held["optimizer"] = optimizer = torch.optim.Adam(net.parameters())
    inputs = torch.randn(32, 16, device="cuda")
    held["losses"] = []
    for count in itertools.count(1):
        optimizer.zero_grad(set_to_none=count % 3 != 0)
        loss = net(inputs).square().mean()
        loss.backward()
        optimizer.step()
        dropped.append(weakref.ref(net[0].weight.grad))
        if count % 7 == 0:
            net[0].weight.grad = None
        held["losses"].append(net(inputs).mean())
        del held["losses"][:-20]
        held["copied"] = [loss.detach().to("cpu", non_blocking=True), inputs.cpu().pin_memory()]
        held["resized"] = resized = torch.zeros(count % 50 + 1, device="cuda")
        resized.untyped_storage().resize_(4 * (50 + count % 9))
        held["big"] = big = torch.empty(1_000_000 * (count % 5 + 1), dtype=torch.uint8, device="cuda")
        dropped.append(weakref.ref(big))
        if count % 50 == 0:
            torch.cuda.empty_cache()
        if not loss.isfinite():
            raise AssertionError("a wrong loss")
        yield


def _in_a_stream(shared, stopped, held, name, dropped, step):
    net, stream = network(), torch.cuda.Stream()
    held[f"{name} net"] = [net, stream]
    inputs = torch.ones(8, 16, device="cuda")
    while not stopped.is_set():
        net.zero_grad()
        stream.wait_stream(torch.cuda.default_stream())
        with torch.cuda.stream(stream):
            loss = (net(inputs) * shared).sum()
            loss.backward()
            given = torch.full((1000,), 3.0, device="cuda")
            event = stream.record_event()
        held[name] = [loss, event, given]
        event.synchronize()
        torch.cuda.default_stream().wait_event(event)
        given.record_stream(torch.cuda.default_stream())
        if given.sum().item() != 3000:
            raise AssertionError("a wrong sum")
        dropped.append(weakref.ref(loss))
        step()
        yield


def cuda_streams(held, dropped, watch):
    """Autograd in several threads, each in a stream of its own, with one parameter that all share."""
    held["shared"] = shared = torch.ones(4, requires_grad=True, device="cuda")
    yield from in_threads(_in_a_stream, shared, held, dropped, watch)


def cuda_graphs(held, dropped, watch):
    """Training steps captured as CUDA graphs: a call that CUDA forbids meanwhile ends the capture.

    By default it is forbidden to all threads.
    """
    inputs = torch.zeros(32, 16, device="cuda")
    for count in itertools.count(1):
        net = network()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            net(inputs).square().mean().backward()
        torch.cuda.current_stream().wait_stream(stream)
        optimizer.zero_grad()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = net(inputs).square().mean()
            held["captured"] = [net, optimizer, loss, torch.zeros(100, device="cuda")]
            loss.backward()
            optimizer.step()
            watch.step()
        for at in range(5):
            inputs.fill_(at + count % 3)
            with torch.no_grad():
                expected = net(inputs).square().mean().item()
            graph.replay()
            if abs(loss.item() - expected) > 1e-3 * max(1.0, expected):
                raise AssertionError(f"{loss.item()} after a replay, not {expected}")
        dropped.append(weakref.ref(held["captured"][3]))
        held["graphs"] = [*held.get("graphs", [])[-3:], (graph, loss)]
        yield


def cuda_loading(held, dropped, watch):
    """Batches from worker processes, in pinned memory, and on to the GPU while the next one is made."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.zeros(1, device="cuda")
    while True:
        loader = DataLoader(Squares(), batch_size=8, num_workers=2, pin_memory=True)
        held["loader"] = loader
        for numbers, squares in loader:
            held["batch"] = moved = [one.to("cuda", non_blocking=True) for one in (numbers, squares)]
            dropped.append(weakref.ref(numbers))
            if not torch.equal(moved[0][:, 0] ** 2, moved[1].float()):
                raise AssertionError("wrong squares")
            yield
