"""A bucket never admits more than its limit, and never refuses a principal that stays below it."""

from __future__ import annotations

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kcoord.access.quotas.quotas import Bucket

RATES = st.floats(0.01, 1_000)
COSTS = st.floats(0.01, 50)
PAUSES = st.floats(0, 100)
SLACK = 1e-6


class Buckets(RuleBasedStateMachine):
    """Admissions at any time, of any cost, beside a naive account of what was admitted and when."""

    @initialize(rate=RATES, burst=st.floats(1, 1_000))
    def begin(self, rate: float, burst: float) -> None:
        self.now = 1_000.0
        self.began = self.now
        self.rate, self.burst = rate, burst
        self.bucket = Bucket(rate, burst, self.now)
        self.admitted: list[tuple[float, float]] = []

    @rule(seconds=PAUSES)
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(cost=COSTS)
    def ask(self, cost: float) -> None:
        if self.bucket.wait(cost, self.now) == 0:
            self.bucket.spend(cost, self.now)
            self.admitted.append((self.now, cost))

    @rule(cost=COSTS)
    def wait_as_told(self, cost: float) -> None:
        wait = self.bucket.wait(cost, self.now)
        assume(wait < 1e6)
        self.now += wait + SLACK
        assert self.bucket.wait(cost, self.now) == 0
        self.ask(cost)

    @invariant()
    def between_any_two_instants_no_more_than_the_limit(self) -> None:
        for first, (since, _) in enumerate(getattr(self, "admitted", ())):
            total = largest = 0.0
            for at, cost in self.admitted[first:]:
                total += cost
                largest = max(largest, cost - self.burst)
                allowed = self.rate * (at - since) + self.burst + max(0.0, largest)
                assert total <= allowed + SLACK * len(self.admitted) + 1e-9 * total, (self.admitted, self.rate)


TestBuckets = Buckets.TestCase


@pytest.mark.parametrize("rate", [0.02, 1, 333.3])
@pytest.mark.parametrize("share", [1, 0.7, 0.01])
def test_a_principal_at_or_below_its_rate_is_never_refused(rate: float, share: float) -> None:
    now = 5.0
    bucket = Bucket(rate, 1.0, now)
    for _ in range(1_000):
        assert bucket.wait(1, now) == 0
        bucket.spend(1, now)
        now += 1 / (rate * share) + SLACK


def test_a_cost_above_the_burst_needs_a_full_bucket_and_is_paid_back() -> None:
    bucket = Bucket(10, 20, 0)
    bucket.spend(1, 0)
    assert bucket.wait(50, 0) == pytest.approx(0.1)
    bucket.spend(50, 0.1)
    assert bucket.wait(1, 0.1) == pytest.approx(3.1)
    assert bucket.used(0.1) == pytest.approx(50)


def test_debt_can_be_bounded_and_what_is_owed_is_never_forgiven() -> None:
    bucket = Bucket(10, 20, 0)
    for _ in range(100):
        bucket.spend_within(5, 0, most_debt=10)
    assert bucket.wait(1, 0) == pytest.approx(1.1)
    bucket.spend(30, 0)
    bucket.spend_within(5, 0, most_debt=10)
    assert bucket.used(0) == pytest.approx(60)


def test_a_limit_that_changes_keeps_what_was_used() -> None:
    bucket = Bucket(10, 100, 0)
    bucket.spend(60, 0)
    bucket.limit_to(1, 10, 0)
    assert bucket.used(0) == pytest.approx(60)
    assert bucket.wait(1, 0) == pytest.approx(51)
    bucket.limit_to(100, 1_000, 0)
    assert bucket.wait(900, 0) == 0
