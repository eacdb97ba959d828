"""The supervisor: starts commands, restarts what dies, and stops all of it within five seconds.

A command that ends for any reason is restarted with backoff, and the log says so. On shutdown commands get
their stop signal; what has not ended after its grace period is killed. Commands marked `last` outlive the others: they
stop when no other command needs them anymore.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kcoord.stack.process import Command, Process, describe_exit

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
STEADY_SECONDS = 60.0


@dataclass(slots=True)
class Backoff:
    """Doubles each time, up to LONGEST_SECONDS; resets once the service has lived for STEADY_SECONDS."""

    _next: float = FIRST_SECONDS

    def after(self, lived_seconds: float) -> float:
        """Seconds to wait after the service ended, having lived for `lived_seconds`."""
        if lived_seconds >= STEADY_SECONDS:
            self._next = FIRST_SECONDS
        delay = self._next
        self._next = min(delay * 2, LONGEST_SECONDS)
        return delay


GRACE_SECONDS = 3.0
"""How long commands may take to end."""

ASKING_SECONDS = 4.2
"""When the `last` commands must have ended, counted from the start of the stop: they get the remaining time."""

KILL_SECONDS = 0.3
"""How long each escalated signal has to take effect."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OWN_NAME = "stack"


class Supervisor:
    """Runs commands until a stop is requested. Use it on the event loop of the main thread, one at a time.

    `write(service, line)` gets every line of the commands and the supervisor's own messages.
    """

    def __init__(self, write: Callable[[str, str], None]) -> None:
        self._write = write
        self._stopping = asyncio.Event()
        self._running: dict[str, Process] = {}
        self._last: set[str] = set()
        self._keepers: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._on_stop_signal, number)

    @property
    def stopping(self) -> bool:
        """A stop was requested."""
        return self._stopping.is_set()

    def say(self, text: str) -> None:
        """Write one of our own lines."""
        self._write(OWN_NAME, text)

    async def stopped(self) -> None:
        """Wait until a stop is requested."""
        await self._stopping.wait()

    async def run_once(self, command: Command) -> int | None:
        """Run a command until it exits and return its exit status; None if a stop was requested first.

        Status 127, as in a shell, if it could not be started; the log says why.
        """
        if self.stopping:
            return None
        try:
            process = self._spawn(command)
        except OSError as error:
            self.say(f"{command.name} could not be started: {error.strerror}")
            return 127
        await self._first(process.exited)
        return process.exited.result() if process.exited.done() and not self.stopping else None

    def keep(self, command: Command) -> None:
        """Run a command, and again whenever it ends."""
        self._keepers.append(asyncio.create_task(self._keep(command)))

    async def stop(self) -> None:
        """Stop everything: first what is not `last`, then the rest. None of it is running afterwards."""
        self._stopping.set()
        started = time.monotonic()
        running = {name: process for name, process in self._running.items() if not process.exited.done()}
        if running:
            self.say(f"stopping {', '.join(running)}")
        await self._end([p for name, p in running.items() if name not in self._last], started + GRACE_SECONDS)
        await self._end([p for name, p in running.items() if name in self._last], started + ASKING_SECONDS)
        for keeper in self._keepers:
            keeper.cancel()
        finished = await asyncio.gather(*self._keepers, return_exceptions=True)
        for result in finished:
            if isinstance(result, Exception):
                self.say(f"internal error: {result!r}")
        self.say(f"stopped in {time.monotonic() - started:.1f} s")

    async def _keep(self, command: Command) -> None:
        backoff = Backoff()
        while not self.stopping:
            began = time.monotonic()
            try:
                ended = describe_exit(await self._spawn(command).exited)
            except OSError as error:
                ended = f"it could not be started: {error.strerror}"
            if self.stopping:
                return
            delay = backoff.after(time.monotonic() - began)
            self.say(f"{command.name} ended ({ended}); starting it again in {delay:g} s")
            await self._first(asyncio.ensure_future(asyncio.sleep(delay)))

    def _spawn(self, command: Command) -> Process:
        process = Process(command, lambda line: self._write(command.name, line))
        self._running[command.name] = process
        if command.last:
            self._last.add(command.name)
        self.say(f"{command.name} started (process {process.pid})")
        return process

    async def _first(self, future: asyncio.Future[Any]) -> None:
        """Wait for a future or for the stop, whichever comes first."""
        stop = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({future, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()

    async def _end(self, processes: list[Process], deadline: float) -> None:
        """Ask processes to end, kill those that have not by the deadline, and wait until they are gone."""
        grace = deadline - time.monotonic()
        for process in processes:
            process.send(process.command.stop_signal)
        for process in await self._left(processes, grace):
            kill = process.command.kill_signal
            self.say(f"{process.command.name} did not end within {grace:.1f} s; {kill.name}")
            process.send(kill)
        for process in await self._left(processes, KILL_SECONDS):
            process.send_group(signal.SIGKILL)
        await self._left(processes, None)

    async def _left(self, processes: list[Process], seconds: float | None) -> list[Process]:
        """Those that have not ended after `seconds`."""
        if processes:
            await asyncio.wait({process.exited for process in processes}, timeout=seconds)
        return [process for process in processes if not process.exited.done()]

    def _reap(self) -> None:
        for process in tuple(self._running.values()):
            process.reap()

    def _on_stop_signal(self, number: signal.Signals) -> None:
        if not self.stopping:
            self.say(f"{number.name} received")
            self._stopping.set()
