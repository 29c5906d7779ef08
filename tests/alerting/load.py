"""A load client: posts alerts at a fixed rate over kept connections, and times each answer from its due time.

Run as a process of its own, `python -m tests.alerting.load URL --rate 1000 --seconds 30`; prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

from tests.alerting.harness import TOKEN, alert, notification

CONNECTIONS = 64


def request(host: str, first: int, alerts: int, trainers: Sequence[str]) -> bytes:
    """One POST with alerts of the fingerprints first, first + 1, ..."""
    numbers = range(first, first + alerts)
    body = json.dumps(notification(*(alert(trainers[n % len(trainers)], n + 1) for n in numbers))).encode()
    head = f"POST /alerts HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def answer(reader: asyncio.StreamReader) -> int:
    """The status of one answer, its body read."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    await reader.readexactly(int(head.partition("content-length:")[2].partition("\r\n")[0]))
    return int(head.split(" ", 2)[1])


async def run(
    url: str, rate: float, seconds: float, alerts: int, trainers: Sequence[str]
) -> dict[str, object]:
    host, port = urlsplit(url).hostname or "", urlsplit(url).port
    total = int(rate * seconds / alerts)
    due: asyncio.Queue[tuple[float, int] | None] = asyncio.Queue()
    latencies: list[float] = []
    statuses: Counter[int] = Counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        while (task := await due.get()) is not None:
            when, number = task
            writer.write(request(f"{host}:{port}", number * alerts, alerts, trainers))
            statuses[await answer(reader)] += 1
            latencies.append(time.perf_counter() - when)
        writer.close()

    clients = [asyncio.create_task(client()) for _ in range(CONNECTIONS)]
    begin = time.perf_counter()
    for number in range(total):
        when = begin + number * alerts / rate
        if (early := when - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        due.put_nowait((when, number))
    for _ in clients:
        due.put_nowait(None)
    await asyncio.gather(*clients)
    elapsed = time.perf_counter() - begin
    latencies.sort()
    return {
        "alerts": total * alerts,
        "alerts_per_request": alerts,
        "accepted": statuses[200] * alerts,
        "alerts_per_second": round(total * alerts / elapsed, 1),
        "statuses": dict(statuses),
        **{f"p{p}_ms": round(latencies[int(len(latencies) * p / 100)] * 1e3, 2) for p in (50, 90, 99)},
        "max_ms": round(latencies[-1] * 1e3, 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--rate", type=float, default=1000, help="alerts per second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--alerts", type=int, default=1, help="alerts per request")
    parser.add_argument(
        "--trainers", nargs="+", default=[f"127.0.0.1:{port}" for port in range(20001, 20101)]
    )
    options = parser.parse_args()
    print(
        json.dumps(
            asyncio.run(run(options.url, options.rate, options.seconds, options.alerts, options.trainers))
        )
    )
