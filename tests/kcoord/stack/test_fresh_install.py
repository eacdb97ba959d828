"""A machine with nothing but the service's packages: what the tests' own packages bring along must not be needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fresh import fresh_python
from tests.support.processes import ROOT, Running, environment, free_port, start

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("stack"),
    pytest.mark.whole("installs everything again"),
]

IMPORTS = """
import kombu.transport.redis, redis
from kcoord.stack.preflight import check_transport
for scheme in ("redis", "rediss", "pgmq"):
    check_transport(scheme)
import kcoord.asgi, kcoord.celery, kcoord.client.kgroups.run, kcoord.tools.demo.__main__, offsets.spark.__main__
"""


@pytest.fixture(scope="module")
def fresh() -> Path:
    """The interpreter of such a machine."""
    return fresh_python()


def test_every_part_and_every_broker_of_the_docs_can_be_imported(fresh: Path, tmp_path: Path) -> None:
    program = [str(fresh), "-c", f"import django; django.setup(){IMPORTS}"]
    done = subprocess.run(
        program, cwd=ROOT, env=environment(None, tmp_path), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_the_packages_fit_together(fresh: Path) -> None:
    """There, and with those of Spark jobs, which are in the environment of the tests."""
    for python in (fresh, sys.executable):
        program = [sys.executable, "-m", "uv", "pip", "check", "--python", python]
        done = subprocess.run(program, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_stack_runs_with_its_queue_in_postgres(fresh: Path, tmp_path: Path) -> None:
    assert_the_timers_run(fresh, {"KCOORD_DATA_DIR": tmp_path / "data"})


def test_the_stack_runs_with_redis(fresh: Path, tmp_path: Path, redis_url: str) -> None:
    assert_the_timers_run(fresh, {"KCOORD_DATA_DIR": tmp_path / "data", "KCOORD_BROKER_URL": redis_url})


def assert_the_timers_run(fresh: Path, env: dict[str, object]) -> None:
    """Server, worker and beat work together: /readyz is 200 only if beat's tasks reach the worker."""
    port = free_port()
    with start("stack", ["-m", "kcoord.stack"], None, {**env, "KCOORD_PORT": port}, python=str(fresh)) as running:
        running.port = port
        running.wait_ready(90, timers=True)
        assert " ended (" not in running.output, running.output
        running.terminate()


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A Redis of this test's own."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on the path; `apt-get install redis-server`")
    port = free_port()
    log = tmp_path / "redis.log"
    popen = subprocess.Popen(
        [
            program,
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(tmp_path),
            "--logfile",
            str(log),
        ]
    )
    with Running("redis", popen, tmp_path):
        yield f"redis://127.0.0.1:{port}/0"
