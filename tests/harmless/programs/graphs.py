"""Autograd graphs that grow, are freed while they are walked, and are changed in place."""

import weakref

import torch


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


def steps(held, dropped, watch):
    torch.set_num_threads(1)
    weight = torch.ones(4, requires_grad=True)
    held["weight"] = weight
    count = 0
    while True:
        count += 1
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
