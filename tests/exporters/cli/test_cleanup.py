import pytest

import heapwatch
from heapwatch.cli.cleanup import COOLDOWN_SECONDS, Cleaner, cleanup_lines
from heapwatch.errors import Unreachable
from heapwatch.judge.limits import ExceededLimit
from heapwatch.runtime.cleanup import CleanupRequest

TOKEN = "correct-horse-battery-staple"
CRITICAL = ExceededLimit("critical", "threshold", "bodies", "all", 1247, 1000)
WARNING = ExceededLimit("warning", "threshold", "memory", "trainer", 1.2e9, 1e9)
DONE = (
    200,
    {
        "status": "done", "action": "emergency", "freed": {"resident_memory_bytes": 1}, "before": {},
        "after": {}, "duration_seconds": 1.0, "errors": [],
    },
)  # fmt: skip
PENDING = (202, {"status": "pending"})


def test_a_trainer_is_cleaned_by_its_address_or_its_name(monkeypatch, run):
    monkeypatch.setenv("HEAPWATCH_TOKEN", TOKEN)
    asked = []
    with heapwatch.start("walker", port=0, token=TOKEN) as watch:
        watch.on_cleanup(lambda action: asked.append(action))
        watch.step()

        def post(url, document, token, timeout):
            asked.append((url, token))
            return 200, watch.exporter.cleanup_queue.run(
                CleanupRequest(document["action"], "", "http")
            ).as_dict()

        monkeypatch.setattr("heapwatch.cli.cleanup.post_json", post)
        for words in ((f"127.0.0.1:{watch.port}", "--action", "regular"), ("walker",)):
            code, said, _ = run("cleanup", *words)
            assert code == 0
            assert f"{asked[-1].capitalize()} cleanup completed" in said
        url = f"http://127.0.0.1:{watch.port}/force_cleanup"
    assert asked == [(url, TOKEN), "regular", (url, TOKEN), "emergency"]


def test_without_a_token_or_a_trainer_it_says_so(monkeypatch, run):
    monkeypatch.setattr("heapwatch.cli.cleanup.token_of", lambda _: None)
    code, _, errors = run("cleanup", "walker")
    assert code == 64
    assert "needs the trainer's token" in errors
    monkeypatch.setenv("HEAPWATCH_TOKEN", TOKEN)
    assert [run("cleanup", whom)[0] for whom in ("127.0.0.1:1", "nobody")] == [3, 3]


def test_cleanup_lines_report_what_was_freed():
    answer = {
        "status": "done",
        "action": "emergency",
        "freed": {"resident_memory_bytes": 349_600_000},
        "before": {"bodies": 1247, "entities": {"food_sources": 67}, "events": {"death": 5}},
        "after": {"bodies": 198, "entities": {"food_sources": 10}, "events": {"death": 5}},
        "duration_seconds": 1.25,
        "errors": ["trim: ValueError: x"],
    }
    assert cleanup_lines(answer) == [
        "Emergency cleanup completed in 1.2 s: 349.6MB freed",
        "   Bodies: 1247 -> 198 (-1049)",
        "   Food: 67 -> 10 (-57)",
        "   error: trim: ValueError: x",
    ]
    assert "not known" in cleanup_lines(DONE[1] | {"freed": {}})[0]
    assert "no safe point" in cleanup_lines({"status": "pending", "detail": "no safe point yet"})[0]


@pytest.fixture
def cleaning(monkeypatch, clock):
    """Begins with the answers to the requests: what was requested, and a function that cleans."""

    def begin(*answers):
        left, requests = list(answers), []

        def post(url, document, token, timeout):
            requests.append((url, document, token))
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("heapwatch.cli.cleanup.post_json", post)
        cleaner = Cleaner("s3cret", clock)
        return requests, lambda *alerts: cleaner.clean(alerts, "http://trainer")

    return begin


def test_cleanup_names_its_reason_and_is_not_repeated_within_the_cooldown(cleaning, clock):
    requests, clean = cleaning(DONE)
    assert clean(CRITICAL)[0].startswith("EMERGENCY")
    ((url, document, token),) = requests
    assert (url, token) == ("http://trainer/force_cleanup", "s3cret")
    assert document["action"] == "emergency"
    assert "world_bodies = 1247" in document["reason"]
    clock.now += COOLDOWN_SECONDS - 10
    assert clean(CRITICAL) == []
    assert len(requests) == 1


@pytest.mark.parametrize("helped", [True, False])
def test_a_cleanup_that_did_not_help_is_not_repeated_until_the_level_was_healthy(helped, cleaning, clock):
    requests, clean = cleaning(DONE, DONE)
    clean(CRITICAL)
    clean(*[] if helped else [CRITICAL])
    clock.now += COOLDOWN_SECONDS + 1
    if not helped:
        assert "DID NOT HELP" in clean(CRITICAL)[0]
        clock.now += 10 * COOLDOWN_SECONDS
        assert clean(CRITICAL) == []
    assert clean() == []
    assert clean(CRITICAL)[0].startswith("EMERGENCY")
    assert len(requests) == 2


def test_a_cleanup_that_waits_is_asked_for_again_after_the_cooldown(cleaning, clock):
    requests, clean = cleaning(PENDING, DONE)
    assert "pending" in clean(CRITICAL)[1]
    assert clean(CRITICAL) == []
    clock.now += COOLDOWN_SECONDS + 1
    assert "completed" in clean(CRITICAL)[1]
    assert len(requests) == 2


@pytest.mark.parametrize("failure", [Unreachable("http://trainer answers 401: wrong token"), (200, [])])
def test_failure_is_reported_without_the_token(failure, cleaning):
    requests, clean = cleaning(failure)
    lines = clean(CRITICAL)
    assert "CLEANUP FAILED" in lines[1]
    assert "s3cret" not in "".join(lines)
    assert clean(CRITICAL) == []
    assert len(requests) == 1
