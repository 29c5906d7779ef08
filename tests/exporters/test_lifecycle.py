"""Workers, forks and ends of processes, in processes of their own."""

import gc
import json
import shutil
import subprocess
import sys
import textwrap
import weakref

import pytest

import heapwatch
from heapwatch import lifecycle

PRELUDE = """
import json, multiprocessing, os, sys, threading, time, urllib.request
import heapwatch

def get(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as response:
        return response.read().decode()

def targets():
    return len([name for name in os.listdir(os.environ["HEAPWATCH_TARGETS_DIR"]) if name.endswith(".json")])

def threads():
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("heapwatch"))
"""


def run(tmp_path, code, expect=0, within=()):
    script = tmp_path / "trainer.py"
    script.write_text(PRELUDE + textwrap.dedent(code))
    done = subprocess.run(
        [*within, sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == expect, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout else None


def left_over(tmp_path):
    return list((tmp_path / "targets").glob("*.json"))


def test_a_forked_worker_is_inert_and_the_trainer_continues(tmp_path):
    found = run(
        tmp_path,
        """
        watch = heapwatch.start(port=0, interval=0.01)
        watch.entities("food_sources", lambda: 1)
        ticket = None
        with watch.phase("outer"):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                with watch.phase("train"):
                    ballast = bytearray(b"x") * 100_000_000
                for _ in range(1000):
                    watch.step()
                watch.progress("generation")
                told = {"threads": threads(), "server": watch.server is None, "port": watch.port}
                watch.stop()
                os.write(writer, json.dumps(told).encode())
                sys.exit(0)
            os.waitpid(child, 0)
        told = json.loads(os.read(reader, 1000))
        watch.step()
        text = get(watch.port)
        told["targets"] = targets()
        told["entities"] = 'trainer_entities{type="food_sources"} 1.0' in text
        told["steps"] = 'trainer_progress_total{unit="step"} 1.0' in text
        print(json.dumps(told))
        """,
    )
    assert found == {
        "threads": [],
        "server": True,
        "port": None,
        "targets": 1,
        "entities": True,
        "steps": True,
    }
    assert not left_over(tmp_path)


def test_a_fork_that_outlives_the_trainer_frees_its_port(tmp_path):
    run(
        tmp_path,
        """
        watch = heapwatch.start(port=0)
        port = watch.port
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        watch.stop()
        assert heapwatch.start(port=port).port == port
        """,
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_workers(tmp_path, method):
    found = run(
        tmp_path,
        f"""
        watch = heapwatch.start(port=0)  # on purpose outside the guard: spawned workers run this line too

        def work(number):
            watch.step()
            with watch.phase("work"):
                return [threads(), watch.port]

        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                told = pool.map(work, range(4))
                text = get(watch.port)
            print(json.dumps([told, 'trainer_processes{{role="worker"}}' in text, targets()]))
        """,
    )
    reported, scraped, targets = found
    assert reported == [[[], None]] * 4
    assert scraped
    assert targets == 1
    assert not left_over(tmp_path)


def test_a_worker_may_have_an_exporter_of_its_own(tmp_path):
    found = run(
        tmp_path,
        """
        watch = heapwatch.start("trainer", port=0)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            with heapwatch.start("trainer", port=0) as own:
                own.step()
                stepped = 'unit="step"} 1.0' in get(own.port)
                os.write(writer, json.dumps([own.port, stepped, targets()]).encode())
            os._exit(0)
        os.waitpid(child, 0)
        port, stepped, count = json.loads(os.read(reader, 1000))
        print(json.dumps([port != watch.port, stepped, count, targets()]))
        """,
    )
    assert found == [True, True, 2, 1]


def test_a_watch_that_was_stopped_is_forgotten_whatever_its_name():
    with heapwatch.start("one", port=0) as one:
        assert lifecycle.running() == [one]
    assert lifecycle.running() == []
    stopped = weakref.ref(one)
    del one
    with heapwatch.start("other", port=0):
        gc.collect()
        assert stopped() is None


def test_os_exit_ends_at_once_and_the_next_start_sweeps_what_was_left(tmp_path):
    run(tmp_path, "heapwatch.start(port=0); os._exit(3)", expect=3)
    assert len(left_over(tmp_path)) == 1
    run(tmp_path, "heapwatch.start(port=0).stop()")
    assert not left_over(tmp_path)


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("pass", 0),
        ("sys.exit(4)", 4),
        ("raise KeyboardInterrupt", -2),
        ("1 / 0", 1),
        ("threading.Thread(target=lambda: time.sleep(0.2)).start()", 0),
    ],
)
def test_an_end_without_stop_leaves_nothing(tmp_path, ending, status):
    run(tmp_path, f"watch = heapwatch.start(port=0); watch.step()\n{ending}", expect=status)
    assert not left_over(tmp_path)


def test_without_any_network_it_trains(tmp_path):
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-n", "true"], check=False).returncode:
        pytest.skip("unshare -n needs root")
    code = """
        with heapwatch.start("alone", port=0, interval=0.1) as watch:
            for _ in range(1000):
                watch.step()
            print(json.dumps(watch.exporter.safe_point.steps))
        """
    assert run(tmp_path, code, within=(unshare, "-n")) == 1000


@pytest.mark.slow
def test_forks_at_any_moment_never_hang_the_child(tmp_path):
    found = run(
        tmp_path,
        """
        watch = heapwatch.start(port=0, interval=0.001, budget=1.0)
        for number in range(20):
            watch.entities(f"food {number}", lambda: [None] * 1000)
        stop = threading.Event()
        def scrape():
            while not stop.is_set():
                watch.exporter.snapshots.take(30).families
        scraper = threading.Thread(target=scrape, daemon=True)
        scraper.start()
        ended = 0
        for _ in range(60):
            watch.step()
            child = os.fork()
            if child == 0:
                watch.step()
                with watch.phase("worker"):
                    watch.progress("episode")
                watch.stop()
                os._exit(0)
            ended += os.waitpid(child, 0)[1] == 0
        stop.set()
        print(json.dumps(ended))
        """,
    )
    assert found == 60
