"""Who is registered, and for how long; who fell silent."""

from pathlib import Path

import pytest

from heapwatch import lost
from heapwatch_receiver import registrations
from heapwatch_receiver.registrations import LIFETIME, MOST, Registrations, TooManyTrainers


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def known(time: Time, tmp_path: Path) -> Registrations:
    """Registrations of a receiver that has run for long."""
    known = Registrations(tmp_path, time)
    time.now += 3600
    return known


def test_a_registration_expires_unless_it_is_renewed(time: Time, known: Registrations) -> None:
    known.add("10.0.0.1:7777")
    known.add("10.0.0.2:7777")
    time.now += LIFETIME - 1
    known.add("10.0.0.2:7777")
    assert known.addresses() == ["10.0.0.1:7777", "10.0.0.2:7777"]
    time.now += 1
    assert known.addresses() == ["10.0.0.2:7777"]


def test_what_ends_is_gone_at_once_and_may_end_twice(known: Registrations) -> None:
    known.add("10.0.0.1:7777")
    known.remove("10.0.0.1:7777")
    known.remove("10.0.0.1:7777")
    assert known.addresses() == []


def test_the_list_is_not_given_out_before_trainers_had_time_to_renew(time: Time, tmp_path: Path) -> None:
    fresh = Registrations(tmp_path, time)
    fresh.add("10.0.0.1:7777")
    time.now += registrations.RENEWAL_SECONDS
    assert fresh.addresses() is None
    time.now += registrations.RENEWAL_SECONDS
    assert fresh.addresses() == ["10.0.0.1:7777"]


def test_the_count_is_bounded_and_who_is_in_may_renew(time: Time, known: Registrations) -> None:
    for number in range(MOST):
        known.add(f"10.0.0.1:{number}", number % 100)
    with pytest.raises(TooManyTrainers, match="4000 trainers are registered"):
        known.add("10.0.0.2:7777")
    known.add("10.0.0.1:7", 7)
    time.now += LIFETIME
    known.add("10.0.0.2:7777")
    assert known.addresses() == ["10.0.0.2:7777"]


def test_a_trainer_that_is_late_is_lost_until_it_renews(
    time: Time, known: Registrations, tmp_path: Path
) -> None:
    known.add("10.0.0.1:7777")
    time.now += registrations.RENEWAL_SECONDS + 10
    known.addresses()
    assert lost.read(tmp_path) == []
    time.now += 10
    assert known.addresses() == ["10.0.0.1:7777"]  # and is still scraped
    (silent,) = lost.read(tmp_path)
    assert (silent.address, silent.cause) == ("10.0.0.1:7777", lost.SILENT)
    known.add("10.0.0.1:7777")
    assert lost.read(tmp_path) == []


def test_a_trainer_that_stays_silent_stays_lost_after_it_expired(
    time: Time, known: Registrations, tmp_path: Path
) -> None:
    known.add("10.0.0.1:7777")
    time.now += LIFETIME
    assert known.addresses() == []
    assert [one.address for one in lost.read(tmp_path)] == ["10.0.0.1:7777"]


def test_a_trainer_that_says_goodbye_is_not_lost(time: Time, known: Registrations, tmp_path: Path) -> None:
    known.add("10.0.0.1:7777")
    known.remove("10.0.0.1:7777")
    time.now += LIFETIME
    known.addresses()
    assert lost.read(tmp_path) == []
