"""Autograd in several threads: a network each and one parameter that all share; they declare their steps."""

import threading
import weakref

import torch


def _train(shared, stopped, held, name, dropped, step):
    held[f"{name} net"] = net = torch.nn.Sequential(
        torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    )
    inputs = torch.randn(4, 8)
    while not stopped.is_set():
        net.zero_grad()
        loss = (net(inputs) * shared).sum()
        loss.backward()
        dropped.append(weakref.ref(loss))
        held[name] = [loss, loss.detach().view(1)]
        step()
        yield


def _run(*arguments):
    for _ in _train(*arguments):
        pass


def steps(held, dropped, watch):
    torch.set_num_threads(1)
    held["shared"] = shared = torch.ones(2, requires_grad=True)
    stopped = threading.Event()
    threads = [
        threading.Thread(
            target=_run, args=[shared, stopped, held, f"thread{at}", dropped, watch.step], daemon=True
        )
        for at in range(3)
    ]
    for thread in threads:
        thread.start()
    try:
        yield from _train(shared, stopped, held, "main", dropped, lambda: None)
    finally:
        stopped.set()
        for thread in threads:
            thread.join(60)
