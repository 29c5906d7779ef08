"""Gradients that `backward` makes and `zero_grad` drops, and an optimizer that steps."""

import weakref

import torch


def steps(held, dropped, watch):
    torch.set_num_threads(1)
    held["net"] = net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    held["optimizer"] = optimizer = torch.optim.Adam(net.parameters())
    inputs = torch.randn(4, 8)
    held["losses"] = []
    count = 0
    while True:
        count += 1
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
