"""Workers of `multiprocessing`, `concurrent.futures` and joblib: `workers KIND`."""

import multiprocessing
import os
import sys
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext

from tests.harmless.entering.field.programs.waiting import numbered, wait

NUMBERS = range(20)
SQUARES = [number * number for number in NUMBERS]


def square(number: int) -> int:
    return number * number


def answer(connection: Connection) -> None:
    while (number := connection.recv()) is not None:
        connection.send(square(number))


def started(context: BaseContext, method: str) -> None:
    ours, theirs = context.Pipe()
    process = context.Process(target=answer, args=[theirs])
    process.start()
    with context.Pool(2) as pool:
        pids = {"process": process.pid, **numbered("pool worker", [one.pid for one in pool._pool])}
        if method == "forkserver":
            pids["forkserver"] = forkserver._forkserver._forkserver_pid
        if method != "fork":
            pids["resource tracker"] = resource_tracker._resource_tracker._pid

        def work() -> None:
            ours.send(7)
            assert ours.recv() == 49
            assert pool.map(square, NUMBERS) == SQUARES
            # from a process that was visited, where that is what forks
            new = context.Process(target=square, args=[1])
            new.start()
            new.join()
            assert new.exitcode == 0

        wait({"parent": os.getpid(), **pids}, work)
        workers = list(pool._pool)
        pool.close()
        pool.join()
    ours.send(None)
    process.join()
    assert [one.exitcode for one in (process, *workers)] == [0, 0, 0]


def manager() -> None:
    with multiprocessing.Manager() as served:
        shared = served.dict(rounds=0)

        def work() -> None:
            before = shared["rounds"]
            shared["rounds"] += 1
            assert dict(shared) == {"rounds": before + 1}

        process = served._process
        wait({"parent": os.getpid(), "manager": process.pid}, work)
    process.join()
    assert process.exitcode == 0


def pooled(pool: Executor) -> None:
    def work() -> None:
        assert list(pool.map(square, NUMBERS)) == SQUARES

    work()
    workers = list(pool._processes.values())
    wait({"parent": os.getpid(), **numbered("worker", [one.pid for one in workers])}, work)
    pool.shutdown()
    assert [one.exitcode for one in workers] == [0] * len(workers)


def main(kind: str) -> None:
    if kind == "executor":
        pooled(ProcessPoolExecutor(2))
    elif kind == "loky":
        from joblib.externals.loky import get_reusable_executor

        pooled(get_reusable_executor(max_workers=2, timeout=300))
    elif kind == "manager":
        manager()
    else:
        started(multiprocessing.get_context(kind), kind)


if __name__ == "__main__":
    main(sys.argv[1])
