"""A watch that `start` begins: where it is served, and as what."""

import json
import re
import threading

import heapwatch
from tests.support.exposed import get


def test_each_rank_of_a_distributed_run_says_which_it_is(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "64")
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "812")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "17")
    with heapwatch.start("ppo", port=0) as watch:
        labels = (
            r'framework="",rank="3",run="812_17",started="[^"]+",title="[^"]+",trainer="ppo",world_size="64"'
        )
        assert re.search(rf"trainer_info{{{labels}}} 1.0", get(watch))


def test_start_serves_and_stops(tmp_path):
    with heapwatch.start("walker", port=0) as watch:
        targets = list((tmp_path / "targets").glob("*.json"))
        assert f"127.0.0.1:{watch.port}" in targets[0].read_text()
        labels = r'framework="",rank="",run="",started="[^"]+",title="[^"]+",trainer="walker",world_size=""'
        text = get(watch)
        assert re.search(rf"trainer_info{{{labels}}} 1.0", text)
        assert "trainer_cleanup_ready 0.0" in text  # there is no token
        assert "trainer_cleanup_functions 0.0" in text
        assert json.loads(get(watch, "performance_status"))["trainer"]["trainer"] == "walker"
    assert not list((tmp_path / "targets").glob("*.json"))
    assert watch.server is None


def test_a_notebook_may_start_twice_stop_and_start_again():
    first = heapwatch.start("walker", port=0)
    first.entities("food_sources", lambda: 1)
    port = first.port
    second = heapwatch.start("walker", port=port)
    second.entities("food_sources", lambda: 2)
    assert first.server is None
    assert second.port == port
    assert 'trainer_entities{type="food_sources"} 2.0' in get(second)
    first.step()
    first.stop()
    second.stop()
    third = heapwatch.start("walker", port=0)
    assert "trainer_entities{" not in get(third)
    third.stop()
    assert "heapwatch-server" not in {thread.name for thread in threading.enumerate() if thread.is_alive()}


def test_the_environment_sets_port_host_and_profile(monkeypatch):
    monkeypatch.setenv("HEAPWATCH_TRAINER_PORT", "0")
    monkeypatch.setenv("HEAPWATCH_BIND", "127.0.0.2")
    monkeypatch.setenv("HEAPWATCH_PROFILE", "aggressive")
    with heapwatch.start() as watch:
        assert watch.server.url.startswith("http://127.0.0.2:")
        assert 'trainer_limit_profile{profile="aggressive"} 1.0' in get(watch)
