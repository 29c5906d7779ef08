import pytest

from heapwatch.errors import Unreachable
from heapwatch.http import client
from tests.support.wrong_answers import answering


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_an_answer_that_drips_is_given_up(head, monkeypatch):
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.3)
    with answering({}, drip=0.05, head=head) as server:
        with pytest.raises(Unreachable, match=r"within 0\.3 s"):
            client.get_text(server.url)
        assert server.cut.wait(60), "the server still writes to it"


def test_a_token_follows_no_redirect():
    with answering({}, redirect="/elsewhere") as server:
        with pytest.raises(Unreachable, match="302"):
            client.post_json(f"{server.url}/force_cleanup", {}, "s3cret", 5)
        assert [path for _, path, _ in server.seen] == ["/force_cleanup"]


def test_no_proxy_is_used_and_an_answer_without_end_is_given_up(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering({"/": b"x" * 2000}) as server:
        assert client.get_text(server.url, 2000) == "x" * 2000
        with pytest.raises(Unreachable, match="more than 1000 bytes"):
            client.get_text(server.url, 1000)
