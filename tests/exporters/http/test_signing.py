import pytest

from heapwatch.http.signing import (
    SCHEME,
    WINDOW_SECONDS,
    NotSigned,
    TooMany,
    Verifier,
    authorization,
    webhook_token,
)
from tests.exporters.conftest import Clock

SECRET = "correct-horse"
URL = "http://127.0.0.1:7777/force_cleanup"
BODY = b'{"action": "regular"}'


@pytest.fixture
def steady():
    return Clock(50.0)


@pytest.fixture
def verifier(clock, steady):
    made = Verifier(clock=clock, steady=steady)
    pass_time(clock, steady, 3600)
    return made


def pass_time(clock, steady, seconds):
    clock.now += seconds
    steady.now += seconds


def credentials(clock, secret=SECRET, method="POST", url=URL, body=BODY):
    header = authorization(secret, method, url, body, clock=clock)
    scheme, _, rest = header.partition(" ")
    assert scheme == SCHEME
    assert secret not in header
    return rest


def check(verifier, given, **changes):
    asked = {"method": "POST", "authority": "127.0.0.1:7777", "path": "/force_cleanup", "body": BODY}
    verifier.check(given, SECRET, **{**asked, **changes})


def test_a_signed_request_passes_once(verifier, clock):
    given = credentials(clock)
    check(verifier, given)
    with pytest.raises(NotSigned, match="replay"):
        check(verifier, given)
    check(verifier, credentials(clock))


@pytest.mark.parametrize(
    "change",
    [
        {"method": "GET"},
        {"authority": "127.0.0.1:7778"},
        {"authority": "trainer-2:7777"},
        {"path": "/force_cleanup?x"},
        {"path": "/"},
        {"body": b'{"action": "emergency"}'},
        {"body": b""},
    ],
)
def test_what_was_signed_can_be_used_for_nothing_else(verifier, clock, change):
    with pytest.raises(NotSigned, match="does not match this request"):
        check(verifier, credentials(clock), **change)


def test_another_secret_signs_nothing(verifier, clock):
    with pytest.raises(NotSigned, match="another token"):
        check(verifier, credentials(clock, secret="guessed"))


def test_time_and_nonce_are_part_of_what_is_signed(verifier, clock):
    timestamp, nonce, signature = credentials(clock).split(", ")
    for forged in (
        f"timestamp={int(clock.now) + 1}, {nonce}, {signature}",
        f"{timestamp}, nonce={'0' * 32}, {signature}",
    ):
        with pytest.raises(NotSigned, match="does not match this request"):
            check(verifier, forged)


@pytest.mark.parametrize(
    "given", ["", "x", "timestamp=1", f"timestamp=-1, nonce={'0' * 32}, signature={'0' * 64}", "9" * 100_000]
)
def test_what_is_no_signature_gets_the_expected_form(verifier, given):
    with pytest.raises(NotSigned, match="timestamp=SECONDS"):
        check(verifier, given)


@pytest.mark.parametrize(("apart", "expected"), [(-31, "31 s after"), (31, "31 s before"), (86400, "clocks")])
def test_clocks_too_far_apart_are_reported(verifier, clock, apart, expected):
    given = credentials(clock)
    clock.now += apart
    with pytest.raises(NotSigned, match=expected):
        check(verifier, given)


def test_no_time_of_a_request_allows_a_replay(verifier, clock, steady):
    for ahead in (0.0, WINDOW_SECONDS - 1, 1 - WINDOW_SECONDS):
        given = credentials(Clock(clock.now + ahead))
        check(verifier, given)
        for _ in range(3 * int(WINDOW_SECONDS)):
            pass_time(clock, steady, 1)
            with pytest.raises(NotSigned):
                check(verifier, given)


def test_what_was_signed_for_the_process_before_is_refused(clock, steady):
    given = credentials(clock)
    pass_time(clock, steady, 5)
    restarted = Verifier(clock=clock, steady=steady)
    with pytest.raises(NotSigned, match="began to listen"):
        check(restarted, given)
    check(restarted, credentials(clock))


def test_a_clock_that_is_set_does_not_shut_the_trainer(verifier, clock, steady):
    for step in (-4000, 100_000):
        clock.now += step
        check(verifier, credentials(clock))


def test_the_memory_is_bounded_and_never_forgets_too_early(verifier, clock, steady):
    first = credentials(clock)
    check(verifier, first)
    for _ in range(8191):
        check(verifier, credentials(clock))
    with pytest.raises(TooMany):
        check(verifier, credentials(clock))
    with pytest.raises(NotSigned, match="replay"):
        check(verifier, first)
    pass_time(clock, steady, 2 * WINDOW_SECONDS + 2)
    check(verifier, credentials(clock))


def test_default_ports_and_case_do_not_matter(verifier, clock):
    check(verifier, credentials(clock, url="http://Trainer:80/force_cleanup"), authority="trainer")
    check(verifier, credentials(clock, url="http://user@trainer/force_cleanup"), authority="TRAINER:80")


def test_alertmanagers_token_signs_nothing(verifier, clock):
    token = webhook_token(SECRET)
    assert SECRET not in token
    with pytest.raises(NotSigned):
        check(verifier, credentials(clock, secret=token))
