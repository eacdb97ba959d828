"""The bridge: synchronous code calls the async services, in every kind of process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from kcoord.process import bridge
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

ROOT = Path(__file__).resolve().parents[3]

CHILD = """
import os, sys, django
django.setup()
from django.conf import settings
settings.CONNINFO = sys.argv[1]
from kcoord.process import bridge

async def backend(runtime):
    async with runtime.db.connection() as connection:
        return await runtime.db.value(connection, "select pg_backend_pid()")

first = bridge.call(backend)
read, write = os.pipe()
child = os.fork()
if child == 0:
    try:
        os.write(write, str(bridge.call(backend)).encode())
    finally:
        os._exit(0)
os.waitpid(child, 0)
print(first, os.read(read, 100).decode(), bridge.call(backend))
"""


async def now_ms(runtime: Runtime) -> int:
    """The time of the runtime's database."""
    async with runtime.db.connection() as connection:
        return await runtime.db.now_ms(connection)


async def loop_of(runtime: Runtime) -> asyncio.AbstractEventLoop:
    """The loop the work runs on."""
    return asyncio.get_running_loop()


@pytest.fixture
def alone(database: str) -> Iterator[None]:
    """A process without a runtime of its own."""
    assert not runtimes.is_running()
    yield
    bridge.close()


async def test_in_a_server_the_work_runs_on_its_loop(runtime: Runtime) -> None:
    assert await asyncio.to_thread(bridge.call, loop_of) is asyncio.get_running_loop()
    assert await asyncio.to_thread(bridge.call, now_ms) == runtime.db.clock.override_ms


async def test_what_the_work_raises_is_raised(runtime: Runtime) -> None:
    async def refuse(_: Runtime) -> None:
        raise ProtocolError(Error.GROUP_ID_NOT_FOUND, "there is no group 'g'")

    async def time_out(_: Runtime) -> None:
        raise TimeoutError("its own")

    with pytest.raises(ProtocolError, match="no group 'g'"):
        await asyncio.to_thread(bridge.call, refuse)
    with pytest.raises(TimeoutError, match="its own"):
        await asyncio.to_thread(bridge.call, time_out)


async def test_work_that_takes_too_long_is_cancelled(runtime: Runtime) -> None:
    cancelled = asyncio.Event()

    async def forever(_: Runtime) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(ProtocolError) as refused:
        await asyncio.to_thread(bridge.call, forever, 0.05)
    assert refused.value.error is Error.REQUEST_TIMED_OUT
    await asyncio.wait_for(cancelled.wait(), 10)


async def test_work_that_the_end_of_the_process_cancels_is_not_available(runtime: Runtime) -> None:
    begun = asyncio.Event()
    tasks: list[asyncio.Task[object]] = []

    async def forever(_: Runtime) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        begun.set()
        await asyncio.Event().wait()

    caller = asyncio.create_task(asyncio.to_thread(bridge.call, forever))
    await asyncio.wait_for(begun.wait(), 10)
    tasks[0].cancel()
    with pytest.raises(ProtocolError) as refused:
        await caller
    assert refused.value.error is Error.COORDINATOR_NOT_AVAILABLE


async def test_a_thread_that_runs_a_loop_may_not_block_it(runtime: Runtime) -> None:
    with pytest.raises(RuntimeError, match="await the service instead"):
        bridge.call(now_ms)


def test_a_runtime_that_is_not_started_is_not_available(alone: None) -> None:
    runtimes.use(Runtime(settings.KCOORD, settings.CONNINFO))
    try:
        with pytest.raises(ProtocolError) as refused:
            bridge.call(now_ms)
    finally:
        runtimes.use(None)
    assert refused.value.error is Error.COORDINATOR_NOT_AVAILABLE


def test_without_a_server_one_background_thread_serves_all_callers(alone: None) -> None:
    loops = set()
    callers = [threading.Thread(target=lambda: loops.add(bridge.call(loop_of))) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(10)
    assert len(loops) == 1
    assert [thread.name for thread in threading.enumerate()].count("kcoord-bridge") == 1


def test_after_closing_the_next_call_starts_another(alone: None) -> None:
    first = bridge.call(loop_of)
    bridge.close()
    assert first.is_closed()
    assert not runtimes.is_running()
    second = bridge.call(loop_of)
    assert second is not first
    assert second.is_running()


def test_a_forked_child_has_connections_of_its_own_and_the_end_is_clean(database: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, database],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "kcoord.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    before, in_child, after = (int(backend) for backend in done.stdout.split())
    assert in_child not in (before, after)
