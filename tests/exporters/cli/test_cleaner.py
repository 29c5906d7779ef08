from heapwatch.analysis.readings import ExceededLimit
from heapwatch.cli.cleaner import COOLDOWN_SECONDS, Cleaner
from heapwatch.errors import Unreachable

CRITICAL = ExceededLimit("critical", "threshold", "bodies", "all", 1247, 1000)
WARNING = ExceededLimit("warning", "threshold", "memory", "trainer", 1.2e9, 1e9)
DONE = {"status": "done", "action": "emergency", "freed": {"resident_memory_bytes": 1}}


class Endpoint:
    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, url, document, token, timeout):
        self.requests.append((url, document, token))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def make(clock, *answers):
    endpoint = Endpoint(*answers)
    cleaning = Cleaner("s3cret", post=endpoint, clock=clock)
    return endpoint, lambda *alerts: cleaning.clean(alerts, lambda: "http://trainer")


def test_only_a_critical_threshold_is_cleaned_up(clock):
    endpoint, clean = make(clock)
    growth = ExceededLimit("critical", "growth", "bodies", "all", 20, 10)
    gpu = ExceededLimit("critical", "threshold", "gpu_memory", "0", 2, 1)
    assert clean(WARNING, growth, gpu) == []
    assert endpoint.requests == []


def test_cleanup_names_its_reason_and_is_not_repeated_within_the_cooldown(clock):
    endpoint, clean = make(clock, (200, DONE))
    lines = clean(CRITICAL)
    assert lines[0].startswith("EMERGENCY")
    ((url, document, token),) = endpoint.requests
    assert (url, token) == ("http://trainer/force_cleanup", "s3cret")
    assert document["action"] == "emergency"
    assert "world_bodies = 1247" in document["reason"]
    clock.now += COOLDOWN_SECONDS - 10
    (waiting,) = clean(CRITICAL)
    assert waiting == "COOLDOWN: world_bodies still critical; the next cleanup is at least 10 s away"
    assert clean(CRITICAL) == []
    assert len(endpoint.requests) == 1


def test_cleanup_that_did_not_help_is_not_repeated_until_the_level_was_healthy(clock):
    endpoint, clean = make(clock, (200, DONE), (200, DONE))
    clean(CRITICAL)
    clock.now += COOLDOWN_SECONDS + 1
    assert "DID NOT HELP" in clean(CRITICAL)[0]
    clock.now += 10 * COOLDOWN_SECONDS
    assert clean(CRITICAL) == []
    assert clean() == []
    assert clean(CRITICAL)[0].startswith("EMERGENCY")
    assert len(endpoint.requests) == 2


def test_cleanup_that_helped_may_be_repeated(clock):
    endpoint, clean = make(clock, (200, DONE), (200, DONE))
    clean(CRITICAL)
    clean()
    clock.now += COOLDOWN_SECONDS + 1
    clean()
    assert clean(CRITICAL)[0].startswith("EMERGENCY")
    assert len(endpoint.requests) == 2


def test_pending_cleanup_is_asked_for_again_with_the_same_id(clock):
    endpoint, clean = make(clock, (202, {"status": "pending"}), (200, DONE))
    assert "pending" in clean(CRITICAL)[1]
    assert "completed" in clean(CRITICAL)[0]
    first, second = (document["request_id"] for _, document, _ in endpoint.requests)
    assert first == second


def test_failure_is_told_without_the_token(clock):
    endpoint, clean = make(clock, Unreachable("http://trainer answers 401: wrong token"))
    lines = clean(CRITICAL)
    assert "CLEANUP FAILED" in lines[1]
    assert "s3cret" not in "".join(lines)
    assert clean(CRITICAL)[0].startswith("COOLDOWN")
    assert len(endpoint.requests) == 1
