"""Several servers behind one port, as `make up NODES=3` runs them: real processes, and what is checked before."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from kcoord.config import Config
from kcoord.stack import credentials, preflight, services
from kcoord.stack.preflight import StartProblem, nodes_of
from tests.support.make import shown_by_make
from tests.support.processes import Running, free_ports, start, wait_until_gone

STARTED = re.compile(r"stack    \| ([\w-]+) started \(process (\d+)\)")
CONNECTIONS = 50
READY_SECONDS = 240.0
ANSWER_SECONDS = 10.0
"""How long one probe may take on a busy machine; one that a frozen process accepted would never be answered."""

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("stack")]
WHOLE = pytest.mark.whole("a stack of three; the default kills and freezes those of a short run of chaos")


@pytest.fixture(scope="module")
def three() -> Iterator[Running]:
    """A stack of three servers."""
    data_dir, port = Path(tempfile.mkdtemp(prefix="kcoord-three-")), free_ports(3)
    settings = {"KCOORD_DATA_DIR": data_dir, "KCOORD_PORT": port, "KCOORD_NODES": 3}
    try:
        with start("stack", ["-m", "kcoord.stack"], None, settings) as running:
            running.port = port
            running.wait_for_output("ready at", READY_SECONDS)
            yield running
            assert running.terminate() == 0
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)


def pid_of(running: Running, name: str) -> int:
    """The latest process of a service."""
    return int(dict(STARTED.findall(running.output))[name])


def probe(port: int) -> tuple[int, str]:
    """The status of /livez by a new connection, and the local address of the socket that answered."""
    answer = httpx.get(f"http://127.0.0.1:{port}/livez", timeout=ANSWER_SECONDS)
    return answer.status_code, answer.text


def probe_many(port: int) -> list[int]:
    """The statuses that CONNECTIONS new connections get, ten at a time."""
    with ThreadPoolExecutor(10) as pool:
        return [status for status, _ in pool.map(probe, [port] * CONNECTIONS)]


@WHOLE
def test_each_has_a_name_a_port_and_an_address_of_its_own(three: Running) -> None:
    assert three.port is not None
    names = {name for name, _ in STARTED.findall(three.output)}
    assert names == {"postgres", "setup", "server-1", "server-2", "server-3", "worker", "beat"}
    assert httpx.get(f"{three.url}/readyz", timeout=ANSWER_SECONDS).status_code in (200, 503)
    for number in (1, 2, 3):
        process = psutil.Process(pid_of(three, f"server-{number}"))
        assert process.environ()["KCOORD_NODE_ID"] == f"{socket.gethostname()}-{number}"
        assert process.environ()["KCOORD_ADVERTISED_URL"] == f"http://127.0.0.1:{three.port + number}"
        assert {c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN} == {
            three.port,
            three.port + number,
        }


@WHOLE
def test_find_coordinator_by_an_own_port_names_an_own_port(three: Running) -> None:
    assert three.port is not None
    data_dir = psutil.Process(three.pid).environ()["KCOORD_DATA_DIR"]
    headers = {"Authorization": f"Bearer {credentials.read(Path(data_dir)).api_token}"}
    url = f"http://127.0.0.1:{three.port + 2}/v1/coordinator?group_id=g"
    found = httpx.get(url, headers=headers, timeout=ANSWER_SECONDS).json()["coordinators"][0]
    assert found["port"] in range(three.port + 1, three.port + 4), found


@WHOLE
def test_a_frozen_server_holds_no_new_connection(three: Running) -> None:
    assert three.port is not None
    pid = pid_of(three, "server-2")
    psutil.Process(pid).send_signal(signal.SIGSTOP)
    try:
        assert probe_many(three.port) == [200] * CONNECTIONS
        with pytest.raises(httpx.TimeoutException):
            httpx.get(f"http://127.0.0.1:{three.port + 2}/livez", timeout=0.5)
    finally:
        psutil.Process(pid).send_signal(signal.SIGCONT)
    assert probe(three.port + 2)[0] == 200


@WHOLE
def test_a_killed_server_loses_no_new_connection_and_comes_back(three: Running) -> None:
    assert three.port is not None
    pid = pid_of(three, "server-3")
    psutil.Process(pid).kill()
    wait_until_gone(pid)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{three.port + 3}/livez", timeout=0.5)
    assert probe_many(three.port) == [200] * CONNECTIONS
    three.wait_for_output("server-3 ended (signal 9 (SIGKILL)); starting it again in 0.5 s")
    deadline = time.monotonic() + 30
    while True:
        try:
            assert probe(three.port + 3)[0] == 200
            break
        except httpx.TransportError:
            assert time.monotonic() < deadline, three.report("server-3 did not come back")
            time.sleep(0.05)
    assert pid_of(three, "server-3") != pid


def problem_of(**settings: object) -> str:
    """Why a stack with these settings does not start."""
    with pytest.raises(StartProblem) as caught:
        nodes_of(Config.from_env({f"KCOORD_{name}": str(value) for name, value in settings.items()}))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_one_server_is_as_before() -> None:
    (only,) = nodes_of(Config({}))
    assert (only.name, only.options, only.identity) == ("server", (), {})


def test_names_build_on_the_one_that_was_set() -> None:
    nodes = nodes_of(Config({"nodes": 2, "node.id": "rack7"}))
    assert [node.identity["KCOORD_NODE_ID"] for node in nodes] == ["rack7-1", "rack7-2"]


def test_no_address_is_advertised_where_every_address_is_listened_on() -> None:
    assert {frozenset(node.identity) for node in nodes_of(Config({"nodes": 2, "host": "0.0.0.0"}))} == {
        frozenset({"KCOORD_NODE_ID"})
    }


def test_one_advertised_address_for_several_is_refused() -> None:
    text = problem_of(NODES=2, ADVERTISED_URL="https://kcoord.example")
    assert text.startswith("KCOORD_ADVERTISED_URL is one address, but each of the 2 servers")


def test_ports_beyond_the_last_are_refused() -> None:
    assert "choose a KCOORD_PORT below 65532" in problem_of(NODES=4, PORT=65_532)
    assert len(nodes_of(Config({"nodes": 4, "port": 65_531}))) == 4


def test_an_own_port_in_use_is_one_line() -> None:
    first = free_ports(2)
    with socket.create_server(("127.0.0.1", first + 2)), pytest.raises(StartProblem) as caught:
        preflight.check_own_ports("127.0.0.1", nodes_of(Config({"nodes": 2, "port": first})))
    assert str(caught.value).startswith(f"server-2 cannot have its own port: port {first + 2} of 127.0.0.1 is in use;")
    assert "choose another KCOORD_PORT: the 2 ports after it are used too" in str(caught.value)
    preflight.check_own_ports("127.0.0.1", nodes_of(Config({"nodes": 2, "port": first})))


def test_the_embedded_postgres_allows_for_all_of_them() -> None:
    assert services.connections(Config({})) == 200 + 3
    assert services.connections(Config({"nodes": 16})) == 16 * (2 * 8 + 8) + 40 + 3


@pytest.mark.parametrize(("given", "nodes"), [(("NODES=4",), "KCOORD_NODES=4 exec"), ((), "exec")])
def test_make_up_passes_the_number_on(given: tuple[str, ...], nodes: str) -> None:
    shown = shown_by_make("up", *given)
    assert shown.splitlines()[-1].strip() == f"{nodes} .venv/bin/python -m kcoord.stack --install-spark"
