"""Checks made before anything is started. Each problem is one line with its remedy, and exit status 2.

One server of a stack is called `server` and has the shared port only. Several are `server-1` … `server-N`; each also
answers on a port of its own, the shared one plus its number, which it advertises: there a client reaches that server
and no other. For Kafka clients the first server has `kafka.port`, the second the next one, and so on.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kcoord.config import ANY_ADDRESS, Config
from kcoord.door.http.addresses import http_url
from kcoord.setting_table import BY_NAME

EXIT_STATUS = 2


class StartProblem(Exception):
    """The stack cannot start. The text is one line: what is wrong, and the remedy."""


LAST_PORT = 65_535
NODE_ID, ADVERTISED_URL, KAFKA_PORT = (BY_NAME[name].env for name in ("node.id", "advertised.url", "kafka.port"))


@dataclass(frozen=True, slots=True)
class Node:
    """One server. `own_port`: None if it has only the shared one. `identity`: variables of its environment.

    `kafka_port`: that for Kafka clients, 0 without one.
    """

    name: str
    own_port: int | None
    identity: Mapping[str, str]
    kafka_port: int = 0

    @property
    def options(self) -> tuple[str, ...]:
        """What its command line adds."""
        return () if self.own_port is None else ("--own-port", str(self.own_port))


def nodes_of(config: Config) -> list[Node]:
    """All servers of a stack with these settings. Raises StartProblem if they cannot be told apart."""
    count, port = config.int("nodes"), config.int("port")
    if count == 1:
        return [Node("server", None, {}, config.int("kafka.port"))]
    if port + count > LAST_PORT:
        raise StartProblem(
            f"KCOORD_NODES={count} needs the ports {port} to {port + count}; choose a KCOORD_PORT below "
            f"{LAST_PORT - count + 1}"
        )
    if config.str("advertised.url"):
        raise StartProblem(
            f"KCOORD_ADVERTISED_URL is one address, but each of the {count} servers of KCOORD_NODES needs its own; "
            "unset it, and behind a proxy set KCOORD_HOST=0.0.0.0: clients are then told the address they came by"
        )
    if config.int("kafka.port") + count - 1 > LAST_PORT or config.int("kafka.advertised.port"):
        raise StartProblem(
            f"KCOORD_NODES={count} needs {count} ports for Kafka clients from KCOORD_KAFKA_PORT on; choose one below "
            f"{LAST_PORT - count + 2} and unset KCOORD_KAFKA_ADVERTISED_PORT, which is a single one"
        )
    return [_node(config, number) for number in range(1, count + 1)]


def _node(config: Config, number: int) -> Node:
    host, port = config.str("host"), config.int("port") + number
    identity = {NODE_ID: f"{config.str('node.id') or socket.gethostname()}-{number}"}
    if host not in ANY_ADDRESS:
        identity[ADVERTISED_URL] = http_url(host, port)
    kafka_port = config.int("kafka.port")
    if kafka_port:
        kafka_port += number - 1
        identity[KAFKA_PORT] = str(kafka_port)
    return Node(f"server-{number}", port, identity, kafka_port)


if TYPE_CHECKING:
    pass

CONNECT_SECONDS = 3
LEFTOVER_SECONDS = 15.0
OLDEST_POSTGRES = 140_000
LOCK_FILE = "lock"
OTHER_TRANSACTIONS = 2
"""A pooler gives the session that was used last to the next transaction, or the one that was used first."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The results of the checks. `listener` is bound but does not listen yet; `lock` is held until it is closed."""

    config: Config
    data_dir: Path
    listener: socket.socket
    lock: int
    nodes: Sequence[Node] = (Node("server", None, {}),)


def prepare(environ: Mapping[str, str], say: Callable[[str], None]) -> Plan:
    """Check everything that can be checked before a start. Raises StartProblem."""
    config = read_config(environ)
    nodes = nodes_of(config)
    data_dir = make_data_dir(config)
    lock = lock_data_dir(data_dir, say)
    listener = bind(config.str("host"), config.int("port"))
    check_own_ports(config.str("host"), nodes)
    check_kafka(config, nodes)
    check_database(config.str("database.url"))
    check_broker(config.str("broker.url"))
    return Plan(config, data_dir, listener, lock, nodes)


def check_own_ports(host: str, nodes: Sequence[Node]) -> None:
    """Raises StartProblem if a server could not listen on the port of its own."""
    for node in nodes:
        if node.own_port is None:
            continue
        try:
            bind(host, node.own_port).close()
        except StartProblem as problem:
            raise StartProblem(
                f"{node.name} cannot have its own port: {str(problem).partition(';')[0]}; stop the other program, or "
                f"choose another KCOORD_PORT: the {len(nodes)} ports after it are used too"
            ) from problem


def check_kafka(config: Config, nodes: Sequence[Node]) -> None:
    """Raises StartProblem if a server could not listen for Kafka clients."""
    for node in nodes:
        if not node.kafka_port:
            continue
        try:
            bind(config.str("kafka.host"), node.kafka_port).close()
        except StartProblem as problem:
            raise StartProblem(
                f"{node.name} cannot listen for Kafka clients: {str(problem).partition(';')[0]}; stop the other "
                "program, or choose another KCOORD_KAFKA_PORT or KCOORD_KAFKA_HOST"
            ) from problem
    for name in ("kafka.tls.certificate", "kafka.tls.key"):
        path = config.str(name)
        if path and not os.access(path, os.R_OK):
            raise StartProblem(f"{BY_NAME[name].env}={path}: user {os.geteuid()} cannot read it; name a PEM file")


def read_config(environ: Mapping[str, str]) -> Config:
    """The current settings. Raises StartProblem for the first one that cannot be used, with the number of others."""
    config = Config.from_env(environ)
    if config.problems:
        first, *others = config.problems
        more = f" (and {len(others)} more: `manage.py check` lists them)" if others else ""
        raise StartProblem(f"{first}{more}")
    if config.str("otlp.endpoint"):
        check_traces()
    return config


def check_traces() -> None:
    """Raises StartProblem if the packages that send traces are not installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk  # noqa: F401
    except ImportError as error:
        raise StartProblem(
            f"KCOORD_OTLP_ENDPOINT needs packages that are not installed ({one_line(error)}); run "
            f"`{sys.executable} -m pip install -r deploy/requirements-otlp.txt`, or unset it"
        ) from error


def make_data_dir(config: Config) -> Path:
    """The data directory, created if necessary. Raises StartProblem if it cannot be read or written."""
    path = config.data_dir
    remedy = f"give user {os.geteuid()} read and write access to it, or set KCOORD_DATA_DIR to another directory"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.scandir(path).close()
    except OSError as error:
        reason = "it is not a directory" if isinstance(error, FileExistsError) else error.strerror
        raise StartProblem(f"the data directory {path} cannot be used: {reason}; {remedy}") from error
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise StartProblem(f"the data directory {path} cannot be used: it cannot be written; {remedy}")
    return path


def lock_data_dir(data_dir: Path, say: Callable[[str], None]) -> int:
    """Take the lock that every process of a stack holds, so that two stacks never share a directory.

    Children inherit it. If a supervisor was killed its children end on their own, which is waited for. Raises
    StartProblem while another stack runs. Returns the open descriptor; closing it, or exiting, releases the lock.
    """
    path = data_dir / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartProblem(
            f"the data directory {data_dir} cannot be used: {path.name}: {error.strerror}; give user {os.geteuid()} "
            "read and write access to all of it, or set KCOORD_DATA_DIR to another directory"
        ) from error
    deadline = time.monotonic() + LEFTOVER_SECONDS
    waiting = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            if _is_alive(holder) or time.monotonic() > deadline:
                os.close(descriptor)
                raise StartProblem(
                    f"kcoord is already running in {data_dir} (process {holder or 'unknown'} or what it left behind); "
                    "stop it, or set KCOORD_DATA_DIR to another directory and another port in KCOORD_PORT"
                ) from None
            if not waiting:
                say(f"the last run (process {holder}) was killed; waiting for what it left behind to end")
                waiting = True
            time.sleep(0.05)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _is_alive(pid: str) -> bool:
    if not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the address of the server. Raises StartProblem if that is taken or not ours.

    It does not listen: until the first server is up connections are refused, which clients understand. The supervisor
    keeps it, so that connections wait while a server that died is restarted.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise StartProblem(f"KCOORD_HOST={host}: {error.strerror}; name an address of this machine") from error
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise StartProblem(_bind_problem(host, port, error)) from error
    return listener


def _bind_problem(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        other = port + 1 if port < 65_535 else 8000
        return f"port {port} of {host} is in use; stop the other program or choose another port: KCOORD_PORT={other}"
    if error.errno == errno.EACCES:
        return f"user {os.geteuid()} may not listen on port {port}; choose one above 1023: KCOORD_PORT=8000"
    return f"cannot listen on {host} port {port}: {error.strerror}; name an address of this machine in KCOORD_HOST"


def check_database(url: str) -> None:
    """Connect to the Postgres that KCOORD_DATABASE_URL names, within CONNECT_SECONDS. Raises StartProblem."""
    if not url:
        return
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            version = connection.info.server_version
        keeps_sessions = _keeps_sessions(url)
    except psycopg.ProgrammingError as error:
        raise StartProblem(
            f"KCOORD_DATABASE_URL is no Postgres address: {one_line(error)}; expected postgresql://user:password@host/db"
        ) from error
    except psycopg.OperationalError as error:
        raise StartProblem(
            f"KCOORD_DATABASE_URL: Postgres cannot be reached: {one_line(error)}; start it or correct the address, "
            "or unset KCOORD_DATABASE_URL to use the embedded one"
        ) from error
    if version < OLDEST_POSTGRES:
        raise StartProblem(
            f"KCOORD_DATABASE_URL: PostgreSQL {version // 10_000} is too old; use {OLDEST_POSTGRES // 10_000} or newer"
        )
    if not keeps_sessions:
        raise StartProblem(
            "KCOORD_DATABASE_URL: a pooler gives each transaction another session of Postgres: neither LISTEN nor "
            "time limits last; set it to session mode, or name Postgres itself"
        )


def _keeps_sessions(url: str) -> bool:
    """Whether a connection keeps its session while others are in transactions. Raises StartProblem."""
    import psycopg

    from kcoord.database.liveness import PatientConnection

    token = secrets.token_hex(8)
    try:
        with ExitStack() as connections:

            def connection() -> PatientConnection:
                made = PatientConnection.connect(url, connect_timeout=CONNECT_SECONDS)
                made.longest_seconds = CONNECT_SECONDS  # a pooler accepts it and then waits for a session
                return connections.enter_context(made)

            first = connection()
            first.autocommit = True
            first.execute("select set_config('kcoord.session', %s, false)", [token])
            for _ in range(OTHER_TRANSACTIONS):
                connection().execute("select 1")  # begins a transaction
                if first.execute("select current_setting('kcoord.session', true)").fetchone() != (token,):
                    return False
    except psycopg.OperationalError as error:
        raise StartProblem(
            f"KCOORD_DATABASE_URL: no session of Postgres for {OTHER_TRANSACTIONS + 1} connections at a time: "
            f"{one_line(error)}; a pooler has to be in session mode and to have enough of them (pgbouncer: "
            "default_pool_size; docs/operations/start.md, Your own Postgres, says how many)"
        ) from error
    return True


def check_broker(url: str) -> None:
    """Connect to the broker that KCOORD_BROKER_URL names, within CONNECT_SECONDS. Raises StartProblem.

    Only Redis is tried; of others it is checked that their packages are installed, the rest is left to Celery.
    """
    if not url:
        return
    parts = urlsplit(url)
    if not parts.scheme or "://" not in url:
        raise StartProblem("KCOORD_BROKER_URL is no address; expected redis://host:6379/0, or unset it to use Postgres")
    check_transport(parts.scheme)
    if parts.scheme not in ("redis", "rediss"):
        return
    import redis

    try:
        client = redis.Redis.from_url(url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS)
        with client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        raise StartProblem(
            f"KCOORD_BROKER_URL: Redis cannot be reached: {one_line(error)}; start it or correct the address, or "
            "unset KCOORD_BROKER_URL to use the queue in Postgres"
        ) from error


def check_transport(scheme: str) -> None:
    """Import what Celery needs for brokers of this scheme: without it worker and beat would crash at every start.

    Raises StartProblem.
    """
    from kombu.transport import get_transport_cls

    try:
        get_transport_cls(scheme)
    except ImportError as error:
        raise StartProblem(
            f"KCOORD_BROKER_URL: {scheme}:// needs a package that is not installed ({one_line(error)}); run "
            f"`{sys.executable} -m pip install 'celery[{scheme}]'`, or use redis://…, or unset it to use the queue in "
            "Postgres"
        ) from error
    except KeyError as error:
        raise StartProblem(
            f"KCOORD_BROKER_URL: Celery knows no broker {scheme}://; expected redis://host:6379/0, or unset it to use "
            "the queue in Postgres"
        ) from error


def one_line(error: BaseException) -> str:
    """The message of an error on one line, without the passwords that an address in it may contain."""
    text = " ".join(str(error).split()) or type(error).__name__
    return re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", text)
