"""Ray: a driver, an actor, an actor with asyncio, and a worker that waits for the next task."""

import os

import ray

from tests.harmless.entering.field.programs.waiting import child, wait


@ray.remote(num_cpus=0)
class Counter:
    count = 0

    def add(self) -> tuple[int, int]:
        self.count += 1
        return self.count, os.getpid()


@ray.remote(num_cpus=0)
class AsyncCounter:
    count = 0

    async def add(self) -> tuple[int, int]:
        self.count += 1
        return self.count, os.getpid()


@ray.remote
def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def main() -> None:
    ray.init(address="local", num_cpus=1, include_dashboard=False, _temp_dir=os.getcwd())
    actors = {"sync actor": Counter.remote(), "async actor": AsyncCounter.remote()}
    counted = 0

    def work() -> dict[str, int]:
        nonlocal counted
        counted += 1
        pids = {}
        for name, actor in actors.items():
            count, pids[name] = ray.get(actor.add.remote())
            assert count == counted
        result, pids["idle worker"] = ray.get(square.remote(7))
        assert result == 49
        return pids

    own = {"driver": os.getpid(), "log monitor": child(os.getpid(), "log_monitor.py")}
    wait({**own, **work()}, work)
    ray.shutdown()


if __name__ == "__main__":
    main()
