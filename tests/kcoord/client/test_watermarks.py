"""A consumer reports where its record source begins and ends, so that the lag of its group is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kcoord.client import ConsumerConfig, TopicPartition
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.core.watermarks import PARTITIONS_PER_POLL, WatermarkReports
from kcoord.client.core.worker import Job
from kcoord.protocol.errors import Error
from tests.kcoord.client.scripted import Refusal, ScriptedCoordinator
from tests.kcoord.client.sources import MemorySource, lettered
from tests.kcoord.client.virtual_member import Member


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


def ends(server: ScriptedCoordinator) -> list[dict[int, int]]:
    """Partition -> end, for each report so far."""
    return [
        {entry["partition"]: entry["log_end_offset"] for entry in report.body["partitions"]}
        for report in server.reports
    ]


def test_the_ends_are_reported_every_interval(server: ScriptedCoordinator) -> None:
    source = lettered(4, 3)
    member = Member(server, source, watermark_interval_ms=10_000)
    assert member.poll()
    member.poll()
    assert server.reports[0].body == {
        "topic": "t",
        "partitions": [{"partition": n, "log_start_offset": 0, "log_end_offset": 3} for n in range(4)],
    }
    source.partitions["t", 2].append("more")
    while member.driver.now < 25:
        member.poll()
    assert ends(server) == [{0: 3, 1: 3, 2: 3, 3: 3}, *[{0: 3, 1: 3, 2: 4, 3: 3}] * 2]
    assert member.at("watermarks") == pytest.approx([0, 10, 20], abs=0.2)


def test_none_are_reported_with_an_interval_of_0_or_without_polls(server: ScriptedCoordinator) -> None:
    member = Member(server, watermark_interval_ms=0)
    while member.driver.now < 25:
        member.poll()
        member.driver.pass_time(1)
    assert not server.reports
    silent = Member(server)
    silent.driver.pass_time(60)
    assert not server.reports, "the source is asked by the thread that polls"


def test_a_topic_that_may_not_be_reported_is_named_once(
    server: ScriptedCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    server.script("watermarks", Refusal(Error.TOPIC_AUTHORIZATION_FAILED))
    member = Member(server, watermark_interval_ms=10_000)
    while member.driver.now < 25:
        assert member.poll() is not None
        member.driver.pass_time(1)
    assert len(server.reports) == 1
    (told,) = [record.getMessage() for record in caplog.records if "watermarks" in record.getMessage()]
    assert "topic t" in told
    assert "watermark_interval_ms=0" in told


@pytest.mark.parametrize("error", [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.REQUEST_TIMED_OUT])
def test_after_a_failure_the_next_round_reports(server: ScriptedCoordinator, error: Error) -> None:
    server.script("watermarks", Refusal(error))
    member = Member(server, watermark_interval_ms=10_000)
    while member.driver.now < 15:
        member.poll()
        member.driver.pass_time(1)
    assert len(server.reports) == 2


def test_a_source_that_cannot_tell_does_not_end_a_poll(
    server: ScriptedCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(MemorySource):
        def end_offset(self, topic: str, partition: int) -> int:
            if partition == 1:
                raise OSError("no such file")
            return super().end_offset(topic, partition)

    member = Member(server, Broken(lettered(4, 3).partitions))
    assert len(member.poll()) == 4, "the records of all partitions"
    member.poll()
    assert ends(server) == [{0: 3, 2: 3, 3: 3}]
    assert "t-1" in caplog.text
    assert "no such file" in caplog.text


def test_an_earlier_end_counts_if_the_source_says_that_the_log_was_truncated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Truncated(MemorySource):
        def truncated(self, topic: str, partition: int) -> bool:
            return partition == 1

    server = ScriptedCoordinator({"t": 2})
    source = Truncated(lettered(2, 3).partitions)
    member = Member(server, source, watermark_interval_ms=10_000)
    member.poll()
    for values in source.partitions.values():
        del values[2:]
    while member.driver.now < 35:
        member.poll()
    assert [report.body.get("truncated", False) for report in server.reports] == [False, False, False, True, False]
    assert ends(server) == [{0: 3, 1: 3}, {0: 2, 1: 2}, {0: 2}, {1: 2}, {0: 2, 1: 2}]
    assert server.log_ends == {("t", 0): 3, ("t", 1): 2}
    told = [record.getMessage() for record in caplog.records if "earlier" in record.getMessage()]
    assert len(told) == 2, "once for each partition"
    assert "t-0 ends at 2" in told[0]


def test_a_poll_asks_about_a_few_partitions_only() -> None:
    asked: list[int] = []

    class Counting(MemorySource):
        def end_offset(self, topic: str, partition: int) -> int:
            asked.append(partition)
            return super().end_offset(topic, partition)

    server = ScriptedCoordinator({"t": 40})
    member = Member(server, Counting(lettered(40, 3).partitions), max_poll_records=1)
    while not asked:
        member.poll(0)
    assert len(asked) == PARTITIONS_PER_POLL
    assert not server.reports, "a report is complete"
    member.poll(0)
    member.poll(0)
    member.driver.pass_time(1)
    assert sorted(asked) == list(range(40))
    assert [len(report) for report in ends(server)] == [40]


def test_partitions_that_were_given_up_meanwhile_are_left_out() -> None:
    server = ScriptedCoordinator({"t": 20})
    member = Member(server, lettered(20, 3), max_poll_records=1)
    while not member.core.subscription.assigned:
        member.poll(0)
    assert not server.reports
    member.core.subscription.set_assigned([TopicPartition("t", 0), TopicPartition("t", 19)])
    member.poll(0)
    member.driver.pass_time(1)
    assert set(ends(server)[0]) <= {*range(PARTITIONS_PER_POLL), 19}
    assert 18 not in ends(server)[0]


class Held:
    """A worker that has not finished yet."""

    def __init__(self) -> None:
        self.jobs: list[Job[Any]] = []

    def submit(self, task: Callable[[], Any]) -> Job[Any]:
        self.jobs.append(Job(task))
        return self.jobs[-1]


def test_a_report_that_is_being_sent_is_waited_for() -> None:
    now, worker, subscription = [100.0], Held(), SubscriptionState()
    config = ConsumerConfig.of({"group_id": "g", "watermark_interval_ms": 10_000})
    source = lettered(1, 3)
    reports = WatermarkReports(config, subscription, source, None, worker, lambda: now[0])  # type: ignore[arg-type]
    assert reports.wait_s() is None, "nothing is assigned"
    subscription.assign_by_hand([TopicPartition("t", 0)])
    assert reports.wait_s() == 0
    drive(reports.when_due())
    assert len(worker.jobs) == 1
    now[0] += 60
    assert reports.wait_s() is None, "until the worker is done, which is condition"
    drive(reports.when_due())
    assert len(worker.jobs) == 1
    worker.jobs[0].finish(None)
    assert reports.wait_s() == 0
    drive(reports.when_due())
    assert len(worker.jobs) == 2
    worker.jobs[1].fail(RuntimeError("a bug"))
    now[0] += 60
    with pytest.raises(RuntimeError, match="a bug"):
        drive(reports.when_due())


def drive(main: Any) -> None:
    """Run a coroutine of the core whose only effects ask the source."""
    result = None
    while True:
        try:
            effect = main.send(result)
        except StopIteration:
            return
        result = effect.function(*effect.arguments)
