"""Training steps on the GPU from the same start, also as a captured graph; all must end at the same loss."""

import torch

inputs = torch.linspace(-1, 1, 64, device="cuda").reshape(64, 1)


def begin():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).cuda()
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def step(model, optimizer):
    loss = ((model(inputs) - inputs**2) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def by_hand():
    model, optimizer = begin()
    for _ in range(20):
        loss = step(model, optimizer)
    return loss.item()


def captured():
    model, optimizer = begin()
    started = {name: value.clone() for name, value in model.state_dict().items()}
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step(model, optimizer)
    torch.cuda.current_stream().wait_stream(stream)
    model.load_state_dict(started)
    optimizer.zero_grad()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(model, optimizer)
    for _ in range(20):
        graph.replay()
    return loss.item()


first = by_hand()
print("ready", flush=True)
while True:
    for found in (by_hand(), captured()):
        if abs(found - first) > 1e-3 * first:
            raise SystemExit(f"a wrong number: {found}, not {first}")
