"""A lane that sends requests one at a time, so that commits reach the server in the order they were made."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Lanes
from kcoord.client.errors import IllegalStateError

T = TypeVar("T")


class Job(Generic[T]):
    """A task of the worker, and what came of it once it is `done`: `error`, else a result."""

    def __init__(self, task: Callable[[], Awaitable[T]]) -> None:
        self.task = task
        self.done = False
        self.dropped = False
        self.error: BaseException | None = None
        self._result: list[T] = []

    def finish(self, result: T) -> None:
        """The task returned."""
        self._result.append(result)
        self.done = True

    def fail(self, error: BaseException) -> None:
        """The task raised."""
        self.error = error
        self.done = True

    def drop(self) -> None:
        """Nobody waits for it any more: it is not begun if it has not been."""
        self.dropped = True

    def result(self) -> T:
        """What the task returned. Raises what it raised."""
        if self.error is not None:
            raise self.error
        return self._result[0]


class Worker:
    """Runs tasks in order on one lane, started by the first. Each finished task notifies the condition."""

    def __init__(self, name: str, condition: Condition, lanes: Lanes) -> None:
        self._name = name
        self._condition = condition
        self._lanes = lanes
        self._jobs: deque[Job[Any]] = deque()
        self._started = False
        self._ended = False
        self._closing = False

    def submit(self, task: Callable[[], Awaitable[T]]) -> Job[T]:
        """Run `task` after those submitted before."""
        job = Job(task)
        if self._ended:
            job.fail(_stopped())
            return job
        self._jobs.append(job)
        if not self._started:
            self._started = True
            self._lanes.start(self._name, self._run())
        self._condition.notify_all()
        return job

    async def close(self, deadline: float) -> bool:
        """Finish what was submitted, until `deadline` at most. False if something is still running."""
        self._closing = True
        self._condition.notify_all()
        return not self._started or await self._condition.wait_for(lambda: self._ended, deadline)

    async def _run(self) -> None:
        try:
            while True:
                await self._condition.wait_for(lambda: bool(self._jobs) or self._closing)
                if not self._jobs:
                    return
                await self._do(self._jobs.popleft())
        finally:
            self._ended = True
            for job in self._jobs:
                job.fail(_stopped())
            self._condition.notify_all()

    async def _do(self, job: Job[Any]) -> None:
        if job.dropped:
            return
        try:
            job.finish(await job.task())
        except Exception as error:  # noqa: BLE001 - passed on by the job
            job.fail(error)
        finally:
            if not job.done:
                job.fail(_stopped())
            self._condition.notify_all()


def _stopped() -> IllegalStateError:
    return IllegalStateError("the requests of this consumer were stopped: close it")
