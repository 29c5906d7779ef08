"""Tasks that exchange messages through pipes and a queue; every message is checked."""

import asyncio
import os


async def main():
    queue = asyncio.Queue(10)
    reader, writer = os.pipe()

    async def produce():
        at = 0
        while True:
            await queue.put(at)
            at += 1
            if not at % 50:
                await asyncio.sleep(0.001)

    task = asyncio.create_task(produce())
    expected = 0
    print("ready", flush=True)
    while not task.done():
        got = await queue.get()
        os.write(writer, b"x")
        if got != expected or os.read(reader, 1) != b"x":
            raise SystemExit("a wrong message")
        expected += 1


asyncio.run(main())
