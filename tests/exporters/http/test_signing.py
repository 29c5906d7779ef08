import pytest

from heapwatch.http.signing import SCHEME, NotSigned, Request, authorization, check_signature, webhook_token

SECRET = "correct-horse"
URL = "http://127.0.0.1:7777/force_cleanup"
BODY = b'{"action": "regular"}'


def credentials(clock, secret=SECRET, method="POST", url=URL, body=BODY):
    header = authorization(secret, method, url, body, clock=clock)
    scheme, _, rest = header.partition(" ")
    assert scheme == SCHEME
    assert secret not in header
    return rest


def check(given, clock, **changes):
    asked = Request("POST", "127.0.0.1:7777", "/force_cleanup", BODY)
    check_signature(given, SECRET, asked._replace(**changes), clock=clock)


def test_a_signed_request_passes(clock):
    check(credentials(clock), clock)


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
def test_what_was_signed_can_be_used_for_nothing_else(clock, change):
    with pytest.raises(NotSigned, match="does not match this request"):
        check(credentials(clock), clock, **change)


@pytest.mark.parametrize("secret", ["guessed", webhook_token(SECRET)])
def test_another_secret_signs_nothing(clock, secret):
    assert SECRET not in secret
    with pytest.raises(NotSigned, match="another token"):
        check(credentials(clock, secret=secret), clock)


@pytest.mark.parametrize("given", ["", "x", "timestamp=1", f"timestamp=-1, signature={'0' * 64}"])
def test_what_is_no_signature_gets_the_expected_form(clock, given):
    with pytest.raises(NotSigned, match="timestamp=SECONDS"):
        check(given, clock)


@pytest.mark.parametrize(("apart", "expected"), [(-31, "31 s after"), (31, "31 s before"), (86400, "clocks")])
def test_clocks_too_far_apart_are_reported(clock, apart, expected):
    given = credentials(clock)
    clock.now += apart
    with pytest.raises(NotSigned, match=expected):
        check(given, clock)
