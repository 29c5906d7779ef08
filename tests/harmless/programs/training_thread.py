"""Training in a thread beside a main thread that waits, as behind a web server; steps are declared."""

import threading
import weakref

import torch


def steps(held, dropped, watch):
    torch.set_num_threads(1)
    held["net"] = net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    stopped = threading.Event()
    declared = threading.Event()

    def train():
        inputs = torch.randn(4, 8)
        while not stopped.is_set():
            net.zero_grad()
            loss = net(inputs).sum()
            loss.backward()
            dropped.append(weakref.ref(loss))
            held["total"] = held.get("total", 0.0) * 0.5 + loss
            if loss.item() > 0:
                held["total"] = loss
            if declared.is_set():
                watch.step()

    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    count = 0
    try:
        while True:
            count += 1
            if count == 200:
                declared.set()
            stopped.wait(0.005)
            yield
    finally:
        stopped.set()
        thread.join(60)
