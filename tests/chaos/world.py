"""The stack under test: the real supervisor, several servers, the embedded Postgres, in a directory of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import httpx
import psutil
import psycopg

from kcoord.stack import credentials
from tests.support.processes import Running, free_ports, start

STARTED = re.compile(r"stack    \| ([\w-]+) started \(process (\d+)\)")
CELERY = ("worker", "beat")
READY_S = 240.0


class World:
    """A running stack. `url`: the shared port."""

    def __init__(self, running: Running, data_dir: Path, nodes: int) -> None:
        self._running = running
        self._data_dir = data_dir
        self.servers = tuple(f"server-{number}" for number in range(1, nodes + 1))
        self.url = running.url
        self.token = credentials.read(data_dir).api_token
        self.conninfo = (data_dir / "conninfo").read_text().strip()

    @property
    def headers(self) -> dict[str, str]:
        """Of a request with the token of the first start."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def output(self) -> str:
        """The log so far."""
        return self._running.output

    def own_url(self, server: str) -> str:
        """The port at which only this server answers."""
        assert self._running.port is not None
        return f"http://127.0.0.1:{self._running.port + int(server.rpartition('-')[2])}"

    def pid(self, name: str) -> int:
        """The latest process of a service: a server, worker, beat or postgres."""
        return int(dict(STARTED.findall(self.output))[name])

    def send(self, number: signal.Signals, *names: str) -> None:
        """Send a signal to services; one that is just being restarted is left out."""
        for name in names:
            try:
                os.kill(self.pid(name), number)
            except ProcessLookupError:
                continue

    def pause_supervisor(self) -> None:
        """Nothing that dies is started again."""
        self._running.send(signal.SIGSTOP)

    def resume_supervisor(self) -> None:
        """It goes on, and starts what died."""
        self._running.send(signal.SIGCONT)

    def create_topic(self, name: str, partitions: int) -> None:
        """Raises AssertionError unless the topic was created. What a busy machine let grow too old is repeated."""
        body = {"name": name, "partitions": partitions}
        deadline = time.monotonic() + 60
        while True:
            answer = httpx.post(f"{self.url}/v1/topics", json=body, headers=self.headers, timeout=30)
            if answer.status_code != 503 or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        assert answer.status_code == 201, answer.text

    def sql(self, query: LiteralString, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement in a transaction of its own; returns the rows."""
        with psycopg.connect(self.conninfo, application_name="chaos") as connection:
            cursor = connection.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def wait_sql(self, seconds: float = 60.0) -> None:
        """Wait until Postgres answers."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.sql("select 1")
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, self._running.report("Postgres is away")
                time.sleep(0.1)

    def wait_new_process(self, name: str, old: int, seconds: float = 60.0) -> None:
        """Wait until the supervisor has started another process of a service."""
        deadline = time.monotonic() + seconds
        while self.pid(name) == old:
            assert time.monotonic() < deadline, self._running.report(f"{name} was not started again")
            time.sleep(0.02)

    def wait_serving(self, *servers: str, seconds: float = 60.0) -> None:
        """Wait until these servers answer at their own ports."""
        deadline = time.monotonic() + seconds
        for server in servers:
            while not self._is_serving(server):
                assert time.monotonic() < deadline, self._running.report(f"{server} does not serve")
                time.sleep(0.05)

    def _is_serving(self, server: str) -> bool:
        try:
            return httpx.get(f"{self.own_url(server)}/livez", timeout=1).status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def running_world(nodes: int, settings: Mapping[str, object]) -> Iterator[World]:
    """A stack that is ready, ended afterwards with all it started, whatever was done to it."""
    data_dir, port = Path(tempfile.mkdtemp(prefix="kcoord-chaos-")), free_ports(nodes)
    env = {"KCOORD_DATA_DIR": data_dir, "KCOORD_PORT": port, "KCOORD_NODES": nodes, **settings}
    try:
        with start("stack", ["-m", "kcoord.stack"], None, env) as running:
            running.port = port
            running.wait_for_output("ready at", READY_S)
            try:
                yield World(running, data_dir, nodes)
            finally:
                _stop(running)
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)


def _stop(running: Running) -> None:
    """Thaw everything, then stop in order: Postgres is not left behind."""
    family = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]
    for process in family:
        try:
            process.resume()
        except psutil.NoSuchProcess:
            continue
    running.terminate(20)
