"""Training steps from the same start, again and again; each must end at the same loss."""

import torch

torch.set_num_threads(1)
inputs = torch.linspace(-1, 1, 64).reshape(64, 1)
first = None
print("ready", flush=True)
while True:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(20):
        loss = ((model(inputs) - inputs**2) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    first = first or loss.item()
    if loss.item() != first:
        raise SystemExit("a wrong number")
