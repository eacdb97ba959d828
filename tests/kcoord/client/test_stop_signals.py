"""Signals that end a worker: it commits, leaves the group, and its partitions move at once."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from kcoord.client import AsyncConsumer, Consumer, InvalidConfigurationError, WakeupError
from tests.kcoord.client.drivers import ThreadedTransport
from tests.kcoord.client.live import OUTLASTING_MS, Service, owned, poll_until, running_service
from tests.kcoord.client.scripted import URL, ScriptedCoordinator, consumer_of
from tests.kcoord.client.sources import lettered
from tests.kcoord.client.worker import start_worker_process
from tests.support.database import cloned_database
from tests.support.selection import sample

TERM, USER = signal.SIGTERM, signal.SIGUSR1


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The handlers of the test runner are there again afterwards."""
    before = {number: signal.getsignal(number) for number in (TERM, USER, signal.SIGINT)}
    yield
    after = {number: signal.getsignal(number) for number in before}
    for number, handler in before.items():
        signal.signal(number, handler)
    assert after == before, "closing a consumer puts back what it found"


def raise_it(number: int = TERM) -> None:
    os.kill(os.getpid(), number)


def test_iteration_ends_after_the_record_in_hand() -> None:
    server = ScriptedCoordinator()
    with consumer_of(server, "t", source=lettered(4, 5), stop_on=(TERM,)) as consumer:
        read = []
        for record in consumer:
            read.append(record)
            if len(read) == 3:
                raise_it()
                assert wait_for_stop(consumer)
        assert len(read) == 3
        consumer.close()
    assert sum(server.committed.values()) == 3
    assert server.apis()[-1] == "leave"


def wait_for_stop(consumer: Consumer) -> bool:
    """The flag is set by a thread of its own."""
    for _ in range(1000):
        if consumer.stopping:
            return True
        threading.Event().wait(0.01)
    return False


def test_waiting_poll_returns_and_a_loop_that_does_not_look_fails() -> None:
    with consumer_of(ScriptedCoordinator(), "t", stop_on=(TERM,)) as consumer:
        alarm = threading.Timer(0.2, raise_it)
        alarm.start()
        assert consumer.poll(60_000) == {}
        assert consumer.stopping
        with pytest.raises(WakeupError, match="stopping"):
            consumer.poll(0)


def test_stop_without_a_signal() -> None:
    with consumer_of(ScriptedCoordinator(), "t") as consumer:
        threading.Timer(0.2, consumer.stop).start()
        assert consumer.poll(60_000) == {}
        assert list(consumer) == []


def test_handlers_of_the_program_are_called_as_well() -> None:
    came: list[int] = []
    signal.signal(USER, lambda number, _: came.append(number))
    before = signal.getsignal(USER)
    with (
        Consumer("t", group_id="g", url=URL, stop_on=(USER,)) as first,
        Consumer("t", group_id="g", url=URL, stop_on=(USER,)) as second,
    ):
        raise_it(USER)
        assert wait_for_stop(first)
        assert wait_for_stop(second)
        first.close()
    assert came == [USER]
    raise_it(USER)
    assert came == [USER, USER], "the consumers are closed: only the program's own handler is left"
    signal.signal(USER, signal.SIG_DFL)
    assert before is not None


INTERRUPTED = """
import signal
from kcoord.client import Consumer

signal.signal(signal.SIGINT, signal.default_int_handler)
first, second = (Consumer("t", group_id="g", url="{url}", stop_on=(signal.SIGINT,)) for _ in range(2))
first.close()
second.close()
with Consumer("t", group_id="g", url="{url}", stop_on=(signal.SIGINT,)) as consumer:
    signal.raise_signal(signal.SIGINT)
    assert consumer.stopping
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("interrupted")
"""

UNDER_ASYNCIO = """
import asyncio, signal
from kcoord.client import AsyncConsumer
from tests.support.selection import sample

signal.signal(signal.SIGINT, signal.default_int_handler)

async def work():
    async with AsyncConsumer("t", group_id="g", url="{url}", stop_on=(signal.SIGINT,)) as consumer:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        assert consumer.stopping
    print("not cancelled")

asyncio.run(work())
"""


@pytest.mark.parametrize(("program", "printed"), [(INTERRUPTED, "interrupted"), (UNDER_ASYNCIO, "not cancelled")])
def test_first_interrupt_stops_and_the_second_interrupts(program: str, printed: str) -> None:
    """Also after consumers that were closed in the order they were made.

    In a process of its own: an interrupt would end that of other tests.
    """
    done = subprocess.run([sys.executable, "-c", program.format(url=URL)], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{printed}\n", done.stderr


@pytest.mark.parametrize("value", [TERM, "TERM", (0,), (99999,), ("TERM",), (signal.SIGKILL,)])
def test_what_is_no_signal_is_refused(value: object) -> None:
    with pytest.raises(InvalidConfigurationError) as raised:
        Consumer("t", group_id="g", url=URL, stop_on=value)  # type: ignore[call-overload]
    assert raised.value.setting == "stop_on"


def test_only_the_main_thread_can_have_signals() -> None:
    failures: list[BaseException] = []

    def elsewhere() -> None:
        try:
            Consumer("t", group_id="g", url=URL, stop_on=(TERM,))
        except InvalidConfigurationError as error:
            failures.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert [error.setting for error in failures if isinstance(error, InvalidConfigurationError)] == ["stop_on"]
    assert "main thread" in str(failures[0])


@pytest.mark.parametrize("by", ["stop_on", "loop"])
def test_asyncio(by: str) -> None:
    server = ScriptedCoordinator()

    async def work() -> int:
        import httpx

        loop = asyncio.get_running_loop()
        client = httpx.AsyncClient(transport=ThreadedTransport(server.handle))
        numbers = (TERM, signal.SIGINT) if by == "stop_on" else ()
        read = 0
        async with AsyncConsumer(
            "t",
            source=lettered(4, 5),
            http_client=client,
            stop_on=numbers,
            group_id="g",
            url=URL,
            auto_offset_reset="earliest",
        ) as consumer:
            if by == "loop":
                loop.add_signal_handler(TERM, consumer.stop)
            async for _ in consumer:
                read += 1
                if read == 20:
                    # While the loop is asleep: nothing but the signal wakes it.
                    threading.Timer(0.3, raise_it).start()
        if by == "loop":
            loop.remove_signal_handler(TERM)
        return read

    assert asyncio.run(asyncio.wait_for(work(), 30)) == 20
    assert sum(server.committed.values()) == 20
    assert server.apis()[-1] == "leave"


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        yield running


@pytest.mark.processes
@pytest.mark.parametrize("protocol", sample(["consumer", "classic"], "another process that is stopped"))
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_partitions_of_a_process_move_at_once(service: Service, protocol: str, kind: str) -> None:
    group, topic = f"group-{secrets.token_hex(4)}", service.topic(4)
    if protocol == "classic":
        settings = service.settings(group, session_timeout_ms=OUTLASTING_MS)
    else:
        settings = service.consumer_settings(group)
    with Consumer(topic, **settings) as other:
        poll_until(lambda: len(owned(other)) == 4, other)
        with start_worker_process(topic, settings, kind) as worker:
            poll_until(lambda: len(owned(other)) == 2, other)
            worker.send(TERM)
            poll_until(lambda: len(owned(other)) == 4, other)
            assert worker.popen.wait(20) == 0
    kinds = [event["kind"] for event in service.request("GET", f"groups/{group}/events").json()["events"]]
    assert "member_left" in kinds
    assert "member_expired" not in kinds
