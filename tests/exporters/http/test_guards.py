from email.message import Message
from http import HTTPStatus

import pytest

from heapwatch.http import guards
from heapwatch.http.addresses import known_names
from heapwatch.http.guards import Refusal
from heapwatch.http.signing import SCHEME, Request

JSON = "application/json"
NAMES = known_names("127.0.0.1", {})


def headers(**fields: str) -> Message:
    message = Message()
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    return message


def refused(status: HTTPStatus, call, *arguments) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call(*arguments)
    assert caught.value.status == status
    return caught.value


@pytest.mark.parametrize("site", ["cross-site", "same-site", ""])
def test_fetch_of_another_site_is_refused(site):
    refused(HTTPStatus.FORBIDDEN, guards.check_browser, headers(Host="localhost", Sec_Fetch_Site=site))


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://evil.example", "localhost:7777"),
        ("null", "localhost:7777"),
        ("http://localhost:80", "localhost:7777"),
        ("http://[", "localhost:7777"),
    ],
)
def test_another_origin_is_refused(origin, host):
    refused(HTTPStatus.FORBIDDEN, guards.check_browser, headers(Host=host, Origin=origin))


def authority(given, token):
    guards.check_authority(given, token, Request("POST", "localhost:7777", "/force_cleanup", b""))


SIGNED = f"{SCHEME} timestamp=1, signature={'0' * 64}"


@pytest.mark.parametrize("host", ["127.0.0.1:7777", "trainer:7777", "127.0.0.1:17777", "proxy"])
def test_a_request_signed_for_this_trainer_passes(host):
    guards.check_addressee(headers(Host=host, Authorization=SIGNED), 7777, {"127.0.0.1:17777", "proxy"})


@pytest.mark.parametrize("host", ["127.0.0.1:7778", "127.0.0.1", "proxy:7778", "localhost:port"])
def test_a_request_signed_for_another_is_refused(host):
    given = headers(Host=host, Authorization=SIGNED)
    refusal = refused(HTTPStatus.MISDIRECTED_REQUEST, guards.check_addressee, given, 7777, {"proxy"})
    assert "HEAPWATCH_ALLOWED_HOSTS" in refusal.detail
    guards.check_addressee(headers(Host=host, Authorization="Bearer s3cret"), 7777, set())


@pytest.mark.parametrize(
    "value",
    ["", "s3cret", "Basic s3cret", "Bearer", "Bearer ", "Bearer S3cret", "Bearer s3cret x", "Bearer s3crét"],
)
def test_wrong_token_is_refused_without_repeating_it(value):
    refusal = refused(HTTPStatus.UNAUTHORIZED, authority, headers(Authorization=value), "s3cret")
    assert "Bearer" in refusal.headers["WWW-Authenticate"]
    assert "s3cr" not in refusal.detail


def test_without_a_configured_token_nothing_passes_and_the_answer_says_how():
    refusal = refused(HTTPStatus.FORBIDDEN, authority, headers(Authorization="Bearer "), None)
    assert "HEAPWATCH_TOKEN_FILE" in refusal.detail


def test_token_is_found_in_this_order(tmp_path):
    file = tmp_path / "token"
    file.write_text("from-file\n")
    both = {"HEAPWATCH_TOKEN": "from-environment", "HEAPWATCH_TOKEN_FILE": str(file)}
    assert guards.find_token("given", both) == "given"
    assert guards.find_token(None, both) == "from-environment"
    assert guards.find_token(None, {"HEAPWATCH_TOKEN_FILE": str(file)}) == "from-file"
    assert guards.find_token(None, {"HEAPWATCH_TOKEN": ""}) is None


@pytest.mark.parametrize("token", ["", "two words", "línea", "line\nbreak"])
def test_token_that_no_header_carries_is_an_error(token):
    with pytest.raises(ValueError, match="printable ASCII"):
        guards.find_token(token, {})


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": "-1"}, 400),
        ({"Content-Length": "\u0661"}, 400),
        ({"Content-Length": ""}, 400),
        ({"Content-Length": "9" * 5000}, 400),
        ({"Content-Length": str(guards.MAX_REQUEST_BYTES + 1)}, 413),
        ({"Content-Length": "2"}, 415),
        ({"Content-Length": "2", "Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_body_that_cannot_be_read_is_refused(fields, status):
    refused(HTTPStatus(status), guards.body_length, headers(**fields))


def test_body_length():
    assert guards.body_length(headers()) == 0
    message = headers(Content_Length="007", Content_Type=f"{JSON}; charset=utf-8")
    assert guards.body_length(message) == 7
    assert guards.body_length(headers(Content_Length="0")) == 0
    message["Content-Length"] = "3"
    refused(HTTPStatus.BAD_REQUEST, guards.body_length, message)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[]", "object"),
        (b"{", "JSON"),
        (b'{"timeout_seconds": NaN}', "0 to 60"),
        (b'{"resource": 5}', "resource must be"),
        (b'{"component": "a\\nb"}', "component must be"),
        (b"[" * 16_000, "JSON"),
        (b'{"action": "reboot"}', "regular, emergency"),
        (b'{"action": ["regular"]}', "regular, emergency"),
        (b'{"reason": 1}', "reason"),
        (b'{"reason": "\\u0000"}', "reason"),
        (b'{"request_id": ""}', "request_id"),
        (b'{"request_id": "a b"}', "request_id"),
        (b'{"timeout_seconds": -1}', "0 to 60"),
        (b'{"timeout_seconds": true}', "0 to 60"),
        (b'{"timeout_seconds": "5"}', "0 to 60"),
        (b'{"delay": 1}', "'delay'"),
    ],
)
def test_body_that_asks_for_something_else_is_named(body, says):
    assert says in refused(HTTPStatus.BAD_REQUEST, guards.parse_cleanup, body).detail
