"""The names by which a service of this machine may be asked."""

import pytest

from heapwatch.http.addresses import is_known, known_names


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:3009", "[::1]:3009", "LOCALHOST:1"])
def test_loopback_is_known_everywhere(bind, host):
    assert is_known(host, known_names(bind, {}))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.nip.io", "", "*", "[evil]:1", "10.0.0.1 evil"]
)
@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0", "::"])
def test_other_names_are_known_nowhere(bind, host):
    assert not is_known(host, known_names(bind, {"HEAPWATCH_ALLOWED_HOSTS": "*, proxy.example"}))


def test_addresses_and_given_names_are_known_where_it_listens_on_more_than_loopback():
    given = {"HEAPWATCH_ALLOWED_HOSTS": "proxy.example:443, other"}
    for host in ("10.1.2.3:3009", "[2001:db8::1]", "proxy.example", "other:3009"):
        assert is_known(host, known_names("0.0.0.0", given))
    assert is_known("proxy.example", known_names("127.0.0.1", given))
    assert not is_known("10.1.2.3", known_names("127.0.0.1", given))


@pytest.mark.parametrize("given", ["2001:db8::5", "[2001:db8::5]", "[2001:DB8::5]:9095"])
def test_an_address_of_ipv6_may_be_given(given):
    """As of a proxy; up to its first colon it would be no address."""
    assert is_known("[2001:db8::5]:9095", known_names("127.0.0.1", {"HEAPWATCH_ALLOWED_HOSTS": given}))
