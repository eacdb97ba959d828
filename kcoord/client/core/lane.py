"""A lane with work of its own, such as heartbeats: begins once, ends when it is stopped or fails."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Lanes


class Lane(ABC):
    """Runs `_run_until_stopped`, which looks at `stopped` between its waits.

    `failure` is what ended the lane, if it was not `stop`: the next poll raises it, since a lane has no caller.
    """

    def __init__(self, name: str, condition: Condition, lanes: Lanes) -> None:
        self._name = name
        self._condition = condition
        self._lanes = lanes
        self._started = False
        self._ended = False
        self.stopped = False
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Start, unless already started: one that failed is not started again."""
        if not self._started:
            self._started = True
            self._lanes.start(self._name, self._run())

    async def stop(self, deadline: float) -> bool:
        """Stop; waits until `deadline` for what it is doing. True if it ended."""
        self.stopped = True
        self._condition.notify_all()
        return not self._started or await self._condition.wait_for(lambda: self._ended, deadline)

    @abstractmethod
    async def _run_until_stopped(self) -> None:
        """Do what is due, when it is due."""

    async def _run(self) -> None:
        try:
            await self._run_until_stopped()
        except Exception as error:  # noqa: BLE001 - poll() raises it; a lane has no caller to raise it to
            self.failure = error
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._ended = True
            self._condition.notify_all()
