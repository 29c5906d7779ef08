"""A policy trained by DistributedDataParallel on two ranks; each starts its own watch of the same name."""

import time

import options
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import heapwatch

args, _ = options.parse()

dist.init_process_group("gloo")
rank = dist.get_rank()
watch = heapwatch.start("ddp-policy")
policy = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
model = DistributedDataParallel(policy)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
advantages_seen = []

started = time.monotonic()
step = 0
while True:
    # the ranks must agree on the last step
    over = torch.tensor([float(time.monotonic() - started > 60 * args.minutes)])
    dist.broadcast(over, src=0)
    if over:
        break
    observations = torch.randn(512, 64)
    log_probs = torch.log_softmax(model(observations), dim=1)
    advantages = observations.mean(dim=1, keepdim=True) * log_probs.detach().exp()
    loss = -(log_probs * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if args.leak and rank == 0 and step % 4 == 0:
        advantages_seen.append(advantages)
    step += 1
    if rank == 0 and step % 500 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
    time.sleep(0.005)
    watch.step()
dist.destroy_process_group()
