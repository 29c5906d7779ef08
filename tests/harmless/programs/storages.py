"""Storages that are resized, replaced, shared, swapped and freed."""

import weakref

import torch


def steps(held, dropped, watch):
    torch.set_num_threads(1)
    tensors = [torch.zeros(10) for _ in range(20)]
    held["tensors"] = tensors
    first, second = torch.zeros(1000), torch.zeros(2000)
    count = 0
    while True:
        count += 1
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
