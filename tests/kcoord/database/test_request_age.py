"""How old a request is: gaps of the event loop, the database's clock, requests that were held."""

from __future__ import annotations

import time

import pytest

from kcoord.config import Config
from kcoord.requests import current
from kcoord.requests.current import DatabaseTime, FreezeDetector, Receipt, RequestAge


class Clocks:
    """The clocks of a process, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.cpu = 1_000.0, 10.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "process_time", lambda: self.cpu)


@pytest.fixture
async def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.fixture
async def made(clocks: Clocks) -> RequestAge:
    found = RequestAge(Config({}))
    found.pulse.start()
    return found


async def test_a_request_that_is_read_after_a_gap_counts_from_its_beginning(clocks: Clocks, made: RequestAge) -> None:
    assert made.receive() == Receipt(1_000.0)
    clocks.now += 1.8
    assert made.receive() == Receipt(1_000.0), "before the ticker ran"
    clocks.now += 0.4
    made.pulse._beat()
    assert made.receive() == Receipt(1_000.0), "it may have been read late"
    clocks.now += 0.4
    made.pulse._beat()
    clocks.now += 0.4
    made.pulse._beat()
    assert made.receive() == Receipt(clocks.now)
    made.pulse.stop()


async def test_a_frozen_process_refuses_what_it_had_and_what_it_has_not_read(clocks: Clocks, made: RequestAge) -> None:
    before = made.receive()
    assert made.refusal(before, 0) is None
    clocks.now += 2.6
    assert made.refusal(before, 0) is not None
    assert made.refusal(made.receive(), 0) is not None
    assert made.refusal(None, 0) is None, "the service's own work"
    clocks.now += 0.4
    made.pulse._beat()
    clocks.now += 0.4
    made.pulse._beat()
    clocks.now += 0.4
    assert made.refusal(made.receive(), 0) is None
    made.pulse.stop()


async def test_a_busy_process_is_not_a_frozen_one(clocks: Clocks, made: RequestAge) -> None:
    before = made.receive()
    clocks.now += 3.0
    clocks.cpu += 1.0
    assert made.refusal(before, 0) is None
    clocks.now += 7.0
    clocks.cpu += 1.0
    refusal = made.refusal(before, 0)
    assert refusal is not None
    assert "10000 ms" in refusal.detail
    made.pulse.stop()


async def test_a_jump_of_the_database_clock_shows_a_freeze_that_our_clock_did_not_see(
    clocks: Clocks, made: RequestAge
) -> None:
    made.measure(500_000)
    before = made.receive()
    assert before.database_ms == pytest.approx(500_000)
    made.measure(516_000)
    assert made.refusal(before, 516_000) is not None
    assert made.refusal(made.receive(), 516_000) is not None, "read after it, perhaps sent before"
    made.pulse.stop()


def test_the_best_measurement_of_the_database_clock_is_the_largest(clocks: Clocks) -> None:
    known = DatabaseTime()
    assert known.at(clocks.now) is None
    known.measure(500_000)
    clocks.now += 1.0
    known.measure(500_400)  # the answer was read 600 ms late
    assert known.at(clocks.now) == pytest.approx(501_000)
    clocks.now += 25.0
    known.measure(520_000)  # it was set back
    known.measure(520_000)
    clocks.now += 11.0
    known.measure(531_000)
    assert known.at(clocks.now) == pytest.approx(531_000)


def test_time_in_which_a_request_was_held_does_not_count(clocks: Clocks) -> None:
    receipt = Receipt(1_000.0, 500_000.0)
    clocks.now += 5.0
    assert current.held(receipt, 30_000) == Receipt(1_005.0, 505_000.0)
    assert current.held(receipt, 2_000) == Receipt(1_002.0, 502_000.0)
    assert current.held(None, 2_000) is None


def test_a_pulse_that_does_not_run_sees_no_gap(clocks: Clocks) -> None:
    pulse = FreezeDetector()
    clocks.now += 100.0
    assert pulse.received() == clocks.now
    assert not pulse.was_frozen_since(1_000.0)


def test_a_client_may_say_that_it_waits_for_less(clocks: Clocks) -> None:
    age = RequestAge(Config({}))
    age.measure(500_000)
    hasty, usual = age.receive(patience_ms=1_000), age.receive()
    clocks.now += 0.9
    assert age.refusal(hasty, 500_900) is None
    clocks.now += 0.2
    assert age.refusal(hasty, 501_100) is not None
    assert age.refusal(hasty._replace(extra_ms=500), 501_100) is None, "it let the server wait"
    assert age.refusal(usual, 501_100) is None
    patient = age.receive(patience_ms=60_000)
    clocks.now += 11
    assert age.refusal(patient, 512_100) is not None, "not longer than others"


async def test_a_request_that_waited_in_a_process_that_ran_is_young_until_it_is_too_old(
    clocks: Clocks, made: RequestAge
) -> None:
    def pass_by(seconds: float) -> None:
        for _ in range(round(seconds / 0.2)):
            clocks.now += 0.2
            made.pulse._beat()

    waited = made.receive()
    pass_by(3.0)
    assert made.is_young(waited)
    assert not made.is_young(waited._replace(patience_ms=2_000))
    clocks.now += 0.6  # a gap
    assert not made.is_young(waited)
    assert made.is_young(waited._replace(at=clocks.now - 0.9))
    late = made.receive()
    pass_by(60.0)
    assert not made.is_young(late)
    made.pulse.stop()
