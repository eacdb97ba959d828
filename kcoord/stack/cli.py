"""`python -m kcoord.stack`: check, start in order, report readiness, stop on a signal."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import time
from pathlib import Path

from kcoord import __version__
from kcoord.config import Config
from kcoord.door.http.addresses import advertised_url, local_url
from kcoord.stack import credentials, embedded, install, preflight, services
from kcoord.stack.alive import wait_until_ready
from kcoord.stack.embedded import Embedded
from kcoord.stack.gate import Gate
from kcoord.stack.logbook import Logbook, readable
from kcoord.stack.preflight import EXIT_STATUS, Plan, StartProblem
from kcoord.stack.supervisor import OWN_NAME, Supervisor

LATE_SECONDS = 30.0
EXPECTED = (
    "FATAL:  the database system is starting up",
    "FATAL:  the database system is shutting down",
    "FATAL:  terminating connection due to administrator command",
    "FATAL:  connection to client lost",
)
"""What the embedded Postgres writes for connections that come while it starts or stops, or whose process closed them
before they were open: no failure of anything. Who gives up a connection in use says so itself.
"""


def main() -> int:
    """Run the stack until a signal. Exit status 0 after a stop, 2 if it cannot start, 1 if the setup crashed."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(
        prog="python -m kcoord.stack", description="Start kcoord; Ctrl-C stops it. Settings are environment variables."
    )
    parser.add_argument("--version", action="version", version=f"kcoord {__version__}")
    parser.add_argument(
        "--install-spark", action="store_true", help="install missing packages of Spark jobs once the service is ready"
    )
    given = parser.parse_args()
    environ = dict(os.environ)
    try:
        plan = preflight.prepare(environ, _tell)
        log = _open_log(plan.data_dir)
        postgres = _install(plan, log)
        return asyncio.run(run(plan, postgres, environ, log, began, install_spark=given.install_spark))
    except StartProblem as problem:
        _tell(str(problem))
        return EXIT_STATUS
    except KeyboardInterrupt:
        return 130


async def run(
    plan: Plan,
    postgres: Embedded | None,
    environ: dict[str, str],
    log: Logbook,
    began: float,
    *,
    install_spark: bool = False,
) -> int:
    """Start, supervise, stop; returns the exit status. `began` is when the start began, by the monotonic clock.

    Raises StartProblem, after everything has stopped.
    """

    def write(service: str, line: str) -> None:
        if service == "postgres" and line.startswith(EXPECTED):
            return
        for shown in readable(line):
            log.write(service, shown)

    supervisor = Supervisor(write)
    announcement: asyncio.Task[None] | None = None
    gate = Gate()
    try:
        stored = _identity(plan.data_dir)
        setup = asyncio.create_task(supervisor.run_once(services.setup(plan, environ)))
        if postgres is not None:
            # The setup imports Django meanwhile; with all of them beside it, initdb would take several times as long.
            await asyncio.to_thread(embedded.create, postgres, supervisor.say)
            supervisor.keep(services.postgres(plan, postgres, environ))
        for command in services.services(plan, environ, gate):
            supervisor.keep(command)
        status = await setup
        if status is None:
            return 0
        if status != 0:
            supervisor.say("the start failed; see the lines above")
            return EXIT_STATUS if status == EXIT_STATUS else 1
        if _identity(plan.data_dir) != stored:
            _show_credentials(plan, log)
        gate.open()
        announcement = asyncio.create_task(_announce(plan, supervisor, began, environ if install_spark else None))
        await supervisor.stopped()
        return 0
    finally:
        if announcement is not None:
            announcement.cancel()
        await supervisor.stop()
        log.close()


async def _announce(plan: Plan, supervisor: Supervisor, began: float, spark: dict[str, str] | None) -> None:
    """Report when every server is ready, and once if that takes long. `spark`: the environment to install Spark with,
    after that; None: it is not installed.
    """
    config = plan.config
    ports = [node.own_port or config.int("port") for node in plan.nodes]
    ready = asyncio.gather(*(wait_until_ready(config.str("host"), port) for port in ports))
    ready.add_done_callback(lambda done: done.cancelled() or done.exception())  # a stop may come before it
    try:
        done, _ = await asyncio.wait({ready}, timeout=LATE_SECONDS)
        if not done:
            supervisor.say(f"not ready after {LATE_SECONDS:g} s; {url_of(config)}readyz lists what is missing")
        await ready
        supervisor.say(f"ready at {url_of(config)} after {time.monotonic() - began:.1f} s")
        if spark is not None and not install.has_spark():
            await supervisor.run_once(services.install_spark(plan, spark))
    finally:
        ready.cancel()
        await asyncio.gather(ready, return_exceptions=True)


def url_of(config: Config) -> str:
    """The server's address, as shown to users."""
    return f"{advertised_url(config)}/"


def _install(plan: Plan, log: Logbook) -> Embedded | None:
    """What must be in the data directory before the first process starts."""

    def say(text: str) -> None:
        log.write(OWN_NAME, text)

    try:
        key = plan.data_dir / credentials.SECRET_KEY_FILE
        if not plan.config.str("secret.key") and not key.is_file():
            credentials.write_private(key, secrets.token_urlsafe(48) + "\n")
        (plan.data_dir / "static").mkdir(exist_ok=True)
        credentials.write_address(plan.data_dir, local_url(plan.config))
        return None if plan.config.str("database.url") else embedded.place(plan.data_dir, say)
    except OSError as error:
        where = error.filename or plan.data_dir
        raise StartProblem(f"{where}: {error.strerror}; correct that, or set another KCOORD_DATA_DIR") from error


def _open_log(data_dir: Path) -> Logbook:
    path = data_dir / credentials.LOG_FILE
    try:
        return Logbook(path)
    except OSError as error:
        raise StartProblem(f"the log {path} cannot be written: {error.strerror}; make it writable") from error


def _identity(data_dir: Path) -> tuple[int, int] | None:
    """Identifies the current credentials file: setup replaces it when it creates new credentials."""
    try:
        found = (data_dir / credentials.CREDENTIALS_FILE).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _show_credentials(plan: Plan, log: Logbook) -> None:
    """Print the credentials of the first start on a terminal; elsewhere say where they are: logs keep no secrets."""
    path = plan.data_dir / credentials.CREDENTIALS_FILE
    if not log.is_terminal:
        log.show(f"kcoord: the account and the API token of the first start are in {path}, readable only by its owner")
        return
    found = credentials.read(plan.data_dir)
    log.show(
        "\n  The first start created an account and an API token. They are shown only once and kept, readable by you\n"
        f"  only, in {path}\n\n"
        f"    sign in    {url_of(plan.config)}\n"
        f"    user       {found.admin_user}\n"
        f"    password   {found.admin_password}\n"
        f"    API token  {found.api_token}\n"
    )


def _tell(text: str) -> None:
    print(f"kcoord: {text}", file=sys.stderr, flush=True)  # noqa: T201
