"""The service that the demo uses: a running one, or its own in a temporary directory."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from kcoord.client.http import make_client
from kcoord.client.proxies import via
from kcoord.config import BASE_DIR, Config
from kcoord.door.http.addresses import local_url
from kcoord.stack import credentials, launch

START_SECONDS = 120.0
STOP_SECONDS = 20.0
ASK_SECONDS = 10.0
POLL_SECONDS = 0.5
CLIENT_VARIABLES = ("KCOORD_URL", "KCOORD_TOKEN")

QUICK_SESSIONS = {"KCOORD_GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS": "6000"}
"""A demo that kills a worker should not have to wait long until the service notices."""

Say = Callable[[str], None]


class DemoProblem(Exception):
    """Why the demo cannot continue, and the remedy."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where the service is and how to access it. `hint` says how to sign in."""

    url: str
    token: str
    hint: str

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        """One request to `/v1/PATH`. Raises DemoProblem if no answer arrives."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            with make_client() as client:
                return client.request(method, f"{self.url}/v1/{path}", json=body, headers=headers, timeout=ASK_SECONDS)
        except httpx.TransportError as error:
            raise DemoProblem(
                f"{self.url} does not answer: {error or type(error).__name__}{via(error.request)}; is it still running?"
            ) from error

    def expect(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The same, decoded. Raises DemoProblem for an error."""
        answer = self.request(method, path, body)
        if answer.is_success:
            return answer.json()
        raise DemoProblem(f"{method} /v1/{path} answered {answer.status_code}: {answer.text[:500]}")


@contextmanager
def reach(environ: Mapping[str, str], say: Say, settings: Mapping[str, str] = QUICK_SESSIONS) -> Iterator[Service]:
    """The service that KCOORD_URL names, else the one of the data directory, else a new one, stopped at the end.

    Parameters: `settings` are variables for a new one. Raises DemoProblem.
    """
    url = environ.get("KCOORD_URL", "").split(",")[0].rstrip("/")
    if url:
        yield _checked(Service(url, environ.get("KCOORD_TOKEN", ""), "sign in with your account"))
        return
    found = _of_data_directory(environ, say)
    if found is not None:
        yield _checked(found)
        return
    with _own(environ, settings) as own:
        yield _checked(own)


def _of_data_directory(environ: Mapping[str, str], say: Say) -> Service | None:
    """The service of the data directory; None if nothing runs there. Waits for one that is starting."""
    config = Config.from_env(environ)
    data_dir = config.data_dir
    url = (credentials.read_address(data_dir) if credentials.is_running(data_dir) else None) or local_url(config)
    if credentials.is_running(data_dir) and not _ready(url):
        say(f"waiting for the service at {url}, which is starting")
        deadline = time.monotonic() + START_SECONDS
        while credentials.is_running(data_dir) and not _ready(url):
            if time.monotonic() > deadline:
                raise DemoProblem(
                    f"a service runs in {data_dir}, but {url}/readyz was not ready within {START_SECONDS:g} s; see its "
                    "log, or set KCOORD_PORT to its port"
                )
            time.sleep(POLL_SECONDS)
    try:
        if not _ready(url):
            raise FileNotFoundError
        known = credentials.read(data_dir)
    except FileNotFoundError:
        say(f"no service of {data_dir} answers at {url}; starting one until this ends (or run `make up` first)")
        return None
    except (ValueError, OSError) as error:
        raise DemoProblem(
            f"{url} answers, but the credentials cannot be read: {error}; set KCOORD_URL and KCOORD_TOKEN"
        ) from error
    where = data_dir / credentials.CREDENTIALS_FILE
    return Service(url, environ.get("KCOORD_TOKEN") or known.api_token, f"user and password are in {where}")


def _ready(url: str) -> bool:
    try:
        with make_client() as client:
            return client.get(f"{url}/readyz", timeout=ASK_SECONDS).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _checked(service: Service) -> Service:
    """The service, if it accepts the token."""
    answer = service.request("GET", "topics")
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise DemoProblem(f"{service.url} refuses the token ({answer.status_code}): set KCOORD_TOKEN to a valid token")
    if not answer.is_success:
        raise DemoProblem(f"{service.url} answers {answer.status_code}: is it a kcoord service?")
    return service


@contextmanager
def _own(environ: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Service]:
    directory = Path(tempfile.mkdtemp(prefix="kcoord-demo-service-"))
    port = _free_port()
    inherited = {key: value for key, value in environ.items() if not key.startswith("KCOORD_")}
    own = {
        "KCOORD_DATA_DIR": str(directory / "data"),
        "KCOORD_PORT": str(port),
        **settings,
    }
    log = directory / "output"
    with log.open("wb") as output:
        stack = subprocess.Popen(  # noqa: S603
            _ending_with_this_process([sys.executable, "-m", "kcoord.stack"]),
            cwd=BASE_DIR,
            env=inherited | own,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(stack, url, log)
        made = credentials.read(directory / "data")
        hint = f"user {made.admin_user}, password {made.admin_password}"
        if not sys.stdout.isatty():
            hint = f"user and password are in {directory / 'data' / credentials.CREDENTIALS_FILE} while the demo runs"
        yield Service(url, made.api_token, hint)
    finally:
        _stop(stack)
        shutil.rmtree(directory, ignore_errors=True)


def _ending_with_this_process(command: list[str]) -> list[str]:
    """The command, run so that it ends even if this process is killed."""
    return [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(int(signal.SIGTERM)), "-", *command]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_until_ready(stack: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _ready(url):
        if stack.poll() is not None or time.monotonic() > deadline:
            state = "is not ready" if stack.poll() is None else f"ended with status {stack.returncode}"
            tail = log.read_text(errors="replace")[-2000:]
            raise DemoProblem(f"the service {state}; it wrote:\n{tail}")
        time.sleep(0.1)


def _stop(stack: subprocess.Popen[bytes]) -> None:
    stack.terminate()
    try:
        stack.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        stack.kill()
        stack.wait()


def new_group() -> str:
    """A group id that no earlier demo used."""
    return f"wordcount-{secrets.token_hex(3)}"
